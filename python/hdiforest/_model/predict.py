"""Means and intervals of rows, of every kind, by a fitted forest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._model.fitted import FittedForest, base_intervals
from hdiforest._model.out_of_bag import OutOfBagIntervals
from hdiforest._utils import Array, Kind
from hdiforest.calibration._bases import FIXED_RAW
from hdiforest.calibration._result import Calibration, CrossCalibration

Rows = NDArray[np.floating[Any]]

AnyKind = Literal["calibrated", Kind]

USUAL_COVERAGE = 0.9  # of what is predicted

_ENDS_AT_ONCE = 1 << 20  # of all forests, so that memory stays flat


def resolve_kind_and_levels(
    fitted: FittedForest, kind: AnyKind | None, levels: Sequence[float] | None
) -> tuple[AnyKind, list[float]]:
    """Return what to predict, with the defaults for what is None.

    The kind is "calibrated" if the model is, else "hdi". The level is 0.9, or the lowest that was
    calibrated if 0.9 was not. Raises ValueError if the kind is "calibrated" and the model is not,
    or not at one of the levels.
    """
    calibration = fitted.calibration
    if kind is None:
        kind = fitted.usual_kind
    if kind != "calibrated":
        return kind, [USUAL_COVERAGE] if levels is None else list(levels)
    if calibration is None:
        raise ValueError("kind must not be calibrated, because the model has no calibration")
    if levels is None:
        coverages = calibration.coverages
        usual = (level for level in coverages if math.isclose(level, USUAL_COVERAGE, abs_tol=1e-9))
        return kind, [next(usual, coverages[0])]
    calibration.positions(levels)
    return kind, list(levels)


def predict_mean_and_intervals(
    fitted: FittedForest,
    X: Rows,
    levels: Sequence[float],
    kind: AnyKind,
    n_threads: int,
    of_folds: Sequence[Rows] = (),
) -> tuple[Array, Array]:
    """Return means (n,) and intervals (n, 2, k) of the rows by a forest of one target.

    `of_folds` are as `calibrated_intervals` takes them.
    """
    mean = np.empty(len(X) if fitted.scorer.index.scalar_output else (len(X), 1))
    if kind == "calibrated":
        intervals = predict_calibrated(fitted, X, levels, n_threads, mean, of_folds=of_folds)
    else:
        intervals = fitted.scorer.intervals(X, levels, kind, mean=mean, n_threads=n_threads)
    return mean.reshape(-1), intervals.reshape(len(X), 2, len(levels))


def predict_calibrated(
    fitted: FittedForest,
    X: Rows,
    coverage: ArrayLike,
    n_threads: int,
    mean: Array | None = None,
    of_folds: Sequence[Rows] = (),
    labels: ArrayLike | None = None,
) -> Array:
    """Return calibrated intervals of checked rows, (n, 2) or (n, 2, k) for k coverages.

    An array `mean` (n,) is filled with the means of the rows. `of_folds` are the same rows for the
    forest of each fold, if they are not those of X; `labels` their groups, if X does not tell.
    Raises ValueError if a coverage was not calibrated, or as `FittedForest.group_codes`.
    """
    codes = fitted.group_codes(X, labels)
    calibration, at = _calibration_up_to(fitted, coverage)
    if isinstance(calibration, CrossCalibration):
        if mean is not None:
            fitted.scorer.mean(X, out=mean, n_threads=n_threads)
        return _predict_by_folds(calibration, fitted, X, n_threads, of_folds)[..., at]
    ends = base_intervals(fitted, X, calibration.bases, n_threads, mean)
    return calibration.intervals(ends, codes)[..., at]


def predict_calibrated_out_of_bag(
    fitted: FittedForest, coverage: ArrayLike, n_threads: int, labels: ArrayLike | None = None
) -> Array:
    """Return calibrated intervals of all training rows, (n, 2) or (n, 2, k), each out of bag.

    From the base intervals of the trees that did not draw the row, widened and post-processed as
    those of new rows. NaN for rows that no such tree has a base interval for. `labels` are as
    `predict_calibrated` takes them. Raises ValueError if a coverage was not calibrated, or the
    calibration does not say what these intervals are.
    """
    if (reason := fitted.why_not_out_of_bag()) is not None:
        raise ValueError(
            f"kind must not be 'calibrated' out of bag, because {reason}; use kind='hdi', whose "
            "intervals are not calibrated, or calibrate by method='oob' or 'split' without a "
            "regressor as mean"
        )
    calibration, at = _calibration_up_to(fitted, coverage)
    mean = None if fitted.centred is None or fitted.centred.mean is None else "local_linear"
    source = OutOfBagIntervals(fitted, n_threads, mean)
    ends = source.intervals(np.arange(len(source.rows.y)), cast("Calibration", calibration).bases)
    if labels is None and fitted.by is not None and calibration.method == "oob":
        labels = fitted.by.array
    codes = fitted.group_codes(source.rows.X, labels)
    return cast("Calibration", calibration).intervals(ends, codes)[..., at]


def predict_fold(fold: FittedForest, X: Rows, k: int, n_threads: int) -> Array:
    """Return the intervals of the k lowest coverages, (n, 2, k), by the forest of one fold."""
    if not isinstance(fold.calibration, Calibration):
        ends = base_intervals(fold, X, [FIXED_RAW], n_threads)
        return np.broadcast_to(ends, (len(X), 2, k))
    calibration = fold.calibration.first(k)
    return calibration.intervals(base_intervals(fold, X, calibration.bases, n_threads))


def _calibration_up_to(
    fitted: FittedForest, coverage: ArrayLike
) -> tuple[Calibration | CrossCalibration, NDArray[np.intp]]:
    """Return the calibration up to the highest coverage asked for, and the positions of all.

    Intervals contain those of lower coverages; higher ones are not needed.
    """
    calibration = fitted.calibration
    if calibration is None:
        raise AttributeError("this model has no calibration_; call calibrate first")
    at = calibration.positions(coverage)
    return calibration.first(int(at.max(initial=0)) + 1), at


def _predict_by_folds(
    calibration: CrossCalibration,
    fitted: FittedForest,
    X: Rows,
    n_threads: int,
    of_folds: Sequence[Rows],
) -> Array:
    """Return the calibrated intervals of the rows of X, (n, 2, k); see `predict_calibrated`."""
    of_folds = of_folds or [X] * len(fitted.folds)
    k = len(calibration.levels)
    intervals = np.empty((len(X), 2, k))
    step = max(1, _ENDS_AT_ONCE // len(calibration.scores))
    for begin in range(0, len(X), step):
        part = slice(begin, begin + step)
        if fitted.jackknife is not None:
            leaves = fitted.scorer.forest.leaves(X[part], n_threads=n_threads)
            ends = fitted.jackknife.intervals(leaves, n_threads)[..., np.newaxis]
            ends = np.broadcast_to(ends, (*ends.shape[:3], k))
        else:
            pairs = zip(fitted.folds, of_folds, strict=True)
            ends = np.stack([predict_fold(fold, rows[part], k, n_threads) for fold, rows in pairs])
        intervals[part] = calibration.intervals(ends)
    return intervals
