"""How often trees drew the training rows: kept as an array, or drawn again when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.unsignedinteger]  # (n, k) of k trees


class Bags(Protocol):
    """The rows that each tree drew."""

    def of_trees(self, first: int, last: int) -> Counts:
        """How often trees [first, last) drew each row, (n, last - first)."""

    def matrix(self) -> Counts:
        """How often each tree drew each row, (n, n_trees), in the smallest type that fits."""


class KnownBags:
    """Counts of all trees in one array."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    def of_trees(self, first: int, last: int) -> Counts:
        """See `Bags`."""
        return self._counts[:, first:last]

    def matrix(self) -> Counts:
        """See `Bags`."""
        return self._counts


class RedrawnBags:
    """Counts that follow from seeds. Drawing them takes some 20 ns for each row and tree."""

    def __init__(
        self,
        n_rows: int,
        n_trees: int,
        draw: Callable[[int, int], Sequence[NDArray[np.integer]]],
    ) -> None:
        self._n_rows, self._n_trees = n_rows, n_trees
        self._draw = draw  # the rows that trees [first, last) drew

    def of_trees(self, first: int, last: int) -> Counts:
        """See `Bags`. In Fortran order."""
        counts = np.zeros((last - first, self._n_rows), dtype=np.uint8)
        for t, drawn in enumerate(self._each(first, last)):
            needed = np.min_scalar_type(drawn.max())
            if needed.itemsize > counts.itemsize:
                counts = counts.astype(needed)
            counts[t] = drawn
        return counts.T

    def matrix(self) -> Counts:
        """See `Bags`."""
        return self.of_trees(0, self._n_trees)

    @property
    def each_row_once(self) -> bool:
        """Whether every tree drew every row once."""
        trees = range(self._n_trees)
        return all((next(self._each(t, t + 1)) == 1).all() for t in trees)

    def _each(self, first: int, last: int) -> Iterator[NDArray[np.intp]]:
        """How often each of some trees drew each row, (n,)."""
        for t in range(first, last):
            [rows] = self._draw(t, t + 1)
            yield np.bincount(rows, minlength=self._n_rows)
