"""What is predicted from what: the paper's eleven data sets and variants, and their splits."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit

sys.path.insert(0, str(Path(__file__).parents[1]))
import datasets
import study as study  # of the scripts beside this one, too

RESULTS = Path(__file__).parent / "results"
# Parkinsons without what gives the target away, new subjects in the test part; wine without the
# rows that repeat another; all of online news, if a user has put UCI's file into bench/data.
VARIANTS = {"parkinsons_new_subjects": "parkinsons", "wine_unique": "wine"}
if datasets.WHOLE_NEWS.exists():
    VARIANTS["online_news_whole"] = "online_news"
NAMES = (*datasets.NAMES, *VARIANTS)

_LEAKING = ("subject", "motor_UPDRS")
# UCI calls these non-predictive.
_IDENTIFIERS = ("state", "county", "community", "fold")
_CATEGORICAL = ("month", "day")
# More than 4,000 rows, and those of them whose results cost most and vary least between splits.
LARGE = ("parkinsons", "parkinsons_new_subjects", "naval", "power_plant")
VERY_LARGE = ("protein", "online_news", "online_news_whole")
MOST_SPLITS = 20


class Task(NamedTuple):
    """Rows to learn from and to predict; missing features are NaN."""

    name: str
    X: np.ndarray  # (n, n_features) float32
    y: np.ndarray  # (n,) float64, in the unit of the source
    features: list[str]
    categorical: list[int]  # columns of X whose numbers name something
    groups: np.ndarray | None  # (n,) rows of one group stay on one side of a split


def load(name: str) -> Task:
    """Read one of `NAMES`."""
    if name == "online_news_whole":
        data = datasets.load_whole_news()
    else:
        data = datasets.load(VARIANTS.get(name, name))
    X, y, groups = data.X, data.y, None
    dropped: tuple[str, ...] = ()
    if name == "parkinsons_new_subjects":
        groups = X[:, data.features.index("subject")].astype(np.int64)
        dropped = _LEAKING
    elif name == "communities":
        dropped = _IDENTIFIERS
    elif name == "wine_unique":
        first = np.unique(np.column_stack([X, y]), axis=0, return_index=True)[1]
        X, y = X[np.sort(first)], y[np.sort(first)]
    kept = [i for i, feature in enumerate(data.features) if feature not in dropped]
    features = [data.features[i] for i in kept]
    categorical = [features.index(feature) for feature in _CATEGORICAL if feature in features]
    return Task(name, np.ascontiguousarray(X[:, kept]), y, features, categorical, groups)


def n_splits(name: str) -> int:
    """Return on how many splits every system is measured, unless its row says fewer."""
    return MOST_SPLITS // 2 if name in VERY_LARGE else MOST_SPLITS


def splits(task: Task, n: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the rows of the training and the test part for seeds 0 to n - 1.

    A fifth of the rows, or of the groups, is tested. The split of a seed does not depend on `n`.
    """
    make = ShuffleSplit if task.groups is None else GroupShuffleSplit
    for seed in range(n):
        splitter = make(n_splits=1, test_size=0.2, random_state=seed)
        yield next(splitter.split(task.X, groups=task.groups))
