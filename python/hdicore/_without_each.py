"""Intervals of one row, and of the same without each of the rows in its leaves in turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdicore._core import LeafIndex

Array = NDArray[np.float64]

_CELLS_AT_ONCE = 1 << 22  # of leaves of rows that are left out


def intervals_without_each(
    counts: NDArray[np.unsignedinteger],
    targets: Array,
    weights: Array | None,
    levels: Sequence[float],
    kinds: Sequence[Any],
    n_threads: int,
) -> Array:
    """Return intervals of the leaves of one row, and without each of s rows, (1 + s, 2, k).

    `counts` (s, n_trees) say how often the leaf of each tree counts each row. A leaf without one of
    its rows is one tree more, which stands in for the whole leaf where that row is left out.
    """
    n, n_trees = counts.shape
    if n == 0:
        return np.full((1, 2, len(levels)), np.nan)
    n_cells = n * np.cumsum(np.count_nonzero(counts, axis=1))
    ends = []
    for out in np.split(np.arange(n), 1 + np.flatnonzero(np.diff(n_cells // _CELLS_AT_ONCE))):
        at, tree = np.nonzero(counts[out])
        more = n_trees + np.arange(len(at))
        of_trees = np.concatenate([counts, counts[:, tree]], axis=1)
        of_trees[out[at], more] = 0
        options: dict[str, Any] = {"counts": of_trees, "sample_weight": weights}
        options["n_leaves"] = np.ones(of_trees.shape[1], dtype=np.int64)  # some are empty
        leaves = np.zeros(of_trees.shape, dtype=np.int32)
        index = LeafIndex(leaves, targets, **options, n_threads=n_threads)
        query = np.full((1 + len(out), of_trees.shape[1]), -1, dtype=np.int32)
        query[0, :n_trees] = 0
        query[1:, :n_trees] = np.where(counts[out] > 0, -1, 0)
        query[1 + at, more] = 0
        ends.append(index.intervals(query, levels, kinds, n_threads=n_threads))
    return np.concatenate([ends[0][:1], *(each[1:] for each in ends)])
