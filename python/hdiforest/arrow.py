"""Arrow data and dicts of columns: read by the names of their columns, never by position."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from hdiforest.coding.arrow_types import is_number
from hdiforest.coding.raw_table import why_unreadable


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
    reader = BaseEstimator()
    validate_data(reader, X, skip_check_array=True, ensure_2d=False)
    return hasattr(reader, "feature_names_in_")
