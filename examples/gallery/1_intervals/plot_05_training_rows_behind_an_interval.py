"""
Which training rows make an interval
====================================

A distribution is made of training rows: each weighs as often as it shares a leaf with the new row.
`predict_weights` returns these weights, so that every interval can be traced to the rows behind it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.ensemble import RandomForestRegressor

from hdiforest import DistributionDisplay, HDIForestRegressor

rng = np.random.default_rng(0)
X, moon = make_moons(800, noise=0.12, random_state=0)
y = np.where(moon == 1, 3 + X[:, 0], X[:, 0]) + 0.3 * rng.normal(size=len(X))
forest = RandomForestRegressor(200, min_samples_leaf=10, random_state=0).fit(X, y)
model = HDIForestRegressor.from_forest(forest, X, y)

# %%
# Two new rows: one within a moon, and one between the two.

new = np.array([[-0.95, 0.3], [0.5, 0.25]])
weights = model.predict_weights(new).toarray()  # (2, n_training_rows)
for row in weights:
    print(f"{np.count_nonzero(row)} training rows, the largest weight {row.max():.1%}")

# %%
# Above, the training rows, with areas by their weights; the star is the new row. Below, the
# distribution of y that they make. Between the moons rows of both have weight, and the interval
# must hold both groups of targets.

figure, grid = plt.subplots(2, 2, figsize=(9, 6.8), height_ratios=[5, 4], layout="constrained")
titles = "Within a moon", "Between the moons"
for i, (above, below) in enumerate(grid.T):
    above.scatter(*X.T, s=4, color="#d0d0d0")
    near = weights[i] > 0
    areas = 3000 * weights[i, near]
    points = above.scatter(*X[near].T, s=areas, c=y[near], vmin=-1, vmax=5, cmap="cividis")
    above.plot(*new[i], "*", color="#D55E00", markersize=17, markeredgecolor="white")
    above.set(title=titles[i], xticks=[], yticks=[])
    DistributionDisplay.from_estimator(model, new, row=i, bins=20, target_name="y", ax=below)
    below.set_xlim(-2.2, 4.5)
grid[0, 0].set(xlabel="feature 1", ylabel="feature 2")
grid[0, 1].set(xlabel="feature 1")
figure.colorbar(points, ax=grid[0], label="y")
plt.show()
