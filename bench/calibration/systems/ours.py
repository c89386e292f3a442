"""hdiforest with scikit-learn's default forest: its HDIs as they are, and calibrated out of bag."""

from __future__ import annotations

from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor

from .interface import Intervals, System, Training

# More than are compared, to draw coverage over the nominal level.
COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)
UNCALIBRATED, CALIBRATED = "HDI, raw", "HDI, calibrated"


def fitted(training: Training) -> HDIForestRegressor:
    """Fit scikit-learn's default forest with the index of its training rows."""
    forest = RandomForestRegressor(**training.forest_options())
    return HDIForestRegressor(forest, n_jobs=1).fit(training.X, training.y)


def raw(training: Training) -> Intervals:
    model = fitted(training)
    return lambda X: model.predict_interval(X, training.coverages, kind="hdi")


def calibrated(training: Training) -> Intervals:
    model = fitted(training).calibrate(training.coverages)
    return lambda X: model.predict_interval(X, training.coverages)


SYSTEMS = (
    System(UNCALIBRATED, 1, raw, COVERAGES, is_ours=True),
    System(CALIBRATED, 1, calibrated, COVERAGES, is_ours=True),
)
