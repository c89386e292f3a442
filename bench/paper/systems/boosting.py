"""Gradient boosting of the pinball loss: a model for the lower and one for the upper quantile."""

from __future__ import annotations

import time
from functools import cache, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor

from .interface import (
    SLOW_SPLITS,
    Candidate,
    Family,
    Fitted,
    Levelled,
    Part,
    out_of_fold,
)
from .padding import Base, Padded, padded_width

_LEVELS = np.array([0.5, 0.75, 0.9, 0.95, 0.98, 0.995])
_BASE_LEVELS = _LEVELS[:3]  # to be padded
_HIGHEST = 0.999  # quantiles 0 and 1 cannot be learned
# Settings are compared padded, at one base level; levels at the best settings: each is two fits.
_SETTINGS_LEVEL = 0.75
_SETTINGS_COVERAGE = 0.93
_LEARNING_RATE = 0.1
_SHARES_OF_ROUNDS = (0.125, 0.25, 0.5, 1.0)
# Exact splits and random parts of the rows suit few rows; histograms are 10 times as fast.
_EXACT_CELLS = 20_000


class Settings(NamedTuple):
    """Of the trees."""

    max_depth: int
    min_samples_leaf: int
    subsample: float | None = None  # of the rows, for each tree; None: histograms of all rows


_EXACT = [Settings(depth, leaf, 0.7) for depth, leaf in product((3, 6), (3, 10))]
_HISTOGRAMS = [Settings(depth, leaf) for depth, leaf in product((4, 10), (5, 20))]


class Band:
    """Boosted lower and upper quantiles of central levels, (n, 2, k)."""

    def __init__(self, part: Part, settings: Settings, rounds: int, levels: np.ndarray) -> None:
        levels = np.minimum(levels, _HIGHEST)
        quantiles = [(1 - levels) / 2, (1 + levels) / 2]
        fit = partial(_fit, part, settings, rounds)
        self._models = [[fit(quantile) for quantile in end] for end in quantiles]

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the intervals; ends that cross are swapped."""
        ends = [np.stack([model.predict(X) for model in end], axis=1) for end in self._models]
        return np.sort(np.stack(ends, axis=1), axis=1)

    def after(self, rounds: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Return the intervals of the first level after each number of rounds, (n, 2, n_rounds)."""
        ends = []
        for lower_or_upper in self._models:
            staged = list(lower_or_upper[0].staged_predict(X))
            ends.append(np.stack([staged[i - 1] for i in rounds], axis=1))
        return np.sort(np.stack(ends, axis=1), axis=1)


def tune(part: Part) -> dict[str, list[Candidate]]:
    """Choose settings by their padded width at one level, then read the levels of the best.

    Far quantiles learned from few rows are wide; nearer ones with a pad are tried as well.
    """
    settings, rounds = _best(part)
    bands = out_of_fold(part, lambda inner: Band(inner, settings, rounds, _LEVELS))

    @cache
    def fit_level(level: float) -> tuple[Band, float]:
        start = time.process_time()
        band = Band(part, settings, rounds, np.array([level]))
        return band, time.process_time() - start

    def fit(levels: np.ndarray) -> Fitted:
        if len(levels) == 1:
            return Fitted(*fit_level(float(levels[0])))
        start = time.process_time()
        return Fitted(Band(part, settings, rounds, levels), time.process_time() - start)

    def fit_base(level: float) -> tuple[Base, float]:
        band, seconds = fit_level(level)
        return (lambda X: band(X)[..., 0]), seconds

    shared = {**settings._asdict(), "rounds": rounds}
    candidates: list[Candidate] = [Levelled(shared, part.y, _LEVELS, bands, fit)]
    for i, level in enumerate(_BASE_LEVELS.tolist()):
        base = partial(fit_base, level)
        candidates.append(Padded({**shared, "level": level}, part.y, bands[..., i], base))
    return {"QR_GBDT": candidates}


def _best(part: Part) -> tuple[Settings, int]:
    """Return the settings and rounds whose band, padded, is narrowest out of fold."""
    shares = part.effort.n_rounds * np.array(_SHARES_OF_ROUNDS)
    rounds = np.unique(np.maximum(1, shares.round().astype(int)))
    widths: dict[tuple[Settings, int], float] = {}
    for settings in _EXACT if _is_small(part) else _HISTOGRAMS:

        def fit(inner: Part, settings: Settings = settings) -> Any:
            band = Band(inner, settings, int(rounds[-1]), np.array([_SETTINGS_LEVEL]))
            return partial(band.after, rounds)

        bands = out_of_fold(part, fit)
        for i, after in enumerate(rounds.tolist()):
            widths[settings, after] = padded_width(bands[..., i], part.y, _SETTINGS_COVERAGE)
    return min(widths, key=lambda key: widths[key])


def _is_small(part: Part) -> bool:
    return part.X.size <= _EXACT_CELLS and not np.isnan(part.X).any()


def _fit(part: Part, settings: Settings, rounds: int, quantile: float) -> Any:
    shared = {
        "loss": "quantile",
        "learning_rate": _LEARNING_RATE,
        "random_state": part.seed,
        "max_depth": settings.max_depth,
        "min_samples_leaf": settings.min_samples_leaf,
    }
    if settings.subsample is not None:
        model: Any = GradientBoostingRegressor(
            alpha=quantile, n_estimators=rounds, subsample=settings.subsample, **shared
        )
    else:
        model = HistGradientBoostingRegressor(
            quantile=quantile, max_iter=rounds, early_stopping=False, **shared
        )
    return model.fit(part.X, part.y)


FAMILY = Family(
    "boosting",
    1,
    ("QR_GBDT",),
    tune,
    most_splits_of=SLOW_SPLITS,
    n_curves=2,  # each is fitted anew at 25 levels
)
