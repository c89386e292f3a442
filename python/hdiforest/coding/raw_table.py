"""Tables of any library as pyarrow Tables, their columns as they are."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any


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
        If X is something else, or has a column that Arrow has no type for.
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
            return pa.Table.from_pandas(X, preserve_index=False)
        return pa.table(X)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ValueError(f"X is a {kind} that cannot be read as a table: {error}") from None
