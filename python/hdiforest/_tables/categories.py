"""Columns of categories: the place of each value in a list stands for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hdiforest._tables.columns import (
    MAX_EXACT,
    Codes,
    Column,
    ColumnError,
    Facts,
    as_float64,
    dictionary_of,
    is_number,
    is_text,
    present_text,
    require_facts,
)

Values = tuple[str, ...] | tuple[float, ...]


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
    """Categories, which are texts or numbers.

    Parameters
    ----------
    name : str
    values : tuple of str, or tuple of float
        Distinct; the code of each is its position. Every other value is missing.
    """

    values: Values
    kind = "category"
    has_categories = True

    def __str__(self) -> str:
        return f"{self.name} ({len(self.values):,} categories)"

    def codes(self, array: Any) -> Codes:
        """See `Column`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        kinds = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
        if not (is_number(kinds) or is_text(kinds)):
            raise ColumnError(f"must hold categories, but is {array.type}")
        if pa.types.is_null(kinds):
            return Codes(np.full(len(array), np.nan))
        encoded = dictionary_of(array)
        distinct = self._comparable(encoded.dictionary)
        places = pc.index_in(distinct, value_set=self._value_set)
        # One place more is for missing cells.
        codes = np.append(as_float64(places), np.nan)
        unseen = np.append((distinct.is_valid().to_numpy(False)) & np.isnan(codes[:-1]), False)
        at = encoded.indices.cast(pa.int64()).fill_null(len(distinct)).to_numpy()
        n_unseen = int(unseen[at].sum()) if unseen.any() else 0
        return Codes(codes[at], n_unseen)

    def facts(self) -> Facts:
        """See `Column`."""
        return {"values": list(self.values)}

    @classmethod
    def from_facts(cls, name: str, facts: Facts) -> Self:
        """See `Column`."""
        require_facts(facts, ("values",))
        values = facts["values"]
        if not isinstance(values, list):
            raise ValueError("values must be a list")
        if not (all(map(_is_text, values)) or all(map(_is_finite_float, values))):
            raise ValueError("values must be texts that are not empty, or finite numbers")
        if len(set(values)) != len(values):
            raise ValueError("values must be distinct")
        if len(values) > MAX_EXACT:
            raise ValueError(f"values must be at most {MAX_EXACT} categories")
        return cls(name, tuple(values))

    @cached_property
    def _value_set(self) -> Any:
        import pyarrow as pa

        numbers = len(self.values) > 0 and isinstance(self.values[0], float)
        return pa.array(self.values, pa.float64() if numbers else pa.large_string())

    def _comparable(self, distinct: Any) -> Any:
        """Return distinct cells in the type of the categories."""
        import pyarrow as pa

        if not is_text(self._value_set.type):
            return as_numbers(distinct)
        if not is_text(distinct.type):
            return distinct.cast(pa.large_string())
        return present_text(distinct).cast(pa.large_string())


def as_numbers(distinct: Any) -> Any:
    """Return distinct categories as an Array of float64; what is no number stays unseen, as NaN."""
    import pyarrow as pa

    if not is_text(distinct.type):
        numbers = distinct.cast(pa.float64(), safe=False)
        # Minus zero is zero.
        return pa.array(numbers.to_numpy(zero_copy_only=False) + 0.0, from_pandas=True)
    texts = present_text(distinct).to_pylist()
    return pa.array([None if text is None else _number(text) for text in texts], pa.float64())


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def counted(array: Any) -> tuple[Any, NDArray[np.int64]]:
    """Return the distinct cells of an Array of categories, without missing ones, and their codes.

    Returns
    -------
    distinct : pyarrow.Array
        Of large_string or float64, (n_categories,).
    at : (n,) int64
        Position of each cell in `distinct`; -1 is missing.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    encoded = dictionary_of(array)
    texts = is_text(encoded.dictionary.type)
    cells = (
        present_text(encoded.dictionary).cast(pa.large_string())
        if texts
        else as_numbers(encoded.dictionary)
    )
    distinct = pc.unique(cells.drop_null())
    places = np.append(as_float64(pc.index_in(cells, value_set=distinct)), np.nan)
    indices = encoded.indices.cast(pa.int64()).fill_null(len(cells)).to_numpy()
    at: NDArray[np.int64] = np.nan_to_num(places, nan=-1).astype(np.int64)[indices]
    return distinct, at
