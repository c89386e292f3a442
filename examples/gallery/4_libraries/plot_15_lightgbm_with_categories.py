"""
LightGBM, with categories
=========================

`from_lightgbm` takes a fitted model of LightGBM and the rows of its fit, with columns of categories
as LightGBM reads them. What it needs is the leaf of each row in each tree.
"""

import lightgbm
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from hdiforest import WidthDisplay, from_lightgbm

rng = np.random.default_rng(0)
n = 5000
carriers = np.array(["Ahorn", "Birke", "Buche", "Eiche", "Erle", "Linde"])
usual, spread = np.array([12, 24, 16, 48, 20, 36]), np.array([1, 3, 1, 6, 2, 4])  # hours
carrier = rng.integers(0, len(carriers), n)
km = rng.uniform(20, 600, n)
table = pd.DataFrame({"carrier": pd.Categorical(carriers[carrier]), "km": km})
hours = usual[carrier] + km / 100 + spread[carrier] * rng.normal(size=n)
train, held_out, new = slice(0, 2000), slice(2000, 3000), slice(3000, n)

# %%
# A random forest of LightGBM (`boosting_type="rf"`). Rows that took no part in the fit calibrate
# it.

forest = lightgbm.LGBMRegressor(
    boosting_type="rf",
    n_estimators=100,
    num_leaves=120,
    min_child_samples=10,
    bagging_freq=1,
    bagging_fraction=0.6,
    n_jobs=1,
    random_state=0,
    verbose=-1,
).fit(table[train], hours[train])
model = from_lightgbm(forest, table[train], hours[train])
model.calibrate(table[held_out], hours[held_out], coverage=0.9)

# %%
# The 90 % intervals of new parcels, by carrier. Left, their widths differ by carrier: Eiche, whose
# deliveries are the least certain, has the widest. Right, one calibration for all does not give
# every carrier 90 %: intervals cover more parcels of Ahorn and Buche, and fewer of Eiche and Linde.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 5), layout="constrained")
display = WidthDisplay.from_estimator(
    model,
    table[new],
    hours[new],
    groups=table["carrier"][new],
    what="width",
    target_name="hours",
    ax=left,
)
display.plot(right)
left.set_xlim(0)
plt.show()
