"""Calibration: pads that make prediction intervals cover what is asked of them."""

from hdiforest.calibration.arrays import from_arrays, to_arrays
from hdiforest.calibration.audit import Audit
from hdiforest.calibration.calibrate import calibrate_oob, calibrate_split
from hdiforest.calibration.candidates import FAMILIES, KINDS, LEVELS, Base
from hdiforest.calibration.choice import Choice
from hdiforest.calibration.finish import Finish, Lattice, lattice
from hdiforest.calibration.record import Calibration, Level

__all__ = [
    "FAMILIES",
    "KINDS",
    "LEVELS",
    "Audit",
    "Base",
    "Calibration",
    "Choice",
    "Finish",
    "Lattice",
    "Level",
    "calibrate_oob",
    "calibrate_split",
    "from_arrays",
    "lattice",
    "to_arrays",
]
