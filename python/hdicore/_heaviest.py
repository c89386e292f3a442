"""The atoms that weigh most in the distributions of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdicore._core import Scorer

_TIED = 2.0**-29  # weights that differ by rounding alone differ by less
_ROWS_AT_ONCE = 1000


def heaviest_atoms(
    scorer: Scorer, X: NDArray[Any], k: int, n_threads: int
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return positions and weights of the k heaviest atoms of each row, (n, k) each.

    The heaviest come first, and of equal ones the lower position; -1 and 0 if there are fewer.
    """
    atoms, weights = np.full((len(X), k), -1, dtype=np.intp), np.zeros((len(X), k))
    for begin in range(0, len(X), _ROWS_AT_ONCE):
        part = X[begin : begin + _ROWS_AT_ONCE]
        indptr, indices, data = scorer.weights(part, n_threads=n_threads)
        row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        order = np.lexsort((-data, row))
        is_less = np.diff(data[order], prepend=np.inf) < -_TIED
        rank = np.cumsum(is_less | (np.diff(row, prepend=-1) > 0))
        order = order[np.lexsort((indices[order], rank))]
        place = np.arange(len(row)) - indptr[row]  # among the entries of its row
        order, row, place = order[place < k], begin + row[place < k], place[place < k]
        atoms[row, place], weights[row, place] = indices[order], data[order]
    return atoms, weights
