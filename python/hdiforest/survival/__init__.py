"""Shortest intervals for times to an event, from forests of censored targets."""

from hdiforest.calibration._tails import TailCalibration, TailLevel
from hdiforest.survival._forest import HDISurvivalForest

__all__ = ["HDISurvivalForest", "TailCalibration", "TailLevel"]
