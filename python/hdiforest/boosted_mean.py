"""A boosted mean as plain arrays: the trees of scikit-learn's histogram boosting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdicore import Forest


@dataclass(frozen=True, eq=False)
class BoostedMean:
    """Predicts a baseline plus a value for each leaf that a row lies in."""

    forest: Forest
    leaf_values: NDArray[np.float64]  # (n_leaves.sum(),) tree after tree
    baseline: float

    @classmethod
    def checked(
        cls, forest: Forest, leaf_values: NDArray[np.float64], baseline: float, n_features: int
    ) -> BoostedMean:
        """Return the parts together, or raise ValueError if they do not fit."""
        n_leaves = int(forest.n_leaves.sum())
        values = np.asarray(leaf_values)
        if forest.n_features != n_features:
            raise ValueError(f"the mean has {forest.n_features} features, not {n_features}")
        if values.dtype != np.float64 or values.shape != (n_leaves,):
            raise ValueError(f"leaf_values must be {n_leaves} float64 numbers")
        if not (np.isfinite(values).all() and np.isfinite(baseline)):
            raise ValueError("leaf_values and baseline must be finite")
        return cls(forest, values, baseline)

    def predict(self, X: NDArray[Any], n_threads: int) -> NDArray[np.float64]:
        """Predictions for the rows of X, (n,). O(depth) for each tree."""
        leaves = self.forest.leaves(X, n_threads=n_threads)
        first = np.cumsum(self.forest.n_leaves) - self.forest.n_leaves
        values: NDArray[np.float64] = self.leaf_values[leaves + first]
        predictions: NDArray[np.float64] = self.baseline + values.sum(axis=1)
        return predictions
