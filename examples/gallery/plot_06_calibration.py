"""
Calibration, before and after
=============================

An interval that holds 90 % of the estimated distribution need not cover 90 % of new targets. Fully
grown trees are too sure of themselves, and leaves with many rows too careful. `calibrate` mends
both, with neither new data nor a new fit.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor
from hdiforest.metrics import coverage_score

rng = np.random.default_rng(0)
X = rng.random((6000, 4))
noise = (0.2 + 0.4 * X[:, 1]) * rng.normal(size=len(X))
y = np.sin(6 * X[:, 0]) + X[:, 1] + noise
X_train, y_train, X_new, y_new = X[:1000], y[:1000], X[1000:], y[1000:]
levels = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 0.95])

# %%
# Two forests, each before and after. Pads are found by the trees that did not draw a row.

realised = {}
for name, rows_in_leaf in (("1 row in a leaf", 1), ("50 rows in a leaf", 50)):
    forest = RandomForestRegressor(200, min_samples_leaf=rows_in_leaf, random_state=0)
    model = HDIForestRegressor.from_forest(forest.fit(X_train, y_train), X_train, y_train)
    before = coverage_score(y_new, model.predict_interval(X_new, levels))
    model.calibrate(levels)
    after = coverage_score(y_new, model.predict_interval(X_new, levels))
    realised[name] = before, after

# %%
# On the diagonal intervals cover what they say.

figure, both = plt.subplots(1, 2, figsize=(9, 5.2), sharey=True, layout="constrained")
for axes, (name, (before, after)) in zip(both, realised.items(), strict=True):
    axes.plot([0.25, 1], [0.25, 1], color="#808080", linestyle="--", linewidth=1)
    axes.plot(levels, before, "o-", color="#d9731a", label="the forest's own HDI")
    axes.plot(levels, after, "o-", color="#1f6fb2", label="calibrated")
    axes.set(title=name, xlabel="nominal coverage", xlim=(0.25, 1), ylim=(0.25, 1))
    axes.set_aspect("equal")
both[0].set_ylabel("share of 5000 new targets covered")
both[0].legend(loc="lower right", frameon=False)
plt.show()
