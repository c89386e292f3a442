"""Means of rows as arrays: those of boosted trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdicore._core import Forest

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BoostedMean:
    """Predicts a baseline plus a value for each leaf that a row lies in."""

    forest: Forest
    leaf_values: Array  # (n_leaves.sum(),) tree after tree
    baseline: float

    def __post_init__(self) -> None:
        n_leaves = int(self.forest.n_leaves.sum())
        if self.leaf_values.dtype != np.float64 or self.leaf_values.shape != (n_leaves,):
            raise ValueError(f"leaf_values must be {n_leaves} float64 numbers")
        if not (np.isfinite(self.leaf_values).all() and np.isfinite(self.baseline)):
            raise ValueError("leaf_values and baseline must be finite")

    def predict(self, X: NDArray[Any], n_threads: int) -> Array:
        """Predictions for the rows of X, (n,). O(depth) for each tree."""
        leaves = self.forest.leaves(X, n_threads=n_threads)
        first = np.cumsum(self.forest.n_leaves) - self.forest.n_leaves
        return np.asarray(self.baseline + self.leaf_values[leaves + first].sum(axis=1))
