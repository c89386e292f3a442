"""Frames: tables and arrays of any library, and results in the same library.

Without narwhals: it knows three of the nine kinds of tables here, and refuses columns of one name.
"""

from __future__ import annotations

import copy
import reprlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any, Literal, Self, cast, get_args

import numpy as np
from numpy.typing import NDArray

from hdiforest._tables.columns import EncodingError, fails, is_number, plain, require_columns
from hdiforest._tables.names import listed
from hdiforest._utils.checks import check_choice
from hdiforest._utils.optional import need, pa

Output = Literal["numpy", "pandas", "polars", "pyarrow"]
Library = Literal["pandas", "polars"]
Results = dict[str, NDArray[Any]]

# Numbers in a block of rows that are made of a table: 32 MB as float64.
BLOCK_CELLS = 2**22


class Frame:
    """Rows of any kind: `native`, as the caller has them; messages call them `argument`."""

    # Whose tables steps get that are fitted on such rows; None: these are no table.
    library: Library | None = None

    def __init__(self, rows: Any, argument: str = "X") -> None:
        self.native, self.argument = rows, argument

    @property
    def names(self) -> list[str] | None:
        """Of the columns in their order; None if they have none, [] of a stream."""
        return None

    @property
    def index(self) -> Any:
        """Of pandas; None if the rows are of another library."""
        return None

    @property
    def n_rows(self) -> int | None:
        """Number of rows; None if a slice may be something else than rows, as of a dict."""
        if isinstance(self.native, list):
            return len(self.native)
        shape = getattr(self.native, "shape", None)
        if isinstance(shape, tuple) and shape and isinstance(shape[0], int | np.integer):
            with suppress(NotImplementedError, TypeError):
                self.rows(slice(0, 0))
                return int(shape[0])
        return None

    def rows(self, part: slice | NDArray[np.intp]) -> Any:
        """Return some of the rows as the library has them."""
        return self.native[part]

    def blocks(self, block_rows: int) -> Iterator[tuple[slice, Self]]:
        """Yield slices and frames of their rows, at most so many; all if it cannot be sliced."""
        n = self.n_rows
        if n is None or n <= block_rows:
            yield slice(None), self
            return
        for begin in range(0, n, block_rows):
            part = slice(begin, min(begin + block_rows, n))
            yield part, type(self)(self.rows(part), self.argument)

    def sliceable(self) -> Frame:
        """Return the same rows; those of a dict or of a stream, which is read, as Arrow's."""
        return self

    def without(self, words: Collection[str]) -> Self:
        """Return the rows with None for words in columns of objects, among numbers too."""
        frame = copy.copy(self)
        for j, (name, cells) in enumerate(self.columns() if words else ()):
            if isinstance(cells, list) or str(getattr(cells, "dtype", "")) == "object":
                left = [None if isinstance(c, str) and c in words else c for c in cells]
                frame.native = self._replaced(frame.native, j, name, left)
        return frame

    def _replaced(self, native: Any, _position: int, name: Any, cells: list[Any]) -> Any:
        """Return a table with other cells in a column."""
        return {**native, name: cells}

    def columns(self) -> Iterator[tuple[Any, Any]]:
        """Yield names and cells of columns that may hold cells of several kinds."""
        yield from ()

    def column(self, position: int) -> NDArray[Any]:
        """Return the cells of a column."""
        return np.asarray(self.native)[:, position]

    def arrow(self, columns: Collection[str] | None = None) -> Any:  # noqa: ARG002
        """Return all columns, or those of some names that are there, as a pyarrow Table.

        ImportError without pyarrow; ValueError if this is no table, or Arrow cannot hold it.
        """
        wanted = "a table with names of columns (pandas, polars, pyarrow, or a dict of columns)"
        kind = type(self.native).__name__
        got = "records, which BatchScorer takes" if _are_records(self.native) else kind
        raise ValueError(f"{self.argument} must be {wanted}, got {got}")

    def numbers(self) -> Any:
        """Return a pyarrow Table of floats, or what is pandas' or no table; raises as `arrow`."""
        return self.arrow() if _are_records(self.native) else self.native

    def in_library(self, library: Library | None) -> Any:  # noqa: ARG002
        """Return a table as one of that library, and what is no table as it is.

        Steps do not read one value alike from all libraries: missing cells are None or NaN.
        """
        return self.native


