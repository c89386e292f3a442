"""
Calibration, before and after
=============================

An interval that holds 90 % of the estimated distribution need not cover 90 % of new targets. Fully
grown trees give intervals that cover too little, and leaves with many rows intervals that cover too
much. `calibrate` corrects both, with neither new data nor a new fit.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestRegressor

from hdiforest import CalibrationDisplay, HDIForestRegressor

rng = np.random.default_rng(0)
X = rng.random((4500, 2))
noise = (0.5 + 0.5 * X[:, 1]) * rng.normal(size=len(X))
y = 10 * np.sin(6 * X[:, 0]) + noise
X_train, y_train, X_new, y_new = X[:1500], y[:1500], X[1500:], y[1500:]

# %%
# Two forests, each before (HDI) and after (calibrated). `calibrate` predicts each training row by
# the trees that did not draw it, and so measures how far intervals are off. On the dashed line
# intervals cover what they say; grey is the range that chance gives to exact intervals.

figure, both = plt.subplots(1, 2, figsize=(9, 4.8), layout="constrained")
for axes, size in zip(both, (1, 50), strict=True):
    forest = RandomForestRegressor(150, min_samples_leaf=size, random_state=0)
    model = HDIForestRegressor(forest, calibration=False).fit(X_train, y_train)
    model.calibrate(coverage=[0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
    CalibrationDisplay.from_estimator(model, X_new, y_new, ax=axes)
    axes.set_title(f"Leaves of {size} row{'s' * (size > 1)} or more")
for axes in both:
    axes.set(xlim=(10, 101), ylim=(10, 101))
plt.show()
