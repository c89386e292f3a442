"""Conformity scores and their conformal quantile, the pad."""

from __future__ import annotations

import bisect
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hdiforest._utils.checks import shares
from hdiforest._utils.typing import Array
from hdiforest._utils.warnings import callers_level
from hdiforest.calibration._postprocess import Finish

# Allowed for in comparisons that may be equalities, such as of (n + 1) c with a whole number.
_ROUNDING = 1e-9


def conformity_scores(ends: Array, y: Array, finish: Finish) -> Array:
    """Return how much each interval must be padded for it to cover its target once finished.

    Parameters
    ----------
    ends : (n, 2) or (n, 2, m) array
        Lower and upper ends.
    y : (n,) array
        Targets.
    finish : Finish

    Returns
    -------
    (n,) or (n, m) float64
        max(l - y, y - u): negative inside. For a target off the lattice the distance to the farther
        of the lattice points around it; infinite outside the range that intervals are clipped to.

    Notes
    -----
    The scores of conformalised quantile regression (Romano, Patterson, Candes, NeurIPS 2019,
    eq. 6), as least index of a nested family of finished intervals (Gupta, Kuchibhotla, Ramdas,
    Pattern Recognition 127, 2022, section 2): clipping and snapping take nothing from the
    guarantee.
    """
    low, high = finish.reach(y)
    columns = (...,) + (np.newaxis,) * (ends.ndim - 2)
    scores: Array = np.maximum(ends[:, 0] - low[columns], high[columns] - ends[:, 1])
    return scores


def rank(n: int, coverage: float, *, confidence: float | None = None) -> int:
    """Return which of n ordered scores is the pad, counted from 1; n + 1 if none is large enough.

    Parameters
    ----------
    n : int
    coverage : float
        c, above 0 and below 1.
    confidence : float, optional
        With it the rank is no less than without.

    Returns
    -------
    int
        ceil((n + 1) c); with `confidence` the least such k for which in addition
        P(Beta(k, n + 1 - k) >= c) >= confidence.

    Notes
    -----
    Given the calibration rows, the coverage of new rows follows Beta(k, n + 1 - k) if scores are
    continuous, and is stochastically larger if they tie (Vovk, "Conditional validity of inductive
    conformal predictors", ACML 2012, proposition 2b).
    """
    least = min(n + 1, max(1, math.ceil((n + 1) * coverage - _ROUNDING)))
    if confidence is None:
        return least
    from scipy.special import betainc  # nothing that predicts needs scipy

    def certainty(k: int) -> float:
        return float(betainc(n + 1 - k, k, 1 - coverage))  # P(Beta(k, n + 1 - k) >= c)

    too_small = bisect.bisect_left(range(1, n + 1), confidence - _ROUNDING, key=certainty)
    return max(least, 1 + too_small)


def rows_needed(coverage: float, *, confidence: float | None = None) -> int:
    """Return the smallest number of calibration rows that gives a finite pad.

    Parameters
    ----------
    coverage : float
        Above 0 and below 1.
    confidence : float, optional
        As in `rank`.
    """
    n = max(1, math.ceil((1 - _ROUNDING) / (1 - coverage)) - 1)
    if confidence is not None:  # P(Beta(n, 1) >= c) = 1 - c^n
        n = max(n, math.ceil(math.log1p(_ROUNDING - confidence) / math.log(coverage)))
    return n


def weight_needed(weights: Array, coverage: float, test_weight: float | None = None) -> float:
    """Return the share of the total weight that scores up to the pad have, the test row's included.

    `weights` are those of the calibration rows; `test_weight` is the largest of them by default.
    """
    own = weights.max() if test_weight is None else test_weight
    return float(coverage * (weights.sum() + own) - _ROUNDING * weights.mean())


def pad(
    scores: ArrayLike,
    coverage: float,
    *,
    weights: Array | None = None,
    test_weight: float | None = None,
    confidence: float | None = None,
) -> Array:
    """Return the pad of each candidate.

    Parameters
    ----------
    scores : (..., n) array
        Conformal scores of n calibration rows.
    coverage : float
        c, above 0 and below 1.
    weights : (n,) array, optional
        Positive weights of the rows.
    test_weight : float, optional
        Weight of the row to predict, by default the largest of `weights`.
    confidence : float, optional
        The confidence in which each set of calibration rows shall give the coverage, rather than
        the mean over such sets.

    Returns
    -------
    (...) float64
        The k-th smallest score, k from `rank`; infinite if k > n. With weights the least score q
        such that rows with scores up to q have the share c of the total weight, that of the row to
        predict included; infinite if there is none.

    Raises
    ------
    ValueError
        If both weights and confidence are given.

    Notes
    -----
    Without weights: Romano, Patterson and Candes, NeurIPS 2019, eq. 8. With weights: Tibshirani,
    Barber, Candes and Ramdas, "Conformal prediction under covariate shift", NeurIPS 2019, eq. 7;
    they are likelihood ratios there. A larger `test_weight` gives a larger pad, so that the default
    serves every row that weighs no more than some calibration row. O(n) per candidate, O(n log n)
    with weights.
    """
    given = np.asarray(scores, dtype=np.float64)
    n = given.shape[-1]
    if weights is None:
        k = rank(n, coverage, confidence=confidence)
        if k > n:
            return np.full(given.shape[:-1], np.inf)
        return np.asarray(np.partition(given, k - 1, axis=-1)[..., k - 1])
    if confidence is not None:
        raise ValueError("confidence must be None where rows have weights: the beta law needs none")
    share = weight_needed(weights, coverage, test_weight)
    order = np.argsort(given, axis=-1, kind="stable")
    too_few = np.cumsum(weights[order], axis=-1) < share
    position = too_few.sum(axis=-1, keepdims=True)
    ordered = np.take_along_axis(given, order, axis=-1)
    with_infinity = np.concatenate([ordered, np.full((*given.shape[:-1], 1), np.inf)], axis=-1)
    return np.asarray(np.take_along_axis(with_infinity, position, axis=-1)[..., 0])


def checked_coverages(given: Any) -> tuple[float, ...]:
    """Return distinct coverages, ascending, at least one, of a number or a list of numbers."""
    found = np.sort(shares("coverage", given).reshape(-1))
    if len(found) == 0 or (np.diff(found) == 0).any():
        raise ValueError(f"coverage must be one or more distinct numbers, got {given!r}")
    return tuple(found.tolist())


def warn_of_infinite(infinite: Sequence[float], n: int, confidence: float | None = None) -> None:
    """Warn if pads of some coverages, from n rows, are infinite."""
    if not infinite:
        return
    needed = [(share, rows_needed(share, confidence=confidence)) for share in infinite]
    if n >= needed[0][1]:
        reason = (
            "targets outside the range of the training targets, or weights, leave too few of the "
            f"{n} calibration rows; use more rows, or clip=False"
        )
    else:
        wanted = ", ".join(f"{rows} for {share:g}" for share, rows in needed)
        reason = f"{n} calibration rows are too few; needed are {wanted}"
    shown = ", ".join(f"{share:g}" for share in infinite)
    warnings.warn(
        f"intervals of coverage {shown} are infinite: {reason}",
        UserWarning,
        stacklevel=callers_level(),
    )
