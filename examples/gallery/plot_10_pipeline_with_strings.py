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
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from hdiforest import HDIForestRegressor

rng = np.random.default_rng(0)
n = 1500
cities = np.array(["Lyon", "Nice", "Paris"])
table = pd.DataFrame({"city": rng.choice(cities, n), "size": rng.uniform(20, 120, n).round()})
per_metre = table["city"].map({"Lyon": 5.0, "Nice": 5.5, "Paris": 10.0})
price = table["size"] * per_metre * rng.lognormal(0, 0.25, n)
table.loc[rng.random(n) < 0.05, "city"] = None

# %%
# The pipeline is fitted as always, and handed over as a whole.

encoder = make_column_transformer((OneHotEncoder(), ["city"]), remainder="passthrough")
forest = RandomForestRegressor(200, min_samples_leaf=15, random_state=0)
pipeline = make_pipeline(encoder, forest).fit(table, price)
model = HDIForestRegressor.from_forest(pipeline, table, price).calibrate()

# %%
# Calibrated 90 % intervals of flats of all sizes in each city. Rows are tables of the same columns.

sizes = np.arange(25, 118, 3)
figure, all_axes = plt.subplots(1, 3, figsize=(10, 4), sharey=True, layout="constrained")
for axes, city in zip(all_axes, cities, strict=True):
    flats = pd.DataFrame({"city": city, "size": sizes.astype(float)})
    found = model.predict_interval(flats, coverage=0.9, output="pandas")
    sold = table["city"] == city
    axes.plot(table.loc[sold, "size"], price[sold], ".", color="#b0b0b0", markersize=3)
    axes.fill_between(sizes, found["lower_0.9"], found["upper_0.9"], color="#8fb8de", alpha=0.7)
    axes.plot(sizes, found["prediction"], color="#1f6fb2", linewidth=2)
    axes.set(title=city, xlabel="square metres")
all_axes[0].set_ylabel("price, thousands")
plt.show()
