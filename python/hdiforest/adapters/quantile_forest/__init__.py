"""Quantile regression forests with the interface of the library quantile-forest.

``from hdiforest.adapters.quantile_forest import RandomForestQuantileRegressor`` takes the place of
its import; quantile-forest itself need not be installed. Answers come from hdicore.
"""

from hdiforest.adapters.quantile_forest._quantile_forest import (
    ExtraTreesQuantileRegressor,
    RandomForestQuantileRegressor,
)

__all__ = ["ExtraTreesQuantileRegressor", "RandomForestQuantileRegressor"]
