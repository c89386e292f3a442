"""
Why an interval is wide
=======================

``explain`` takes the intervals of a few rows apart: which training rows hold its ends, and how much
narrower it would be with other values of a feature.

It is not an attribution along the paths of the trees, which shares a width among features exactly
and names those of the mean first, and not the importance of a permutation, which is of all rows
together: here each feature of one row takes values of training rows, the others stay.
"""

import matplotlib.pyplot as plt
import numpy as np

from hdiforest import HDIForestRegressor
from hdiforest.inspection import explain

rng = np.random.default_rng(0)
X = rng.random((1500, 5))
y = 5 * X[:, 0] + 3 * X[:, 1] + (0.2 + 2 * X[:, 2]) * rng.normal(size=len(X))
model = HDIForestRegressor(random_state=0).fit(X, y)

# %%
# A row whose third feature is large, which makes the noise. The tables say it in numbers: the
# narrowest interval would be that with a small third feature. ``unlike`` is the share of the rows
# with other values that are unlike the training rows.

explained = explain(model, [[0.5, 0.5, 0.95, 0.5, 0.5]], random_state=0)
for name, *numbers in zip(*list(explained.features.values())[1:], strict=True):
    print(name, *(f"{number:.2f}" for number in numbers))

# %%
# No single training row makes the interval: without any one of them no end moves by more than about
# a tenth of the width. Red lines are the rows that hold an end before it is widened.

rows = explained.rows
lower, upper = explained.interval[0]
moves = np.maximum(abs(rows["lower_without"] - lower), abs(rows["upper_without"] - upper))
print(f"{len(moves)} training rows, width {upper - lower:.2f}, largest move {moves.max():.2f}")
explained.plot()
plt.show()
