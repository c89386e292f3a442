"""Intervals of CV+ and jackknife+: those of all forests of a model, merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdiforest.base_intervals import base_intervals
from hdiforest.calibration import FIXED_RAW, Calibration, CrossCalibration
from hdiforest.fitted import FittedForest

Rows = NDArray[np.floating[Any]]
_ENDS_AT_ONCE = 1 << 20  # of all forests, so that memory stays flat


def cross_intervals(
    calibration: CrossCalibration,
    fitted: FittedForest,
    X: Rows,
    n_threads: int,
    of_folds: Sequence[Rows] = (),
) -> NDArray[np.float64]:
    """Return the calibrated intervals of the rows of X, (n, 2, k).

    `of_folds` are the same rows for each fold's forest if they are not those of X.
    """
    of_folds = of_folds or [X] * len(fitted.folds)
    k = len(calibration.levels)
    found = np.empty((len(X), 2, k))
    step = max(1, _ENDS_AT_ONCE // len(calibration.scores))
    for begin in range(0, len(X), step):
        part = slice(begin, begin + step)
        if fitted.jackknife is not None:
            leaves = fitted.scorer.forest.leaves(X[part], n_threads=n_threads)
            own = fitted.jackknife.intervals(leaves, n_threads)[..., np.newaxis]
            ends = np.broadcast_to(own, (*own.shape[:3], k))
        else:
            by_fold = zip(fitted.folds, of_folds, strict=True)
            ends = np.stack(
                [fold_intervals(fold, own[part], k, n_threads) for fold, own in by_fold]
            )
        found[part] = calibration.intervals(ends)
    return found


def fold_intervals(fold: FittedForest, X: Rows, k: int, n_threads: int) -> NDArray[np.float64]:
    """Return the intervals of the k lowest coverages, (n, 2, k), by the forest of one fold."""
    if not isinstance(fold.calibration, Calibration):
        ends = base_intervals(fold, X, [FIXED_RAW], n_threads)
        return np.broadcast_to(ends, (len(X), 2, k))
    calibration = fold.calibration.first(k)
    return calibration.intervals(base_intervals(fold, X, calibration.bases, n_threads))
