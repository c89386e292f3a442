"""
Shortest and equal-tailed intervals
===================================

An equal-tailed interval leaves the same share out on each side. The shortest interval, the HDI,
leaves out what is least dense. They differ where the target is skewed or has two peaks.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor

rng = np.random.default_rng(0)
n = 3000
x = rng.random(n)
skewed = rng.gamma(1.2, 1 + 3 * x)
side = np.where(rng.random(n) < 0.68, 1, -1)
two_peaks = side * (1 + 2 * x) + 0.35 * rng.normal(size=n)

# %%
# One forest for each target. Both intervals come from the same distribution, and hold half of it.

KINDS = {"equal_tailed": "#d9731a", "hdi": "#1f6fb2"}
new = np.linspace(0.02, 0.98, 150)[:, None]


def fitted(y):
    """Return a model of y by x."""
    forest = RandomForestRegressor(100, min_samples_leaf=60, random_state=0).fit(x[:, None], y)
    return HDIForestRegressor.from_forest(forest, x[:, None], y)


def draw(axes, below, y, name):
    """Draw both intervals against x, and those of one row on the sample of its distribution."""
    model = fitted(y)
    axes.plot(x, y, ".", color="#c0c0c0", markersize=2)
    widths = {}
    for kind, color in KINDS.items():
        interval = model.predict_interval(new, 0.5, kind=kind)
        widths[kind] = np.diff(interval).mean()
        axes.plot(new, interval, color=color, linewidth=2)
    ratio = widths["hdi"] / widths["equal_tailed"]
    axes.set(title=f"{name}: HDI {ratio:.2f} times as wide", xlabel="x", ylabel="y")

    row = [[0.5]]
    drawn = model.sample(row, 20_000, random_state=0)[0]
    below.hist(drawn, bins=60, density=True, color="#d5dde5")
    for height, (kind, color) in zip((-0.05, -0.1), KINDS.items(), strict=True):
        (ends,) = model.predict_interval(row, 0.5, kind=kind)
        level = height * below.get_ylim()[1]
        label = {"hdi": "shortest (HDI)", "equal_tailed": "equal-tailed"}[kind]
        below.plot(ends, [level, level], color=color, linewidth=4, label=label)
    below.set(xlabel="y at x = 0.5", ylabel="density")


figure, grid = plt.subplots(2, 2, figsize=(9, 7), layout="constrained")
draw(*grid[:, 0], skewed, "Skewed")
draw(*grid[:, 1], two_peaks, "Two peaks")
grid[1, 0].legend(loc="upper right", title="half of the weight", frameon=False)
plt.show()
