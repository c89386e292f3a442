"""
A budget of width for many rows
===============================

Buffers for many products are paid from one budget: what counts is the total width of all intervals,
and how much of the demand they hold together. ``allocate_coverage`` gives the intervals of least
total width that hold a share on average. Rows where mass is cheap hold more of it, others less.
"""

import matplotlib.pyplot as plt
import numpy as np

from hdicore.batch import Reading, Sums, find_rule
from hdiforest import HDIForestRegressor
from hdiforest.allocation import allocate_coverage

rng = np.random.default_rng(0)


def products(n):
    """Return price and age of products, and demand, whose spread differs by factors."""
    X = rng.random((n, 2))
    return X, 20 * X[:, 0] + np.exp(3 * X[:, 1] - 1) * rng.normal(size=n)


model = HDIForestRegressor(random_state=0, calibration=False).fit(*products(2000))
X, y = products(500)
each = np.diff(model.predict_interval(X, 0.9, kind="hdi"), axis=1)[:, 0]
batch = allocate_coverage(model, X, 0.9)
together = np.diff(batch.interval, axis=1)[:, 0]
print(f"each row holds 0.9:    total width {each.sum():.0f}")
print(f"0.9 on average:        total width {batch.total_width:.0f}, at least {batch.bound:.0f}")
print(f"a price of {batch.price:.1f}: a row buys all of its mass for so much width")

# %%
# The total is a certified one: no intervals that hold as much are shorter than the bound. What rows
# hold is model mass, not coverage. Rows of small spread are held nearly whole; those of large
# spread are given up in part, down to ``min_coverage``, by default a half.
#
# A stream of rows is read part by part. Some passes find the price, and one more chooses the
# intervals: the total is that of all rows together, to within one row.


def parts():
    """Yield the same rows as a stream, which may be longer than memory holds."""
    for begin in range(0, len(X), 100):
        yield X[begin : begin + 100]


def read(prices):
    """Return what each part holds at some prices: one pass over the stream."""
    return [Sums.read(model.scorer_, part, prices, 0.5) for part in parts()]


rule = find_rule(read, model.scorer_, coverage=0.9, min_coverage=0.5)
total = 0.0
for part, missing in zip(parts(), rule.missing, strict=True):
    for reading in Reading.parts(model.scorer_, part, rule.prices, rule.min_coverage):
        ends, _, missing = rule.choose(reading, missing)
        total += np.diff(ends).sum()
print(f"in parts of 100 rows:  total width {total:.0f}, at least {rule.bound:.0f}")

# %%
# The picture shows who pays.

figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharex=True)
axes[0].scatter(X[:, 1], each, s=8, label="each holds 0.9")
axes[0].scatter(X[:, 1], together, s=8, label="0.9 on average")
axes[0].set(xlabel="age", ylabel="width")
axes[0].legend()
axes[1].scatter(X[:, 1], batch.mass, s=8, color="C1")
axes[1].axhline(0.9, color="C0")
axes[1].set(xlabel="age", ylabel="share of the distribution held")
figure.tight_layout()
plt.show()
