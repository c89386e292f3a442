"""
A fan chart of intervals
========================

Intervals at several levels, drawn one in the other, show the middle and the tails of a forecast in
one picture. After `calibrate` an interval of a higher level contains those of lower levels, at
every row.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor, IntervalDisplay

rng = np.random.default_rng(0)
hours = pd.date_range("2026-01-05", periods=24 * 7 * 12, freq="h")  # twelve weeks
table = pd.DataFrame({"hour": hours.hour, "weekday": hours.day_of_week})
day = np.sin((table["hour"] - 7) * np.pi / 12).clip(lower=-0.5)
usual = 50 + 25 * day * np.where(table["weekday"] < 5, 1, 0.5)
load = usual + (2 + 6 * day.clip(lower=0)) * rng.normal(size=len(table))

# %%
# The forest learns from eleven weeks. It knows the hour and the day of the week of the twelfth.

past, coming = slice(0, 24 * 7 * 11), slice(24 * 7 * 11, None)
levels = [0.5, 0.8, 0.95]
forest = RandomForestRegressor(100, min_samples_leaf=20, random_state=0)
model = (
    HDIForestRegressor(forest, calibration=False)
    .fit(table[past], load[past])
    .calibrate(coverage=levels)
)

# %%
# The load varies more by day than by night, and the fan is wider then. The legend says which share
# of the 168 hours each level holds; triangles are hours outside the widest interval.

IntervalDisplay.from_estimator(
    model,
    table[coming],
    load[coming],
    coverage=levels,
    feature=hours[coming],
    feature_name="March 2026",
    target_name="electric load (MW)",
    ax=plt.subplots(figsize=(9, 4.8), layout="constrained")[1],
)
axes = plt.gca()
axes.set_xticks(hours[coming][::24], [f"{day:%a} {day.day}" for day in hours[coming][::24]])
plt.show()
