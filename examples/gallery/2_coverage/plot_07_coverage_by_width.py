"""
Coverage by width
=================

Intervals can cover 90 % of all rows and yet too few of some. Rows grouped by the width of their
interval show whether the narrow intervals are right as well as the wide ones.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor, WidthDisplay

rng = np.random.default_rng(0)
X = rng.random((6000, 2))
noise = (0.1 + 0.9 * X[:, 1]) * rng.normal(size=len(X))
y = np.sin(6 * X[:, 0]) + X[:, 1] + noise
X_train, y_train, X_new, y_new = X[:1500], y[:1500], X[1500:], y[1500:]
forest = RandomForestRegressor(150, min_samples_leaf=10, oob_score=True, random_state=0)
forest.fit(X_train, y_train)

# %%
# Two 90 % intervals from one forest. The first has one width for all rows: the mean, plus and minus
# the 90 % quantile of the out-of-bag errors. The second is calibrated by `hdiforest`.

model = HDIForestRegressor.from_forest(forest, X_train, y_train).calibrate(coverage=0.9)
calibrated = model.predict_interval(X_new, 0.9)
reach = np.quantile(np.abs(y_train - forest.oob_prediction_), 0.9)
constant = forest.predict(X_new)[:, None] + [-reach, reach]

# %%
# Both are grouped by the width of the second, which tells quiet rows from noisy ones. The constant
# width is too wide for the quiet rows and too narrow for the noisy ones; the coverage of the second
# is nearer to 90 % in every group.

width = calibrated[:, 1] - calibrated[:, 0]
thirds = np.searchsorted(np.quantile(width, [1 / 3, 2 / 3]), width)
groups = pd.Categorical.from_codes(thirds, ["quiet", "middle", "noisy"])
figure, both = plt.subplots(2, 1, figsize=(6.5, 6), sharex=True, layout="constrained")
for axes, intervals, title in zip(
    both, (constant, calibrated), ("Mean ± a constant", "hdiforest, calibrated"), strict=True
):
    WidthDisplay.from_predictions(y_new, intervals, groups=groups, ax=axes)
    axes.set_title(title)
    axes.label_outer()
plt.show()
