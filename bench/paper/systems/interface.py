"""What every system is: candidates tuned on a training part, each able to give intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import GroupKFold, KFold

# Twenty-five nominal levels: of the trade-off curves, and those a system is tuned over if a level
# costs it little.
LEVELS = np.concatenate(
    [
        [0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.82, 0.84, 0.86, 0.88],
        [0.9, 0.91, 0.92, 0.93, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99, 0.995, 1.0],
    ]
)

# Intervals (n, 2, k) for the rows of a matrix at k levels.
Model = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Effort(NamedTuple):
    """How much work a run may be; what differs between the whole run and a quick one."""

    n_trees: int = 300
    n_rounds: int = 240  # of boosting
    share_of_epochs: float = 1.0
    n_trials: int = 8  # settings tried where none are published


FULL = Effort()
QUICK = Effort(n_trees=40, n_rounds=8, share_of_epochs=0.02, n_trials=2)


class Part(NamedTuple):
    """The rows a system learns from."""

    X: np.ndarray  # (n, n_features) float32, NaN where missing
    y: np.ndarray  # (n,) float64
    categorical: list[int]
    groups: np.ndarray | None
    seed: int
    effort: Effort = FULL
    name: str = ""  # of the data set: some published settings depend on it

    def take(self, rows: np.ndarray) -> Part:
        """Return the part that holds these rows alone."""
        groups = None if self.groups is None else self.groups[rows]
        return self._replace(X=self.X[rows], y=self.y[rows], groups=groups)

    def folds(self, n: int = 5) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield rows to learn from and rows held out; rows of one group stay together."""
        make = KFold if self.groups is None else GroupKFold
        folds = make(n, shuffle=True, random_state=self.seed)
        return folds.split(self.X, groups=self.groups)


class Fitted(NamedTuple):
    """A model and what it cost."""

    intervals: Model
    seconds: float


class Candidate(NamedTuple):
    """One way to set up a system, and how it did on the training part."""

    settings: dict[str, Any]
    levels: np.ndarray  # (k,) ascending
    intervals: np.ndarray  # (n, 2, k) for the part's rows, each from rows that it is not among
    fit: Callable[[], Fitted]  # on the whole part


class Family(NamedTuple):
    """Systems that are tuned together, because they share what they fit."""

    name: str
    systems: tuple[str, ...]
    tune: Callable[[Part], dict[str, list[Candidate]]]
    fewer_splits: Mapping[str, int] = MappingProxyType({})  # on these data sets, for its cost
    n_curves: int = 20  # splits whose whole trade-off curve is measured


# Of systems whose training is slow: splits of the data sets with more than 4,000 rows.
SLOW_SPLITS = {
    "parkinsons": 10,
    "parkinsons_new_subjects": 10,
    "naval": 10,
    "power_plant": 10,
    "protein": 5,
    "online_news": 5,
    "online_news_whole": 5,
}


def out_of_fold(part: Part, fit: Callable[[Part], Model], levels: np.ndarray) -> np.ndarray:
    """Return intervals (n, 2, k) for the part's rows, each from the folds it is not in."""
    found = np.empty((len(part.y), 2, len(levels)))
    for learned, held_out in part.folds():
        found[held_out] = fit(part.take(learned))(part.X[held_out], levels)
    return found
