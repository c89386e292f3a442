"""Means of rows as arrays: a line of the features, and boosted trees of its residuals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdicore._core import Forest

__all__ = ["BoostedMean"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BoostedMean:
    """Predict a baseline, a line, and a value for each leaf of a row, within a range.

    A missing value of the line is replaced by the feature's median, at which the line is zero.

    Parameters
    ----------
    forest : Forest
        The trees.
    leaf_values : (n_leaves.sum(),) float64
        The value that each leaf adds, tree after tree.
    line : (2, n_features) float64
        Medians and slopes of the features.
    baseline : float
        The value of all rows.
    low : float
        Lower end of the range of the predictions. The default is no limit.
    high : float
        Upper end of the range of the predictions. The default is no limit.

    Raises
    ------
    ValueError
        If a shape is wrong, a number is not finite, or low is above high.
    """

    forest: Forest
    leaf_values: Array
    line: Array
    baseline: float
    low: float = -np.inf
    high: float = np.inf

    def __post_init__(self) -> None:
        n_leaves = int(self.forest.n_leaves.sum())
        if self.leaf_values.dtype != np.float64 or self.leaf_values.shape != (n_leaves,):
            raise ValueError(f"leaf_values must be {n_leaves} float64 numbers")
        n_features = self.forest.n_features
        if self.line.dtype != np.float64 or self.line.shape != (2, n_features):
            raise ValueError(f"line must be float64 of shape {(2, n_features)}")
        if not all(np.isfinite(a).all() for a in (self.leaf_values, self.line, self.baseline)):
            raise ValueError("leaf_values, line and baseline must be finite")
        if not self.low <= self.high:
            raise ValueError(f"low must be at most high, got {self.low} and {self.high}")

    def predict(self, X: NDArray[Any], n_threads: int) -> Array:
        """Predict the targets of rows.

        Parameters
        ----------
        X : (n, n_features) float32 or float64
            Rows to predict.
        n_threads : int
            Number of threads. 0 means all that the process may use.

        Returns
        -------
        (n,) float64
            Predictions, in the unit of the targets. O(n_features), and O(depth) for each tree.
        """
        leaves = self.forest.leaves(X, n_threads=n_threads)
        first = np.cumsum(self.forest.n_leaves) - self.forest.n_leaves
        medians, slopes = self.line
        of_line = np.where(np.isnan(X), 0, X - medians) @ slopes
        means = self.baseline + of_line + self.leaf_values[leaves + first].sum(axis=1)
        return np.asarray(np.clip(means, self.low, self.high))
