"""Jackknife+ after bootstrap: for each of some training rows, the trees that did not draw it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from hdicore import Forest, LeafIndex
from hdiforest._utils.typing import Kind
from hdiforest.calibration import FIXED_RAW

_MERGES_AT_ONCE = 1 << 16  # bounds the leaf ids


@dataclass(frozen=True, eq=False)
class Jackknife:
    """For each of m training rows the forest of the trees that did not draw it."""

    index: LeafIndex  # of the rows as the trees drew them
    drawn: NDArray[np.bool_]  # (m, n_trees) whether a tree drew the row

    @classmethod
    def checked(cls, forest: Forest, index: LeafIndex, drawn: NDArray[np.bool_]) -> Jackknife:
        """Return the parts together, or raise ValueError if they are not of one forest."""
        if index.n_outputs != 1 or list(index.n_leaves) != list(forest.n_leaves):
            raise ValueError("the index of the jackknife must be of the forest and one target")
        if drawn.dtype != np.bool_ or drawn.ndim != 2 or drawn.shape[1] != forest.n_trees:
            raise ValueError(f"drawn must be bool of shape (m, {forest.n_trees})")
        return cls(index, drawn)

    def own_intervals(self, leaves: NDArray[np.int32], n_threads: int) -> NDArray[np.float64]:
        """Return the base interval of each of the m rows itself, in given leaves, (m, 2)."""
        return self._read(np.where(self.drawn, np.int32(-1), leaves), n_threads)

    def intervals(self, leaves: NDArray[np.int32], n_threads: int) -> NDArray[np.float64]:
        """Return the base intervals of rows in given leaves (n, n_trees), (m, n, 2)."""
        ends = np.empty((len(leaves), len(self.drawn), 2))
        step = max(1, _MERGES_AT_ONCE // len(self.drawn))
        for begin in range(0, len(leaves), step):
            part = slice(begin, begin + step)
            masked = np.where(self.drawn, np.int32(-1), leaves[part, np.newaxis])
            found = self._read(masked.reshape(-1, masked.shape[2]), n_threads)
            ends[part] = found.reshape(-1, len(self.drawn), 2)
        return ends.transpose(1, 0, 2)

    def _read(self, leaves: NDArray[np.int32], n_threads: int) -> NDArray[np.float64]:
        kind = cast("Kind", FIXED_RAW.kind)
        return self.index.intervals(leaves, FIXED_RAW.level, kind, n_threads=n_threads)
