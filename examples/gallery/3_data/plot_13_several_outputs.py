"""
Several outputs, drawn jointly
==============================

A forest of several targets has a joint distribution: each draw of `sample` is the target of one
training row, so what belongs together stays together. Any function of the targets then has an
interval too.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestRegressor

from hdicore import weighted_hdi
from hdiforest import DistributionDisplay, HDIForestRegressor

rng = np.random.default_rng(0)
n = 2000
hour = rng.uniform(0, 24, (n, 1))
cloud = rng.beta(2, 2, n)  # is no feature; clouds bring wind and take sun
sun = 40 * np.clip(np.sin((hour[:, 0] - 6) * np.pi / 12), 0, None) * (1 - 0.9 * cloud)
wind = 5 + 35 * cloud + rng.normal(0, 2, n)
power = np.stack([sun, wind], axis=1)  # MW

# %%
# One forest for both targets, and 4000 joint draws for noon.

model = HDIForestRegressor(RandomForestRegressor(100, min_samples_leaf=60, random_state=0))
noon = [[12.0]]
draws = model.fit(hour, power).sample(noon, 4000, random_state=0)[0]  # (2, n_samples)
(sun_ends, wind_ends) = model.predict_interval(noon, 0.9)[0]

# %%
# Left, the draws: much sun goes with little wind, which the two intervals alone (the rectangle) do
# not show. Right, the sum of both, whose interval (blue) is narrow because of this. Draws of sun
# and wind apart from each other would give an interval (orange) that is far too wide.

total = draws.sum(axis=0)
apart = draws[0] + rng.permutation(draws[1])
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
left.plot(*draws, ".", color="#0072B2", markersize=3)
size = sun_ends[1] - sun_ends[0], wind_ends[1] - wind_ends[0]
corner = sun_ends[0], wind_ends[0]
left.add_patch(plt.Rectangle(corner, *size, fill=False, linewidth=2, edgecolor="#D55E00"))
left.set(xlabel="sun (MW)", ylabel="wind (MW)", title="Joint draws, and the two 90 % intervals")
left.spines[["top", "right"]].set_visible(False)
DistributionDisplay.from_predictions(
    None,
    total,
    interval=weighted_hdi(total, coverage=0.9),
    coverage=0.9,
    target_name="sun and wind together (MW)",
    bins=16,
    ax=right,
)
ends = weighted_hdi(apart, coverage=0.9)
right.plot(ends, [0.3, 0.3], color="#D55E00", linewidth=4)
right.text(ends[0], 1, "draws apart", color="#D55E00")
right.get_legend().remove()
right.set(title="The sum, and its 90 % interval", xlim=(ends[0] - 4, ends[1] + 4))
plt.show()
