"""Calibration: what makes prediction intervals cover as much as is asked of them."""

from hdiforest.calibration._bases import Base
from hdiforest.calibration._methods import CVPlus, JackknifePlus, OutOfBag, Split
from hdiforest.calibration._result import (
    Calibration,
    CrossCalibration,
    CrossCheck,
    FixedLevel,
    JointCalibration,
    Level,
)

__all__ = [
    "Base",
    "CVPlus",
    "Calibration",
    "CrossCalibration",
    "CrossCheck",
    "FixedLevel",
    "JackknifePlus",
    "JointCalibration",
    "Level",
    "OutOfBag",
    "Split",
]
