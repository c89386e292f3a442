"""Which rows an IntervalDisplay draws, and where."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._utils.checks import reals
from hdiforest._utils.random_state import checked_random_state
from hdiforest._utils.typing import Array
from hdiforest.displays.style import plain


def one_per_row(name: str, given: ArrayLike, n: int) -> Array:
    """Return the argument `name` as float64, (n,)."""
    values = reals(name, given)
    if values.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {values.shape}")
    return values


def checked_feature(feature: ArrayLike, n: int) -> NDArray[Any]:
    """Return numbers or dates, (n,)."""
    values = np.asarray(feature)
    if values.shape != (n,):
        raise ValueError(f"feature must have shape ({n},), got {values.shape}")
    if values.dtype.kind not in "iufbmM":
        raise ValueError(f"feature must hold numbers or dates, got values of type {values.dtype}")
    return values


def feature_of(X: Any, feature: Any) -> tuple[Any, str | None]:
    """Return values of a feature, and its name if X has one."""
    if feature is None:
        return None, None
    if isinstance(feature, str):
        try:
            return np.asarray(X[feature]), plain(feature)
        except (KeyError, IndexError, TypeError, ValueError):
            raise ValueError(f"feature must be a column of X, got {feature!r}") from None
    if isinstance(feature, int | np.integer) and not isinstance(feature, bool):
        table = X if hasattr(X, "iloc") else np.asarray(X)
        n = table.shape[1]
        if not 0 <= feature < n:
            raise ValueError(f"feature must be a column from 0 to {n - 1}, got {feature}")
        if hasattr(X, "iloc"):
            return np.asarray(X.iloc[:, feature]), plain(X.columns[feature])
        return table[:, feature], f"feature {feature}"
    return feature, None


def drawn_rows(
    n: int, subsample: float | int | None, random_state: int | np.random.RandomState | None
) -> NDArray[np.intp]:
    """Return positions of the rows to draw, ascending."""
    if subsample is None:
        return np.arange(n)
    is_share = isinstance(subsample, float)
    if isinstance(subsample, bool) or not (0 < subsample <= 1 if is_share else subsample >= 1):
        raise ValueError(
            f"subsample must be a share from 0 to 1, a whole number from 1 on, or None, got "
            f"{subsample!r}"
        )
    size = max(1, int(subsample * n)) if is_share else int(subsample)
    if size >= n:
        return np.arange(n)
    random = checked_random_state(0 if random_state is None else random_state)
    return np.sort(random.choice(n, size, replace=False))
