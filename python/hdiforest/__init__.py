"""Shortest prediction intervals from fitted forests."""

from hdicore import __version__
from hdiforest.boosters import from_catboost, from_lightgbm, from_xgboost
from hdiforest.estimator import HDIForestRegressor
from hdiforest.leaf_model import LeafModel, from_leaves
from hdiforest.search import ForestSearchOOB

__all__ = [
    "ForestSearchOOB",
    "HDIForestRegressor",
    "LeafModel",
    "__version__",
    "from_catboost",
    "from_leaves",
    "from_lightgbm",
    "from_xgboost",
]
