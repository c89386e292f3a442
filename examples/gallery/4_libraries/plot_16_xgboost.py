"""
XGBoost: forest and boosted trees
=================================

`from_xgboost` takes a random forest of XGBoost, or its boosted trees. Boosted trees are fitted to
what the trees before them left over, so rows that share their leaves are alike, but their targets
are no sample of a new row's. So calibrate their intervals.
"""

import matplotlib.pyplot as plt
import xgboost
from sklearn.datasets import make_friedman1

from hdiforest import CalibrationDisplay, from_xgboost

X, y = make_friedman1(5000, 5, noise=1.5, random_state=0)
train, held_out, new = slice(0, 1500), slice(1500, 2500), slice(2500, 5000)
levels = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95]

# %%
# Both are fitted as always, and calibrated on rows that took no part in the fit.

estimators = {
    "Random forest": xgboost.XGBRFRegressor(
        n_estimators=100, max_depth=9, min_child_weight=5, n_jobs=1, random_state=0
    ),
    "Boosted trees": xgboost.XGBRegressor(
        n_estimators=100, max_depth=4, learning_rate=0.1, n_jobs=1, random_state=0
    ),
}

# %%
# Before calibration (HDI) the intervals of the random forest cover about what they say, and those
# of the boosted trees far more. After calibration both are near the dashed line.

figure, both = plt.subplots(1, 2, figsize=(9, 4.8), layout="constrained")
for axes, (name, estimator) in zip(both, estimators.items(), strict=True):
    estimator.fit(X[train], y[train])
    model = from_xgboost(estimator, X[train], y[train])
    model.calibrate(X[held_out], y[held_out], coverage=levels)
    CalibrationDisplay.from_estimator(model, X[new], y[new], ax=axes)
    axes.set(title=name, xlim=(40, 101), ylim=(40, 101))
plt.show()
