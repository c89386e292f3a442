"""Writes and reads model files; each version of the format has a reader in a table."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hdicore import Forest, LeafIndex, Scorer
from hdiforest._model.fitted import FittedForest, Jackknife
from hdiforest._model.residuals import BoostedMean, CentredForest
from hdiforest._model.training_rows import TrainingRows
from hdiforest._tables.encoder import TableCoding
from hdiforest.calibration._arrays import from_arrays, to_arrays
from hdiforest.serving import _tensor_file as tensor_file
from hdiforest.serving._schema import (
    check_facts,
    check_tensors,
    check_training_shapes,
    check_training_values,
)
from hdiforest.serving._tensor_file import Facts, Loaded, Origin, Tensors

_RANGE = "feature_range"


_FOLD = re.compile(r"fold\d+\.")


def save(fitted: FittedForest, path: Path, *, training_rows: bool) -> None:
    """Write a fitted forest, with or without its training rows."""
    names = fitted.feature_names
    rows = fitted.require_training_rows() if training_rows else None
    tensors, own_facts = _parts(fitted)
    if rows is not None:
        tensors |= _named("training", _training_arrays(rows))
    if fitted.feature_range is not None:
        tensors[_RANGE] = fitted.feature_range
    folds = []
    for i, fold in enumerate(fitted.folds):
        of_fold, fold_facts = _parts(fold)
        tensors |= _named(f"fold{i}", of_fold)
        folds.append(fold_facts)
    facts = {
        "scikit_learn": import_module("importlib.metadata").version("scikit-learn"),
        "weights": fitted.weights,
        "n_features": fitted.n_features,
        "feature_names": None if names is None else [str(name) for name in names],
        "scalar_output": fitted.scorer.index.scalar_output,
        "allow_nan": fitted.allow_nan,
        "counts_are_weighted": rows is not None and rows.counts_are_weighted,
        "folds": folds,
        **({} if fitted.matches_forest is None else {"matches_forest": fitted.matches_forest}),
        "coding": None if fitted.coding is None else fitted.coding.facts(),
        "training_digest": fitted.training_digest,
        **own_facts,
    }
    tensor_file.write(path, MODEL, facts, tensors)


def load(path: Path, *, verify: bool = False, mapped: bool = True) -> Loaded[FittedForest]:
    """Return the fitted forest stored at `path`; see `HDIForestRegressor.load`."""
    loaded = tensor_file.load(path, MODEL, verify=verify, mapped=mapped)
    return loaded._replace(content=replace(loaded.content, check_file=loaded.check_file))


def _named(group: str, arrays: Mapping[str, NDArray[Any]]) -> Tensors:
    return {f"{group}.{name}": array for name, array in arrays.items()}


def _parts(fitted: FittedForest) -> tuple[Tensors, Facts]:
    """Return the arrays that score rows, and those facts that differ between folds."""
    scorer, centred = fitted.scorer, fitted.centred
    tensors = _named("forest", _arrays(scorer.forest)) | _named("index", _arrays(scorer.index))
    facts: Facts = {
        "n_training_rows": fitted.n_training_rows,
        "calibration": None,
        "mean": None,
    }
    if fitted.calibration is not None:
        arrays, facts["calibration"] = to_arrays(fitted.calibration)
        tensors |= _named("calibration", arrays)
    if fitted.jackknife is not None:
        tensors |= _named("inbag", _arrays(fitted.jackknife.index))
        tensors["jackknife.drawn"] = fitted.jackknife.drawn.astype(np.uint8)
    if centred is not None:
        tensors |= _named("residuals", _arrays(centred.scorer.index))
        tensors["centred.leaf_means"] = centred.leaf_means
    if centred is not None and centred.mean is not None:
        if not isinstance(centred.mean, BoostedMean):
            raise ValueError(
                "a model file cannot hold the regressor given as mean; calibrate with "
                "mean='boosting', or pickle the model"
            )
        tensors |= _named("mean_forest", _arrays(centred.mean.forest))
        tensors["centred.mean_values"] = centred.mean.leaf_values
        facts["mean"] = {"share": centred.share, "baseline": centred.mean.baseline}
    return tensors, facts


def _arrays(part: Forest | LeafIndex) -> Tensors:
    return cast("Tensors", part.arrays())


def _training_arrays(rows: TrainingRows) -> Tensors:
    return {name: array for name, array in rows.arrays().items() if array is not None}


def _grouped(tensors: Tensors) -> dict[str, Any]:
    """Return the arrays of each group by their names in it."""
    groups: dict[str, Any] = defaultdict(dict)
    for name, array in tensors.items():
        group, _, key = name.partition(".")
        groups[group][key] = array
    return groups


def _read_version_1(facts: Facts, tensors: Tensors, origin: Origin) -> FittedForest:
    check_facts(facts, 1)
    check_tensors(tensors, 1)
    return _fitted_forest(facts, _grouped(tensors), origin)


def _read_version_2(facts: Facts, tensors: Tensors, origin: Origin) -> FittedForest:
    check_facts(facts, 2)
    of_folds = _grouped({name: array for name, array in tensors.items() if _FOLD.match(name)})
    if set(of_folds) != {f"fold{i}" for i in range(len(facts["folds"]))}:
        raise ValueError("its tensors are not those of its folds")
    folds = tuple(
        # Facts that are not the fold's own are those of the whole model.
        _read_part(facts | own | {"folds": []}, of_folds[f"fold{i}"], (), origin.part(f"fold{i}"))
        for i, own in enumerate(facts["folds"])
    )
    if any(fold.n_features != facts["n_features"] for fold in folds):
        raise ValueError("the calibration does not fit the folds of the model")
    of_model = {name: array for name, array in tensors.items() if not _FOLD.match(name)}
    return _read_part(facts, of_model, folds, origin)


def _read_version_3(facts: Facts, tensors: Tensors, origin: Origin) -> FittedForest:
    """Read what version 2 holds, a coding, and the range of the features if it is there."""
    if "coding" not in facts:
        raise ValueError("the fact coding is missing")
    rest = {name: value for name, value in facts.items() if name != "coding"}
    others = {name: array for name, array in tensors.items() if name != _RANGE}
    fitted = _read_version_2(rest, others, origin)
    coding, ends = facts["coding"], tensors.get(_RANGE)
    return replace(
        fitted,
        coding=None if coding is None else TableCoding.from_facts(coding),
        feature_range=None if ends is None else np.array(ends),
    )


def _read_part(
    facts: Facts, tensors: Tensors, folds: tuple[FittedForest, ...], origin: Origin
) -> FittedForest:
    """Read a model, or the forest of a fold."""
    check_facts(facts, 2)
    check_tensors(tensors, 2)
    groups, calibration = _grouped(tensors), None
    fitted = _fitted_forest(facts, groups, origin)
    centred = _centred_forest(fitted.scorer.forest, groups, facts["mean"], origin)
    if facts["calibration"] is not None:
        calibration = from_arrays(groups["calibration"], facts["calibration"])
    elif groups["calibration"]:
        raise ValueError("it has tensors of a calibration, but no facts of one")
    jackknife = _jackknife(fitted.scorer.forest, groups, origin)
    return replace(
        fitted, calibration=calibration, centred=centred, folds=folds, jackknife=jackknife
    )


def _jackknife(forest: Forest, groups: dict[str, Any], origin: Origin) -> Jackknife | None:
    if not groups["jackknife"] and not groups["inbag"]:
        return None
    if not groups["jackknife"]:
        raise ValueError("the tensor jackknife.drawn is missing")
    index = LeafIndex.from_arrays(
        groups["inbag"], True, copy=False, **origin.part("inbag")._asdict()
    )
    return Jackknife.checked(forest, index, groups["jackknife"]["drawn"] != 0)


def _centred_forest(
    forest: Forest, groups: dict[str, Any], mean: Facts | None, origin: Origin
) -> CentredForest | None:
    arrays = groups["centred"]
    wanted = () if mean is None else ("mean_values",)
    if not groups["residuals"] and not arrays and not groups["mean_forest"] and mean is None:
        return None
    for name in ("leaf_means", *wanted):
        if name not in arrays:
            raise ValueError(f"the tensor centred.{name} is missing")
    residuals = LeafIndex.from_arrays(
        groups["residuals"], True, copy=False, **origin.part("residuals")._asdict()
    )
    of_means = origin.part("centred.leaf_means")
    if mean is None:
        if groups["mean_forest"] or "mean_values" in arrays:
            raise ValueError("it has tensors of a mean, but no facts of one")
        return CentredForest.checked(forest, residuals, arrays["leaf_means"], **of_means._asdict())
    trees = Forest.from_arrays(
        groups["mean_forest"], forest.n_features, copy=False, **origin.part("mean_forest")._asdict()
    )
    boosted = BoostedMean.checked(trees, arrays["mean_values"], mean["baseline"], forest.n_features)
    return CentredForest.checked(
        forest, residuals, arrays["leaf_means"], boosted, mean["share"], **of_means._asdict()
    )


def _fitted_forest(facts: Facts, groups: dict[str, Any], origin: Origin) -> FittedForest:
    forest = Forest.from_arrays(
        groups["forest"], facts["n_features"], copy=False, **origin.part("forest")._asdict()
    )
    index = LeafIndex.from_arrays(
        groups["index"], facts["scalar_output"], copy=False, **origin.part("index")._asdict()
    )
    scorer = Scorer(forest, index)
    atoms = [index.atoms(output) for output in range(index.n_outputs)]
    moved = facts["weights"] == "monotonic"
    if not moved and max(map(len, atoms)) > facts["n_training_rows"]:
        raise ValueError("leaves hold more distinct targets than there were training rows")
    training, rows, check_rows = groups["training"], None, None
    if training:
        check_training_shapes(training, facts, forest.n_trees, len(atoms))
        rows = TrainingRows.from_arrays(training, facts["counts_are_weighted"])
        check_rows = cache(partial(_check_rows, training, facts["allow_nan"], moved, atoms, origin))
        if not origin.lazy:
            check_rows()
    names = facts["feature_names"]
    return FittedForest(
        scorer=scorer,
        weights=facts["weights"],
        n_training_rows=facts["n_training_rows"],
        allow_nan=facts["allow_nan"],
        feature_names=None if names is None else np.array(names, dtype=object),
        training_rows=rows,
        training_digest=facts.get("training_digest"),
        check_rows=check_rows,
        matches_forest=facts.get("matches_forest"),
    )


def _check_rows(
    training: Tensors,
    allow_nan: bool,
    moved: bool,
    atoms: list[NDArray[np.float64]],
    origin: Origin,
) -> None:
    try:
        check_training_values(training, atoms, allow_nan=allow_nan, moved=moved)
    except ValueError as error:
        raise ValueError(f"{origin.source}: {error}") from None


MODEL = tensor_file.Format(
    noun="model file",
    content="model",
    key="hdicore_model",
    readers={1: _read_version_1, 2: _read_version_2, 3: _read_version_3},
)
