"""
Intervals from a fitted forest
==============================

A forest that is fitted already needs no second fit. `from_forest` looks up which training rows lie
in which leaf, and from these every new row has a distribution.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split

from hdiforest import HDIForestRegressor

X, y = load_diabetes(return_X_y=True)
X_train, X_new, y_train, y_new = train_test_split(X, y, random_state=0)
forest = RandomForestRegressor(100, min_samples_leaf=5, random_state=0).fit(X_train, y_train)

# %%
# One line makes a model of it. Wrong rows, or rows in another order, are an error.

model = HDIForestRegressor.from_forest(forest, X_train, y_train)

# %%
# Intervals at two levels, and the mean, for rows that the forest has not seen. Rows are in the
# order of their mean, and targets outside the wider interval are drawn as crosses.

intervals = model.predict_interval(X_new, coverage=[0.5, 0.9])  # (n, 2, 2)
mean = model.predict(X_new)
order = np.argsort(mean)
rows = np.arange(len(order))
lower, upper = intervals[order, 0], intervals[order, 1]
target = y_new[order]
inside = (lower[:, 1] <= target) & (target <= upper[:, 1])

figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
axes.vlines(rows, lower[:, 1], upper[:, 1], color="#8fb8de", linewidth=3, label="90 %")
axes.vlines(rows, lower[:, 0], upper[:, 0], color="#1f6fb2", linewidth=3, label="50 %")
axes.plot(rows[inside], target[inside], "o", color="#d9731a", markersize=4, label="observed")
axes.plot(rows[~inside], target[~inside], "x", color="#b01030", markersize=7, label="missed")
axes.plot(rows, mean[order], color="black", linewidth=1, label="mean")
axes.set(xlabel="new patients, by their mean", ylabel="progression of diabetes")
axes.set_title(f"{inside.mean():.0%} of the targets lie in their 90 % interval")
axes.legend(ncols=5, loc="upper center", bbox_to_anchor=(0.5, -0.14), frameon=False)
plt.show()
