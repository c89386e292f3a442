"""HDI-Forest and quantile regression forests: two readings of the same scikit-learn forests.

Each by itself, as the paper compares them, and with a pad where that is narrower, as the systems
without levels of their own have.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor

from .interface import LEVELS, Candidate, Family, Fitted, Levelled, Part, out_of_fold
from .padding import Base, Padded

KINDS = {"HDI-Forest": "hdi", "QRF": "equal_tailed"}
_PADDED = ", padded"
SYSTEMS = (*KINDS, *(system + _PADDED for system in KINDS))
GRID = [
    {"min_samples_leaf": leaf, "max_features": share}
    for leaf, share in product((1, 3, 5, 10), (1 / 3, 1.0))
]
_PADDED_LEVELS = (0.5, 0.7, 0.9)


def fit_forest(part: Part, n_trees: int, settings: dict[str, Any]) -> HDIForestRegressor:
    """Fit a forest and index its training rows, with the weights of the paper's equation 7."""
    forest = RandomForestRegressor(n_trees, random_state=part.seed, **settings).fit(part.X, part.y)
    return HDIForestRegressor.from_forest(forest, part.X, part.y)


def tune(part: Part) -> dict[str, list[Candidate]]:
    """Read both kinds of intervals of every forest of the grid."""

    @cache
    def fitted(config: int) -> tuple[HDIForestRegressor, float]:
        start = time.process_time()
        model = fit_forest(part, part.effort.n_trees, GRID[config])
        return model, time.process_time() - start

    def fit(config: int, kind: Any, levels: np.ndarray) -> Fitted:
        model, seconds = fitted(config)
        return Fitted(lambda X: model.predict_interval(X, levels, kind=kind), seconds)

    def fit_base(config: int, kind: Any, level: float) -> tuple[Base, float]:
        model, seconds = fitted(config)
        return (lambda X: model.predict_interval(X, level, kind=kind)), seconds

    found: dict[str, list[Candidate]] = {system: [] for system in SYSTEMS}
    for config, settings in enumerate(GRID):
        read = _unseen(part, settings, lambda config=config: fitted(config)[0])
        for system, kind in KINDS.items():
            intervals = read(kind)
            pure = Levelled(settings, part.y, LEVELS, intervals, partial(fit, config, kind))
            found[system].append(pure)
            found[system + _PADDED].append(pure)
            found[system + _PADDED] += [
                Padded(
                    {**settings, "level": level},
                    part.y,
                    intervals[..., np.searchsorted(LEVELS, level)].copy(),
                    partial(fit_base, config, kind, level),
                )
                for level in _PADDED_LEVELS
            ]
    return found


def _unseen(
    part: Part, settings: dict[str, Any], fitted: Callable[[], HDIForestRegressor]
) -> Callable[[Any], np.ndarray]:
    """Intervals for the training rows, by kind: out of bag, or out of fold if rows are grouped.

    Trees are drawn by row, not by group, so that a row out of a tree's bag has rows of its group
    in it. A forest of a fold has as many trees as are out of bag for a row.
    """
    if part.groups is None:
        model = fitted()
        return lambda kind: model.oob_.interval(LEVELS, kind=kind)
    n_trees = max(1, round(part.effort.n_trees * np.exp(-1)))
    models = [fit_forest(part.take(learned), n_trees, settings) for learned, _ in part.folds()]

    def read(kind: Any) -> np.ndarray:
        left = iter(models)
        return out_of_fold(
            part, lambda _: partial(next(left).predict_interval, coverage=LEVELS, kind=kind)
        )

    return read


FAMILY = Family("forests", 1, SYSTEMS, tune)
