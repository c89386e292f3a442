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

from hdiforest import HDIForestRegressor

rng = np.random.default_rng(0)
X, moon = make_moons(800, noise=0.12, random_state=0)
y = np.where(moon == 1, 3 + X[:, 0], X[:, 0]) + 0.3 * rng.normal(size=len(X))
forest = RandomForestRegressor(200, min_samples_leaf=10, random_state=0).fit(X, y)
model = HDIForestRegressor.from_forest(forest, X, y)

# %%
# Two new rows: one within a moon, and one between the two.

new = np.array([[-0.95, 0.3], [0.5, 0.25]])
weights = model.predict_weights(new).toarray()  # (2, n_training_rows)
intervals = model.predict_interval(new, 0.9)
for row, (lower, upper) in zip(weights, intervals, strict=True):
    print(f"{np.count_nonzero(row)} training rows, interval [{lower:.2f}, {upper:.2f}]")

# %%
# Above, the training rows, as large as they weigh. Below, the distribution of y that they make, and
# the shortest interval that holds 90 % of it.

figure, grid = plt.subplots(
    2, 2, figsize=(9, 6.5), height_ratios=[2, 1], sharey="row", layout="constrained"
)
titles = "Within a moon", "Between the moons"
for (above, below), row, weight, interval, title in zip(
    grid.T, new, weights, intervals, titles, strict=True
):
    above.scatter(*X.T, s=4, color="#d0d0d0")
    near = weight > 0
    points = above.scatter(*X[near].T, s=3000 * weight[near], c=y[near], vmin=-1, vmax=5, alpha=0.8)
    above.plot(*row, "*", color="#b01030", markersize=16, markeredgecolor="white")
    above.set(title=title, xticks=[], yticks=[])
    below.hist(y, bins=np.linspace(-2, 6, 49), weights=weight, color="#8fb8de")
    below.plot(interval, [-0.02, -0.02], color="#d9731a", linewidth=4)
    below.set(xlabel="y")
below.plot([], [], color="#d9731a", linewidth=4, label="90 % interval")
below.legend(frameon=False)
grid[1, 0].set_ylabel("weight")
figure.colorbar(points, ax=grid[0], label="y")
plt.show()
