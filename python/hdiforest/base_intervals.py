"""Base intervals of rows: raw and centred ones of a fitted forest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from hdiforest._utils.typing import Array, Kind
from hdiforest.calibration import Base
from hdiforest.centred import CentredForest
from hdiforest.fitted import FittedForest


def base_intervals(
    fitted: FittedForest,
    X: NDArray[np.float32] | NDArray[np.float64],
    bases: Sequence[Base],
    n_threads: int,
    mean: Array | None = None,
) -> Array:
    """Return the intervals of rows by each of k bases, (n, 2, k).

    Those of one family are read at once. All but raw ones need `fitted.centred`. `mean`, an array
    (n,), is filled with the means of the rows, in the same pass as raw intervals.
    """
    ends = np.empty((len(X), 2, len(bases)))
    if mean is not None and all(base.family != "raw" for base in bases):
        fitted.scorer.mean(X, out=mean, n_threads=n_threads)
    for family in dict.fromkeys(base.family for base in bases):
        at = [j for j, base in enumerate(bases) if base.family == family]
        levels = [bases[j].level for j in at]
        kinds = [cast("Kind", bases[j].kind) for j in at]
        if family == "raw":
            scorer = fitted.scorer
            ends[..., at] = scorer.intervals(X, levels, kinds, mean=mean, n_threads=n_threads)
        else:
            centred = cast("CentredForest", fitted.centred)
            ends[..., at] = centred.intervals(X, levels, kinds, n_threads)
    return ends
