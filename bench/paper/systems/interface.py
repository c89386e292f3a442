"""What every system is: candidates tuned on a training part, each able to give intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.model_selection import GroupKFold, KFold

from hdiforest.metrics import coverage_score, mean_width_score
from matching import level_reaching
from tasks import LARGE, NAMES, VERY_LARGE

# Twenty-five nominal levels: of the trade-off curves, and those a system is tuned over if a level
# costs it little.
LEVELS = np.concatenate(
    [
        [0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.82, 0.84, 0.86, 0.88],
        [0.9, 0.91, 0.92, 0.93, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99, 0.995, 1.0],
    ]
)


class Effort(NamedTuple):
    """How much work a run may be; what differs between the whole run and a quick one."""

    n_trees: int = 300
    n_rounds: int = 600  # of boosting
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
    """A model of the whole training part for some levels, and what it took to fit."""

    intervals: Callable[[np.ndarray], np.ndarray]  # rows (n, n_features) -> (n, 2, k)
    seconds: float  # of one core


class Choice(NamedTuple):
    """The level at which a candidate covers a target, and how it does on the training part."""

    level: float
    picp: float
    mpiw: float


class Levelled:
    """A way to set up a system whose intervals have levels of their own."""

    def __init__(
        self,
        settings: dict[str, Any],
        y: np.ndarray,
        levels: np.ndarray,
        intervals: np.ndarray,
        fit: Callable[[np.ndarray], Fitted],
    ) -> None:
        """Take intervals (n, 2, k) for the part's rows, each from rows that it is not among."""
        self.settings = settings
        self.fit = fit
        self._levels = levels
        self._picp = np.asarray(coverage_score(y, intervals))
        self._mpiw = np.asarray(mean_width_score(intervals))

    def reach(self, target: float) -> Choice:
        """Find the level that covers the target, between the levels that were tried."""
        level = level_reaching(self._levels, self._picp, target)
        picp, mpiw = (np.interp(level, self._levels, of) for of in (self._picp, self._mpiw))
        return Choice(level, float(picp), float(mpiw))


class Candidate(Protocol):
    """One way to set up a system, as it did on the training part."""

    settings: dict[str, Any]

    @property
    def fit(self) -> Callable[[np.ndarray], Fitted]:
        """Fit the whole training part for these levels (k,)."""

    def reach(self, target: float) -> Choice:
        """Find the level that covers the target on the training part."""


class Family(NamedTuple):
    """Systems that are tuned together, because they share what they fit."""

    name: str
    version: int  # to be raised whenever results would change: older ones then count as missing
    systems: tuple[str, ...]
    tune: Callable[[Part], dict[str, list[Candidate]]]
    most_splits_of: Mapping[str, int] = MappingProxyType({})  # on these data sets, for its cost
    n_curves: int = 20  # splits whose whole trade-off curve is measured


# Of systems that are slow to train; raise them, and the next run adds what is missing.
SLOW_SPLITS = {
    **dict.fromkeys(NAMES, 5),
    **dict.fromkeys(LARGE, 3),
    **dict.fromkeys(VERY_LARGE, 2),
}


def out_of_fold(
    part: Part, fit: Callable[[Part], Callable[[np.ndarray], np.ndarray]]
) -> np.ndarray:
    """Return intervals (n, 2, ...) for the part's rows, each from the folds it is not in."""
    found: np.ndarray | None = None
    for learned, held_out in part.folds():
        answers = fit(part.take(learned))(part.X[held_out])
        if found is None:
            found = np.empty((len(part.y), *answers.shape[1:]))
        found[held_out] = answers
    assert found is not None
    return found
