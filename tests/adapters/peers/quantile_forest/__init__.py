"""Stands in for quantile-forest: its module names, with our estimators behind them.

With the folder above this one first on sys.path, `import quantile_forest` finds it;
../run_quantile_forest.py runs quantile-forest's own tests on it. No code of quantile-forest is in
here.
"""

from quantile_forest._quantile_forest import (
    ExtraTreesQuantileRegressor,
    RandomForestQuantileRegressor,
)

__all__ = ["ExtraTreesQuantileRegressor", "RandomForestQuantileRegressor"]
