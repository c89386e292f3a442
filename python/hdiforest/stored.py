"""Stands in for the forest of a model that was loaded from a file."""

from __future__ import annotations

from sklearn.base import BaseEstimator
from sklearn.utils import Tags


class StoredForest(BaseEstimator):
    """Description of a forest that is known by its compiled trees alone.

    `HDIForestRegressor.load` makes it the parameter `estimator`: so the model says what it is, and
    neither it nor a clone of it fits another forest unasked.

    Parameters
    ----------
    n_trees, n_features, n_outputs, n_training_rows : int
    allow_nan : bool
        Whether rows may hold missing values.
    """

    def __init__(
        self,
        n_trees: int,
        n_features: int,
        n_outputs: int,
        n_training_rows: int,
        allow_nan: bool,
    ) -> None:
        self.n_trees = n_trees
        self.n_features = n_features
        self.n_outputs = n_outputs
        self.n_training_rows = n_training_rows
        self.allow_nan = allow_nan

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.allow_nan
        return tags
