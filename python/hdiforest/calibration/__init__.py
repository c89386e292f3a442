"""Calibration: pads that make prediction intervals cover what is asked of them."""

from hdiforest.calibration._arrays import from_arrays, to_arrays
from hdiforest.calibration._bases import DEFAULT_KINDS, FAMILIES, FIXED_RAW, KINDS, LEVELS, Base
from hdiforest.calibration._calibrate import calibrate_oob, calibrate_split
from hdiforest.calibration._cross import CrossCalibration, cross_calibration
from hdiforest.calibration._postprocess import Finish, Lattice, lattice
from hdiforest.calibration._result import Audit, Calibration, Level
from hdiforest.calibration._selection import Choice

__all__ = [
    "DEFAULT_KINDS",
    "FAMILIES",
    "FIXED_RAW",
    "KINDS",
    "LEVELS",
    "Audit",
    "Base",
    "Calibration",
    "Choice",
    "CrossCalibration",
    "Finish",
    "Lattice",
    "Level",
    "calibrate_oob",
    "calibrate_split",
    "cross_calibration",
    "from_arrays",
    "lattice",
    "to_arrays",
]
