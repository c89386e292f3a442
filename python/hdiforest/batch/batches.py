"""Batches of rows of any library: names of columns, Arrow data, and results of the same kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdiforest.coding.raw_table import why_unreadable

Results = dict[str, NDArray[np.float64]]


class Batch(ABC):
    """Rows of one library.

    Attributes
    ----------
    names : list of str
        All columns, in order.
    """

    names: list[str]

    @abstractmethod
    def arrow(self, names: Sequence[str]) -> Any:
        """Return some columns as a pyarrow Table or RecordBatch.

        Raises
        ------
        ValueError
            If Arrow has no type for one of them, or they differ in length.
        """

    @abstractmethod
    def with_results(self, kept: Sequence[str], types: Mapping[str, Any], results: Results) -> Any:
        """Return kept columns, of Arrow types if they are given, and behind them the results."""


def batch_of(rows: Any) -> Batch:
    """Return rows of a library that is known, or raise ValueError."""
    library = type(rows).__module__.partition(".")[0]
    if library == "pyarrow" and hasattr(rows, "schema") and hasattr(rows, "num_rows"):
        return _Arrow(rows)
    if hasattr(rows, "iloc") and hasattr(rows, "columns"):
        return _Pandas(rows)
    if library == "polars" and hasattr(rows, "get_column"):
        return _Polars(rows)
    if isinstance(rows, Mapping) and not hasattr(rows, "shape"):
        return _Record(rows) if any(map(_is_cell, rows.values())) else _Dict(rows)
    if isinstance(rows, list) and all(isinstance(row, Mapping) for row in rows):
        return _Records(rows)
    raise ValueError(
        "a batch must be a pyarrow RecordBatch or Table, a DataFrame of pandas or polars, a dict "
        f"of columns, a record (a dict of cells) or a list of records, got {type(rows).__name__}"
    )


def _is_cell(value: Any) -> bool:
    """Whether a value is no column: text, or without a length, as arrays of no dimension are."""
    is_text = isinstance(value, str | bytes)
    return is_text or getattr(value, "shape", None) == () or not hasattr(value, "__len__")


class _Arrow(Batch):
    def __init__(self, rows: Any) -> None:
        self._rows = rows
        self.names = rows.schema.names

    def arrow(self, names: Sequence[str]) -> Any:
        return self._rows.select(list(names))

    def with_results(self, kept: Sequence[str], types: Mapping[str, Any], results: Results) -> Any:
        import pyarrow as pa

        columns = {name: _of_type(name, self._rows.column(name), types) for name in kept}
        fields = [
            self._rows.schema.field(name) if name not in types else pa.field(name, types[name])
            for name in kept
        ]
        schema = pa.schema([*fields, *(pa.field(name, pa.float64()) for name in results)])
        arrays = [*columns.values(), *map(arrow_array, results.values())]
        return type(self._rows).from_arrays(arrays, schema=schema)


class _Pandas(Batch):
    def __init__(self, rows: Any) -> None:
        self._rows = rows
        self.names = [str(name) for name in rows.columns]

    def arrow(self, names: Sequence[str]) -> Any:
        import pyarrow as pa

        chosen = self._chosen(names).set_axis(list(names), axis="columns")
        try:
            return pa.Table.from_pandas(chosen, preserve_index=False)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise _unreadable(chosen, error) from None

    def with_results(self, kept: Sequence[str], types: Mapping[str, Any], results: Results) -> Any:
        import pyarrow as pa

        typed = {}
        for name in types:
            column = pa.array(self._chosen([name]).iloc[:, 0], from_pandas=True)
            typed[name] = _of_type(name, column, types).to_pandas().set_axis(self._rows.index)
        return self._chosen(kept).assign(**typed, **results)

    def _chosen(self, names: Sequence[str]) -> Any:
        return self._rows.iloc[:, [self.names.index(name) for name in names]]


class _Polars(Batch):
    def __init__(self, rows: Any) -> None:
        self._rows = rows
        self.names = list(rows.columns)

    def arrow(self, names: Sequence[str]) -> Any:
        import pyarrow as pa

        return pa.table(self._rows.select(list(names)))

    def with_results(self, kept: Sequence[str], types: Mapping[str, Any], results: Results) -> Any:
        polars = import_module("polars")
        columns = {name: self._rows.get_column(name) for name in kept}
        for name in types:
            column = self.arrow([name]).column(0)
            columns[name] = polars.from_arrow(_of_type(name, column, types))
        return polars.DataFrame(columns | results)


class _Dict(Batch):
    def __init__(self, rows: Mapping[str, Any]) -> None:
        self._rows = rows
        self.names = list(rows)
        lengths = {name: len(column) for name, column in rows.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"the columns of a batch must be equally long, got {lengths}")

    def arrow(self, names: Sequence[str]) -> Any:
        import pyarrow as pa

        chosen = {name: self._rows[name] for name in names}
        try:
            return pa.table({name: _column(cells) for name, cells in chosen.items()})
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise _unreadable(chosen, error) from None

    def with_results(self, kept: Sequence[str], types: Mapping[str, Any], results: Results) -> Any:
        typed = self._typed(types)
        columns = {name: self._rows[name] for name in kept}
        return columns | {name: array.to_numpy() for name, array in typed.items()} | results

    def _typed(self, types: Mapping[str, Any]) -> dict[str, Any]:
        return {name: _of_type(name, self.arrow([name]).column(0), types) for name in types}


class _Records(_Dict):
    """Rows as mappings; a cell that one of them lacks is missing."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        names = dict.fromkeys(name for row in rows for name in row)
        super().__init__({name: [row.get(name) for row in rows] for name in names})

    def with_results(self, kept: Sequence[str], types: Mapping[str, Any], results: Results) -> Any:
        columns: dict[str, Any] = {name: self._rows[name] for name in kept}
        columns |= {name: array.to_pylist() for name, array in self._typed(types).items()}
        columns |= {name: array.tolist() for name, array in results.items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


class _Record(_Records):
    def __init__(self, row: Mapping[str, Any]) -> None:
        super().__init__([row])

    def with_results(self, kept: Sequence[str], types: Mapping[str, Any], results: Results) -> Any:
        (record,) = super().with_results(kept, types, results)
        return record


def arrow_array(values: NDArray[np.float64]) -> Any:
    """Return numbers as a pyarrow Array without a copy. `pyarrow.array` would import pandas."""
    import pyarrow as pa

    return pa.Array.from_buffers(pa.float64(), len(values), [None, pa.py_buffer(values)])


def _column(cells: Any) -> Any:
    """Return a column that pyarrow reads; NaN in a list of texts is a missing cell."""
    import pyarrow as pa

    return pa.array(cells, from_pandas=True) if isinstance(cells, list) else cells


def _unreadable(rows: Any, error: Exception) -> ValueError:
    return ValueError(f"the batch is a {type(rows).__name__} that {why_unreadable(rows, error)}")


def _of_type(name: str, column: Any, types: Mapping[str, Any]) -> Any:
    """Return a pyarrow column cast to its type of `types`, if it has one."""
    import pyarrow as pa

    if name not in types or column.type == types[name]:
        return column
    try:
        return column.cast(types[name])
    except pa.ArrowException as error:
        raise ValueError(
            f"column '{name}' must be kept as {types[name]}, but is {column.type}: {error}"
        ) from None
