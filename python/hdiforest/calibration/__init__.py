"""Calibration: pads that make prediction intervals cover what is asked of them."""

from hdiforest.calibration.audit import Audit
from hdiforest.calibration.calibrate import calibrate_oob, calibrate_split
from hdiforest.calibration.candidates import DEFAULT_KINDS, FAMILIES, FIXED_RAW, KINDS, LEVELS, Base
from hdiforest.calibration.choice import Choice
from hdiforest.calibration.cross import CrossCalibration, cross_calibration
from hdiforest.calibration.finish import Finish, Lattice, lattice
from hdiforest.calibration.record import Calibration, Level
from hdiforest.calibration.storage import from_arrays, to_arrays

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
