"""Another regressor's mean, weighted against the forest's own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdiforest.centred import Mean


@dataclass(frozen=True, eq=False)
class Stacking:
    """A mean g of new rows, and for the training rows g from fits without them."""

    mean: Mean
    share: float  # in [0, 1], of g in the centres c + share (g - c)
    out_of_fold: NDArray[np.float64]  # (n,)
