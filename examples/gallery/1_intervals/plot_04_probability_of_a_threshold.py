"""
The probability of exceeding a threshold
========================================

Often the question is not where a target will lie but whether it reaches a limit. `predict_cdf`
gives the probability that it does not, from the same distribution as the intervals, for any limit.
"""

from importlib.resources import files

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.calibration import CalibrationDisplay
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split

from hdiforest import DistributionDisplay, HDIForestRegressor

# %%
# Compressive strength of concrete, from its ingredients and its age: data that come with hdicore.

concrete = pd.read_csv(files("hdiforest._cli") / "data" / "concrete.csv.gz")
y = concrete.pop("compressive_strength")
X_train, X_new, y_train, y_new = train_test_split(concrete, y, test_size=0.4, random_state=0)
forest = RandomForestRegressor(150, min_samples_leaf=3, random_state=0)
model = HDIForestRegressor(forest, calibration=False).fit(X_train, y_train)

# %%
# Which mixes reach 40 MPa? With `inclusive=False` the distribution function leaves out 40 itself.

limit = 40.0
probability = 1 - model.predict_cdf(X_new, [limit] * len(X_new), inclusive=False)
reached = y_new >= limit

# %%
# Left, the distribution function of one mix, cut at the limit. Right, all new mixes in five groups
# by their predicted probability, and the share of each group that reached the limit. Points near
# the diagonal mean that the probabilities can be taken as they are, which is so here.

row = int(abs(probability - 0.7).argmin())
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.4), layout="constrained")
DistributionDisplay.from_estimator(
    model, X_new, row=row, what="cdf", target_name="compressive strength (MPa)", ax=left
)
left.axvline(limit, color="black", linewidth=1)
left.set_title(f"One mix reaches {limit:.0f} MPa with {100 * probability[row]:.0f} %")
CalibrationDisplay.from_predictions(
    reached, probability, n_bins=5, strategy="quantile", color="#0072B2", name="hdiforest", ax=right
)
right.set(
    xlabel="predicted probability",
    ylabel=f"share that reached {limit:.0f} MPa",
    title=f"{len(X_new)} new mixes in five groups",
)
right.get_legend().remove()
right.spines[["top", "right"]].set_visible(False)
plt.show()
