"""Columns of categories: known ones become their positions, unseen ones are missing and counted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdiforest._tables.columns import (
    MAX_EXACT,
    Codes,
    Column,
    ColumnError,
    as_float64,
    dictionary_of,
    is_number,
    is_text,
    present_text,
)
from hdiforest._utils.optional import pa, pc


def _is_text(value: Any) -> bool:
    """Whether a value is a text with something in it that Arrow can hold."""
    try:
        return isinstance(value, str) and value.encode() != b""
    except UnicodeEncodeError:
        return False


def _is_finite_float(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value)


@dataclass(frozen=True)
class CategoryColumn(Column):
    """Categories, which are texts or numbers."""

    # Distinct; the code of each is its position, and every other value is missing.
    values: tuple[str, ...] | tuple[float, ...]
    kind = "category"
    has_categories = True

    def __post_init__(self) -> None:
        values = self.values
        if not isinstance(values, tuple):
            raise ValueError("values must be a list")
        if not (all(map(_is_text, values)) or all(map(_is_finite_float, values))):
            raise ValueError("values must be texts that are not empty, or finite numbers")
        if len(set(values)) != len(values):
            raise ValueError("values must be distinct")
        if len(values) > MAX_EXACT:
            raise ValueError(f"values must be at most {MAX_EXACT} categories")

    def __str__(self) -> str:
        return f"{self.name} ({len(self.values):,} categories)"

    def codes(self, array: Any) -> Codes:
        """See `Column`. Categories that are not among the values are counted as unseen."""
        kinds = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
        if not (is_number(kinds) or is_text(kinds)):
            raise ColumnError(f"must hold categories, but is {array.type}")
        if pa.types.is_null(kinds):
            return Codes(np.full(len(array), np.nan))
        distinct, at = _distinct_cells(array, as_text=is_text(self._value_set.type))
        codes = as_float64(pc.index_in(distinct, value_set=self._value_set))
        unseen = distinct.is_valid().to_numpy(False) & np.isnan(codes)
        n_unseen = int(np.append(unseen, False)[at].sum()) if unseen.any() else 0
        return Codes(np.append(codes, np.nan)[at], n_unseen)

    @cached_property
    def _value_set(self) -> Any:
        numbers = len(self.values) > 0 and isinstance(self.values[0], float)
        return pa.array(self.values, pa.float64() if numbers else pa.large_string())


def counted(array: Any) -> tuple[Any, NDArray[np.int64]]:
    """Return the distinct cells of an Array of categories, without missing ones, and their counts.

    Both are of shape (n_categories,): an Array of large_string or float64, and int64.
    """
    kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    cells, at = _distinct_cells(array, as_text=is_text(kind))
    n_cells = np.bincount(at, minlength=len(cells) + 1)[:-1]
    distinct = pc.unique(cells.drop_null())  # cells that are written in two ways are one category
    places = as_float64(pc.index_in(cells, value_set=distinct))
    known = ~np.isnan(places)
    counts = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(counts, places[known].astype(np.int64), n_cells[known])
    return distinct, counts


def _distinct_cells(array: Any, *, as_text: bool) -> tuple[Any, NDArray[np.int64]]:
    """Return distinct cells as large_string or float64, and which of them each cell is.

    Missing cells are at the end of the distinct ones, where none is.
    """
    encoded = dictionary_of(array)
    distinct = encoded.dictionary
    at: NDArray[np.int64] = encoded.indices.cast(pa.int64()).fill_null(len(distinct)).to_numpy()
    if as_text:
        texts = present_text(distinct) if is_text(distinct.type) else distinct
        return texts.cast(pa.large_string()), at
    if is_text(distinct.type):
        texts = present_text(distinct).to_pylist()
        return pa.array(
            [None if text is None else _number(text) for text in texts], pa.float64()
        ), at
    numbers = distinct.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return pa.array(numbers + 0.0, from_pandas=True), at  # minus zero is zero


def _number(text: str) -> float:
    """Return a text as a number; what is none stays unseen, as NaN."""
    try:
        return float(text)
    except ValueError:
        return math.nan
