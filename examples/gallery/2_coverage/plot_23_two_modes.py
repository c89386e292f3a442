"""
Regions of two pieces
=====================

Where a target has two modes that stay apart given the features, one interval holds the gap between
them, too. A region is a union of intervals. Calibrated ones cover what they say, and are worth
their second piece here.
"""

import matplotlib.pyplot as plt
import numpy as np

from hdiforest import DistributionDisplay, HDIForestRegressor
from hdiforest.regions import calibrate_region

rng = np.random.default_rng(0)


def rows(n):
    """Return rows whose targets lie in one of two modes, farther apart for larger x."""
    X = rng.random((n, 2))
    mode = rng.choice([-1, 1], n) * 3 * (0.5 + X[:, 0])
    return X, mode + (0.5 + 0.5 * X[:, 1]) * rng.normal(size=n)


model = HDIForestRegressor(random_state=0, calibration=0.9).fit(*rows(2000))
regions = calibrate_region(model, coverage=0.9, max_pieces=2)
X, y = rows(1000)
interval, region = model.predict_interval(X, 0.9), regions.predict(X)
inside = (interval[:, 0] <= y) & (y <= interval[:, 1])
print(f"interval: width  {np.diff(interval).mean():.2f}, covers {inside.mean():.2f}")
print(f"region:   length {region.length.mean():.2f}, covers {region.contains(y).mean():.2f}")
print(f"rows with two pieces: {np.mean(region.n_pieces == 2):.2f}; the first: {region[0].round(1)}")

# %%
# On most data the modes of a forest's distributions are noise, and calibrated regions are no
# shorter than intervals: the documentation has a table. ``mean_length`` says how long they are out
# of bag, to be compared with the width of the intervals.

print(f"out of bag: {regions.mean_length:.2f} in place of", end=" ")
print(f"{model.calibration_.levels[0].mean_width:.2f}")
DistributionDisplay.from_estimator(model, X, y, coverage=0.9, regions=region)
plt.show()
