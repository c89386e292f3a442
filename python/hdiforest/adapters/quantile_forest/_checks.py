"""Checks of arguments that several methods of a quantile forest take, and which trees it asks."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._model.training_rows import TrainingRows
from hdiforest._utils import Interpolation
from hdiforest._utils.checks import check_choice
from hdiforest._utils.hints import callers_level

INTEGERS = (int, np.integer)
NUMBERS = (int, float, np.integer, np.floating)
INTERPOLATIONS: tuple[str, ...] = get_args(Interpolation)


def quantile_levels(quantiles: Any, name: str = "quantiles") -> list[float] | None:
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
    """Return the name of an interpolation, which may come as bytes, or raise ValueError."""
    name = interpolation.decode() if isinstance(interpolation, bytes) else interpolation
    check_choice("interpolation", name, INTERPOLATIONS)
    return name


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


def out_of_bag_mask(
    rows: TrainingRows, duplicates: Iterable[Sequence[int]] | None
) -> NDArray[np.bool_]:
    """Say for each training row and tree whether the tree did not see the row, (n, n_trees).

    Raises
    ------
    ValueError
        If the trees drew no rows, or `duplicates` names rows that are not there.
    """
    if rows.bags is None:
        raise ValueError(
            "oob_score=True needs trees that leave rows out; every tree of this forest saw all, "
            "so fit it with bootstrap=True"
        )
    mask: NDArray[np.bool_] = rows.bags.matrix() == 0
    mask[~rows.has_weight] = True
    for group in duplicates or ():
        alike = _positions(group, "duplicates", 0, len(mask))
        mask[alike] = mask[alike].all(axis=0)
    return mask


def tree_mask(
    rows: TrainingRows,
    n: int,
    indices: ArrayLike | None,
    duplicates: Iterable[Sequence[int]] | None,
) -> NDArray[np.bool_]:
    """Say for n rows and each tree whether it may be asked about the row, (n, n_trees).

    `indices` says which training rows they are, -1 for none; by default they are all in order.

    Raises
    ------
    ValueError
        As `out_of_bag_mask`, or if `indices` does not name n rows.
    """
    mask = out_of_bag_mask(rows, duplicates)
    if indices is None:
        if n != len(mask):
            raise ValueError(
                f"X must have the {len(mask)} rows of the fit if oob_score=True comes without "
                f"indices, got {n} rows"
            )
    else:
        position = _positions(indices, "indices", -1, len(mask))
        if position.shape != (n,):
            raise ValueError(
                f"indices must name a training row for each of the {n} rows of X, got shape "
                f"{position.shape}"
            )
        mask = mask[position] | (position == -1)[:, None]
    if not mask.any(axis=1).all():
        warnings.warn(
            "Some rows were seen by every tree, so their out-of-bag answers are empty; use more "
            "trees.",
            stacklevel=callers_level(),
        )
    return mask


def _positions(rows: ArrayLike, name: str, lowest: int, n: int) -> NDArray[np.intp]:
    """Return row numbers, which may be whole numbers of any type, after checking them."""
    numbers = np.asarray(rows)
    if numbers.size == 0:
        return numbers.astype(np.intp)
    if numbers.dtype.kind not in "iuf" or (numbers != np.trunc(numbers)).any():
        raise ValueError(f"{name} must hold whole numbers, got {rows!r}")
    if numbers.min() < lowest or numbers.max() >= n:
        outside = numbers[(numbers < lowest) | (numbers >= n)][0]
        raise ValueError(f"{name} must hold numbers from {lowest} to {n - 1}, got {outside}")
    return numbers.astype(np.intp)
