"""
Tuning a forest for its intervals
=================================

The forest with the best mean need not have the best intervals. `make_interval_scorer` lets a
search of scikit-learn choose by the interval score: the width, and a penalty for targets outside.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import GridSearchCV

from hdiforest import HDIForestRegressor
from hdiforest.metrics import make_interval_scorer

rng = np.random.default_rng(0)
X = rng.random((1200, 4))
noise = (0.05 + 0.3 * X[:, 1]) * rng.normal(size=len(X))
y = 3 * np.sin(6 * X[:, 0]) + X[:, 1] + noise

# %%
# The search measures both: the score of 90 % intervals, and the error of the mean.

sizes = [1, 2, 5, 10, 20, 50]
search = GridSearchCV(
    HDIForestRegressor(RandomForestRegressor(60, random_state=0), calibration=False),
    {"estimator__min_samples_leaf": sizes},
    scoring={"interval": make_interval_scorer(0.9), "mean": "neg_root_mean_squared_error"},
    refit="interval",
    cv=3,
)
search.fit(X, y)
print("chosen by the interval score:", search.best_params_)

# %%
# Less is better in both panels. The large mark is the best leaf size of each: here the intervals
# want larger leaves than the mean does.

figure, both = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
panels = {"interval": "interval score (width and penalty)", "mean": "root mean squared error"}
for axes, (name, label) in zip(both, panels.items(), strict=True):
    loss = -search.cv_results_[f"mean_test_{name}"]
    best = loss.argmin()
    axes.plot(sizes, loss, "o-", color="#0072B2")
    axes.plot(sizes[best], loss[best], "o", color="#D55E00", markersize=12)
    axes.set(xscale="log", xlabel="rows in a leaf, at least", ylabel=label)
    axes.set_title(f"Best with {sizes[best]} rows")
    axes.set_xticks(sizes, sizes)
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
plt.show()
