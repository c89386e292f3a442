"""Types and helpers that several rooms use."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdicore import BaseKind as BaseKind
from hdicore import Kind as Kind

Array = NDArray[np.float64]
Events = NDArray[np.bool_]  # whether the event came, of censored targets
Weights = ArrayLike | None  # of rows
# The discontinuous and the continuous ones of Hyndman and Fan (1996), and numpy's others.
_Discontinuous = Literal["inverted_cdf", "averaged_inverted_cdf", "closest_observation"]
_Continuous = Literal[
    "interpolated_inverted_cdf", "hazen", "weibull", "linear", "median_unbiased", "normal_unbiased"
]
Interpolation = Literal[_Discontinuous, _Continuous, "lower", "higher", "midpoint", "nearest"]
