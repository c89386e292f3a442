"""Makes tables of one length from tables of any length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hdiforest._utils.optional import need


class Regroup:
    """Holds rows until there are enough.

    Parameters
    ----------
    n_rows : int
        Length of the tables to make.
    """

    def __init__(self, n_rows: int) -> None:
        self._n_rows = n_rows
        self._held: list[Any] = []
        self._n_held = 0

    def add(self, table: Any) -> Iterator[Any]:
        """Take a pyarrow Table; yield those that are full."""
        self._held.append(table)
        self._n_held += table.num_rows
        while self._n_held >= self._n_rows:
            joined = need("pyarrow").concat_tables(self._held)
            self._held = [joined.slice(self._n_rows)]
            self._n_held -= self._n_rows
            yield joined.slice(0, self._n_rows)

    def rest(self) -> Iterator[Any]:
        """Yield the rows that are left, if there are any."""
        if self._n_held > 0:
            yield need("pyarrow").concat_tables(self._held)
