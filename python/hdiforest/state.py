"""Fitted models as plain arrays, which pickle, joblib and skops store and any process reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from hdicore import Forest, LeafIndex, Scorer
from hdiforest.importing import TrainingRows

State = dict[str, Any]


class StoredAsArrays(BaseEstimator):
    """An estimator whose state holds arrays in place of compiled objects.

    The arrays are those of `Forest.arrays` and `LeafIndex.arrays`. When they come back they are
    checked and copied, or kept if they map a file for reading, as ``joblib.load`` does with
    ``mmap_mode="r"``.
    """

    def __getstate__(self) -> State:
        return _changed(super().__getstate__(), {name: to for name, (to, _) in _FORMS.items()})

    def __setstate__(self, state: State) -> None:
        super().__setstate__(_changed(state, {name: back for name, (_, back) in _FORMS.items()}))


def _changed(state: State, forms: dict[str, Callable[[Any], Any]]) -> State:
    return {
        name: forms[name](value) if name in forms and value is not None else value
        for name, value in state.items()
    }


def _index_state(index: LeafIndex) -> State:
    return {"arrays": index.arrays(), "scalar_output": index.scalar_output}


def _index(state: State) -> LeafIndex:
    arrays = state["arrays"]
    return LeafIndex.from_arrays(arrays, state["scalar_output"], copy=not _are_mapped(arrays))


def _scorer_state(scorer: Scorer) -> State:
    forest = {"arrays": scorer.forest.arrays(), "n_features": scorer.forest.n_features}
    return {"forest": forest, "index": _index_state(scorer.index)}


def _scorer(state: State) -> Scorer:
    arrays, n_features = state["forest"]["arrays"], state["forest"]["n_features"]
    forest = Forest.from_arrays(arrays, n_features, copy=not _are_mapped(arrays))
    return Scorer(forest, _index(state["index"]))


def _are_mapped(arrays: Mapping[str, Any]) -> bool:
    return all(isinstance(a, np.memmap) and not a.flags.writeable for a in arrays.values())


def _rows_state(rows: TrainingRows) -> State:
    values = {field.name: getattr(rows, field.name) for field in fields(rows)}
    # Arrays that map a file become plain ones.
    return {
        name: np.asarray(value) if isinstance(value, np.ndarray) else value
        for name, value in values.items()
    }


def _rows(state: State) -> TrainingRows:
    return TrainingRows(**state)


# Attributes that are stored in another form: how, and back.
_FORMS: dict[str, tuple[Callable[[Any], State], Callable[[State], Any]]] = {
    "scorer_": (_scorer_state, _scorer),
    "index_": (_index_state, _index),
    "_training_rows": (_rows_state, _rows),
}
