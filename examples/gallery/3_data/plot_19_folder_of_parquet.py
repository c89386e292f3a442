"""
Scoring a folder of Parquet
===========================

`hdiforest score` takes a folder and writes one table of intervals for each table in it, batch by
batch, with memory that does not grow with the rows. When the targets become known, the coverage of
each file shows whether the model still fits.
"""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor, WidthDisplay

rng = np.random.default_rng(0)


def visits(n, drift=0.0):
    """Draw n visits of a shop, with the minutes that they take."""
    table = pd.DataFrame({"visitors": rng.integers(1, 60, n), "staff": rng.integers(1, 6, n)})
    mean = 5 + 2 * table["visitors"] / table["staff"] + drift
    return table, mean + (1 + 0.1 * mean) * rng.normal(size=n)


# %%
# A model in a file, and a folder with a Parquet file for each month. From May on visits take
# longer.

folder = TemporaryDirectory()
path = Path(folder.name)
X, y = visits(2000)
forest = RandomForestRegressor(100, min_samples_leaf=10, random_state=0)
HDIForestRegressor(forest, calibration=False).fit(X, y).calibrate(coverage=0.9).save(
    path / "visits.hdi"
)
months = [f"2026-{month:02}" for month in range(1, 7)]
(path / "new").mkdir()
known = {}
for month, drift in zip(months, (0, 0, 0, 0, 4, 8), strict=True):
    table, known[month] = visits(800, drift)
    table.to_parquet(path / "new" / f"{month}.parquet")

# %%
# In a shell: `hdiforest score visits.hdi new -o scored`.

command = ["score", "visits.hdi", "new", "-o", "scored"]
subprocess.run([sys.executable, "-m", "hdiforest", *command], cwd=path, check=True)
scored = {month: pd.read_parquet(path / "scored" / f"{month}.parquet") for month in months}
folder.cleanup()
print(scored[months[0]].head(3))

# %%
# Until April the intervals cover about 90 % of the visits. In May and June they cover far less: it
# is time for a new fit.

intervals = pd.concat(scored)[["lower_0.9", "upper_0.9"]].to_numpy()
WidthDisplay.from_predictions(
    np.concatenate(list(known.values())),
    intervals,
    groups=np.repeat(months, 800),
    ax=plt.subplots(figsize=(6.4, 4.8), layout="constrained")[1],
)
plt.show()
