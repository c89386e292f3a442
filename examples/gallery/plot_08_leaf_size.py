"""
Leaf size against coverage
==========================

`min_samples_leaf` decides how local the distribution is. Small leaves give narrow intervals that
cover too little, and large leaves wide ones that cover too much. After calibration all cover what
they say about equally well, and their widths can be compared.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor
from hdiforest.metrics import coverage_score, mean_width_score

rng = np.random.default_rng(0)
X = rng.random((6000, 4))
noise = (0.2 + 0.4 * X[:, 1]) * rng.normal(size=len(X))
y = np.sin(6 * X[:, 0]) + X[:, 1] + noise
X_train, y_train, X_new, y_new = X[:1000], y[:1000], X[1000:], y[1000:]
sizes = [1, 2, 5, 10, 20, 50]

# %%
# Coverage and mean width at the level 0.9, before and after calibration.


def measured(model):
    """Return coverage and mean width on the new rows."""
    interval = model.predict_interval(X_new, 0.9)
    return coverage_score(y_new, interval), mean_width_score(interval)


before, after = [], []
for size in sizes:
    forest = RandomForestRegressor(150, min_samples_leaf=size, random_state=0)
    model = HDIForestRegressor.from_forest(forest.fit(X_train, y_train), X_train, y_train)
    before.append(measured(model))
    after.append(measured(model.calibrate(0.9)))

# %%
# Without calibration leaves of 10 to 20 rows are a compromise. With it, leaf size matters much
# less.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for axes, column, name in ((left, 0, "coverage"), (right, 1, "mean width")):
    axes.plot(
        sizes, np.array(before)[:, column], "o-", color="#d9731a", label="the forest's own HDI"
    )
    axes.plot(sizes, np.array(after)[:, column], "o-", color="#1f6fb2", label="calibrated")
    axes.set(xscale="log", xlabel="min_samples_leaf", ylabel=name)
    axes.set_xticks(sizes, sizes)
    axes.minorticks_off()
left.axhline(0.9, color="#808080", linestyle="--", linewidth=1)
left.set_title("Share of new targets covered")
right.set_title("Width")
right.legend(loc="upper left", frameon=False)
plt.show()
