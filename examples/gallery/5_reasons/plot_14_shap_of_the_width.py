"""
What makes an interval wide
===========================

SHAP explains a number that a model predicts. The width of the interval is one, too: its explanation
says which features make a prediction uncertain, and these need not be those that move the mean.
"""

import matplotlib.pyplot as plt
import numpy as np
import shap
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor

rng = np.random.default_rng(0)
names = ["depth", "load", "humidity"]
X = rng.random((1500, 3))
y = 6 * X[:, 0] + 2 * X[:, 1] + (0.2 + 1.5 * X[:, 2]) * rng.normal(size=len(X))
forest = RandomForestRegressor(100, min_samples_leaf=10, random_state=0)
model = HDIForestRegressor(forest, calibration=False).fit(X, y)

# %%
# Any function of rows can be explained.


def width(rows):
    """Return the width of the 90 % interval of each row."""
    lower, upper = model.predict_interval(rows, 0.9).T
    return upper - lower


# %%
# Each dot is a row. Right of zero the feature raises the mean of that row, or widens its interval.
# The mean follows the depth most, and hardly the humidity. The width follows the humidity most:
# where it is high, intervals are wide.

background, rows = X[:50], X[-120:]
figure, both = plt.subplots(2, 1, figsize=(6.5, 5.6), layout="constrained")
titles = "mean", "width of the 90 % interval"
for axes, function, title in zip(both, (model.predict, width), titles, strict=True):
    explainer = shap.KernelExplainer(function, background, feature_names=names)
    shap.plots.beeswarm(explainer(rows, silent=True), ax=axes, plot_size=None, show=False)
    axes.set_title(f"The {title}")
    axes.set_xlabel("SHAP value, in the unit of y", fontsize="medium")
plt.show()
