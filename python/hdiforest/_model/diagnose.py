"""Diagnoses rows to predict: how far from the training rows they are, and how far trees agree.

A row beyond the training rows lies in the leaves at their edge, with the same weights: a forest
cannot see from inside that it extrapolates, only the features tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hdiforest._model.fitted import FittedForest
from hdiforest._model.predict import predict_calibrated
from hdiforest._model.reference import Reference
from hdiforest._tables.names import DIAGNOSIS
from hdiforest._utils import Array, Kind
from hdiforest.calibration import Base, Calibration
from hdiforest.calibration._result import output_names

Columns = dict[str, NDArray[Any]]

_ROWS_AT_ONCE = 1 << 12  # whose leaves are in memory


def diagnosis_names(fitted: FittedForest) -> list[str]:
    """Return the names of the columns of `diagnose`."""
    n = fitted.n_outputs
    targets = [""] if n == 1 else [f"{each}_" for each in output_names(fitted.target_names, n)]
    own = [f"{target}{name}" for name in DIAGNOSIS[3:6] for target in targets]
    return [*DIAGNOSIS[:3], *own, *DIAGNOSIS[6:]]


def diagnose(
    fitted: FittedForest,
    X: NDArray[Any],
    coverage: float,
    n_threads: int,
    of_folds: Sequence[NDArray[Any]] = (),
) -> Columns:
    """Return the columns of `HDIForestRegressor.diagnose` of encoded rows (n, n_features).

    `of_folds` are as `predict_calibrated` takes them.
    """
    reference = fitted.require_reference()
    dissimilarity = reference.dissimilarity(X, n_threads)
    beyond = _beyond(fitted, reference, X)
    names = np.array([*fitted.names_of_features, ""], dtype=object)
    worst = np.where(beyond.any(axis=1), beyond.argmax(axis=1), len(names) - 1)
    parts = []
    for begin in range(0, max(1, len(X)), _ROWS_AT_ONCE):
        part = slice(begin, begin + _ROWS_AT_ONCE)
        own = [rows[part] for rows in of_folds]
        parts.append(_of_leaves(fitted, X[part], coverage, n_threads, own))
    columns = [
        dissimilarity,
        np.count_nonzero(beyond, axis=1),
        names[worst].astype(str),
        *np.concatenate(parts, axis=1),
        np.count_nonzero(np.isnan(X), axis=1),
        dissimilarity > reference.threshold,
    ]
    return dict(zip(diagnosis_names(fitted), columns, strict=True))


def _beyond(fitted: FittedForest, reference: Reference, X: NDArray[Any]) -> Array:
    """Return how far features are out of the training range, (n, n_features), by importance.

    In standard deviations; 0 inside, of categories and of missing cells.
    """
    low, high = fitted.feature_range
    sd = np.where(reference.sd > 0, reference.sd, 1)
    rows = X.astype(np.float32)  # as trees compare
    distance = np.fmax(low - rows, rows - high) / sd
    distance[:, list(reference.categorical)] = 0
    # Those that split nothing come last.
    return np.where(distance > 0, distance * reference.importance + np.finfo(float).tiny, 0)


def _of_leaves(
    fitted: FittedForest,
    X: NDArray[Any],
    coverage: float,
    n_threads: int,
    of_folds: Sequence[NDArray[Any]],
) -> Array:
    """Return tree_spread, mass_outside and interval_se of each output, (3 * n_outputs, n)."""
    index = fitted.scorer.index
    leaves = fitted.scorer.forest.leaves(X, n_threads=n_threads)
    if fitted.calibration is None:
        ends = index.intervals(leaves, coverage, n_threads=n_threads)
    else:
        part = fitted.outputs[0] if fitted.outputs else fitted
        has_labels = part.groups is not None and part.groups.feature is None
        codes = None if has_labels else fitted.group_codes(X)  # labels: the quantile of all rows
        ends = predict_calibrated(fitted, X, coverage, n_threads, None, of_folds, codes)
    shape = len(X), fitted.n_outputs
    until = np.stack([np.nextafter(ends[..., 0], -np.inf), ends[..., 1]], axis=-1)
    mass = np.diff(index.cdf(leaves, np.nan_to_num(until), n_threads=n_threads), axis=-1)
    halves = _half_forests(fitted, leaves, coverage, n_threads)
    # Of the halves of a mean, (a - b)^2 / 4 has the variance of the whole as its expectation.
    error = np.sqrt((np.diff(halves, axis=0)[0] ** 2).mean(axis=1)) / 2
    of_outputs = (
        tree_spread(fitted, leaves),
        (1 - mass).clip(0, 1).reshape(shape),
        error.reshape(shape),
    )
    return np.concatenate([values.T for values in of_outputs])


def _half_forests(
    fitted: FittedForest, leaves: NDArray[np.int32], coverage: float, n_threads: int
) -> Array:
    """Return the raw intervals of two halves of the trees, (2, n[, n_outputs], 2).

    They are the base of the calibration, or the HDI if that is not of the forest's distribution.
    """
    base = Base("raw", "hdi", coverage)
    if isinstance(fitted.calibration, Calibration):
        own = fitted.calibration.level(coverage).base
        base = own if own.family == "raw" else base
    kinds = cast("list[Kind]", [kind for kind, _ in base.parts])
    levels = [level for _, level in base.parts]
    is_even = np.arange(leaves.shape[1]) % 2 == 0
    halves = [np.where(half, leaves, np.int32(-1)) for half in (is_even, ~is_even)]
    index = fitted.scorer.index
    ends = [index.intervals(half, levels, kinds, n_threads=n_threads) for half in halves]
    return np.asarray(np.stack(ends).mean(axis=-1))


def tree_spread(fitted: FittedForest, leaves: NDArray[np.int32]) -> Array:
    """Return the standard deviation over trees of the means of rows' leaves, (n, n_outputs).

    Leaves without rows do not count.
    """
    forest = fitted.scorer.forest
    at = leaves + (np.cumsum(forest.n_leaves) - forest.n_leaves)
    spread = np.empty((len(leaves), fitted.n_outputs))
    for output, means in enumerate(fitted.leaf_statistics[1]):
        of_trees = means[at]
        empty = np.isnan(of_trees)
        of_trees[empty] = 0
        n = leaves.shape[1] - empty.sum(axis=1)
        with np.errstate(invalid="ignore"):  # of rows all of whose leaves are empty
            of_trees -= (of_trees.sum(axis=1) / n)[:, None]
            of_trees[empty] = 0
            spread[:, output] = np.sqrt(np.einsum("ij,ij->i", of_trees, of_trees) / n)
    return spread
