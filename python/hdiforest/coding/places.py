"""Places of cells in a list of categories, as encoders find them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdiforest.coding.arrow_types import dictionary_of, is_number, is_text
from hdiforest.coding.columns import ColumnError, as_float64, shown

Values = tuple[str, ...] | tuple[float, ...]


def value_set(values: Values) -> Any:
    """Return categories as a pyarrow Array; none at all are texts."""
    import pyarrow as pa

    return pa.array(values, pa.float64() if are_numbers(values) else pa.large_string())


def are_numbers(values: Values) -> bool:
    """Whether categories are numbers, not texts."""
    return len(values) > 0 and isinstance(values[0], float)


def placed(array: Any, values: Any) -> NDArray[np.int64]:
    """Return the place of each cell among n categories; n: none of them, n + 1: missing.

    Parameters
    ----------
    array : pyarrow.Array
        Perhaps a dictionary.
    values : pyarrow.Array
        What `value_set` returns.

    Raises
    ------
    ColumnError
        If the cells are neither texts nor numbers, as the categories are.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    texts, n = is_text(values.type), len(values)
    kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    fits = is_text(kind) if texts else is_number(kind)
    if not (fits or pa.types.is_null(kind)):
        raise ColumnError(f"must hold {'text' if texts else 'numbers'}, but is {kind}")
    encoded = dictionary_of(array)
    cells = encoded.dictionary
    if not texts:
        cells = pa.array(as_float64(cells), from_pandas=True)
    cells = cells.cast(values.type)
    found = as_float64(pc.index_in(cells.drop_null(), value_set=values))
    where = np.full(len(cells) + 1, n + 1)
    present = np.flatnonzero(cells.is_valid().to_numpy(zero_copy_only=False))
    where[present] = np.where(np.isnan(found), n, found)
    at: NDArray[np.int64]
    at = where[encoded.indices.cast(pa.int64()).fill_null(len(cells)).to_numpy()]
    return at


def require_allowed(
    at: NDArray[np.int64], n: int, array: Any, refuses_unknown: bool, refuses_missing: bool
) -> None:
    """Raise ColumnError if there are cells that are refused; `at` is what `placed` returned."""
    for place, refused, what in (
        (n, refuses_unknown, "no cell of an unknown category"),
        (n + 1, refuses_missing, "no missing cell"),
    ):
        if refused and (at == place).any():
            row = int(np.argmax(at == place))
            raise ColumnError(f"must hold {what}, but holds {shown(str(array[row]))}", row)


def checked_values(values: Any) -> Values:
    """Return categories of a file, or raise ValueError."""
    if not isinstance(values, list):
        raise ValueError("values must be a list")
    if not (all(map(_is_text, values)) or all(map(_is_finite_float, values))):
        raise ValueError("values must be texts, or finite numbers")
    if len(set(values)) != len(values):
        raise ValueError("values must be distinct")
    return tuple(values)


def _is_text(value: Any) -> bool:
    """Whether a value is a text that Arrow can hold."""
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def _is_finite_float(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value)
