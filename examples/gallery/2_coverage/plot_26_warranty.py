"""
A bound for a warranty
======================

A maker of pumps knows when 4,000 pumps broke, or that they still run. He wants to name a time for
each new pump which 95 % of such pumps reach. That is a bound from below, which needs no more of the
follow-up than the times before it.
"""

import matplotlib.pyplot as plt
import numpy as np

from hdiforest import HDISurvivalForest

random = np.random.default_rng(0)


def pumps(n):
    """Load and temperature of pumps, years until they break, and years that they were seen."""
    load, temperature = random.uniform(0.3, 1, n), random.normal(40, 10, n)
    scale = 12 * np.exp(-1.5 * load - 0.02 * (temperature - 40))
    shape = 1 + 3 * (1 - load)
    broken, seen = scale * random.weibull(shape), random.uniform(0.5, 6, n)
    return np.column_stack([load, temperature]), broken, seen


X, broken, seen = pumps(4000)
pairs = zip(broken <= seen, np.minimum(broken, seen), strict=True)
y = np.array(list(pairs), dtype=[("event", bool), ("time", float)])
print(f"{np.mean(~y['event']):.0%} of the pumps still run")
model = HDISurvivalForest(random_state=0).fit(X, y).calibrate(coverage=0.95)

# %%
# The bounds of new pumps, and how many of them reach theirs. Because the pumps are simulated, it is
# known when each of them breaks. A bound that takes the end of observation for a breakdown would be
# far too low; one that leaves out the pumps that still run would be too low as well.

X_new, broken_new, _ = pumps(2000)
bound = model.predict_interval(X_new, 0.95, kind="lower")[:, 0]
print(f"{np.mean(broken_new >= bound):.1%} of the pumps reach the bound")

fig, ax = plt.subplots(layout="constrained")
points = ax.scatter(X_new[:, 0], bound, c=X_new[:, 1], s=8, cmap="coolwarm")
fig.colorbar(points, label="temperature")
ax.set(xlabel="load", ylabel="years that 95 % of such pumps reach", ylim=(0, None))
plt.show()
