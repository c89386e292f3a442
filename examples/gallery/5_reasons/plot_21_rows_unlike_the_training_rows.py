"""
Rows unlike the training rows
=============================

A forest answers for every row, also for one far from all rows it was fitted to: such a row lies in
the leaves at the edge, and its interval is as wide as theirs. ``diagnose`` says which rows these
are. Hollow marks are rows that it flags.
"""

import matplotlib.pyplot as plt
import numpy as np

from hdiforest import HDIForestRegressor, IntervalDisplay
from hdiforest.inspection import diagnose

rng = np.random.default_rng(0)


def flats(n, least, greatest):
    """Return areas and numbers of rooms, and rents."""
    X = np.column_stack([rng.uniform(least, greatest, n), rng.integers(1, 6, n)])
    return X, 10 * X[:, 0] + rng.normal(scale=100, size=n)


model = HDIForestRegressor(random_state=0).fit(*flats(1500, 20, 160))
X, y = flats(300, 20, 200)  # the model has seen areas up to 160
notes = diagnose(model, X, output="pandas")
print(notes.sort_values("dissimilarity").tail().to_string())

# %%
# These are the five rows that are farthest from the training rows. The width of the interval says
# nothing of them, and neither do the trees, which agree.

display = IntervalDisplay.from_estimator(
    model, X, y, flag=notes["flag"].to_numpy(), feature=X[:, 0], feature_name="area in m²"
)
plt.show()
