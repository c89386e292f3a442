"""Tables of any library: which it is, its columns as Arrow, and results in the same library."""

from __future__ import annotations

import reprlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib import import_module
from numbers import Number
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hdiforest._tables.columns import CodingError, is_number
from hdiforest._utils.checks import alternatives
from hdiforest._utils.typing import Array

Output = Literal["numpy", "pandas", "polars", "pyarrow"]


OUTPUTS: tuple[Output, ...] = ("numpy", "pandas", "polars", "pyarrow")


State = dict[str, Any]


def _require_library(output: str) -> None:
    if output not in OUTPUTS:
        raise ValueError(f"output must be {alternatives(map(repr, OUTPUTS))}, got {output!r}")
    try:
        import_module(output)
    except ModuleNotFoundError as error:
        if error.name != output:
            raise
        raise ImportError(f"output={output!r} needs {output}: pip install {output}") from None


def _pandas(columns: list[str], values: Array, index: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(values, columns=columns, index=index)


def _polars(columns: list[str], values: Array, _: Any) -> Any:
    import polars as pl

    return pl.DataFrame(_by_name(columns, values))


def _pyarrow(columns: list[str], values: Array, _: Any) -> Any:
    import pyarrow as pa

    return pa.table(_by_name(columns, values))


_MAKERS: dict[str, Callable[[list[str], Array, Any], Any]] = {
    "pandas": _pandas,
    "polars": _polars,
    "pyarrow": _pyarrow,
}


def _by_name(columns: list[str], values: Array) -> dict[str, Array]:
    return {name: np.ascontiguousarray(values[:, j]) for j, name in enumerate(columns)}


def _stored_labels(index: Any) -> State | None:
    """Return a pandas index as plain arrays and lists; None if it only numbers the rows."""
    import pandas as pd

    if index.equals(pd.RangeIndex(len(index))) and index.names == [None]:
        return None
    return {"values": index.to_numpy(), "names": list(index.names)}


def _labels(stored: State) -> Any:
    import pandas as pd

    values, names = stored["values"], stored["names"]
    if len(names) > 1:
        return pd.MultiIndex.from_tuples(values, names=names)
    return pd.Index(values, name=names[0])


def raw_table(X: Any, columns: Collection[str] | None = None) -> Any:
    """Return a table as a pyarrow Table.

    Parameters
    ----------
    X : table
        pandas, polars, Arrow data (whatever has ``__arrow_c_stream__`` or ``__arrow_c_array__``),
        or a mapping from names to columns.
    columns : collection of str, optional
        Columns that are needed: Arrow need not know the types of the others.

    Raises
    ------
    ImportError
        If pyarrow is not installed.
    ValueError
        If X is something else, has two columns of one name, or one that Arrow has no type for.
    """
    kind = type(X).__name__
    try:
        import pyarrow as pa
    except ImportError:
        raise ImportError(
            f"X is a {kind}, whose columns are read with pyarrow: pip install pyarrow"
        ) from None
    if isinstance(X, pa.RecordBatch):
        return pa.Table.from_batches([X])
    if isinstance(X, pa.Table):
        return X
    is_frame = hasattr(X, "iloc") and hasattr(X, "columns")
    is_arrow = hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__")
    is_mapping = isinstance(X, Mapping) and not hasattr(X, "shape")
    if not (is_frame or is_arrow or is_mapping):
        raise ValueError(
            "X must be a table with names of columns (pandas, polars, pyarrow, or a dict of "
            f"columns), got {kind}"
        )
    try:
        if is_frame and columns is not None:
            X = X.loc[:, [name in columns for name in X.columns]]
        if is_frame:
            require_distinct(map(str, X.columns))
            return pa.Table.from_pandas(X, preserve_index=False)
        return pa.table(X)
    except CodingError:
        raise
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"X is a {kind} that {why_unreadable(X, error)}") from None


def require_distinct(names: Iterable[Any]) -> None:
    """Raise CodingError if columns of a table have one name."""
    counts = Counter(names)
    repeated = [name for name, n in counts.items() if n > 1]
    if repeated:
        listed = ", ".join(f"{counts[name]} columns {name!r}" for name in repeated)
        raise CodingError(f"the table has {listed}", repeated)


