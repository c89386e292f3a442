"""Checks of the arguments of metrics: targets, interval ends and weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._utils.checks import reals
from hdiforest._utils.typing import Array


def checked_targets(y_true: ArrayLike) -> Array:
    """Return finite targets, (n,), of one row or more."""
    y = reals("y_true", y_true)
    if y.ndim != 1 or len(y) == 0:
        raise ValueError(f"y_true must have shape (n,) with n > 0, got {y.shape}")
    if not np.isfinite(y).all():
        raise ValueError(f"y_true must be finite, got {count(~np.isfinite(y))} that are not")
    return y


def checked_ends(interval: ArrayLike) -> tuple[Array, Array]:
    """Return lower and upper ends, (n,) or (n, k), in order and without NaN."""
    ends = reals("interval", interval)
    if ends.ndim not in (2, 3) or ends.shape[1] != 2 or ends.size == 0:
        raise ValueError(f"interval must have shape (n, 2) or (n, 2, k), got {ends.shape}")
    if np.isnan(ends).any():
        with_nan = np.isnan(ends).reshape(len(ends), -1).any(axis=1)
        raise ValueError(
            f"interval must not hold NaN, got {count(with_nan)} with it; leave them out"
        )
    lower, upper = ends[:, 0], ends[:, 1]
    if (lower > upper).any():
        crossed = (lower > upper).reshape(len(ends), -1).any(axis=1)
        raise ValueError(f"interval must have lower <= upper, got {count(crossed)} that cross")
    return lower, upper


def checked(y_true: ArrayLike, interval: ArrayLike) -> tuple[Array, Array, Array]:
    """Return targets, (n,) or (n, 1), and lower and upper ends of as many rows."""
    y = checked_targets(y_true)
    lower, upper = checked_ends(interval)
    if len(lower) != len(y):
        raise ValueError(f"interval must have as many rows as y_true, {len(y)}, got {len(lower)}")
    return (y if lower.ndim == 1 else y[:, None]), lower, upper


def weighted_mean(values: NDArray[Any], sample_weight: ArrayLike | None) -> Any:
    """Mean over the rows, the first axis; those of weight 0 do not count, infinite or not."""
    if sample_weight is None:
        return values.mean(axis=0)
    weights = checked_sample_weight(sample_weight, len(values))
    counts = weights > 0
    return np.average(values[counts], axis=0, weights=weights[counts])


def checked_sample_weight(sample_weight: ArrayLike, n: int) -> Array:
    """Return weights of n rows, (n,): finite, not negative, and not all zero."""
    weights = reals("sample_weight", sample_weight)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got {weights.shape}")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and (weights > 0).any()):
        raise ValueError("sample_weight must be finite, not negative, and not all zero")
    return weights


def count(bad: Any) -> str:
    """Say how many of the rows are bad."""
    return f"{int(bad.sum())} of {len(bad)} rows"
