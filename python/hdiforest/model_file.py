"""Models as files: their facts and arrays, checked before use."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hdicore import Forest, LeafIndex, Scorer
from hdiforest import tensor_file
from hdiforest.importing import TrainingRows
from hdiforest.model_schema import check_facts, check_tensors, check_training_rows
from hdiforest.text import printable

if TYPE_CHECKING:
    from hdiforest.estimator import HDIForestRegressor

MODEL = tensor_file.Format("model file", "hdicore_model", 1)


def save(model: HDIForestRegressor, path: Path, *, training_rows: bool) -> None:
    """Write a fitted model; see `HDIForestRegressor.save`."""
    forest, index = model.scorer_.forest, model.scorer_.index
    rows = model._require_training_rows() if training_rows else None
    groups: dict[str, Any] = {"forest": forest.arrays(), "index": index.arrays()}
    if rows is not None:
        groups["training"] = {"X": rows.X, "y": rows.y}
        if rows.sample_weight is not None:
            groups["training"]["sample_weight"] = rows.sample_weight
        if rows.counts is not None:
            groups["training"]["counts"] = np.ascontiguousarray(rows.counts)
    tensors = {
        f"{group}.{name}": array
        for group, arrays in groups.items()
        for name, array in arrays.items()
    }
    names = getattr(model, "feature_names_in_", None)
    facts = {
        "scikit_learn": version("scikit-learn"),
        "weights": model.weights_,
        "n_features": forest.n_features,
        "feature_names": None if names is None else [str(name) for name in names],
        "scalar_output": index.scalar_output,
        "n_training_rows": model.n_training_rows_,
        "allow_nan": model._allow_nan,
        "counts_are_weighted": rows is not None and rows.counts_are_weighted,
    }
    tensor_file.write(path, MODEL, facts, tensors)


def load_into(model: HDIForestRegressor, path: Path) -> None:
    """Make `model` the one stored at `path`; see `HDIForestRegressor.load`."""
    facts, tensors = tensor_file.read(path, MODEL)
    try:
        check_facts(facts)
        check_tensors(tensors)
        _assemble(model, facts, tensors)
    except ValueError as error:
        raise ValueError(f"{path} is not a valid model: {printable(str(error))}") from None


def read_facts(path: Path) -> dict[str, Any]:
    """Facts about a model file that `load_into` has accepted: versions, weights, names, sizes."""
    return tensor_file.read_facts(path, MODEL)


def _assemble(
    model: HDIForestRegressor, facts: dict[str, Any], tensors: dict[str, NDArray[Any]]
) -> None:
    groups: dict[str, Any] = {"forest": {}, "index": {}, "training": {}}
    for name, array in tensors.items():
        group, _, key = name.partition(".")
        groups[group][key] = array
    forest = Forest.from_arrays(groups["forest"], facts["n_features"], copy=False)
    index = LeafIndex.from_arrays(groups["index"], facts["scalar_output"], copy=False)
    scorer = Scorer(forest, index)
    atoms = [index.atoms(output) for output in range(index.n_outputs)]
    if max(map(len, atoms)) > facts["n_training_rows"]:
        raise ValueError("leaves hold more distinct targets than there were training rows")
    training = groups["training"]
    if training:
        check_training_rows(training, facts, forest.n_trees, atoms)

    model.weights = model.weights_ = facts["weights"]
    model.scorer_ = scorer
    model.n_features_in_ = facts["n_features"]
    model.n_outputs_ = index.n_outputs
    model.n_training_rows_ = facts["n_training_rows"]
    if facts["feature_names"] is not None:
        model.feature_names_in_ = np.array(facts["feature_names"], dtype=object)
    model._allow_nan = facts["allow_nan"]
    model._training_rows = None
    if training:
        model._training_rows = TrainingRows(
            training["X"],
            training["y"],
            training.get("sample_weight"),
            training.get("counts"),
            facts["counts_are_weighted"],
        )
