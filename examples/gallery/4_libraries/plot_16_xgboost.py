"""
XGBoost: a random forest
========================

`from_xgboost` takes a random forest of XGBoost (`XGBRFRegressor`), whose trees are grown side by
side: the targets of the rows in a leaf are a sample of a new row's. Boosted trees are grown one
after the other, and what to do with them is the next example.
"""

import matplotlib.pyplot as plt
import xgboost
from sklearn.datasets import make_friedman1

from hdiforest import CalibrationDisplay, from_xgboost

X, y = make_friedman1(5000, 5, noise=1.5, random_state=0)
train, held_out, new = slice(0, 1500), slice(1500, 2500), slice(2500, 5000)

# %%
# The forest is fitted as always, and its intervals are calibrated on rows that took no part in it.

forest = xgboost.XGBRFRegressor(
    n_estimators=100, max_depth=9, min_child_weight=5, n_jobs=1, random_state=0
).fit(X[train], y[train])
model = from_xgboost(forest, X[train], y[train])
model.calibrate(X[held_out], y[held_out], coverage=[0.5, 0.6, 0.7, 0.8, 0.9, 0.95])

# %%
# Coverage on new rows, before the calibration (HDI) and after it.

display = CalibrationDisplay.from_estimator(model, X[new], y[new])
display.ax_.set(xlim=(40, 101), ylim=(40, 101))
plt.show()
