"""How good distributions are: the continuous ranked probability score, and PIT values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._utils import Array, Weights, checks
from hdiforest.metrics._intervals import weighted_mean

# Entries of weighted samples worked on at once: bounds the memory of `crps_score`.
_BLOCK_ENTRIES = 1 << 20


def crps_score(
    y_true: ArrayLike, values: ArrayLike, weights: Any = None, *, sample_weight: Weights = None
) -> float:
    """Return the mean continuous ranked probability score of weighted samples. Lower is better.

    Parameters
    ----------
    y_true : (n,) array
        Observed targets.
    values : (n, s) array, or (m,) array if weights is sparse
        The sample of each row, or one sample that all rows share, such as the training targets.
    weights : (n, s) or (s,) array, or scipy.sparse matrix of shape (n, m), optional
        Weights of the values, such as ``model.predict_weights(X)``. They are not negative, and
        their sum in each row is positive. The default is equal weights.
    sample_weight : (n,) array, optional
        Weights of the rows in the mean. The default is equal weights.

    Returns
    -------
    float
        The score, in the unit of y_true.

    Raises
    ------
    ValueError
        If the shapes differ, there are no rows, a value is not finite, or a row has no weight.

    Notes
    -----
    The score is the mean of the integral over z of (F(z) - 1{y <= z})^2, with F the weighted step
    function (Gneiting and Raftery 2007, eq. 21). O(s log s) per row. Memory beside the arguments is
    bounded, and sparse weights stay sparse.

    Examples
    --------
    >>> from hdiforest.metrics import crps_score
    >>> crps_score([1.0], [[0.0, 2.0]])
    0.5
    """
    scores = crps_of_rows(checks.check_targets("y_true", y_true), values, weights)
    return float(weighted_mean(scores, sample_weight))


def pit_values(
    cdf: ArrayLike,
    cdf_below: ArrayLike | None = None,
    *,
    random_state: int | np.random.RandomState | None = 0,
) -> Array:
    """Return the probability integral transform: the place of each target in its distribution.

    Parameters
    ----------
    cdf : (n,) array
        P(Y <= y) at each target y, by ``model.predict_cdf(X, y)``.
    cdf_below : (n,) array, optional
        P(Y < y) at each target y, by ``model.predict_cdf(X, y, inclusive=False)``. By default no
        target is an atom.
    random_state : int, RandomState or None, default=0
        Seed of the draws between `cdf_below` and `cdf`.

    Returns
    -------
    (n,) float64
        Values that are uniform in [0, 1] if the distributions are right, with atoms too (Czado,
        Gneiting, Held, Biometrics 65, 2009).

    Raises
    ------
    ValueError
        If the shapes differ, or values are not in [0, 1] with ``cdf_below <= cdf``.

    Examples
    --------
    >>> from hdiforest.metrics import pit_values
    >>> pit_values([0.25, 0.75]).tolist()
    [0.25, 0.75]
    """
    upper = checks.check_targets("cdf", cdf)
    lower = upper if cdf_below is None else checks.check_targets("cdf_below", cdf_below)
    checks.check_one_for_each("cdf_below", lower.shape, len(upper))
    wrong = (lower < 0) | (lower > upper) | (upper > 1)
    if wrong.any():
        got = f"{checks.count_rows(wrong)} that are not"
        raise ValueError(f"cdf and cdf_below must be in [0, 1] with cdf_below <= cdf, got {got}")
    draws = checks.checked_random_state(random_state).random_sample(len(upper))
    return np.minimum(lower + draws * (upper - lower), upper)


def crps_of_rows(y: Array, values: ArrayLike, weights: Any) -> Array:
    """Return the score of each row, (n,). See `crps_score`."""
    n, csr = len(y), weights.tocsr() if hasattr(weights, "tocsr") else None
    given = 1.0 if weights is None else weights
    sample = checks.reals("values", values)
    numbers = checks.reals("weights", given if csr is None else csr.data)
    if not np.isfinite(sample).all():
        raise ValueError("values must be finite")
    if not (np.isfinite(numbers).all() and (numbers >= 0).all()):
        raise ValueError("weights must be finite and not negative")
    if csr is None:
        if sample.ndim != 2 or len(sample) != n or sample.size == 0:
            raise ValueError(f"values must have shape ({n}, s) with s > 0, got {sample.shape}")
        s = sample.shape[1]
        if weights is not None and numbers.shape not in ((s,), (n, s)):
            raise ValueError(f"weights must have shape ({s},) or ({n}, {s}), got {numbers.shape}")
        numbers = np.broadcast_to(numbers, (n, s))
    else:
        if sample.ndim != 1 or len(sample) == 0 or csr.shape != (n, len(sample)):
            got = f"{csr.shape} and {sample.shape}"
            raise ValueError(f"sparse weights must have shape ({n}, m) and values (m,), got {got}")
        s = int(np.diff(csr.indptr).max())
    scores, at_once = np.empty(n), max(1, _BLOCK_ENTRIES // max(1, s))
    for first in range(0, n, at_once):
        rows = slice(first, first + at_once)
        if csr is None:
            scores[rows] = _crps_of_block(y[rows], sample[rows], numbers[rows])
        else:
            positions, padded = padded_rows(csr[rows])
            scores[rows] = _crps_of_block(y[rows], sample[positions], padded)
    return scores


def padded_rows(weights: Any) -> tuple[NDArray[np.int64], Array]:
    """Return columns and entries (n, k) of a CSR matrix; short rows repeat their first with 0."""
    counts = np.diff(weights.indptr)
    filled = np.arange(max(1, int(counts.max(initial=0)))) < counts[:, None]
    columns, entries = np.zeros(filled.shape, dtype=np.int64), np.zeros(filled.shape)
    columns[filled], entries[filled] = weights.indices, weights.data
    return np.where(filled, columns, columns[:, :1]), entries


def _crps_of_block(y: Array, values: Array, weights: Array) -> Array:
    """CRPS of each row, (n,), by samples and their weights (n, s)."""
    total = weights.sum(axis=1, keepdims=True)
    if not (total > 0).all():
        rows = checks.count_rows(total <= 0)
        raise ValueError(f"weights must have a positive sum in every row, got {rows}")
    order = np.argsort(values, axis=1)
    z, w = (np.take_along_axis(each, order, axis=1) for each in (values, weights / total))
    left, right = z[:, :-1], z[:, 1:]
    below = np.cumsum(w, axis=1)[:, :-1]  # F from left to right
    split = np.clip(y[:, None], left, right)
    gaps = (split - left) * below**2 + (right - split) * (1 - below) ** 2
    tails = np.maximum(z[:, 0] - y, 0) + np.maximum(y - z[:, -1], 0)
    return np.asarray(tails + gaps.sum(axis=1))
