"""Checks of arguments that several methods of a quantile forest take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._utils.checks import alternatives
from hdiforest._utils.typing import Interpolation

INTEGERS = (int, np.integer)
NUMBERS = (int, float, np.integer, np.floating)
INTERPOLATIONS: tuple[str, ...] = get_args(Interpolation)


def asked_levels(quantiles: Any, name: str = "quantiles") -> list[float] | None:
    """Return levels in [0, 1]; None: the mean.

    Raises
    ------
    ValueError
        If `quantiles` is no level, several, "mean" or None.
    """
    several = isinstance(quantiles, list | tuple | np.ndarray)
    levels: list[Any] = list(np.atleast_1d(quantiles)) if several else [quantiles]
    if len(levels) == 1 and (levels[0] is None or str(levels[0]) == "mean"):
        return None
    if levels and all(isinstance(level, NUMBERS) and 0 <= level <= 1 for level in levels):
        return [float(level) for level in levels]
    raise ValueError(f'{name} must be levels in [0, 1] or "mean", got {quantiles!r}')


def interpolation_name(interpolation: Any) -> Any:
    """Return the name of an interpolation, which may come as bytes.

    Raises
    ------
    ValueError
        If there is no such interpolation.
    """
    return one_of(
        interpolation.decode() if isinstance(interpolation, bytes) else interpolation,
        "interpolation",
        INTERPOLATIONS,
    )


def one_of(given: Any, name: str, known: Iterable[str]) -> Any:
    """Return an argument that must be one of some words.

    Raises
    ------
    ValueError
        If it is not.
    """
    known = tuple(known)
    if given not in known:
        raise ValueError(f"{name} must be {alternatives(map(repr, known))}, got {given!r}")
    return given


def positive_or_none(given: Any, name: str) -> int | None:
    """Return an argument that must be a positive integer or None.

    Raises
    ------
    ValueError
        If it is not.
    """
    if given is None:
        return None
    if isinstance(given, INTEGERS) and given > 0:
        return int(given)
    raise ValueError(f"{name} must be a positive integer or None, got {given!r}")


def checked_points(y: ArrayLike, n: int, n_outputs: int) -> NDArray[np.float64]:
    """Return a target for each of n rows, (n,) or (n, n_outputs).

    Raises
    ------
    ValueError
        If y has another shape.
    """
    points = np.asarray(y, dtype=np.float64)
    wanted = (n,) if n_outputs == 1 else (n, n_outputs)
    if points.shape != wanted and not (n_outputs == 1 and points.shape == (n, 1)):
        raise ValueError(f"y must have the shape {wanted}, got {points.shape}")
    return points.reshape(wanted)
