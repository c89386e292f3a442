"""
Median survival with bounds
===========================

228 patients with advanced lung cancer were followed for up to 1,022 days (Loprinzi et al. 1994; the
table comes with the package lifelines). 63 of them were alive when they were last seen: their times
are censored. A survival forest tells each patient's distribution of the time to death.
"""

import matplotlib.pyplot as plt
import numpy as np
from lifelines.datasets import load_lung
from sklearn.model_selection import train_test_split

from hdiforest import HDISurvivalForest

table = load_lung().drop(columns="inst")
y = np.array(
    list(zip(table.pop("status") == 1, table.pop("time"), strict=True)),
    dtype=[("event", bool), ("time", float)],
)
X_train, X_new, y_train, y_new = train_test_split(table, y, test_size=40, random_state=0)
model = HDISurvivalForest(random_state=0).fit(X_train, y_train).calibrate(coverage=[0.5, 0.8])
print(model.calibration_)

# %%
# Calibrated 80 % intervals of 40 patients who took no part in the fit. Dots are deaths. Open
# circles are patients who were alive at that time. An interval that reaches the upper edge has no
# end: the follow-up is too short to say.

median = model.predict_quantiles(X_new, 0.5)
lower, upper = model.predict_interval(X_new, coverage=0.8).T
order = np.argsort(median)
top = 1.05 * y["time"].max()
fig, ax = plt.subplots(layout="constrained")
rank = np.arange(len(order))
ax.vlines(rank, lower[order], np.minimum(upper[order], top), color="tab:blue", lw=4, alpha=0.3)
ax.plot(rank, np.minimum(median[order], top), "_", color="tab:blue", label="median")
event, time = y_new["event"][order], y_new["time"][order]
ax.plot(rank[event], time[event], "o", color="tab:orange", label="death")
ax.plot(
    rank[~event], time[~event], "o", color="tab:orange", mfc="none", label="alive when last seen"
)
ax.set(xlabel="patients, sorted by median survival", ylabel="days", ylim=(0, top))
ax.legend()
plt.show()

# %%
# The survival functions of three patients.

fig, ax = plt.subplots(layout="constrained")
chosen = X_new.iloc[order[[2, 20, 37]]]
survival = model.predict_survival_function(chosen, return_array=True)
for curve, days in zip(survival, median[order[[2, 20, 37]]], strict=True):
    ax.step(model.unique_times_, curve, where="post", label=f"median {days:.0f} days")
ax.axhline(0.5, color="grey", lw=0.5)
ax.set(xlabel="days", ylabel="share alive", ylim=(0, 1))
ax.legend()
plt.show()