def why_unreadable(X: Any, error: Exception) -> str:
    """Say why Arrow cannot read a DataFrame of pandas, or a mapping: for mixed columns the row.

    Parameters
    ----------
    X : DataFrame or mapping
    error : Exception
        What Arrow said.
    """
    import pyarrow as pa

    is_frame, is_mapping = hasattr(X, "iloc"), isinstance(X, Mapping)
    for j, name in enumerate(X.columns if is_frame else X if is_mapping else ()):
        cells = X.iloc[:, j] if is_frame else X[name]
        try:
            pa.array(cells, from_pandas=True)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            if isinstance(cells, Iterable) and (mixed := two_kinds(cells)):
                return f"cannot be read as a table: column {str(name)!r} {mixed}"
    return f"cannot be read as a table: {error}"


def two_kinds(cells: Iterable[Any]) -> str:
    """Say in which rows cells of two kinds are; empty if all are of one kind."""
    first = None
    for row, cell in enumerate(cells, 1):
        if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
            continue
        if isinstance(cell, Number) and cell != cell:
            continue
        found = f"{_kind_of(cell)} ({reprlib.repr(cell)} in row {row})"
        if first is None:
            first, kind = found, _kind_of(cell)
        elif _kind_of(cell) != kind:
            return f"holds {first} and {found}"
    return ""


def _kind_of(cell: Any) -> str:
    if isinstance(cell, str):
        return "text"
    if isinstance(cell, bool | np.bool_):
        return "booleans"
    return "numbers" if isinstance(cell, Number) else f"objects of type {type(cell).__name__}"


def as_table(X: Any) -> Any:
    """Convert tables so that scikit-learn reads their columns by name, never by position.

    Parameters
    ----------
    X : array, table or any other object

    Returns
    -------
    pyarrow.Table or X
        A table of float columns if X is Arrow data (it has ``__arrow_c_stream__`` or
        ``__arrow_c_array__``) or a mapping from names to columns: a reader is read to its end.
        pandas objects, arrays and everything else are returned as they are.

    Raises
    ------
    ImportError
        If pyarrow is needed and not installed.
    ValueError
        If X has no columns of equal length, or some that do not hold numbers.
    """
    if hasattr(X, "iloc") or not is_table(X):
        return X
    try:
        table = arrow_table(X, floats=True)
    except ImportError:
        if _has_names(X):
            return X
        raise
    if table.num_columns > 0 and not _has_names(table):
        raise ImportError(
            "this scikit-learn does not read the column names of this pyarrow; upgrade "
            "scikit-learn, or pass a pandas DataFrame"
        )
    return table


def is_table(X: Any) -> bool:
    """Whether X is Arrow data or a mapping from names to columns."""
    is_arrow = hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__")
    # Some sparse matrices are mappings, too.
    return is_arrow or (isinstance(X, Mapping) and not hasattr(X, "shape"))


def arrow_table(X: Any, *, floats: bool = False) -> Any:
    """Return what `is_table` as a pyarrow.Table; a reader is read to its end.

    Raises
    ------
    ImportError
        If pyarrow is not installed.
    ValueError
        If X has no columns of equal length, or they shall be of floats and do not hold numbers.
    """
    kind = type(X).__name__
    try:
        import pyarrow as pa
    except ImportError:
        raise ImportError(
            f"X is a {kind}, whose columns are read with pyarrow: pip install pyarrow, or pass an "
            "array or a pandas DataFrame"
        ) from None
    try:
        table = pa.table(X)
        return _of_floats(table) if floats else table
    except (pa.ArrowException, TypeError) as error:
        raise ValueError(f"X is a {kind} that {why_unreadable(X, error)}") from None


def _of_floats(table: Any) -> Any:
    """Cast the columns of a pyarrow Table that are not of a floating type to float64."""
    import pyarrow as pa

    bad = [f"{field.name!r} ({field.type})" for field in table.schema if not is_number(field.type)]
    if bad:
        raise ValueError(f"X must hold numbers, but does not in the columns {', '.join(bad)}")
    fields = [
        field if pa.types.is_floating(field.type) else pa.field(field.name, pa.float64())
        for field in table.schema
    ]
    return table.cast(pa.schema(fields), safe=False)


def _has_names(X: Any) -> bool:
    """Whether scikit-learn reads names of columns from X."""
    # Imported here, because `hdiforest.serving` does without scikit-learn.
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import validate_data

    reader = BaseEstimator()
    validate_data(reader, X, skip_check_array=True, ensure_2d=False)
    return hasattr(reader, "feature_names_in_")


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
