"""How good distributions are: the continuous ranked probability score, and PIT values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._utils import Array, Weights
from hdiforest._utils.checks import check_targets, checked_random_state, count_rows, reals
from hdiforest.metrics._intervals import weighted_mean

# Entries of weighted samples worked on at once: bounds the memory of `crps_score`.
_BLOCK_ENTRIES = 1 << 20


def crps_score(
    y_true: ArrayLike, values: ArrayLike, weights: Any = None, *, sample_weight: Weights = None
) -> float:
    """Mean continuous ranked probability score of weighted samples; lower is better.

    Parameters
    ----------
    y_true : (n,) array
        Observed targets.
    values : (n, s) array, or (m,) array if weights is sparse
        The sample of each row, or the one that all rows share, such as the training targets.
    weights : (n, s) or (s,) array, or scipy.sparse matrix of shape (n, m), optional
        Not negative, in each row of any positive sum, such as ``model.predict_weights(X)``; equal
        by default.
    sample_weight : (n,) array, optional
        Weights of the rows in the mean.

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
    The mean of the integral over z of (F(z) - 1{y <= z})^2, with F the weighted step function
    (Gneiting and Raftery 2007, eq. 21). O(s log s) per row; memory beside the arguments is
    bounded, and sparse weights stay sparse.

    Examples
    --------
    >>> crps_score([1.0], [[0.0, 2.0]])
    0.5
    """
    scores = crps_of_rows(check_targets("y_true", y_true), values, weights)
    return float(weighted_mean(scores, sample_weight))


def pit_values(
    cdf: ArrayLike,
    cdf_below: ArrayLike | None = None,
    *,
    random_state: int | np.random.RandomState | None = 0,
) -> Array:
    """Probability integral transform: where targets lie in their distributions.

    Parameters
    ----------
    cdf, cdf_below : (n,) arrays
        P(Y <= y) and P(Y < y) at each target y, by ``model.predict_cdf(X, y)`` and by
        ``model.predict_cdf(X, y, inclusive=False)``; by default no target is an atom.
    random_state : int, RandomState or None, default=0
        Seed of the draws between the two.

    Returns
    -------
    (n,) float64
        Uniform in [0, 1] if the distributions are right, with atoms too (Czado, Gneiting, Held,
        Biometrics 65, 2009).

    Raises
    ------
    ValueError
        If the shapes differ, or values are not in [0, 1] with ``cdf_below <= cdf``.

    Examples
    --------
    >>> pit_values([0.25, 0.75]).tolist()
    [0.25, 0.75]
    """
    at = check_targets("cdf", cdf)
    below = at if cdf_below is None else check_targets("cdf_below", cdf_below)
    if below.shape != at.shape:
        raise ValueError(f"cdf_below must have shape {at.shape}, got {below.shape}")
    wrong = (below < 0) | (below > at) | (at > 1)
    if wrong.any():
        got = f"{count_rows(wrong)} that are not"
        raise ValueError(f"cdf and cdf_below must be in [0, 1] with cdf_below <= cdf, got {got}")
    draws = checked_random_state(random_state).random_sample(len(at))
    return np.minimum(below + draws * (at - below), at)


def crps_of_rows(y: Array, values: ArrayLike, weights: Any) -> Array:
    """Return the score of each row, (n,); see `crps_score`."""
    indptr, entries = (_sparse if hasattr(weights, "tocsr") else _dense)(len(y), values, weights)
    scores = np.empty(len(y))
    first = 0
    while first < len(y):
        beyond = np.searchsorted(indptr, indptr[first] + _BLOCK_ENTRIES, side="right") - 1
        last = min(len(y), max(first + 1, int(beyond)))
        ends = indptr[first + 1 : last + 1] - indptr[first]
        scores[first:last] = _crps_of_block(y[first:last], *entries(first, last), ends)
        first = last
    return scores


def _checked_sample(values: ArrayLike, weights: Array) -> Array:
    sample = reals("values", values)
    if not np.isfinite(sample).all():
        raise ValueError("values must be finite")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("weights must be finite and not negative")
    return sample


# Where the entries of each row begin, and a function of a first row and of the last row + 1 that
# returns values and weights of the rows between.
_Entries = tuple[NDArray[np.int64], Callable[[int, int], tuple[Array, Array]]]


def _dense(n: int, values: ArrayLike, weights: ArrayLike | None) -> _Entries:
    numbers = reals("weights", 1.0 if weights is None else weights)
    sample = _checked_sample(values, numbers)
    if sample.ndim != 2 or len(sample) != n or sample.size == 0:
        raise ValueError(f"values must have shape ({n}, s) with s > 0, got {sample.shape}")
    s = sample.shape[1]
    if weights is not None and numbers.shape not in ((s,), (n, s)):
        raise ValueError(f"weights must have shape ({s},) or ({n}, {s}), got {numbers.shape}")
    spread = np.broadcast_to(numbers, (n, s))
    indptr = np.arange(n + 1, dtype=np.int64) * s
    return indptr, lambda first, last: (sample[first:last].ravel(), spread[first:last].ravel())


def _sparse(n: int, values: ArrayLike, weights: Any) -> _Entries:
    csr = weights.tocsr()
    data = reals("weights", csr.data)
    sample = _checked_sample(values, data)
    if sample.ndim != 1 or csr.shape != (n, len(sample)):
        got = f"{csr.shape} and {sample.shape}"
        raise ValueError(f"sparse weights must have shape ({n}, m) and values (m,), got {got}")
    indptr = csr.indptr.astype(np.int64)

    def entries(first: int, last: int) -> tuple[Array, Array]:
        own = slice(indptr[first], indptr[last])
        return sample[csr.indices[own]], data[own]

    return indptr, entries


def _crps_of_block(y: Array, values: Array, weights: Array, ends: NDArray[np.int64]) -> Array:
    """CRPS of each row, (n,); row i owns the entries ends[i - 1] <= k < ends[i]."""
    counts = np.diff(ends, prepend=0)
    row = np.repeat(np.arange(len(y)), counts)
    total = np.bincount(row, weights=weights, minlength=len(y))
    if not (total > 0).all():
        rows = count_rows(total <= 0)
        raise ValueError(f"weights must have a positive sum in every row, got {rows}")
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
