"""Compiled objects as plain arrays, which pickle, joblib and skops store and any process reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hdicore import Forest, LeafIndex, Scorer
from hdiforest._model.fitted import FittedForest, Jackknife
from hdiforest._model.residuals import BoostedMean, CentredForest
from hdiforest._model.training_rows import TrainingRows
from hdiforest._tables.encoder import TableCoding
from hdiforest.calibration._arrays import from_arrays, to_arrays

State = dict[str, Any]


def index_state(index: LeafIndex) -> State:
    """Return an index as plain arrays."""
    return {"arrays": index.arrays(), "scalar_output": index.scalar_output}


def index_from_state(state: State) -> LeafIndex:
    """Return the index that `index_state` stored, after checking it.

    Arrays are copied, unless they map a file for reading, as ``joblib.load`` returns them with
    ``mmap_mode="r"``.

    Raises
    ------
    ValueError
        If the arrays are not those of an index.
    """
    arrays = state["arrays"]
    return LeafIndex.from_arrays(arrays, state["scalar_output"], copy=not _are_mapped(arrays))


def _forest_state(forest: Forest) -> State:
    return {"arrays": forest.arrays(), "n_features": forest.n_features}


def _forest_from_state(state: State) -> Forest:
    arrays = state["arrays"]
    return Forest.from_arrays(arrays, state["n_features"], copy=not _are_mapped(arrays))


def fitted_state(fitted: FittedForest) -> State:
    """Return a fitted forest as attributes of its estimator, all of them plain.

    The layout is that of version 0.1.0, whose estimator had these attributes itself, and a
    calibration, a coding and the range of the features if there are any.
    """
    forest = fitted.scorer.forest
    rows = None if fitted.training_rows is None else fitted.require_training_rows()
    calibration = _calibration_state(fitted)
    added = {
        "_calibration": calibration,
        "_coding": None if fitted.coding is None else fitted.coding.facts(),
        "_matches_forest": fitted.matches_forest,
        "_feature_range": fitted.feature_range,
        "_training_digest": fitted.training_digest,
    }
    return {
        "scorer_": {
            "forest": _forest_state(forest),
            "index": index_state(fitted.scorer.index),
        },
        "weights_": fitted.weights,
        "n_outputs_": fitted.n_outputs,
        "n_training_rows_": fitted.n_training_rows,
        "_allow_nan": fitted.allow_nan,
        "_training_rows": None if rows is None else _rows_state(rows),
    } | {name: value for name, value in added.items() if value is not None}


def pop_fitted(state: State) -> FittedForest:
    """Remove the attributes that `fitted_state` made; return the forest, after checking it.

    Arrays are copied as by `index_from_state`.

    Raises
    ------
    ValueError
        If the arrays are not those of a forest and an index of it.
    """
    scorer, rows = state.pop("scorer_"), state.pop("_training_rows")
    del state["n_outputs_"]
    forest = _forest_from_state(scorer["forest"])
    # Models without a calibration or a coding, and those of older versions, have no such entry.
    calibration = _calibration_from_state(forest, state.pop("_calibration", None))
    facts = state.pop("_coding", None)
    coding = None if facts is None else TableCoding.from_facts(facts)
    # The names in a state are those of a table, whose features are others if it is encoded.
    names = None if state.get("_steps") else state.get("feature_names_in_")
    if coding is not None:
        names = np.array(coding.features, dtype=object)
    return FittedForest(
        scorer=Scorer(forest, index_from_state(scorer["index"])),
        weights=state.pop("weights_"),
        n_training_rows=state.pop("n_training_rows_"),
        allow_nan=state.pop("_allow_nan"),
        feature_names=names,
        training_rows=None
        if rows is None
        else TrainingRows.from_arrays(rows, rows["counts_are_weighted"]),
        coding=coding,
        matches_forest=state.pop("_matches_forest", None),
        feature_range=state.pop("_feature_range", None),
        training_digest=state.pop("_training_digest", None),
        **calibration,
    )


def _calibration_state(fitted: FittedForest) -> State | None:
    if fitted.calibration is None:
        return None
    arrays, facts = to_arrays(fitted.calibration)
    centred = fitted.centred
    return {
        "arrays": arrays,
        "facts": facts,
        "centred": None if centred is None else _centred_state(centred),
        "folds": [fitted_state(fold) for fold in fitted.folds],
        "jackknife": None if fitted.jackknife is None else _jackknife_state(fitted.jackknife),
    }


def _jackknife_state(jackknife: Jackknife) -> State:
    return {"index": index_state(jackknife.index), "drawn": np.asarray(jackknife.drawn)}


def _centred_state(centred: CentredForest) -> State:
    mean: Any = centred.mean
    if isinstance(mean, BoostedMean):
        mean = {
            "forest": _forest_state(mean.forest),
            "leaf_values": np.asarray(mean.leaf_values),
            "baseline": mean.baseline,
        }
    return {
        "residuals": index_state(centred.scorer.index),
        "leaf_means": np.asarray(centred.leaf_means),
        "mean": mean,
        "share": centred.share,
    }


def _centred_from_state(forest: Forest, state: State) -> CentredForest:
    mean = state["mean"]
    if isinstance(mean, Mapping):
        trees = _forest_from_state(mean["forest"])
        mean = BoostedMean.checked(trees, mean["leaf_values"], mean["baseline"], forest.n_features)
    residuals = index_from_state(state["residuals"])
    return CentredForest.checked(forest, residuals, state["leaf_means"], mean, state["share"])


def _calibration_from_state(forest: Forest, state: State | None) -> dict[str, Any]:
    """Return what a `FittedForest` has of a calibration."""
    if state is None:
        return {}
    centred, jackknife = state["centred"], state["jackknife"]
    return {
        "calibration": from_arrays(state["arrays"], state["facts"]),
        "centred": None if centred is None else _centred_from_state(forest, centred),
        "folds": tuple(pop_fitted(dict(fold)) for fold in state["folds"]),
        "jackknife": None
        if jackknife is None
        else Jackknife.checked(forest, index_from_state(jackknife["index"]), jackknife["drawn"]),
    }


def _are_mapped(arrays: Mapping[str, Any]) -> bool:
    return all(isinstance(a, np.memmap) and not a.flags.writeable for a in arrays.values())


def _rows_state(rows: TrainingRows) -> State:
    # Arrays that map a file are copied, because copies of a model do not look at the file.
    arrays = {
        name: np.array(array) if isinstance(array, np.memmap) else array
        for name, array in rows.arrays().items()
    }
    return arrays | {"counts_are_weighted": rows.counts_are_weighted}
