"""
Conformal prediction on top: MAPIE and crepes
=============================================

Conformal prediction widens or narrows intervals until they cover what they say on rows that took no
part in the fit. MAPIE does this with quantiles of the forest, and crepes with its mean and a width
for each row. Both take them from a model of `hdiforest`, which can also calibrate by itself.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from crepes import ConformalRegressor
from mapie.regression import ConformalizedQuantileRegressor
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor, WidthDisplay

rng = np.random.default_rng(0)
X = rng.random((6000, 4))
y = np.sin(6 * X[:, 0]) + X[:, 1] + (0.1 + 0.6 * X[:, 1]) * rng.normal(size=len(X))
X_train, X_other, X_new = X[:1000], X[1000:3000], X[3000:]
y_train, y_other, y_new = y[:1000], y[1000:3000], y[3000:]
model = HDIForestRegressor(
    RandomForestRegressor(100, min_samples_leaf=3, random_state=0), calibration=False
)
model.fit(X_train, y_train)
intervals = {"forest alone": model.predict_interval(X_new, 0.9)}

# %%
# MAPIE wants an estimator for each of the quantiles 0.05, 0.95 and 0.5.


class Quantile(RegressorMixin, BaseEstimator):
    """One quantile of a fitted model."""

    def __init__(self, model, level):
        self.model, self.level = model, level

    def fit(self, *_):
        """Do nothing: the model is fitted."""
        self.fitted_ = True  # which MAPIE looks for
        return self

    def predict(self, X):
        """Return the quantile of each row."""
        return self.model.predict_quantiles(X, self.level)


quantiles = [Quantile(model, level).fit() for level in (0.05, 0.95, 0.5)]
mapie = ConformalizedQuantileRegressor(quantiles, confidence_level=0.9, prefit=True)
mapie.conformalize(X_other, y_other)
intervals["MAPIE"] = mapie.predict_interval(X_new, symmetric_correction=True)[1][:, :, 0]

# %%
# crepes wants residuals, and a number for the difficulty of each row: here the width of its
# interval.


def width(rows):
    """Return the width of the 80 % interval of each row."""
    return np.diff(model.predict_interval(rows, 0.8))[:, 0]


crepes = ConformalRegressor().fit(y_other - model.predict(X_other), sigmas=width(X_other))
intervals["crepes"] = crepes.predict_int(model.predict(X_new), sigmas=width(X_new), confidence=0.9)

# %%
# The same by `calibrate`, with the same rows.

model.calibrate(X_other, y_other, coverage=0.9)
intervals["hdiforest, split"] = model.predict_interval(X_new, 0.9)

# %%
# The forest alone covers too little. On top of it all three come close to 90 %, and their widths
# differ little.

figure, (above, below) = plt.subplots(2, 1, figsize=(6.5, 6.6), layout="constrained")
display = WidthDisplay.from_predictions(
    np.tile(y_new, len(intervals)),
    np.concatenate(list(intervals.values())),
    groups=pd.Categorical(np.repeat(list(intervals), len(y_new)), list(intervals)),
    target_name="y",
    ax=above,
)
display.plot(below, what="width")
below.set_xlim(0)
plt.show()
