"""The benchmark data sets as matrices of numbers."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

import numpy as np
import pandas as pd

FOLDER = Path(__file__).parent / "data"
NAMES = (
    "boston",
    "parkinsons",
    "wine",
    "forest_fires",
    "concrete",
    "energy",
    "naval",
    "power_plant",
    "protein",
    "communities",
    "online_news",
)
# UCI's whole file, of which online_news is a fifth: read where a user has put it.
WHOLE_NEWS = FOLDER / "OnlineNewsPopularity.csv"
# Calendar order, so that a split on the code is a split in time.
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


class DataSet(NamedTuple):
    """Rows of one data set; missing features are NaN."""

    name: str
    X: np.ndarray  # (n, n_features) float32
    y: np.ndarray  # (n,) float64, in the unit of the source
    features: list[str]


def load(name: str) -> DataSet:
    """Read one of `NAMES`."""
    if name == "boston":
        table = pd.read_csv(boston_file())
    else:
        with ZipFile(FOLDER / "sets.zip") as sets, sets.open(f"{name}.csv") as file:
            table = pd.read_csv(file)
    for column, order in (("month", _MONTHS), ("day", _DAYS)):
        if column in table:
            table[column] = table[column].map(order.index)
    features = list(table.columns[:-1])
    X = table[features].to_numpy(dtype=np.float32)
    return DataSet(name, X, table[table.columns[-1]].to_numpy(dtype=np.float64), features)


def boston_file() -> Path:
    """Return the file of boston, or raise FileNotFoundError in a source distribution."""
    path = FOLDER / "boston.csv"
    if not path.exists():
        raise FileNotFoundError(
            f"{path} is in the repository alone, not in source distributions, because no licence "
            "of the data set is stated; leave out boston, or put the file there"
        )
    return path


def load_whole_news(path: Path = WHOLE_NEWS) -> DataSet:
    """Read UCI's own file of online news, with the columns that `online_news` has."""
    table = pd.read_csv(path, skipinitialspace=True)
    ours = load("online_news").features
    missing = {*ours, "shares"} - set(table.columns)
    if missing:
        raise ValueError(
            f"{path} was expected to be UCI's OnlineNewsPopularity.csv, but has no column "
            f"{sorted(missing)[0]!r}"
        )
    X = table[ours].to_numpy(dtype=np.float32)
    return DataSet("online_news_whole", X, table["shares"].to_numpy(dtype=np.float64), ours)


def friedman(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Friedman's first function of 10 uniform features with unit noise: X float32, y."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 10), dtype=np.float32)
    return X, (friedman_mean(X) + rng.normal(size=n)).astype(np.float64)


def friedman_mean(X: np.ndarray) -> np.ndarray:
    """Friedman's first function of the first five columns, (n,)."""
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    return y + 10 * X[:, 3] + 5 * X[:, 4]
