"""What every system is: a fit to training rows that gives intervals for others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split

# At these coverages all systems are compared.
COMPARED = (0.90, 0.95)
# Share of the training rows that systems with a split leave out of the fit.
HELD_OUT = 0.25

# Rows (n, n_features) -> lower and upper ends (n, 2, n_coverages).
Intervals = Callable[[np.ndarray], np.ndarray]


class Training(NamedTuple):
    """What a system may learn from. One thread is allowed."""

    X: np.ndarray  # (n, n_features) float32, NaN where missing
    y: np.ndarray  # (n,) float64
    coverages: tuple[float, ...]
    seed: int
    n_trees: int  # of every forest, so that none is larger than another's

    def forest_options(self) -> dict[str, Any]:
        """Return what all random forests share."""
        return {"n_estimators": self.n_trees, "random_state": self.seed, "n_jobs": 1}

    def split(self) -> tuple[Training, Training]:
        """Return a part to fit and a part to calibrate with."""
        fitted, held_out = train_test_split(
            np.arange(len(self.y)), test_size=HELD_OUT, random_state=self.seed
        )
        return self.take(fitted), self.take(held_out)

    def take(self, rows: np.ndarray) -> Training:
        """Return the same with these rows alone."""
        return self._replace(X=self.X[rows], y=self.y[rows])


def imputed(training: Training) -> tuple[Training, Callable[[np.ndarray], np.ndarray]]:
    """Return the same with medians for missing features, and what does so for other rows."""
    imputer = SimpleImputer(strategy="median", keep_empty_features=True)
    return training._replace(X=imputer.fit_transform(training.X)), imputer.transform


class System(NamedTuple):
    """A way to get intervals, under the name that tables show."""

    name: str
    version: int  # to be raised whenever results would change: older ones then count as missing
    fit: Callable[[Training], Intervals] | None  # None: its rows are of an earlier commit
    coverages: tuple[float, ...] = COMPARED
    is_ours: bool = False


def stacked(intervals: list[np.ndarray]) -> np.ndarray:
    """Return (n, 2, k) of k intervals (n, 2); where ends cross, both are their middle."""
    ends = np.stack(intervals, axis=-1)
    middle = ends.mean(axis=1, keepdims=True)
    crossed = ends[:, :1] > ends[:, 1:]
    return np.where(crossed, middle, ends)


def split_rank(n: int, coverage: float) -> int:
    """Return which of n sorted scores split conformal takes, from 1; n + 1 if none is enough."""
    return int(np.ceil((n + 1) * coverage - 1e-9))


def split_quantile(scores: np.ndarray, coverage: float) -> float:
    """Return the pad that split conformal takes from scores; infinite for too few of them."""
    rank = split_rank(len(scores), coverage)
    return float(np.sort(scores)[rank - 1]) if rank <= len(scores) else float("inf")
