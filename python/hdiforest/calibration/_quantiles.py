"""Conformal quantiles: the order statistic of conformity scores that widens intervals enough."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from hdiforest._utils import Array
from hdiforest._utils.hints import warn_caller
from hdiforest.exceptions import InfiniteIntervalsWarning

# Allowed for in comparisons that may be equalities, such as of (n + 1) c with a whole number.
_ROUNDING = 1e-9


def rank(n: int, coverage: float, *, confidence: float | None = None) -> int:
    """Return the rank of the conformal quantile among n ordered scores, from 1. n + 1 means none.

    The rank is ceil((n + 1) c) for a coverage c. With a confidence it is the least such k for which
    P(Beta(k, n + 1 - k) >= c) >= confidence, too. This is the law of the coverage of new rows,
    given the calibration rows. The coverage is stochastically larger if scores tie (Vovk,
    "Conditional validity of inductive conformal predictors", ACML 2012, proposition 2b).
    """
    least = min(n + 1, max(1, math.ceil((n + 1) * coverage - _ROUNDING)))
    if confidence is None:
        return least
    from scipy.special import betainc  # of what predicts, bounds of a confidence alone need scipy

    def certainty(k: int) -> float:
        return float(betainc(n + 1 - k, k, 1 - coverage))  # P(Beta(k, n + 1 - k) >= c)

    too_small = bisect.bisect_left(range(1, n + 1), confidence - _ROUNDING, key=certainty)
    return max(least, 1 + too_small)


def rows_needed(coverage: float, *, confidence: float | None = None) -> int:
    """Return the smallest number of calibration rows with a finite conformal quantile."""
    n = max(1, math.ceil((1 - _ROUNDING) / (1 - coverage)) - 1)
    if confidence is not None:  # P(Beta(n, 1) >= c) = 1 - c^n
        n = max(n, math.ceil(math.log1p(_ROUNDING - confidence) / math.log(coverage)))
    return n


def weight_needed(weights: Array, coverage: float) -> float:
    """Return the weight that the scores up to the conformal quantile must have.

    The weight is the share of the coverage in the total weight, including the row to predict. The
    row to predict is taken to weigh as much as the heaviest calibration row, which serves every row
    that weighs no more. The result is infinite if it exceeds the weight of all calibration rows.
    """
    needed = coverage * (weights.sum() + weights.max()) - _ROUNDING * weights.mean()
    return math.inf if needed > weights.sum() else float(needed)


def conformal_quantile(
    scores: ArrayLike,
    coverage: float,
    *,
    weights: Array | None = None,
    confidence: float | None = None,
) -> Array:
    """Return the conformal quantiles (...) of the scores (..., n) of calibration rows.

    Each is the k-th smallest score, with k from `rank` (Romano, Patterson and Candes, NeurIPS 2019,
    eq. 8). Positive weights (n,) exclude a confidence. With weights the quantile is the least score
    up to which rows have the `weight_needed` (Tibshirani, Barber, Candes and Ramdas, "Conformal
    prediction under covariate shift", NeurIPS 2019, eq. 7, where weights are likelihood ratios). It
    is infinite if there is none. O(n) per candidate, O(n log n) with weights.
    """
    scores = np.asarray(scores, dtype=np.float64)
    n = scores.shape[-1]
    if weights is None:
        k = rank(n, coverage, confidence=confidence)
        if k > n:
            return np.full(scores.shape[:-1], np.inf)
        return np.asarray(np.partition(scores, k - 1, axis=-1)[..., k - 1])
    if confidence is not None:
        raise ValueError("confidence must be None where rows have weights: the beta law needs none")
    share = weight_needed(weights, coverage)
    if math.isinf(share):
        return np.full(scores.shape[:-1], np.inf)
    return _weighted_quantile(scores, weights, share)


def _weighted_quantile(values: Array, weights: Array, k: float) -> Array:
    """Return the least of values (..., n) up to which these weigh k or more, of all, (...)."""
    order = np.argsort(values, axis=-1, kind="stable")
    position = np.count_nonzero(np.cumsum(weights[order], axis=-1) < k, axis=-1, keepdims=True)
    # The sum of weights depends on their order in its last bits.
    last = np.minimum(position, values.shape[-1] - 1)
    ordered = np.take_along_axis(values, order, axis=-1)
    return np.asarray(np.take_along_axis(ordered, last, axis=-1)[..., 0])


def warn_of_infinite(infinite: Sequence[float], n: int, confidence: float | None = None) -> None:
    """Warn if intervals of some coverages, from n rows, are infinite."""
    if not infinite:
        return
    needed = [(share, rows_needed(share, confidence=confidence)) for share in infinite]
    if n >= needed[0][1]:
        reason = (
            "targets outside the range of the training targets, or weights, leave too few of the "
            f"{n} calibration rows; use more rows"
        )
    else:
        numbers = ", ".join(f"{rows} for {share:g}" for share, rows in needed)
        reason = f"{n} calibration rows are too few; needed are {numbers}"
    coverages = ", ".join(f"{share:g}" for share in infinite)
    message = f"intervals of coverage {coverages} are infinite: {reason}"
    warn_caller(message, InfiniteIntervalsWarning)
