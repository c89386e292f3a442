"""Stands in for quantile-forest: the estimators' interface, with every answer from hdicore.

With the folder above this one first on sys.path, `import quantile_forest` finds it;
../run_quantile_forest.py runs quantile-forest's own tests on it. No code of quantile-forest is in
here. A comment that begins with GAP marks what hdicore lacks and is put together from what it has.
"""

from quantile_forest._quantile_forest import (
    ExtraTreesQuantileRegressor,
    RandomForestQuantileRegressor,
)

__all__ = ["ExtraTreesQuantileRegressor", "RandomForestQuantileRegressor"]