class Table(Frame):
    """Rows whose columns have names."""

    library: Library | None = "pandas"

    @property
    def names(self) -> list[str]:
        return [str(name) for name in getattr(self.native, "columns", self.native)]

    def columns(self) -> Iterator[tuple[Any, Any]]:
        yield from self.native.items() if hasattr(self.native, "items") else ()

    def arrow(self, columns: Collection[str] | None = None) -> Any:
        if columns is None:
            return self._read()
        wanted = set(columns)
        positions = [j for j, name in enumerate(self.names) if name in wanted]
        return frame_of(self._part(positions), self.argument).arrow()

    def _part(self, positions: list[int]) -> Any:
        """Return some of the columns as the library has them."""
        return self.native.select(positions)

    def _as_arrow(self) -> Any:
        return pa.table(self.native)

    def _read(self) -> Any:
        """Return all columns as a pyarrow Table, or say which of them cannot be read."""
        what = f"{self.argument} is a {type(self.native).__name__}"
        need("pyarrow", f"{what}, which", None)
        try:
            return self._as_arrow()
        except EncodingError:
            raise
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            array = partial(pa.array, from_pandas=True)
            bad = ((n, c) for n, c in self.columns() if isinstance(c, Iterable) and fails(array, c))
            which = next((f"column {str(name)!r} {types_of(c)}: " for name, c in bad), "")
            raise ValueError(f"{what} that cannot be read as a table: {which}{error}") from None

    def numbers(self) -> Any:
        table = self._distinct()
        self._require_numbers({f.name: f.type for f in table.schema if not is_number(f.type)})
        are_floats = pa.types.is_floating
        fields = [f if are_floats(f.type) else f.with_type(pa.float64()) for f in table.schema]
        return table.cast(pa.schema(fields), safe=False)

    def _require_numbers(self, others: Mapping[str, Any]) -> None:
        """Raise ValueError for columns of other types."""
        if others:
            which = ", ".join(f"{name!r} ({kind})" for name, kind in others.items())
            raise ValueError(not_numbers(self.argument, f"the columns {which}"))

    def in_library(self, library: Library | None) -> Any:
        if library is None:
            return self.native
        return _of_arrow(self._distinct(), library)

    def _distinct(self) -> Any:
        """Return a pyarrow Table, or raise EncodingError if two columns have one name."""
        table = self.arrow()
        require_columns(table.schema.names, table.schema.names)
        return table

    def with_results(
        self, results: Results, keep: Sequence[str] = (), types: Mapping[str, Any] | None = None
    ) -> Any:
        """Return kept columns, cast to some `types` of pyarrow, and results behind them."""
        columns = {name: self._column(name) for name in keep}
        for name, kind in (types or {}).items():
            column = self.arrow([name]).column(0).combine_chunks()
            try:
                columns[name] = self._from_arrow(plain(column).cast(kind))
            except pa.ArrowException as error:
                what = f"must be kept as {kind}, but is {column.type}: {error}"
                raise ValueError(f"column '{name}' {what}") from None
        return self._table(columns, results)

    def _column(self, name: str) -> Any:
        return self.native[name]

    def _from_arrow(self, column: Any) -> Any:
        """Return a column of pyarrow as one that the library takes."""
        return column

    def _table(self, columns: dict[str, Any], results: Results) -> Any:
        """Return columns of the library, and results, as a table."""
        raise NotImplementedError


class _Series(Frame):
    """Rows of pandas without names of columns."""

    library: Library | None = "pandas"

    @property
    def index(self) -> Any:
        return self.native.index

    def rows(self, part: slice | NDArray[np.intp]) -> Any:
        return self.native.iloc[part]

    def in_library(self, library: Library | None) -> Any:
        is_same = library != "polars"
        return self.native if is_same else import_module("polars").from_pandas(self.native)


class _Column(Frame):
    """A Series of polars, or an Array or a ChunkedArray of pyarrow, whose cells are no text."""

    def __init__(self, rows: Any, argument: str = "X") -> None:
        super().__init__(rows, argument)
        self.library = "polars" if hasattr(rows, "to_arrow") else "pandas"

    @property
    def n_rows(self) -> int | None:
        return len(self.native)

    def numbers(self) -> Any:
        return _Stream(self.native, self.argument).numbers()  # which says that it is no table

    def in_library(self, library: Library | None) -> Any:
        is_polars = self.library == "polars"
        if is_polars and library == "polars":
            return self.native
        array = self.native.to_arrow() if is_polars else self.native
        return array.to_numpy(False) if library is None else _of_arrow(array, library)


