"""Calibration: what makes prediction intervals cover as much as is asked of them."""

from hdiforest._model.bases import Base
from hdiforest.calibration._folds import CVPlus, JackknifePlus
from hdiforest.calibration._out_of_bag import OutOfBag
from hdiforest.calibration._result import (
    Calibration,
    CrossCalibration,
    CrossCheck,
    FixedLevel,
    JointCalibration,
    Level,
)
from hdiforest.calibration._split import Split

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
