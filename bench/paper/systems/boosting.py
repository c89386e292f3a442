"""Gradient boosting of the pinball loss: a model for the lower and one for the upper quantile."""

from __future__ import annotations

import time
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor

from .interface import SLOW_SPLITS, Candidate, Family, Fitted, Part, out_of_fold
from .padding import Base, padded_candidate, padded_width

_LEVELS = np.array([0.75, 0.85, 0.9, 0.94, 0.97, 0.99])
# Settings are compared at one level, the levels at the best of them: each level is two fits.
_SETTINGS_LEVEL = 0.85
_SETTINGS_COVERAGE = 0.93
_HIGHEST = 0.999  # quantiles 0 and 1 cannot be learned
_LEARNING_RATE = 0.06
_SHARES_OF_ROUNDS = (0.125, 0.25, 0.5, 1.0)
# Exact splits and random halves of the rows suit few rows; histograms are 10 times as fast.
_EXACT_CELLS = 20_000
_EXACT = [
    {"max_depth": depth, "min_samples_leaf": leaf, "subsample": 0.7}
    for depth, leaf in product((3, 5), (5, 20))
]
_HISTOGRAMS = [
    {"max_depth": depth, "min_samples_leaf": leaf} for depth, leaf in product((3, 8), (5, 20))
]


def tune(part: Part) -> dict[str, list[Candidate]]:
    """Choose settings by their padded width at one level, then read the levels of the best.

    Far quantiles learned from few rows are wide; a nearer one with a pad is tried as well.
    """
    shares = part.effort.n_rounds * np.array(_SHARES_OF_ROUNDS)
    rounds = np.unique(np.maximum(1, shares.round().astype(int)))
    compared = []
    for settings in _EXACT if _is_small(part) else _HISTOGRAMS:
        bands = np.empty((len(part.y), 2, len(rounds)))
        for learned, held_out in part.folds():
            models = _fit_both(part.take(learned), settings, _SETTINGS_LEVEL, int(rounds[-1]))
            bands[held_out] = _staged(models, part.X[held_out], rounds)
        compared += [
            (padded_width(bands[..., i], part.y, _SETTINGS_COVERAGE), {**settings, "rounds": after})
            for i, after in enumerate(rounds.tolist())
        ]
    settings = min(compared, key=lambda entry: entry[0])[1]
    bands = out_of_fold(part, lambda inner: partial(_read, inner, settings), _LEVELS)
    pure = Candidate(settings, _LEVELS, bands, partial(_fitted, part, settings))
    padded = [
        padded_candidate(
            {**settings, "level": float(level)},
            bands[..., i],
            part.y,
            partial(_fitted_base, part, settings, level),
        )
        for i, level in enumerate(_LEVELS[:-2])
    ]
    return {"QR_GBDT": [pure, *padded]}


def _is_small(part: Part) -> bool:
    return part.X.size <= _EXACT_CELLS and not np.isnan(part.X).any()


def _booster(part: Part, settings: dict[str, Any], rounds: int, quantile: float) -> Any:
    shared = {"loss": "quantile", "learning_rate": _LEARNING_RATE, "random_state": part.seed}
    if "subsample" in settings:
        return GradientBoostingRegressor(alpha=quantile, n_estimators=rounds, **settings, **shared)
    return HistGradientBoostingRegressor(
        quantile=quantile, max_iter=rounds, early_stopping=False, **settings, **shared
    )


def _fit_both(part: Part, settings: dict[str, Any], level: float, rounds: int) -> tuple[Any, Any]:
    """Fit the lower and the upper quantile of a central level."""
    lower, upper = (
        _booster(part, settings, rounds, quantile).fit(part.X, part.y)
        for quantile in ((1 - level) / 2, (1 + level) / 2)
    )
    return lower, upper


def _staged(models: tuple[Any, Any], X: np.ndarray, rounds: np.ndarray) -> np.ndarray:
    """Return (n, 2, n_rounds) intervals after each number of rounds; ends that cross swap."""
    ends = []
    for model in models:
        after = list(model.staged_predict(X))
        ends.append(np.stack([after[i - 1] for i in rounds], axis=1))
    return np.sort(np.stack(ends, axis=1), axis=1)


def _read(part: Part, settings: dict[str, Any], X: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Fit each level that is asked for, and read it: (n, 2, k)."""
    chosen = {name: value for name, value in settings.items() if name != "rounds"}
    rounds = settings["rounds"]
    bands = []
    for level in np.minimum(levels, _HIGHEST):
        lower, upper = _fit_both(part, chosen, level, rounds)
        bands.append(np.sort(np.stack([lower.predict(X), upper.predict(X)], axis=1), axis=1))
    return np.stack(bands, axis=2)


def _fitted(part: Part, settings: dict[str, Any]) -> Fitted:
    """Each level is fitted when it is asked for; the time is that of one level."""
    start = time.perf_counter()
    _read(part, settings, part.X[:1], np.array([_SETTINGS_LEVEL]))
    return Fitted(partial(_read, part, settings), time.perf_counter() - start)


def _fitted_base(part: Part, settings: dict[str, Any], level: float) -> tuple[Base, float]:
    start = time.perf_counter()
    chosen = {name: value for name, value in settings.items() if name != "rounds"}
    models = _fit_both(part, chosen, level, settings["rounds"])
    rounds = np.array([settings["rounds"]])
    return (lambda X: _staged(models, X, rounds)[..., 0]), time.perf_counter() - start


# Of the trade-off curves, fitted anew at 25 levels, a few.
FAMILY = Family("boosting", ("QR_GBDT",), tune, n_curves=3, fewer_splits=SLOW_SPLITS)
