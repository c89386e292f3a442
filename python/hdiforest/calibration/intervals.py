"""Calibrated intervals from base intervals: padded, finished and nested."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hdiforest._utils.typing import Array
from hdiforest.calibration.finish import Finish


def padded(ends: Array, pads: ArrayLike, finish: Finish) -> Array:
    """Move both ends outwards by the pad and finish the intervals.

    Parameters
    ----------
    ends : (n, 2, m) array
        Lower and upper ends of base intervals.
    pads : (m,) array
        Negative ones move ends inwards; infinite ones give infinite intervals.
    finish : Finish

    Returns
    -------
    (n, 2, m) float64

    Notes
    -----
    An interval contains its target whenever the target's conformal score is at most the pad: each
    end has an allowance for the rounding of the two subtractions.
    """
    q = np.asarray(pads, dtype=np.float64)
    # Without a pad comparisons are exact, and intervals of width zero stay so.
    allowance = np.where(q == 0, 0, np.finfo(np.float64).eps)
    lower = ends[:, 0] - q - allowance * (np.abs(ends[:, 0]) + np.abs(q))
    upper = ends[:, 1] + q + allowance * (np.abs(ends[:, 1]) + np.abs(q))
    return np.stack(finish.apply(lower, upper), axis=1)


def hull(one: Array, other: Array) -> Array:
    """Return the least intervals that contain two, along axis 1 of arrays (n, 2, ...)."""
    lower = np.minimum(one[:, 0], other[:, 0])
    upper = np.maximum(one[:, 1], other[:, 1])
    return np.stack([lower, upper], axis=1)


def nested(intervals: Array) -> Array:
    """Return the hull of each interval and those of lower coverage.

    Parameters
    ----------
    intervals : (n, 2, k) array
        Coverage ascends along the last axis.

    Returns
    -------
    (n, 2, k) float64
        Each contains all before it.

    Notes
    -----
    Intervals of one base are nested by their pads. Those of two bases need not be; the hull never
    lowers coverage.
    """
    lower = np.minimum.accumulate(intervals[:, 0], axis=-1)
    upper = np.maximum.accumulate(intervals[:, 1], axis=-1)
    return np.stack([lower, upper], axis=1)
