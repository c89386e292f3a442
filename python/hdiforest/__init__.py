"""Shortest prediction intervals from fitted forests."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hdicore import __version__ as __version__
    from hdiforest._estimators.fit_table import fit_table as fit_table
    from hdiforest._estimators.forest_search import ForestSearchOOB as ForestSearchOOB
    from hdiforest._estimators.hdi_forest import HDIForestRegressor as HDIForestRegressor
    from hdiforest._estimators.leaf_model import LeafModel as LeafModel
    from hdiforest._estimators.leaf_model import from_index as from_index
    from hdiforest._estimators.leaf_model import from_leaves as from_leaves
    from hdiforest._estimators.out_of_bag import OutOfBagPredictions as OutOfBagPredictions
    from hdiforest.adapters.boosters import from_catboost as from_catboost
    from hdiforest.adapters.boosters import from_lightgbm as from_lightgbm
    from hdiforest.adapters.boosters import from_xgboost as from_xgboost
    from hdiforest.adapters.mapie import quantile_views as quantile_views
    from hdiforest.displays import CalibrationDisplay as CalibrationDisplay
    from hdiforest.displays import DistributionDisplay as DistributionDisplay
    from hdiforest.displays import ExplanationDisplay as ExplanationDisplay
    from hdiforest.displays import IntervalDisplay as IntervalDisplay
    from hdiforest.displays import MonitorDisplay as MonitorDisplay
    from hdiforest.displays import PITDisplay as PITDisplay
    from hdiforest.displays import WidthDisplay as WidthDisplay
    from hdiforest.survival._forest import HDISurvivalForest as HDISurvivalForest

# The public names and where they are; type checkers read the imports above. Each is imported when
# it is asked for, so that `hdiforest.serving` does without scikit-learn.
_HOMES = {
    "CalibrationDisplay": "hdiforest.displays",
    "DistributionDisplay": "hdiforest.displays",
    "ForestSearchOOB": "hdiforest._estimators.forest_search",
    "ExplanationDisplay": "hdiforest.displays",
    "HDIForestRegressor": "hdiforest._estimators.hdi_forest",
    "HDISurvivalForest": "hdiforest.survival._forest",
    "IntervalDisplay": "hdiforest.displays",
    "LeafModel": "hdiforest._estimators.leaf_model",
    "MonitorDisplay": "hdiforest.displays",
    "OutOfBagPredictions": "hdiforest._estimators.out_of_bag",
    "PITDisplay": "hdiforest.displays",
    "WidthDisplay": "hdiforest.displays",
    "__version__": "hdicore",
    "fit_table": "hdiforest._estimators.fit_table",
    "from_catboost": "hdiforest.adapters.boosters",
    "from_index": "hdiforest._estimators.leaf_model",
    "from_leaves": "hdiforest._estimators.leaf_model",
    "from_lightgbm": "hdiforest.adapters.boosters",
    "from_xgboost": "hdiforest.adapters.boosters",
    "quantile_views": "hdiforest.adapters.mapie",
}
_ROOMS = (
    "adapters",
    "allocation",
    "calibration",
    "displays",
    "exceptions",
    "inspection",
    "metrics",
    "monitoring",
    "regions",
    "serving",
    "survival",
)

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
