"""
Shortest and equal-tailed intervals
===================================

An equal-tailed interval leaves out the same share on each side. The shortest interval, the
highest-density interval (HDI), leaves out the values of least density. The two differ where the
target is skewed or has two peaks.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestRegressor

from hdiforest import DistributionDisplay, HDIForestRegressor

rng = np.random.default_rng(0)
n = 3000
x = rng.random((n, 1))
side = np.where(rng.random(n) < 0.68, 1, -1)
targets = {
    "Skewed": rng.gamma(1.2, 1 + 3 * x[:, 0]),
    "Two peaks": side * (1 + 2 * x[:, 0]) + 0.35 * rng.normal(size=n),
}

# %%
# One forest for each target. Above are the shortest intervals of one row, below the equal-tailed
# ones. Both hold half of the same distribution.

figure, grid = plt.subplots(2, 2, figsize=(9, 6.4), sharex="col", layout="constrained")
for column, (name, y) in zip(grid.T, targets.items(), strict=True):
    forest = RandomForestRegressor(100, min_samples_leaf=60, random_state=0).fit(x, y)
    model = HDIForestRegressor.from_forest(forest, x, y)
    for axes, kind in zip(column, ("hdi", "equal_tailed"), strict=True):
        display = DistributionDisplay.from_estimator(
            model, [[0.5]], coverage=0.5, kind=kind, target_name="y", bins=40, ax=axes
        )
        lower, upper = display.interval
        kind_name = {"hdi": "shortest", "equal_tailed": "equal-tailed"}[kind]
        axes.set_title(f"{name}, {kind_name}: {upper - lower:.2f} wide")

# %%
# Of the skewed target the shortest interval lies where most values are, and the equal-tailed one
# leaves out the densest values at the left. Of the two peaks the shortest interval keeps to the
# higher one, and the equal-tailed one also holds the gap between them, where hardly any value lies.

plt.show()
