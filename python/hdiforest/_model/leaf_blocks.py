"""Leaf ids of many rows from any library, block by block in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._tables.frames import frame_of

# Ids in a block: 32 MB as int64, the widest that libraries report.
BLOCK_IDS = 2**22

# Rows of the first block where the number of trees is not known yet.
FIRST_ROWS = 1024


def leaves_by_block(
    apply: Callable[[Any], ArrayLike], X: Any, n_trees: int | None = None
) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Yield slices of rows and their leaf ids, (rows of the slice, n_trees), as `apply` gives them.

    Blocks hold at most `BLOCK_IDS` ids, or one row. The only block is X itself if it is no larger
    or cannot be sliced. `apply` is not called for no rows, if the number of trees is known. Raises
    ValueError if it is no function, or returns other numbers of rows or trees than it should.
    """
    if not callable(apply):
        raise ValueError(
            "apply must be a function from rows to leaf ids, such as the method apply of a forest, "
            f"got {type(apply).__name__}"
        )
    frame = frame_of(X)
    n = frame.n_rows
    if n == 0 and n_trees is not None:  # of which some libraries are not to be asked
        yield slice(0, 0), np.empty((0, n_trees), dtype=np.int32)
        return
    begin, block_rows = 0, _rows_in_a_block(n_trees)
    if n is None or n <= block_rows:
        yield slice(0, n), _leaves(apply(X))
        return
    while begin < n:
        end = min(begin + block_rows, n)
        leaves = _leaves(apply(frame.rows(slice(begin, end))))
        if leaves.shape[:1] != (end - begin,):
            raise ValueError(
                f"apply must return the leaves of each row; for {end - begin} rows it returned an "
                f"array of shape {leaves.shape}"
            )
        yield slice(begin, end), leaves
        begin, block_rows = end, _rows_in_a_block(leaves.shape[-1])


def all_leaves(apply: Callable[[Any], ArrayLike], X: Any) -> NDArray[Any]:
    """Return the leaf ids of all rows, as int32 if they come from more than one block."""
    blocks = leaves_by_block(apply, X)
    rows, first = next(blocks)
    n = frame_of(X).n_rows
    if n is None or rows.stop == n:
        return first
    ids = np.empty((n, *first.shape[1:]), dtype=np.int32)
    ids[rows] = _as_int32(first)
    for rows, leaves in blocks:
        if leaves.shape[1:] != first.shape[1:]:
            raise ValueError(
                f"apply must return as many trees for all rows; it returned {first.shape[1]} and "
                f"then {leaves.shape[1]}"
            )
        ids[rows] = _as_int32(leaves)
    return ids


def _rows_in_a_block(n_trees: int | None) -> int:
    return FIRST_ROWS if n_trees is None else max(1, BLOCK_IDS // max(1, n_trees))


def _leaves(ids: ArrayLike) -> NDArray[Any]:
    leaves = np.asarray(ids)
    return leaves[:, None] if leaves.ndim == 1 else leaves


def _as_int32(leaves: NDArray[Any]) -> NDArray[np.int32]:
    if leaves.dtype == np.int32:
        return leaves
    with np.errstate(invalid="ignore"):  # NaN and too large numbers differ afterwards
        converted = leaves.astype(np.int32)
    wrong = converted != leaves
    if wrong.any():
        raise ValueError(f"leaves must hold whole numbers below 2**28, got {leaves[wrong][0]!r}")
    return converted
