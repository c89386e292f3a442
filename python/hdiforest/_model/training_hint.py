"""The warning that X holds the rows of the fit, known by a digest of their features."""

from __future__ import annotations

import hashlib
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdiforest._model.fitted import FittedForest
from hdiforest._model.predict import why_not_out_of_bag
from hdiforest._utils.warnings import HINTS_LEFT, Instead, callers_level

_CELLS_AT_ONCE = 1 << 18  # so that the copy stays in the cache


class RowsDigest:
    """BLAKE2b of features as the engine reads them: float32, row after row, NaN of one pattern."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)

    def update(self, rows: NDArray[np.floating[Any]]) -> None:
        """Add rows, (n, n_features). O(n * n_features)."""
        step = max(1, _CELLS_AT_ONCE // max(1, rows.shape[1]))
        for begin in range(0, len(rows), step):
            with np.errstate(over="ignore"):  # the engine refuses such rows
                part = np.array(rows[begin : begin + step], dtype="<f4", order="C")
            part[np.isnan(part)] = np.nan
            self._hash.update(part.reshape(-1).data)

    def text(self) -> str:
        """Return 32 hexadecimal digits."""
        return self._hash.hexdigest()


def digest_of(rows: NDArray[np.floating[Any]]) -> str:
    """Return the digest of all rows."""
    digest = RowsDigest()
    digest.update(rows)
    return digest.text()


class TrainingRowsHint:
    """Warns if the rows of a call, seen block after block, are those of the fit in their order.

    Nothing is hashed unless they are as many.
    """

    def __init__(self, fitted: FittedForest, n_rows: int | None) -> None:
        self._fitted = fitted
        self._expected = fitted.training_digest if n_rows == fitted.n_training_rows else None
        self._digest = RowsDigest()

    def see(self, rows: NDArray[np.floating[Any]]) -> None:
        """Take the next rows, as the engine gets them."""
        if self._expected is not None:
            self._digest.update(rows)

    def give(self) -> None:
        """Warn, if so, after the last rows."""
        if self._expected is None or self._digest.text() != self._expected:
            return
        left = HINTS_LEFT.get()
        if left is None or left:
            instead = Instead() if left is None else left.pop()
            warnings.warn(
                "X holds the rows of the fit: intervals cover more of their targets than of those "
                f"of new rows; use {self._out_of_bag(instead)}rows that took no part in the fit",
                UserWarning,
                stacklevel=callers_level(),
            )

    def _out_of_bag(self, instead: Instead) -> str:
        """Return what gives intervals of the rows out of bag; empty if nothing does."""
        rows = self._fitted.training_rows
        if rows is None or rows.bags is None:
            name = instead.without
        else:
            name = instead.usual if why_not_out_of_bag(self._fitted) is None else instead.hdi
        return name and f"{name}, which asks for each row the trees that did not draw it, or "
