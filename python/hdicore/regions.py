"""Regions: unions of intervals, one for each row, as the offsets and ends of their pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Regions"]

Array = NDArray[np.float64]


class Regions:
    """Unions of intervals, one for each of n rows, in the form of `Scorer.regions`.

    Parameters
    ----------
    offsets : (n + 1,) int64
        Positions of the pieces: row i has the pieces from ``offsets[i]`` to ``offsets[i + 1]``.
    lower : (m,) float64
        Lower ends of all pieces, in the unit of y. In each row they ascend.
    upper : (m,) float64
        Upper ends of all pieces, in the unit of y. The pieces of a row are apart.
    bound : (n,) float64, optional
        Lower bounds of the cost of any region of the same mass, if they are known. The cost is the
        length, and a gap for each piece after the first.

    Raises
    ------
    ValueError
        If shapes or offsets do not fit.

    Notes
    -----
    ``len(regions)`` is n. ``regions[i]`` is an array (pieces, 2) of the ends of row i.

    Examples
    --------
    >>> from hdicore.regions import Regions
    >>> regions = Regions([0, 2, 3], [1.0, 4.0, 2.0], [2.0, 5.0, 6.0])
    >>> regions.n_pieces.tolist(), regions.length.tolist()
    ([2, 1], [2.0, 4.0])
    >>> regions.contains([3.0, 3.0]).tolist()
    [False, True]
    """

    def __init__(
        self,
        offsets: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike,
        bound: NDArray[np.float64] | None = None,
    ) -> None:
        self.offsets = np.asarray(offsets, dtype=np.int64)
        self.lower, self.upper = (np.asarray(ends, dtype=np.float64) for ends in (lower, upper))
        self.bound = bound
        n_pieces = len(self.lower)
        if self.lower.shape != (n_pieces,) or self.upper.shape != (n_pieces,):
            raise ValueError(
                f"lower and upper must have shape (m,), got {self.lower.shape} and "
                f"{self.upper.shape}"
            )
        is_known = self.offsets.ndim == 1 and len(self.offsets) > 0
        if not is_known or (self.offsets[0], self.offsets[-1]) != (0, n_pieces):
            raise ValueError(f"offsets must be from 0 to {n_pieces}, the number of pieces")
        if (np.diff(self.offsets) < 0).any():
            raise ValueError("offsets must not descend")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> Array:
        i = range(len(self))[row]
        part = slice(self.offsets[i], self.offsets[i + 1])
        return np.stack([self.lower[part], self.upper[part]], axis=1)

    def __iter__(self) -> Iterator[Array]:
        return map(self.__getitem__, range(len(self)))

    def __repr__(self) -> str:
        return f"Regions({len(self)} rows, {len(self.lower)} pieces)"

    @property
    def n_pieces(self) -> NDArray[np.int64]:
        """Number of pieces of each row, (n,). 0 if a row has no distribution."""
        return np.diff(self.offsets)

    @property
    def length(self) -> Array:
        """Sum of the lengths of the pieces of each row, (n,). NaN without a piece."""
        return self._of_rows(np.add, self.upper - self.lower)

    @property
    def hull(self) -> Array:
        """Lower end of the first piece and upper end of the last, (n, 2). NaN without a piece."""
        ends = np.full((len(self), 2), np.nan)
        known = self.n_pieces > 0
        ends[known, 0] = self.lower[self.offsets[:-1][known]]
        ends[known, 1] = self.upper[self.offsets[1:][known] - 1]
        return ends

    def take(self, rows: ArrayLike) -> Regions:
        """Return the regions of some rows.

        Parameters
        ----------
        rows : (k,) int array
            Numbers of the rows, in any order.

        Returns
        -------
        Regions
            The regions of the k rows.
        """
        at = np.asarray(rows, dtype=np.intp)
        pieces = [np.arange(*self.offsets[i : i + 2]) for i in np.arange(len(self))[at]]
        which = np.concatenate([np.empty(0, dtype=np.intp), *pieces])
        return Regions(offsets_of(self.n_pieces[at]), self.lower[which], self.upper[which])

    def contains(self, y: ArrayLike) -> NDArray[np.bool_]:
        """Tell whether the region of each row holds its target.

        Parameters
        ----------
        y : (n,) array
            Targets.

        Returns
        -------
        (n,) bool
            True if the region holds the target. False if a row has no region.
        """
        held: NDArray[np.bool_] = self.distance(y) <= 0
        return held

    def distance(self, y: ArrayLike) -> Array:
        """Return the signed distance of the target of each row to its region.

        Parameters
        ----------
        y : (n,) array
            Targets.

        Returns
        -------
        (n,) float64
            Distances, in the unit of y. Inside the region the distance to the nearest end is
            negative. NaN without a piece.
        """
        targets = np.asarray(y, dtype=np.float64)
        if targets.shape != (len(self),):
            raise ValueError(f"y must have shape ({len(self)},), got {targets.shape}")
        of_pieces = np.repeat(targets, self.n_pieces)
        return self._of_rows(np.minimum, np.maximum(self.lower - of_pieces, of_pieces - self.upper))

    def padded(self, by: float) -> Regions:
        """Return all values within a distance of the regions.

        Parameters
        ----------
        by : float
            The distance, in the unit of y. Pieces that meet are joined. A negative number shrinks
            the pieces. If it leaves no piece, the midpoint of the longest piece stays.

        Returns
        -------
        Regions
            The regions, one for each row.
        """
        row = np.repeat(np.arange(len(self)), self.n_pieces)
        lower, upper = self.lower - by, self.upper + by
        crossed = lower > upper
        if crossed.any():
            lower[crossed] = upper[crossed] = (self.lower + self.upper)[crossed] / 2
            # A midpoint counts only where nothing else is left, that of the longest piece.
            order = np.lexsort((self.lower, self.lower - self.upper, row))
            first = np.zeros(len(row), dtype=bool)
            first[order[self.offsets[:-1][self.n_pieces > 0]]] = True
            vanished = np.bincount(row[~crossed], minlength=len(self)) == 0
            kept = ~crossed | (first & vanished[row])
            row, lower, upper = row[kept], lower[kept], upper[kept]
        begins = np.ones(len(row), dtype=bool)
        begins[1:] = (np.diff(row) > 0) | (lower[1:] > upper[:-1])
        ends = np.append(begins[1:], True)[: len(row)]
        counts = np.bincount(row[begins], minlength=len(self))
        return Regions(offsets_of(counts), lower[begins], upper[ends])

    def _of_rows(self, function: np.ufunc, of_pieces: Array) -> Array:
        """Return a function of what the pieces of each row have; NaN without a piece."""
        values = np.full(len(self), np.nan)
        known = self.n_pieces > 0
        if known.any():
            values[known] = function.reduceat(of_pieces, self.offsets[:-1][known])
        return values


def offsets_of(counts: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Return the first position of the pieces of each row, and the end of the last piece."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
