"""
A pipeline with strings
=======================

A forest is often the last step of a pipeline that encodes a table. The model then takes the table
itself, with its strings and missing cells, as the pipeline does.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from hdiforest import HDIForestRegressor, IntervalDisplay

rng = np.random.default_rng(0)
n = 2000
cities = np.array(["Lyon", "Nice", "Paris"])
table = pd.DataFrame({"city": rng.choice(cities, n), "size": rng.uniform(20, 120, n).round()})
per_metre = table["city"].map({"Lyon": 5.0, "Nice": 5.5, "Paris": 10.0})
price = table["size"] * per_metre * rng.lognormal(0, 0.2, n)
table.loc[rng.random(n) < 0.05, "city"] = None
flats, new, price, new_price = train_test_split(table, price, random_state=0)

# %%
# The pipeline is fitted as always, and given as a whole.

encoder = make_column_transformer((OneHotEncoder(), ["city"]), remainder="passthrough")
forest = RandomForestRegressor(100, min_samples_leaf=10, random_state=0)
pipeline = make_pipeline(encoder, forest).fit(flats, price)
model = HDIForestRegressor.from_forest(pipeline, flats, price).calibrate()

# %%
# Calibrated 90 % intervals of new flats. They are wider where flats are large, and in Paris. The
# line is the mean; dots are prices inside their interval, and triangles those outside.

figure, all_axes = plt.subplots(1, 3, figsize=(9, 4.6), sharey=True, layout="constrained")
for axes, city in zip(all_axes, cities, strict=True):
    here = new["city"] == city
    display = IntervalDisplay.from_estimator(
        model,
        new[here],
        new_price[here],
        feature="size",
        style="bands",
        feature_name="size (m²)",
        target_name="price (thousand euros)",
        ax=axes,
    )
    axes.set_title(f"{city}: {100 * display.realised[0]:.0f} % of {here.sum()} inside")
    axes.get_legend().remove()
    axes.label_outer()
plt.show()
