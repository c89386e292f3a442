"""How good intervals and weighted samples are: coverage, width and proper scores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "WidthStrata",
    "coverage_by_width",
    "coverage_score",
    "crps_score",
    "interval_score",
    "mean_width_score",
]

Array = NDArray[np.float64]
Score = float | Array

# Entries of weighted samples worked on at once: bounds the memory of crps_score.
_BLOCK_ENTRIES = 1 << 20


class WidthStrata(NamedTuple):
    """Rows grouped by the width of their interval; what `coverage_by_width` returns.

    The first stratum holds the intervals of width zero, the others ascend in width. A stratum
    without rows has the count 0 and NaN elsewhere. The shape of each field is (n_strata + 1,), or
    (n_strata + 1, k) for k levels.
    """

    counts: NDArray[np.int64]
    coverage: Array
    mean_width: Array


def coverage_score(y_true: ArrayLike, interval: ArrayLike) -> Score:
    """Share of targets inside their interval, ends included (PICP).

    Parameters
    ----------
    y_true : (n,) array
    interval : (n, 2) or (n, 2, k) array
        Lower and upper ends, in the unit of y_true. Ends may be infinite.

    Returns
    -------
    float, or (k,) array for k levels
        Between 0 and 1.

    Raises
    ------
    ValueError
        If the shapes differ, there are no rows, or a value is NaN.

    Notes
    -----
    The mean of 1{l <= y <= u} (Khosravi et al., IEEE Trans. Neural Networks 22, 2011). Ends count
    as inside: highest-density intervals end at training targets, and with tied targets the open
    interval can hold much less.

    Examples
    --------
    >>> coverage_score([1, 2, 3, 4], [[0, 1], [0, 1], [2, 5], [3, 9]])
    0.75
    """
    y, lower, upper = _checked(y_true, interval)
    return _unwrapped(_inside(y, lower, upper).mean(axis=0))


def mean_width_score(interval: ArrayLike) -> Score:
    """Mean width of the intervals (MPIW).

    Parameters
    ----------
    interval : (n, 2) or (n, 2, k) array

    Returns
    -------
    float, or (k,) array for k levels
        In the unit of the ends; infinite if an end is.

    Raises
    ------
    ValueError
        If there are no rows, a value is NaN, or a lower end lies above its upper end.

    Examples
    --------
    >>> mean_width_score([[0, 1], [2, 5]])
    2.0
    """
    lower, upper = _checked_ends(interval)
    return _unwrapped((upper - lower).mean(axis=0))


def interval_score(y_true: ArrayLike, interval: ArrayLike, coverage: ArrayLike) -> Score:
    """Mean interval score (Winkler score); lower is better.

    Parameters
    ----------
    y_true : (n,) array
    interval : (n, 2) or (n, 2, k) array
        Lower and upper ends, in the unit of y_true.
    coverage : float, or list of k floats for k levels
        The share that each interval was meant to hold, above 0 and below 1.

    Returns
    -------
    float, or (k,) array for k levels
        In the unit of y_true.

    Raises
    ------
    ValueError
        If the shapes differ, there are no rows, a value is NaN, or a coverage is out of range.

    Notes
    -----
    With a = 1 - coverage, the mean of (u - l) + (2 / a) max(l - y, 0) + (2 / a) max(y - u, 0)
    (Gneiting and Raftery, J. Am. Stat. Assoc. 102, 2007, eq. 43). It is the proper score of
    equal-tailed intervals: the shortest interval of a skewed distribution is not what minimises
    it, so read it beside coverage and width, not instead of them.

    Examples
    --------
    >>> interval_score([1, 5], [[0, 2], [0, 4]], coverage=0.5)
    5.0
    """
    y, lower, upper = _checked(y_true, interval)
    alpha = 1 - _checked_coverage(coverage, lower.shape[1:])
    missed = np.maximum(lower - y, 0) + np.maximum(y - upper, 0)
    return _unwrapped((upper - lower + 2 / alpha * missed).mean(axis=0))


def crps_score(y_true: ArrayLike, values: ArrayLike, weights: Any = None) -> float:
    """Mean continuous ranked probability score of weighted samples; lower is better.

    Parameters
    ----------
    y_true : (n,) array
    values : (n, s) array, or (m,) array if weights is sparse
        The sample of each row, in the unit of y_true; with sparse weights the one sample that all
        rows share, such as the training targets.
    weights : (n, s) or (s,) array, or scipy.sparse matrix of shape (n, m), optional
        Not negative; divided by the sum of their row. None means equal weights. What
        ``model.predict_weights(X)`` returns can be given as it is.

    Returns
    -------
    float
        In the unit of y_true.

    Raises
    ------
    ValueError
        If the shapes differ, there are no rows, a value is not finite, or a row has no weight.

    Notes
    -----
    The mean of the integral over z of (F(z) - 1{y <= z})^2, with F the weighted step function;
    equal to sum_k w_k |z_k - y| - 1/2 sum_kl w_k w_l |z_k - z_l| (Gneiting and Raftery 2007,
    eq. 21). F is constant between neighbours of the sorted sample, so that O(s log s) per row
    suffice; memory beside the arguments is bounded, and sparse weights stay sparse.

    Examples
    --------
    >>> crps_score([1.0], [[0.0, 2.0]])
    0.5
    """
    y = _checked_targets(y_true)
    blocks = _sparse_blocks if hasattr(weights, "tocsr") else _dense_blocks
    total = 0.0
    for first, last, z, w, ends in blocks(len(y), values, weights):
        total += float(_crps_of_block(y[first:last], z, w, ends).sum())
    return total / len(y)


def coverage_by_width(y_true: ArrayLike, interval: ArrayLike, n_strata: int = 3) -> WidthStrata:
    """Coverage of narrow and of wide intervals apart.

    Intervals that hold the wanted share on average may hold too little where they are narrow and
    too much where they are wide; the smallest coverage of a stratum shows it.

    Parameters
    ----------
    y_true : (n,) array
    interval : (n, 2) or (n, 2, k) array
        Lower and upper ends, in the unit of y_true.
    n_strata : int, default=3
        Number of groups, equal in size up to ties, of the intervals that are wider than zero.

    Returns
    -------
    WidthStrata
        counts, coverage and mean_width, each (n_strata + 1,) or (n_strata + 1, k); first the
        intervals of width zero, then the others from narrow to wide.

    Raises
    ------
    ValueError
        If the shapes differ, there are no rows, a value is NaN, or n_strata is below 1.

    Notes
    -----
    Size-stratified coverage (Angelopoulos and Bates, "A gentle introduction to conformal
    prediction", 2021, section 3.1). Equal widths share a stratum, so the order of the rows does
    not matter.
    """
    if isinstance(n_strata, bool) or not isinstance(n_strata, int | np.integer) or n_strata < 1:
        raise ValueError(f"n_strata must be a whole number from 1 on, got {n_strata!r}")
    y, lower, upper = _checked(y_true, interval)
    inside = _inside(y, lower, upper)
    width = upper - lower
    if width.ndim == 1:
        return _strata(width, inside, int(n_strata))
    levels = [_strata(w, c, int(n_strata)) for w, c in zip(width.T, inside.T, strict=True)]
    return WidthStrata(*(np.stack(field, axis=-1) for field in zip(*levels, strict=True)))


def _strata(width: Array, inside: NDArray[np.bool_], n_strata: int) -> WidthStrata:
    stratum = np.zeros(len(width), dtype=np.intp)
    wide = width > 0
    if wide.any():
        shares = np.arange(1, n_strata) / n_strata
        edges = np.quantile(width[wide], shares, method="inverted_cdf")
        stratum[wide] = 1 + np.searchsorted(edges, width[wide])
    counts = np.bincount(stratum, minlength=n_strata + 1)

    def mean(of: NDArray[Any]) -> Array:
        total = np.bincount(stratum, weights=of, minlength=n_strata + 1)
        found = np.full(n_strata + 1, np.nan)
        np.divide(total, counts, out=found, where=counts > 0)
        return found

    return WidthStrata(counts, mean(inside), mean(width))


def _inside(y: Array, lower: Array, upper: Array) -> NDArray[np.bool_]:
    return (lower <= y) & (y <= upper)


def _unwrapped(score: Any) -> Score:
    return float(score) if np.ndim(score) == 0 else np.asarray(score)


def _reals(name: str, given: ArrayLike) -> Array:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers: {error}") from None


def _checked_targets(y_true: ArrayLike) -> Array:
    y = _reals("y_true", y_true)
    if y.ndim != 1 or len(y) == 0:
        raise ValueError(f"y_true must have shape (n,) with n > 0, got {y.shape}")
    if not np.isfinite(y).all():
        raise ValueError(f"y_true must be finite, got {_count(~np.isfinite(y))} that are not")
    return y


def _checked_ends(interval: ArrayLike) -> tuple[Array, Array]:
    ends = _reals("interval", interval)
    if ends.ndim not in (2, 3) or ends.shape[1] != 2 or ends.size == 0:
        raise ValueError(f"interval must have shape (n, 2) or (n, 2, k), got {ends.shape}")
    if np.isnan(ends).any():
        silent = np.isnan(ends).reshape(len(ends), -1).any(axis=1)
        raise ValueError(
            f"interval must not hold NaN, got {_count(silent)} with it; leave them out"
        )
    lower, upper = ends[:, 0], ends[:, 1]
    if (lower > upper).any():
        crossed = (lower > upper).reshape(len(ends), -1).any(axis=1)
        raise ValueError(f"interval must have lower <= upper, got {_count(crossed)} that cross")
    return lower, upper


def _checked(y_true: ArrayLike, interval: ArrayLike) -> tuple[Array, Array, Array]:
    y = _checked_targets(y_true)
    lower, upper = _checked_ends(interval)
    if len(lower) != len(y):
        raise ValueError(f"interval must have as many rows as y_true, {len(y)}, got {len(lower)}")
    return (y if lower.ndim == 1 else y[:, None]), lower, upper


def _checked_coverage(coverage: ArrayLike, shape: tuple[int, ...]) -> Array:
    shares = _reals("coverage", coverage)
    if shares.shape != shape:
        wanted = f"{shape[0]} values, one per level," if shape else "one number"
        raise ValueError(f"coverage must be {wanted} for this interval, got {coverage!r}")
    for share in shares.flat:
        if not 0 < share < 1:
            hint = f" (did you mean {share / 100:g}?)" if 1 < share < 100 else ""
            raise ValueError(f"coverage must be above 0 and below 1, got {share:g}{hint}")
    return shares


def _count(bad: Any) -> str:
    return f"{int(bad.sum())} of {len(bad)} rows"


def _checked_sample(values: ArrayLike, weights: Array) -> Array:
    sample = _reals("values", values)
    if not np.isfinite(sample).all():
        raise ValueError("values must be finite")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("weights must be finite and not negative")
    return sample


# Pieces of the rows: (first row, last row + 1, values, weights, ends of the rows in them).
_Blocks = Iterator[tuple[int, int, Array, Array, NDArray[np.int64]]]


def _dense_blocks(n: int, values: ArrayLike, weights: ArrayLike | None) -> _Blocks:
    given = _reals("weights", 1.0 if weights is None else weights)
    sample = _checked_sample(values, given)
    if sample.ndim != 2 or len(sample) != n or sample.size == 0:
        raise ValueError(f"values must have shape ({n}, s) with s > 0, got {sample.shape}")
    s = sample.shape[1]
    if weights is not None and given.shape not in ((s,), (n, s)):
        raise ValueError(f"weights must have shape ({s},) or ({n}, {s}), got {given.shape}")
    spread = np.broadcast_to(given, (n, s))
    step = max(1, _BLOCK_ENTRIES // s)
    for first in range(0, n, step):
        last = min(n, first + step)
        ends = np.arange(1, last - first + 1, dtype=np.int64) * s
        yield first, last, sample[first:last].ravel(), spread[first:last].ravel(), ends


def _sparse_blocks(n: int, values: ArrayLike, weights: Any) -> _Blocks:
    csr = weights.tocsr()
    data = _reals("weights", csr.data)
    sample = _checked_sample(values, data)
    if sample.ndim != 1 or csr.shape != (n, len(sample)):
        raise ValueError(
            f"sparse weights must have shape ({n}, m) and values (m,), got {csr.shape} and "
            f"{sample.shape}"
        )
    indptr = csr.indptr.astype(np.int64)
    first = 0
    while first < n:
        beyond = np.searchsorted(indptr, indptr[first] + _BLOCK_ENTRIES, side="right") - 1
        last = min(n, max(first + 1, int(beyond)))
        entries = slice(indptr[first], indptr[last])
        ends = indptr[first + 1 : last + 1] - indptr[first]
        yield first, last, sample[csr.indices[entries]], data[entries], ends
        first = last


def _crps_of_block(y: Array, values: Array, weights: Array, ends: NDArray[np.int64]) -> Array:
    """CRPS of each row, (n,); row i owns the entries ends[i - 1] <= k < ends[i]."""
    counts = np.diff(ends, prepend=0)
    row = np.repeat(np.arange(len(y)), counts)
    total = np.bincount(row, weights=weights, minlength=len(y))
    if not (total > 0).all():
        raise ValueError(f"weights must have a positive sum in every row, got {_count(total <= 0)}")
    order = np.lexsort((values, row))
    z, w = values[order], weights[order] / total[row]
    running = np.cumsum(w)
    before = np.concatenate(([0.0], running))[ends - counts]
    below = running - before[row]  # F on [z_k, z_k+1)

    lowest, highest = z[ends - counts], z[ends - 1]
    tails = np.maximum(lowest - y, 0) + np.maximum(y - highest, 0)
    k = np.flatnonzero(row[:-1] == row[1:])  # pairs of neighbours in one row
    split = np.clip(y[row[k]], z[k], z[k + 1])
    gaps = (split - z[k]) * below[k] ** 2 + (z[k + 1] - split) * (1 - below[k]) ** 2
    return tails + np.bincount(row[k], weights=gaps, minlength=len(y))
