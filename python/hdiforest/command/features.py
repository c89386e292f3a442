"""Reads the columns that a model takes, and codes them as it does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdiforest._model.fitted import FittedForest
from hdiforest._tables.columns import CodingError, NumberColumn
from hdiforest._tables.encoder import TableCoding
from hdiforest._tables.formats import checked_features, numbers
from hdiforest._tables.read import TableError, TableReader
from hdiforest._tables.row_counts import RowCounts, count_rows
from hdiforest._utils.optional import need
from hdiforest.command.prediction import Rows, feature_columns


class Features:
    """The columns of a table that a model takes, and others to read with them.

    Parameters
    ----------
    fitted : FittedForest
    table : TableReader
    more : sequence of str, default=()
        Further columns of numbers.
    kept : sequence of str, default=()
        Columns to pass on as they are.
    not_features : sequence of str, optional
        Columns that a model without names does not take: by default those above.

    Attributes
    ----------
    names : list of str
        Columns that the model takes, in its order.
    coding : TableCoding or None
    counts : RowCounts
        Of the rows that `matrix` returned so far.
    """

    def __init__(
        self,
        fitted: FittedForest,
        table: TableReader,
        *,
        more: Sequence[str] = (),
        kept: Sequence[str] = (),
        not_features: Sequence[str] | None = None,
    ) -> None:
        self.coding, self._fitted = fitted.coding, fitted
        others = kept if not_features is None else not_features
        self.names = feature_columns(fitted, table, [*more, *others])
        self._own = fitted.coding or TableCoding(tuple(map(NumberColumn, self.names)))
        self.counts = RowCounts()
        self._table = table
        self._more, self._kept = list(more), list(kept)
        self._numbers = self.names
        if self.coding is not None:
            # The columns of a file with types are as they are, and the coding checks them.
            entries = self.coding.entries if table.is_text else ()
            numeric_sources = {e.source for e in entries if e.holds_numbers}
            self._numbers = [name for name in self.names if name in numeric_sources]
        numeric = set(self._numbers)
        self._coded = [name for name in self.names if name not in numeric]

    def batches(self, batch_rows: int | None = None) -> Iterator[Any]:
        """Yield Tables as `TableReader.batches`, for the methods below."""
        wanted = [*self._more, *self._numbers]
        return self._table.batches(wanted, [*self._coded, *self._kept], batch_rows)

    @property
    def kept_names(self) -> list[str]:
        """Names of the columns to pass on."""
        return list(self._kept)

    def require(self) -> None:
        """Raise TableError if columns are missing, or known to be of other types."""
        self._table.require([*self._more, *self._numbers], [*self._coded, *self._kept])
        if self.coding is not None and not self._table.is_text:
            self._code(need("pyarrow").schema(self._table.fields(self._coded)).empty_table(), 0)

    def more(self, batch: Any) -> NDArray[np.float64]:
        """Return the further numbers of a batch, (n, n_more)."""
        return numbers(batch, len(self._more))

    def kept(self, batch: Any) -> list[Any]:
        """Return the columns of a batch to pass on."""
        columns: list[Any] = batch.columns
        return columns[len(columns) - len(self._kept) :]

    def raw(self, batch: Any) -> Any:
        """Return the columns of the features as a pyarrow Table that `coding` takes."""
        begin = len(self._more)
        end = begin + len(self.names)
        table = batch.select(range(begin, end))
        for j, name in enumerate(self._coded, len(self._numbers)):
            table = table.set_column(j, name, self._table.without_missing(table.column(j)))
        return table

    def matrix(self, batch: Any, first_row: int = 0) -> Rows:
        """Return the features of a batch, (n, n_features).

        Parameters
        ----------
        batch : pyarrow.Table
        first_row : int, default=0
            Number of rows before it, for messages.

        Raises
        ------
        TableError
            If a cell is none that its column may hold.
        """
        if self.coding is None:
            columns = batch.select(range(len(self._more), batch.num_columns))
            given = numbers(columns, len(self.names))
            X: Rows = checked_features(given, self.names, self._table.path, first_row)
            counts = count_rows(X, self._own.ordered, self._fitted.feature_range)
        else:
            X, counts = self._code(self.raw(batch), first_row)
        if not self._fitted.allow_nan:
            with self._naming_the_file():
                self._own.require_present(X, first_row=first_row)
        self.counts.add(counts)
        return X

    def _code(self, table: Any, first_row: int) -> tuple[Rows, RowCounts]:
        feature_range = self._fitted.feature_range
        with self._naming_the_file():
            return self._own.encode(table, first_row=first_row, feature_range=feature_range)

    @contextmanager
    def _naming_the_file(self) -> Iterator[None]:
        try:
            yield
        except CodingError as error:
            raise TableError(f"{self._table.path}: {error}", error.columns) from None
