"""crepes on a random forest, out of bag: normalised conformal regressor and predictive system.

Bostrom, "crepes: a Python package for generating conformal regressors and predictive systems", COPA
2022. Residuals are out of bag. The difficulty of a row is the variance of the trees, or the mean
residual of its neighbours: whichever gives narrower intervals on the training rows. Ends are within
the range of the training targets, which crepes takes as an option.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from crepes import ConformalPredictiveSystem, ConformalRegressor
from crepes.extras import DifficultyEstimator

from .interface import Intervals, System, Training, imputed, stacked
from .split import best_forest

_TUNED_FOR = 0.9


def _fit(training: Training, make: type) -> Intervals:
    training, impute = imputed(training)
    forest = best_forest(training)
    residuals = training.y - forest.oob_prediction_
    limits = {"y_min": training.y.min(), "y_max": training.y.max()}

    def predict(model: Any, mean: np.ndarray, sigmas: np.ndarray, coverage: float) -> np.ndarray:
        return model.predict_int(mean, sigmas=sigmas, confidence=coverage, **limits)

    best, least = None, np.inf
    for options in ({"learner": forest}, {"residuals": residuals}):
        difficulty = DifficultyEstimator().fit(training.X, **options, scaler=True, oob=True)
        model = make().fit(residuals, sigmas=difficulty.apply())
        ends = predict(model, forest.oob_prediction_, difficulty.apply(), _TUNED_FOR)
        width = float((ends[:, 1] - ends[:, 0]).mean())
        if width < least:
            best, least = (model, difficulty), width
    model, difficulty = best

    def intervals(X: np.ndarray) -> np.ndarray:
        X = impute(X)
        mean, sigmas = forest.predict(X), difficulty.apply(X)
        return stacked([predict(model, mean, sigmas, c) for c in training.coverages])

    return intervals


def normalised(training: Training) -> Intervals:
    return _fit(training, ConformalRegressor)


def predictive_system(training: Training) -> Intervals:
    return _fit(training, ConformalPredictiveSystem)


SYSTEMS = (
    System("crepes, normalised", 1, normalised),
    System("crepes CPS", 1, predictive_system),
)
