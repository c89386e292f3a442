"""Tables of any library as pyarrow Tables, their columns as they are."""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from numbers import Number
from typing import Any

import numpy as np

from hdiforest.coding.columns import CodingError


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