class _Pandas(_Series, Table):
    def column(self, position: int) -> NDArray[Any]:
        return np.asarray(self.native.iloc[:, position])

    def _part(self, positions: list[int]) -> Any:
        return self.native.iloc[:, positions]

    def _replaced(self, native: Any, position: int, _name: Any, cells: list[Any]) -> Any:
        table = native.copy(deep=False)
        table.isetitem(position, cells)
        return table

    def _as_arrow(self) -> Any:
        names, table = self.names, self.native
        require_columns(names, names)
        if list(table.columns) != names:
            table = table.set_axis(names, axis="columns")
        return pa.Table.from_pandas(table, preserve_index=False)

    def numbers(self) -> Any:
        require_columns(self.native.columns, self.native.columns)
        kinds = self.native.dtypes.items()
        # scikit-learn takes times for numbers if there is nothing else.
        self._require_numbers({str(name): kind for name, kind in kinds if kind.kind in "mM"})
        return self.native

    def in_library(self, library: Library | None) -> Any:
        if library is not None:
            require_columns(self.names, self.names)
        return super().in_library(library)

    def _from_arrow(self, column: Any) -> Any:
        return column.to_pandas().set_axis(self.index)

    def _column(self, name: str) -> Any:
        return self.native.iloc[:, self.names.index(name)]

    def _table(self, columns: dict[str, Any], results: Results) -> Any:
        positions = list(map(self.names.index, columns))
        return self.native.iloc[:, positions].assign(**columns, **results)


class _Polars(Table):
    library = "polars"

    def _part(self, positions: list[int]) -> Any:
        return self.native[:, positions]

    def in_library(self, library: Library | None) -> Any:
        return _of_arrow(self.native.to_arrow(), library) if library == "pandas" else self.native

    def _table(self, columns: dict[str, Any], results: Results) -> Any:
        return import_module("polars").DataFrame(columns | results)


class _Arrow(Table):
    """A Table or a RecordBatch of pyarrow."""

    @property
    def names(self) -> list[str]:
        return cast("list[str]", self.native.schema.names)

    def _as_arrow(self) -> Any:
        is_table = isinstance(self.native, pa.Table)
        return self.native if is_table else pa.Table.from_batches([self.native])

    def _table(self, columns: dict[str, Any], results: Results) -> Any:
        schema = self.native.schema
        fields = [schema.field(name).with_type(each.type) for name, each in columns.items()]
        added = {name: arrow_array(values) for name, values in results.items()}
        fields += [pa.field(name, each.type) for name, each in added.items()]
        arrays = [*columns.values(), *added.values()]
        return type(self.native).from_arrays(arrays, schema=pa.schema(fields))


class _Stream(Table):
    """Arrow data of any library, which may be there to be read once."""

    @property
    def names(self) -> list[str]:
        return []

    def arrow(self, columns: Collection[str] | None = None) -> Any:
        return _Arrow(self._read()).arrow(columns)

    def sliceable(self) -> Frame:
        return _Arrow(self.arrow(), self.argument)


class _Dict(Table):
    """A mapping from names to columns."""

    def sliceable(self) -> Frame:
        return _Arrow(self.arrow(), self.argument)

    def _part(self, positions: list[int]) -> Any:
        items = list(self.native.items())
        return dict(items[j] for j in positions)

    def _as_arrow(self) -> Any:
        for name, cells in self.columns():
            if _is_cell(cells):
                what = f"a dict of columns, but {name!r} is one cell, {reprlib.repr(cells)}"
                instead = f"put cells into lists, as {{{name!r}: [...]}}; BatchScorer takes records"
                raise EncodingError(f"{self.argument} must be {what}: {instead}")

        def column(cells: Any) -> Any:  # NaN in a list of texts is a missing cell
            with suppress(OverflowError):
                return pa.array(cells, from_pandas=True) if isinstance(cells, list) else cells
            return pa.array(cells, pa.decimal128(38))  # whole numbers beyond int64

        return pa.table({name: column(cells) for name, cells in self.columns()})

    def _from_arrow(self, column: Any) -> Any:
        return column.to_numpy(zero_copy_only=False)

    def _table(self, columns: dict[str, Any], results: Results) -> Any:
        return columns | results


