"""Means of rows as arrays: those of boosted trees, and of ridge regressions around each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdicore._core import Forest, LeafIndex, Scorer

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


class LocalColumns(NamedTuple):
    """Some features in units of their spread."""

    columns: NDArray[np.int64]  # (q,) of X
    centre: Array  # (q,) means
    scale: Array  # (q,) standard deviations; 1 for a constant

    @classmethod
    def of_rows(cls, X: NDArray[np.float32], columns: NDArray[np.int64]) -> LocalColumns:
        """Return columns with the means and deviations of the values that are not missing."""
        values = np.ma.masked_invalid(X[:, columns].astype(np.float64))
        centre, scale = (each.filled(0) for each in (values.mean(axis=0), values.std(axis=0)))
        return cls(columns, centre, np.where(scale > 0, scale, 1))

    def read(self, X: NDArray[Any]) -> Array:
        """Return the features of rows, (n, q), rounded to float32; missing ones are at the mean."""
        rows = X[:, self.columns].astype(np.float32).astype(np.float64)
        with np.errstate(over="ignore"):
            steps = ((rows - self.centre) / self.scale).astype(np.float32)
        return np.nan_to_num(steps, copy=False).astype(np.float64)


@dataclass(frozen=True, eq=False)
class LocalLinearMean:
    """Ridge regressions around each row, with the weights that the forest's mean has.

    Friedberg, Tibshirani, Athey and Wager, "Local linear forests", Journal of Computational and
    Graphical Statistics 30, 2021. The training rows weigh as the trees drew them.
    """

    scorer: Scorer  # of the rows drawn: its atoms are their positions 0, 1, ..., n - 1
    columns: LocalColumns
    features: Array  # (n, q) as `columns` reads them
    targets: Array  # (n,)
    penalty: float

    @classmethod
    def checked(
        cls, forest: Forest, index: LeafIndex, arrays: Mapping[str, NDArray[Any]], penalty: float
    ) -> LocalLinearMean:
        """Return the mean of `arrays`, or raise ValueError if they do not fit."""
        columns = LocalColumns(arrays["columns"], arrays["centre"], arrays["scale"])
        features, targets = arrays["features"].astype(np.float64), arrays["targets"]
        own = columns.columns
        if index.n_outputs != 1 or not np.array_equal(index.atoms(0), np.arange(len(targets))):
            raise ValueError(f"the index of the drawn rows must be of {len(targets)} positions")
        finite = (columns.centre, columns.scale, features, targets, np.array(penalty))
        if not all(np.isfinite(each).all() for each in finite):
            raise ValueError("a local linear mean must be of finite numbers")
        if len(own) == 0 or not (own < forest.n_features).all() or (own < 0).any():
            raise ValueError(f"local.columns must be features below {forest.n_features}")
        if not (columns.scale > 0).all() or penalty <= 0:
            raise ValueError("local.scale and the penalty must be positive")
        return cls(Scorer(forest, index), columns, features, targets, penalty)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what `checked` takes."""
        features = self.features.astype(np.float32)
        return {**self.columns._asdict(), "features": features, "targets": self.targets}

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """Least and greatest target."""
        return float(self.targets.min()), float(self.targets.max())

    def predict(self, X: NDArray[Any], n_threads: int) -> Array:
        """Predictions (n,) in the range of the targets. O(entries + atoms q**2 + q**3) a row."""
        known = self.columns.read(X), self.features, self.targets
        found = self.scorer.local_linear(X, *known, [self.penalty], n_threads=n_threads)
        return found[:, 0].clip(*self.bounds)
