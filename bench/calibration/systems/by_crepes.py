"""crepes on a random forest, out of bag: normalised conformal regressor and predictive system.

Bostrom, "crepes: a Python package for generating conformal regressors and predictive systems", COPA
2022. Residuals are out of bag. The difficulty of a row is the variance of the trees, or the mean
residual of its neighbours: whichever gives narrower intervals on the training rows. Ends are within
the range of the training targets, which crepes takes as an option.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from crepes import ConformalPredictiveSystem, ConformalRegressor
from crepes.extras import DifficultyEstimator

from .interface import Intervals, System, Training, imputed, stacked
from .split import best_forest

_TUNED_FOR = 0.9


def fitted(training: Training, make: type) -> tuple[Any, Callable[[np.ndarray], tuple]]:
    """Return a model of crepes, and what gives it the means and difficulties of rows."""
    training, impute = imputed(training)
    forest = best_forest(training)
    residuals = training.y - forest.oob_prediction_
    best, least = None, np.inf
    for options in ({"learner": forest}, {"residuals": residuals}):
        difficulty = DifficultyEstimator().fit(training.X, **options, scaler=True, oob=True)
        model = make().fit(residuals, sigmas=difficulty.apply())
        ends = model.predict_int(
            forest.oob_prediction_, difficulty.apply(), confidence=_TUNED_FOR, **limits_of(training)
        )
        width = float((ends[:, 1] - ends[:, 0]).mean())
        if width < least:
            best, least = (model, difficulty), width
    model, difficulty = best

    def mean_and_difficulty(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        X = impute(X)
        return forest.predict(X), difficulty.apply(X)

    return model, mean_and_difficulty


def limits_of(training: Training) -> dict[str, float]:
    """Return the range of the training targets, as crepes takes it."""
    return {"y_min": training.y.min(), "y_max": training.y.max()}


def _fit(training: Training, make: type) -> Intervals:
    model, mean_and_difficulty = fitted(training, make)

    def intervals(X: np.ndarray) -> np.ndarray:
        rows, limits = mean_and_difficulty(X), limits_of(training)
        return stacked(
            [model.predict_int(*rows, confidence=c, **limits) for c in training.coverages]
        )

    return intervals


def normalised(training: Training) -> Intervals:
    return _fit(training, ConformalRegressor)


def predictive_system(training: Training) -> Intervals:
    return _fit(training, ConformalPredictiveSystem)


SYSTEMS = (
    System("crepes, normalised", 1, normalised),
    System("crepes CPS", 1, predictive_system),
)
