"""Which nominal level reaches a PICP, and how the widths of two systems compare there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats


def level_reaching(levels: np.ndarray, picp: np.ndarray, target: float) -> float:
    """Return the least level at which the PICP reaches `target`.

    Between two levels the PICP is taken to be linear, and never to fall as the level rises: what
    falls is noise. The last level if none reaches it.

    Parameters
    ----------
    levels : (n_levels,) array, ascending
    picp : (n_levels,) array
        Found at these levels, on rows that were not learned from.
    target : float
    """
    reached = np.maximum.accumulate(picp)
    if reached[-1] < target:
        return float(levels[-1])
    above = int(np.argmax(reached >= target))
    if above == 0:
        return float(levels[0])
    below, there = reached[above - 1], reached[above]
    step = (target - below) / (there - below)
    return float(levels[above - 1] + step * (levels[above] - levels[above - 1]))


class Ratio(NamedTuple):
    """Geometric mean of the ratios of two widths over splits, with its confidence interval."""

    mean: float
    lower: float
    upper: float


def width_ratio(
    mpiw: np.ndarray, other: np.ndarray, test_share: float, confidence: float = 0.95
) -> Ratio:
    """Compare the MPIW of two systems on the same splits.

    Training parts overlap, so that splits are not independent. The corrected resampled t-test of
    Nadeau and Bengio (2003) allows for it: the variance of the mean is that of the splits times
    1 / n_splits + n_test / n_train. It is applied to the logarithms of the ratios.

    Parameters
    ----------
    mpiw, other : (n_splits,) arrays, at least two splits
    test_share : float
        n_test / n_train.
    confidence : float
    """
    logs = np.log(np.asarray(mpiw) / np.asarray(other))
    n = len(logs)
    error = np.sqrt(logs.var(ddof=1) * (1 / n + test_share))
    reach = stats.t.ppf((1 + confidence) / 2, n - 1) * error
    mean = logs.mean()
    return Ratio(*np.exp([mean, mean - reach, mean + reach]).tolist())
