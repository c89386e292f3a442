"""Shortest intervals for times to an event: the class, and what its calibration gives."""

from hdiforest.calibration._tails import TailCalibration, TailLevel

__all__ = ["TailCalibration", "TailLevel"]