class _Records(_Dict):
    """Rows as mappings, or a single one; a cell that one of them lacks is missing."""

    def __init__(self, given: Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> None:
        self._is_one = isinstance(given, Mapping)
        rows: Any = [given] if self._is_one else given
        names = dict.fromkeys(name for row in rows for name in row)
        super().__init__({n: [row.get(n) for row in rows] for n in names}, "the batch")

    def _from_arrow(self, column: Any) -> Any:
        return column.to_pylist()

    def _table(self, columns: dict[str, Any], results: Results) -> Any:
        cells = columns | {name: values.tolist() for name, values in results.items()}
        records = zip(*cells.values(), strict=True)
        rows = [dict(zip(cells, record, strict=True)) for record in records]
        return rows[0] if self._is_one else rows


def _of_arrow(rows: Any, library: Library) -> Any:
    """Return a Table or an Array of pyarrow as pandas, where no column is an index, or polars."""
    if library == "pandas":
        return rows.to_pandas(ignore_metadata=True)
    return import_module("polars").from_arrow(rows)


# Tables that are not in memory, by the beginnings of their modules, and what to do with them.
_ELSEWHERE = {
    "dask.dataframe": "score it by hdiforest.adapters.dask, or call compute()",
    "dask_expr": "score it by hdiforest.adapters.dask, or call compute()",
    "polars.lazyframe": "call collect()",
    "pyspark": "score it by BatchScorer in mapInArrow, or make a pandas DataFrame of it",
    "ray.data": "score it by BatchScorer in map_batches, or make a pandas DataFrame of it",
    "duckdb": "call df()",
    "_duckdb": "call df()",
    "pyarrow._dataset": "call to_table()",
}


def frame_of(X: Any, argument: str = "X") -> Frame:
    """Return rows as a frame; one is returned as it is. Nothing is read or copied.

    ValueError for tables that are not in memory.
    """
    return X if isinstance(X, Frame) else _kind(X, argument)(X, argument)


def _kind(X: Any, argument: str) -> type[Frame]:
    if isinstance(X, np.ndarray | list):
        return Frame
    module = type(X).__module__
    library = module.partition(".")[0]
    is_stream = hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__")
    for begin, instead in () if is_stream else _ELSEWHERE.items():
        if f"{module}.".startswith(f"{begin}."):
            what = f"a {type(X).__name__} of {library}"
            raise ValueError(f"{argument} must be in memory, but is {what}: {instead}")
    if hasattr(X, "iloc"):
        return _Pandas if hasattr(X, "columns") else _Series
    if library == "polars" and hasattr(X, "get_column"):
        return _Polars
    if library == "pyarrow" and hasattr(X, "schema") and hasattr(X, "num_rows"):
        return _Arrow
    if is_stream:
        kind = getattr(X, "dtype", getattr(X, "type", None))  # of a column; a struct is a table
        return _Stream if kind is None or str(kind).lower().startswith("struct") else _Column
    # Some sparse matrices are mappings, too.
    return _Dict if isinstance(X, Mapping) and not hasattr(X, "shape") else Frame


def batch_of(rows: Any) -> Table:
    """Return rows for which results can be made: of a known library, or records."""
    if isinstance(rows, list) and (not rows or _are_records(rows)):
        return _Records(rows)
    frame = frame_of(rows, "the batch")
    if isinstance(frame, _Dict):
        if any(map(_is_cell, rows.values())):
            return _Records(rows)
        lengths = {name: len(cells) for name, cells in frame.columns()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"the columns of a batch must be equally long, got {lengths}")
    if isinstance(frame, _Stream) or not isinstance(frame, Table):
        tables = "a pyarrow RecordBatch or Table, a DataFrame of pandas or polars"
        others = "a dict of columns, a record (a dict of cells) or a list of records"
        raise ValueError(f"a batch must be {tables}, {others}, got {type(rows).__name__}")
    return frame


def _are_records(rows: Any) -> bool:
    return isinstance(rows, list) and len(rows) > 0 and all(isinstance(r, Mapping) for r in rows)


def _is_cell(value: Any) -> bool:
    """Whether a value is no column: text, or without a length, as arrays of no dimension are."""
    is_text = isinstance(value, str | bytes)
    return is_text or getattr(value, "shape", None) == () or not hasattr(value, "__len__")


def not_numbers(argument: str, where: str) -> str:
    """Say where rows do not hold numbers, as models that were not fitted by `fit_table` need."""
    instead = "models of fit_table take text, dates and other categories"
    return f"{argument} must hold numbers, but does not in {where}; {instead}"


def types_of(cells: Iterable[Any]) -> str:
    """Say which types the cells of a column have."""
    return f"holds cells of the types {listed(sorted({type(cell).__name__ for cell in cells}))}"


def arrow_array(values: NDArray[Any]) -> Any:
    """Return an array as one of pyarrow; numbers without a copy."""
    if values.dtype != np.float64:
        return pa.array(values)
    # `pyarrow.array` would import pandas.
    return pa.Array.from_buffers(pa.float64(), len(values), [None, pa.py_buffer(values)])


def require_library(output: str) -> None:
    """Raise ImportError if the library of an output is not installed, ValueError if it is none."""
    check_choice("output", output, get_args(Output))
    need(output, f"output={output!r}", None)


def table_in(library: str, columns: Mapping[str, NDArray[Any]], index: Any = None) -> Any:
    """Return columns (n,) as a table of pandas with an index, of polars or of pyarrow."""
    module = import_module(library)
    if library == "pandas":
        return module.DataFrame(columns, index=index)
    return module.DataFrame(columns) if library == "polars" else module.table(columns)
