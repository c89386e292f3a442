"""Calibrations of any method as arrays and facts, for model files and pickles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from hdiforest._utils.typing import Array
from hdiforest.calibration.arrays import from_arrays as fixed_from_arrays
from hdiforest.calibration.arrays import to_arrays as fixed_to_arrays
from hdiforest.calibration.cross import METHODS, CrossCalibration
from hdiforest.calibration.cross_arrays import from_arrays as cross_from_arrays
from hdiforest.calibration.cross_arrays import to_arrays as cross_to_arrays
from hdiforest.calibration.record import Calibration


def to_arrays(
    calibration: Calibration | CrossCalibration,
) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return the arrays and the facts from which `from_arrays` makes an equal calibration."""
    if isinstance(calibration, CrossCalibration):
        return cross_to_arrays(calibration)
    return fixed_to_arrays(calibration)


def from_arrays(
    arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]
) -> Calibration | CrossCalibration:
    """Return the calibration that `to_arrays` took apart; nothing is trusted.

    Raises
    ------
    ValueError
        If an entry is missing, not known, of another type or shape, or out of range.
    """
    if facts.get("method") in METHODS:
        return cross_from_arrays(arrays, facts)
    return fixed_from_arrays(arrays, facts)
