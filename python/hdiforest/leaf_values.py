"""Numbers that are kept for each leaf, looked up for the leaves of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def values_at(
    values: NDArray[np.float64], n_leaves: NDArray[np.int64], leaves: NDArray[np.int32]
) -> NDArray[np.float64]:
    """Return the values of leaves.

    Parameters
    ----------
    values : (n_leaves.sum(),) array
        Of all leaves, tree after tree.
    n_leaves : (n_trees,) array
    leaves : (n, n_trees) array
        Leaf of each row in each tree.

    Returns
    -------
    (n, n_trees) float64
    """
    first = np.cumsum(n_leaves) - n_leaves
    found: NDArray[np.float64] = values[leaves + first]
    return found
