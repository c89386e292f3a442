"""Shortest prediction intervals from fitted forests."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hdicore import __version__
    from hdiforest._estimators.fit_table import fit_table
    from hdiforest._estimators.hdi_forest import HDIForestRegressor
    from hdiforest._estimators.leaf_model import LeafModel, from_leaves
    from hdiforest._estimators.search import ForestSearchOOB
    from hdiforest.adapters.boosters import from_catboost, from_lightgbm, from_xgboost
    from hdiforest.adapters.mapie import quantile_views
    from hdiforest.displays import (
        CalibrationDisplay,
        DistributionDisplay,
        IntervalDisplay,
        WidthDisplay,
    )

# The public names and where they are. Imported when they are asked for, so that
# `hdiforest.serving` does without scikit-learn.
_HOMES = {
    "CalibrationDisplay": "hdiforest.displays",
    "DistributionDisplay": "hdiforest.displays",
    "ForestSearchOOB": "hdiforest._estimators.search",
    "HDIForestRegressor": "hdiforest._estimators.hdi_forest",
    "IntervalDisplay": "hdiforest.displays",
    "LeafModel": "hdiforest._estimators.leaf_model",
    "WidthDisplay": "hdiforest.displays",
    "__version__": "hdicore",
    "fit_table": "hdiforest._estimators.fit_table",
    "from_catboost": "hdiforest.adapters.boosters",
    "from_leaves": "hdiforest._estimators.leaf_model",
    "from_lightgbm": "hdiforest.adapters.boosters",
    "from_xgboost": "hdiforest.adapters.boosters",
    "quantile_views": "hdiforest.adapters.mapie",
}
_ROOMS = ("adapters", "calibration", "displays", "metrics", "serving")

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    if name in _ROOMS:
        return import_module(f"hdiforest.{name}")
    raise AttributeError(f"module 'hdiforest' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_ROOMS]
