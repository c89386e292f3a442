"""Shortest prediction intervals from fitted forests."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hdicore import __version__
    from hdiforest.boosters import from_catboost, from_lightgbm, from_xgboost
    from hdiforest.displays import (
        CalibrationDisplay,
        DistributionDisplay,
        IntervalDisplay,
        WidthDisplay,
    )
    from hdiforest.estimator import HDIForestRegressor
    from hdiforest.leaf_model import LeafModel, from_leaves
    from hdiforest.search import ForestSearchOOB
    from hdiforest.table_fitting import fit_table
    from hdiforest.views import quantile_views

__all__ = [
    "CalibrationDisplay",
    "DistributionDisplay",
    "ForestSearchOOB",
    "HDIForestRegressor",
    "IntervalDisplay",
    "LeafModel",
    "WidthDisplay",
    "__version__",
    "fit_table",
    "from_catboost",
    "from_leaves",
    "from_lightgbm",
    "from_xgboost",
    "quantile_views",
]

# Imported when they are asked for, so that `hdiforest.serving` does without scikit-learn.
_MODULES = {
    "CalibrationDisplay": "displays",
    "DistributionDisplay": "displays",
    "ForestSearchOOB": "search",
    "HDIForestRegressor": "estimator",
    "IntervalDisplay": "displays",
    "LeafModel": "leaf_model",
    "WidthDisplay": "displays",
    "fit_table": "table_fitting",
    "from_catboost": "boosters",
    "from_leaves": "leaf_model",
    "from_lightgbm": "boosters",
    "from_xgboost": "boosters",
    "quantile_views": "views",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value = getattr(import_module(f"hdiforest.{_MODULES[name]}"), name)
        globals()[name] = value
        return value
    if name == "__version__":
        return import_module("hdicore").__version__
    if not name.startswith("_"):
        try:
            return import_module(f"hdiforest.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"hdiforest.{name}":
                raise
    raise AttributeError(f"module 'hdiforest' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
