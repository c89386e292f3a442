"""
Sample weights correct a skewed sample
======================================

Where some rows are more frequent in the training table than among the rows to come, weights say
what each stands for. They go to the fit of the forest, and into the distributions.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestRegressor

from hdiforest import CalibrationDisplay, HDIForestRegressor

rng = np.random.default_rng(0)


def drawn(n, share_worn):
    """Draw n machines, some of them worn, whose output varies far more."""
    worn = rng.random(n) < share_worn
    speed = rng.uniform(1, 3, (n, 1))
    return speed, 10 * speed[:, 0] + np.where(worn, 8, 1) * rng.normal(size=n), worn


# %%
# One machine of ten is worn, but half of those in the sample, because worn ones were inspected more
# often. Of a new machine nobody knows whether it is worn, so this is no feature.

X_train, y_train, worn = drawn(2000, 0.5)
X_new, y_new, _ = drawn(3000, 0.1)
weight = np.where(worn, 0.1 / 0.5, 0.9 / 0.5)

# %%
# The same forest without and with weights. Without them intervals are made for a sample with too
# many worn machines, and cover too much. With them they cover about what they say.

levels = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
curves = {}
for name, sample_weight in (("without weights", None), ("with weights", weight)):
    forest = RandomForestRegressor(100, min_samples_leaf=50, random_state=0)
    model = HDIForestRegressor(forest, calibration=False).fit(
        X_train, y_train, sample_weight=sample_weight
    )
    curves[name] = model.predict_interval(X_new, levels, kind="equal_tailed")
axes = plt.subplots(figsize=(6, 5), layout="constrained")[1]
CalibrationDisplay.from_predictions(y_new, curves, coverages=levels, ax=axes)
plt.show()
