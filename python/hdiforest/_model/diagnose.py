"""Diagnoses rows to predict: how far from the training rows they are, and how far trees agree.

A row beyond the training rows lies in the leaves at their edge, with the same weights: a forest
cannot see from inside that it extrapolates, only the features tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdiforest._model.bases import Base
from hdiforest._model.fitted import FittedForest, IntervalQuery
from hdiforest._model.reference import Reference
from hdiforest._tables.names import DIAGNOSIS, names_of_targets
from hdiforest._utils import Array

_LEAVES_AT_ONCE = 1 << 23  # in memory


def columns_of_diagnosis(
    fitted: FittedForest,
    X: NDArray[Any],
    coverage: float,
    n_threads: int,
    of_folds: Sequence[NDArray[Any]] = (),
    labels: NDArray[Any] | None = None,
) -> dict[str, NDArray[Any]]:
    """Return the columns of `hdiforest.inspection.diagnose` of rows; see `IntervalQuery`.

    Without the `labels` of their groups, if these are needed, the quantile is that of all rows.
    """
    reference = fitted.require_reference()
    dissimilarity = reference.dissimilarity(X, n_threads)
    beyond = _beyond(fitted, reference, X)
    names = np.array([*fitted.names_of_features, ""], dtype=object)
    worst = np.where(beyond.any(axis=1), beyond.argmax(axis=1), len(names) - 1)
    at_once = max(1, _LEAVES_AT_ONCE // fitted.scorer.forest.n_trees)
    calibrated = fitted.calibrated
    codes = None if calibrated is None else calibrated.codes_if_given(X, labels)

    def of_leaves(begin: int) -> Array:
        part = slice(begin, begin + at_once)
        block = [rows[part] for rows in of_folds], None if codes is None else codes[part]
        return _of_leaves(fitted, X[part], coverage, n_threads, *block)

    parts = [of_leaves(begin) for begin in range(0, max(1, len(X)), at_once)]
    columns = [
        dissimilarity,
        np.count_nonzero(beyond, axis=1),
        names[worst].astype(str),
        *np.concatenate(parts, axis=1),
        np.count_nonzero(np.isnan(X), axis=1),
        dissimilarity > reference.threshold,
    ]
    n = fitted.n_outputs
    targets = [""]
    if n > 1:
        targets = [f"{each}_" for each in names_of_targets(fitted.facts.target_names, n)]
    of_targets = [f"{target}{name}" for name in DIAGNOSIS[3:6] for target in targets]
    return dict(zip([*DIAGNOSIS[:3], *of_targets, *DIAGNOSIS[6:]], columns, strict=True))


def _beyond(fitted: FittedForest, reference: Reference, X: NDArray[Any]) -> Array:
    """Return standard deviations out of the training range, by importance, (n, n_features)."""
    low, high = fitted.facts.feature_range
    sd = np.where(reference.sd > 0, reference.sd, 1)
    rows = X.astype(np.float32)  # as trees compare
    distance = np.fmax(low - rows, rows - high) / sd
    distance[:, list(reference.categorical)] = 0
    # Features that split nothing come last; of missing cells it is 0.
    return np.where(distance > 0, distance * reference.importance + np.finfo(float).tiny, 0)


def _of_leaves(
    fitted: FittedForest,
    X: NDArray[Any],
    coverage: float,
    n_threads: int,
    of_folds: Sequence[NDArray[Any]],
    codes: NDArray[np.intp] | None,
) -> Array:
    """Return tree_spread, mass_outside and interval_se of each output, (3 * n_outputs, n)."""
    leaves, calibrated = fitted.scorer.forest.leaves(X, n_threads=n_threads), fitted.calibrated
    read = partial(fitted.base_intervals, X, n_threads=n_threads)
    bases = () if calibrated is None else calibrated.bases(coverage)
    base = bases[-1] if bases else Base("raw", "hdi", coverage)
    whole = read([base], leaves=leaves)[..., 0]
    ends = whole
    if calibrated is not None:
        positions = calibrated.result.positions(coverage)
        ends = calibrated.intervals(IntervalQuery(X, positions, n_threads, None, of_folds, codes))
    is_even = np.arange(leaves.shape[1]) % 2 == 0
    half = read([base], leaves=np.where(is_even, leaves, np.int32(-1)))[..., 0]
    # Of half the terms of a mean, (half - whole)^2 has the variance of the whole as expectation.
    error = np.sqrt(((half - whole) ** 2).mean(axis=-1))
    spread, mass = fitted.scorer.index.spread_and_mass(leaves, ends, n_threads=n_threads)
    of_outputs = (spread, (1 - mass).clip(0, 1), error)
    return np.concatenate([values.reshape(len(X), -1).T for values in of_outputs])
