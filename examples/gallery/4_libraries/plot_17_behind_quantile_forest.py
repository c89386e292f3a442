"""
Intervals behind quantile-forest
================================

A forest of quantile-forest stays what it is, and keeps predicting quantiles. `from_forest` takes it
as it takes one of scikit-learn, and adds shortest and calibrated intervals.
"""

import matplotlib.pyplot as plt
import numpy as np
from quantile_forest import RandomForestQuantileRegressor

from hdiforest import HDIForestRegressor, IntervalDisplay

rng = np.random.default_rng(0)
X = rng.random((4000, 2))
y = 20 + 30 * X[:, 0] + rng.gamma(1.0, 5 + 20 * X[:, 1])  # minutes of waiting
X_train, y_train, X_new, y_new = X[:2000], y[:2000], X[2000:], y[2000:]
forest = RandomForestQuantileRegressor(
    100, min_samples_leaf=20, max_samples_leaf=None, random_state=0
)
forest.fit(X_train, y_train)

# %%
# Its 90 % interval lies between the quantiles 0.05 and 0.95. Ours is calibrated.

own = forest.predict(X_new, quantiles=[0.05, 0.95])
model = HDIForestRegressor.from_forest(forest, X_train, y_train).calibrate(coverage=0.9)
shortest = model.predict_interval(X_new, 0.9)

# %%
# Waiting times have a long tail upwards. The shortest intervals begin and end lower, and are
# narrower.

figure, both = plt.subplots(2, 1, figsize=(7, 7), sharex=True, sharey=True, layout="constrained")
names = "quantile-forest, quantiles", "hdiforest, shortest"
for axes, intervals, name in zip(both, (own, shortest), names, strict=True):
    IntervalDisplay.from_predictions(
        y_new,
        intervals,
        coverage=0.9,
        prediction=model.predict(X_new),
        subsample=100,
        target_name="waiting time (minutes)",
        ax=axes,
    )
    axes.set_title(f"{name}: {np.diff(intervals).mean():.1f} minutes wide")
    axes.label_outer()
plt.show()
