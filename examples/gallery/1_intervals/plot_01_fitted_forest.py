"""
Intervals from a fitted forest
==============================

A forest that is fitted already needs no second fit. `from_forest` finds which training rows lie in
which leaf, and these give every new row a distribution.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split

from hdiforest import HDIForestRegressor, IntervalDisplay

X, y = load_diabetes(return_X_y=True)
X_train, X_new, y_train, y_new = train_test_split(X, y, random_state=0)
forest = RandomForestRegressor(100, min_samples_leaf=5, random_state=0).fit(X_train, y_train)

# %%
# One line makes a model of it. Other rows than those of the fit, or another order, are an error.

model = HDIForestRegressor.from_forest(forest, X_train, y_train)
lower, upper = model.predict_interval(X_new, coverage=0.9).T
print(
    f"The first patient: {lower[0]:.0f} to {upper[0]:.0f}, mean {model.predict(X_new[:1])[0]:.0f}"
)

# %%
# The intervals of patients that the forest has not seen, sorted by their mean. The legend says
# which share of their targets the intervals hold.

IntervalDisplay.from_estimator(
    model,
    X_new,
    y_new,
    target_name="progression of diabetes after a year (score)",
    ax=plt.subplots(figsize=(8, 4.8), layout="constrained")[1],
)
plt.show()
