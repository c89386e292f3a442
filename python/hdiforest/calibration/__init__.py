"""Calibration: what makes prediction intervals cover as much as is asked of them."""

from hdiforest.calibration._bases import Base
from hdiforest.calibration._result import (
    Calibration,
    CrossCalibration,
    CrossCheck,
    FixedLevel,
    Level,
)

__all__ = ["Base", "Calibration", "CrossCalibration", "CrossCheck", "FixedLevel", "Level"]
