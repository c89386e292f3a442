"""Shortest prediction intervals from fitted forests."""

from hdiforest.estimator import HDIForestRegressor
from hdiforest.leaves import LeafModel, from_leaves

__all__ = ["HDIForestRegressor", "LeafModel", "from_leaves"]
