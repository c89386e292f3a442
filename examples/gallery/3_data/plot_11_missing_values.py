"""
Missing values make intervals wider
===================================

Trees of scikit-learn take NaN as it is, and so does `hdiforest`: neither fit nor prediction needs
an imputer. A row with a missing cell shares leaves with training rows of many values of that
column, so its interval is wider.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor, WidthDisplay

rng = np.random.default_rng(0)
n = 4000
distance, floor = rng.uniform(0, 20, n), rng.integers(0, 8, n)  # km, storeys
minutes = 10 + 3 * distance + 1.5 * floor + rng.normal(0, 4, n)
distance[rng.random(n) < 0.25] = np.nan
X = np.stack([distance, floor], axis=1)
X_train, y_train, X_new, y_new = X[:2000], minutes[:2000], X[2000:], minutes[2000:]

# %%
# A quarter of the distances is missing, in the training rows and in the new ones.

forest = RandomForestRegressor(100, min_samples_leaf=20, random_state=0)
model = HDIForestRegressor(forest, calibration=False).fit(X_train, y_train)

# %%
# Above, deliveries of unknown distance have intervals that are more than twice as wide. Below, the
# coverage of both groups: if the one of rows with missing cells is lower, as here, then say so
# beside their intervals.

groups = np.where(np.isnan(X_new[:, 0]), "distance missing", "distance known")
figure, (above, below) = plt.subplots(2, 1, figsize=(6.5, 5), layout="constrained")
display = WidthDisplay.from_estimator(
    model, X_new, y_new, groups=groups, target_name="minutes", what="width", ax=above
)
display.plot(below)
above.set_xlim(0)
plt.show()
