"""How far the coverage of some rows may be from the nominal one by chance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from hdiforest._utils.typing import Array


def chance_range(coverage: ArrayLike, n_rows: ArrayLike, confidence: float) -> tuple[Array, Array]:
    """Return the shares between which that of `n_rows` covered rows lies.

    Parameters
    ----------
    coverage : array
        Probability with which each row is covered, independently of the others.
    n_rows : array
        Number of rows, above 0.
    confidence : float
        Probability of the range.

    Returns
    -------
    two arrays
        Central range of the binomial distribution, as shares.
    """
    tail = (1 - confidence) / 2
    n: Any = np.asarray(n_rows)
    lower, upper = (binom.ppf(p, n, coverage) / n for p in (tail, 1 - tail))
    return np.asarray(lower), np.asarray(upper)
