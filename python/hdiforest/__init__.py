"""Shortest prediction intervals from fitted forests."""

from hdicore import __version__
from hdiforest.estimator import HDIForestRegressor
from hdiforest.fit_table import fit_table
from hdiforest.leaf_model import LeafModel, from_leaves
from hdiforest.search import ForestSearchOOB

__all__ = [
    "ForestSearchOOB",
    "HDIForestRegressor",
    "LeafModel",
    "__version__",
    "fit_table",
    "from_leaves",
]
