"""Shortest prediction intervals from fitted scikit-learn forests."""

from hdiforest.estimator import HDIForestRegressor

__all__ = ["HDIForestRegressor"]
