"""
Leaf size against coverage
==========================

`min_samples_leaf` decides how local the distribution is. Small leaves give narrow intervals that
cover too little, and large leaves wide ones that cover too much. After calibration all cover about
what they say, and their widths can be compared.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor
from hdiforest.metrics import coverage_score, mean_width_score

rng = np.random.default_rng(0)
X = rng.random((4000, 4))
noise = (0.2 + 0.4 * X[:, 1]) * rng.normal(size=len(X))
y = np.sin(6 * X[:, 0]) + X[:, 1] + noise
X_train, y_train, X_new, y_new = X[:1000], y[:1000], X[1000:], y[1000:]
sizes = [1, 2, 5, 10, 20, 50, 100]

# %%
# Coverage and mean width at the level 0.9, before and after calibration.


def measured(model):
    """Return coverage (%) and mean width on the new rows."""
    interval = model.predict_interval(X_new, 0.9)
    return 100 * coverage_score(y_new, interval), mean_width_score(interval)


before, after = [], []
for size in sizes:
    forest = RandomForestRegressor(100, min_samples_leaf=size, random_state=0)
    model = HDIForestRegressor(forest, calibration=False).fit(X_train, y_train)
    before.append(measured(model))
    after.append(measured(model.calibrate(coverage=0.9)))

# %%
# Before calibration the coverage depends on the leaf size, and after it hardly does. The calibrated
# widths then say which leaf size to take: here 5 to 20 rows are about equally good.

figure, both = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for axes, column, name in zip(both, (0, 1), ("realised coverage (%)", "mean width"), strict=True):
    axes.plot(sizes, np.array(before)[:, column], "o-", color="#0072B2", label="HDI")
    axes.plot(sizes, np.array(after)[:, column], "s-", color="#D55E00", label="calibrated")
    axes.set(xscale="log", xlabel="rows in a leaf, at least", ylabel=name)
    axes.set_xticks(sizes, sizes)
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
both[0].axhline(90, color="#6b7680", linestyle="--", linewidth=1, label="nominal")
both[0].legend(loc="lower right", frameon=False)
both[1].set_ylim(0)
plt.show()
