"""
I have a booster
================

XGBoost, LightGBM and CatBoost boost by default: each tree is fitted to what the trees before it
left over. Such a model predicts means well, but the rows of its leaves are no sample of a new
row's target. So its mean is used, and not its leaves: `calibrate(mean=booster)`.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import xgboost
from sklearn.datasets import make_friedman1

from hdiforest import HDIForestRegressor, from_xgboost
from hdiforest.metrics import coverage_score, mean_width_score

X, y = make_friedman1(4000, 8, noise=1.5, random_state=0)
y += 0.15 * y * np.random.default_rng(0).normal(size=len(y))  # more noise where y is large
fit, held_out, new = slice(0, 1125), slice(1125, 1500), slice(1500, 4000)
train = slice(0, 1500)
booster = xgboost.XGBRegressor(
    n_estimators=150, max_depth=4, learning_rate=0.1, n_jobs=1, random_state=0
).fit(X[fit], y[fit])
intervals = {}

# %%
# The leaves of the booster, calibrated on rows that took no part in the fit. This warns.

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "intervals from the leaves of boosted trees")
    leaves = from_xgboost(booster, X[fit], y[fit])
leaves.calibrate(X[held_out], y[held_out], coverage=0.9)
intervals["leaves of the booster"] = leaves.predict_interval(X[new], 0.9)

# %%
# The booster's mean, plus and minus a quantile of residuals (split conformal): one width for all
# rows.

residuals = np.abs(y[held_out] - booster.predict(X[held_out]))
pad = np.quantile(residuals, 0.9 * (1 + 1 / len(residuals)), method="inverted_cdf")
intervals["mean of the booster ± pad"] = booster.predict(X[new])[:, None] + [-pad, pad]

# %%
# A forest, calibrated by its fit; and with the booster as another mean. Clones of it are fitted in
# folds, so that no rows are held out.

model = HDIForestRegressor(random_state=0).fit(X[train], y[train])
intervals["HDIForestRegressor().fit"] = model.predict_interval(X[new], 0.9)
model.calibrate(mean=booster, coverage=0.9, random_state=0)
intervals["... .calibrate(mean=booster)"] = model.predict_interval(X[new], 0.9)

# %%
# All cover about 90 % of new targets. Narrower intervals say more.

widths = [mean_width_score(each) for each in intervals.values()]
coverages = [coverage_score(y[new], each) for each in intervals.values()]
figure, axes = plt.subplots(figsize=(7.5, 3), layout="constrained")
bars = axes.barh(list(intervals), widths)
axes.bar_label(bars, [f"covers {100 * share:.0f} %" for share in coverages], padding=4)
axes.invert_yaxis()
axes.set(xlabel="mean width of 90 % intervals", xlim=(0, 1.25 * max(widths)))
plt.show()
