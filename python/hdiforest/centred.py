"""Centred distributions: residuals of the training rows around a row's mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdicore import Forest, LeafIndex, Scorer
from hdiforest.conditional import Kind

# Rows are routed in blocks of about so many leaf ids, so that memory stays flat.
_LEAVES_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class CentredForest:
    """The residuals of the training rows by leaf, and the mean of each leaf.

    A row x has the atoms c(x) + (y_j - c_j), with the weights that the training rows j have in its
    leaves: c(x) is the mean of the rows that the trees drew into its leaves, and c_j is the same
    mean for training row j, from the trees that did not draw it. The weights give the spread, the
    centre the location (Lu and Hardin 2021 use such residuals of out-of-bag predictions).
    """

    residuals: LeafIndex  # its targets are y_j - c_j
    leaf_means: NDArray[np.float64]  # (n_leaves.sum(),) of the rows drawn, tree after tree

    @classmethod
    def checked(
        cls, forest: Forest, residuals: LeafIndex, leaf_means: NDArray[np.float64]
    ) -> CentredForest:
        """Return the parts together, or raise ValueError if they are not of one forest."""
        Scorer(forest, residuals)  # raises unless they have the same leaves
        n_leaves = int(forest.n_leaves.sum())
        means = np.asarray(leaf_means)
        if means.dtype != np.float64 or means.shape != (n_leaves,) or not np.isfinite(means).all():
            raise ValueError(f"leaf_means must be {n_leaves} finite numbers")
        return cls(residuals, means)

    def centres(self, leaves: NDArray[np.int32]) -> NDArray[np.float64]:
        """Means of rows that lie in the given leaves (n, n_trees), (n,)."""
        first = np.concatenate([[0], np.cumsum(self.residuals.n_leaves)[:-1]])
        means: NDArray[np.float64] = self.leaf_means[leaves + first].mean(axis=1)
        return means

    def intervals(
        self,
        forest: Forest,
        X: NDArray[np.float32] | NDArray[np.float64],
        coverage: ArrayLike,
        kind: Kind,
        n_threads: int,
    ) -> NDArray[np.float64]:
        """Intervals of the rows of X, (n, 2) or (n, 2, k). O(depth + entries) for each tree."""
        ends = np.empty((len(X), 2, *np.shape(coverage)))
        step = max(1, _LEAVES_AT_ONCE // forest.n_trees)
        for begin in range(0, len(X), step):
            part = slice(begin, begin + step)
            leaves = forest.leaves(X[part], n_threads=n_threads)
            centres = self.centres(leaves)
            self.residuals.intervals(leaves, coverage, kind, n_threads=n_threads, out=ends[part])
            ends[part] += centres.reshape(-1, *[1] * (ends.ndim - 1))
        return ends
