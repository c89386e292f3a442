"""Writes and reads model files; each version of the format has a reader in a table."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from hdicore import Forest, LeafIndex, Scorer
from hdiforest import tensor_file
from hdiforest.boosted_mean import BoostedMean
from hdiforest.calibration import from_arrays, to_arrays
from hdiforest.centred import CentredForest
from hdiforest.fitted import FittedForest, TrainingRows
from hdiforest.model_schema import check_facts, check_tensors, check_training_rows
from hdiforest.tensor_file import Facts, Tensors


def save(fitted: FittedForest, path: Path, *, training_rows: bool) -> None:
    """Write a fitted forest, with or without its training rows."""
    forest, index = fitted.scorer.forest, fitted.scorer.index
    rows = fitted.require_training_rows() if training_rows else None
    groups: dict[str, Any] = {"forest": forest.arrays(), "index": index.arrays()}
    if rows is not None:
        groups["training"] = _training_arrays(rows)
    calibration = None
    if fitted.calibration is not None:
        groups["calibration"], calibration = to_arrays(fitted.calibration)
    mean = None
    if fitted.centred is not None:
        groups["residuals"] = fitted.centred.residuals.arrays()
        groups["centred"] = {"leaf_means": fitted.centred.leaf_means}
        mean = _add_mean(groups, fitted.centred)
    tensors = {
        f"{group}.{name}": array
        for group, arrays in groups.items()
        for name, array in arrays.items()
    }
    names = fitted.feature_names
    facts = {
        "scikit_learn": version("scikit-learn"),
        "weights": fitted.weights,
        "n_features": fitted.n_features,
        "feature_names": None if names is None else [str(name) for name in names],
        "scalar_output": index.scalar_output,
        "n_training_rows": fitted.n_training_rows,
        "allow_nan": fitted.allow_nan,
        "counts_are_weighted": rows is not None and rows.counts_are_weighted,
        "calibration": calibration,
        "mean": mean,
    }
    tensor_file.write(path, MODEL, facts, tensors)


def load(path: Path) -> FittedForest:
    """Return the fitted forest stored at `path`; see `HDIForestRegressor.load`."""
    return tensor_file.load(path, MODEL)


def read_facts(path: Path) -> Facts:
    """Return versions, weights, names and sizes from a model file that `load` has accepted."""
    return tensor_file.read_facts(path, MODEL)


def _add_mean(groups: dict[str, Any], centred: CentredForest) -> Facts | None:
    """Add the arrays of the mean in the centres to the groups, and return its facts."""
    if centred.mean is None:
        return None
    if not isinstance(centred.mean, BoostedMean):
        raise ValueError(
            "a model file cannot hold the regressor given as mean; calibrate with "
            "mean='boosting', or pickle the model"
        )
    groups["mean_forest"] = centred.mean.forest.arrays()
    groups["centred"]["mean_values"] = centred.mean.leaf_values
    return {"share": centred.share, "baseline": centred.mean.baseline}


def _training_arrays(rows: TrainingRows) -> Tensors:
    arrays: Tensors = {"X": rows.X, "y": rows.y}
    if rows.sample_weight is not None:
        arrays["sample_weight"] = rows.sample_weight
    if rows.counts is not None:
        arrays["counts"] = rows.counts
    return arrays


def _grouped(tensors: Tensors) -> dict[str, Any]:
    """Return the arrays of each group by their names in it."""
    groups: dict[str, Any] = defaultdict(dict)
    for name, array in tensors.items():
        group, _, key = name.partition(".")
        groups[group][key] = array
    return groups


def _read_version_1(facts: Facts, tensors: Tensors) -> FittedForest:
    check_facts(facts, 1)
    check_tensors(tensors, 1)
    return _fitted_forest(facts, _grouped(tensors))


def _read_version_2(facts: Facts, tensors: Tensors) -> FittedForest:
    check_facts(facts, 2)
    check_tensors(tensors, 2)
    groups = _grouped(tensors)
    fitted = _fitted_forest(facts, groups)
    centred = _centred_forest(fitted.scorer.forest, groups, facts["mean"])
    calibration = None
    if facts["calibration"] is not None:
        calibration = from_arrays(groups["calibration"], facts["calibration"])
    elif groups["calibration"]:
        raise ValueError("it has tensors of a calibration, but no facts of one")
    return replace(fitted, calibration=calibration, centred=centred)


def _centred_forest(
    forest: Forest, groups: dict[str, Any], mean: Facts | None
) -> CentredForest | None:
    arrays = groups["centred"]
    wanted = () if mean is None else ("mean_values",)
    if not groups["residuals"] and not arrays and not groups["mean_forest"] and mean is None:
        return None
    for name in ("leaf_means", *wanted):
        if name not in arrays:
            raise ValueError(f"the tensor centred.{name} is missing")
    residuals = LeafIndex.from_arrays(groups["residuals"], True, copy=False)
    if mean is None:
        if groups["mean_forest"] or "mean_values" in arrays:
            raise ValueError("it has tensors of a mean, but no facts of one")
        return CentredForest.checked(forest, residuals, arrays["leaf_means"])
    trees = Forest.from_arrays(groups["mean_forest"], forest.n_features, copy=False)
    boosted = BoostedMean.checked(trees, arrays["mean_values"], mean["baseline"], forest.n_features)
    return CentredForest.checked(forest, residuals, arrays["leaf_means"], boosted, mean["share"])


def _fitted_forest(facts: Facts, groups: dict[str, Any]) -> FittedForest:
    forest = Forest.from_arrays(groups["forest"], facts["n_features"], copy=False)
    index = LeafIndex.from_arrays(groups["index"], facts["scalar_output"], copy=False)
    scorer = Scorer(forest, index)
    atoms = [index.atoms(output) for output in range(index.n_outputs)]
    if max(map(len, atoms)) > facts["n_training_rows"]:
        raise ValueError("leaves hold more distinct targets than there were training rows")
    training, rows = groups["training"], None
    if training:
        check_training_rows(training, facts, forest.n_trees, atoms)
        optional = {name: training.get(name) for name in ("sample_weight", "counts")}
        given: dict[str, Any] = training | optional
        rows = TrainingRows(**given, counts_are_weighted=facts["counts_are_weighted"])
    names = facts["feature_names"]
    return FittedForest(
        scorer=scorer,
        weights=facts["weights"],
        n_training_rows=facts["n_training_rows"],
        allow_nan=facts["allow_nan"],
        feature_names=None if names is None else np.array(names, dtype=object),
        training_rows=rows,
    )


MODEL = tensor_file.Format(
    noun="model file",
    content="model",
    key="hdicore_model",
    readers={1: _read_version_1, 2: _read_version_2},
)
