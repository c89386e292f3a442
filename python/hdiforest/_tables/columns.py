"""Columns of numbers and booleans as features, and what columns of all kinds share."""

from __future__ import annotations

import reprlib
import warnings
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hdiforest._tables.names import column_faults
from hdiforest._utils.checks import number_texts
from hdiforest._utils.optional import pa, pc
from hdiforest._utils.warnings import callers_level


def is_number(kind: Any) -> bool:
    """Whether a pyarrow type is one of numbers: whole, floating or decimal ones, booleans, null."""
    types = pa.types
    tests = types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null
    return any(test(kind) for test in tests)


def is_text(kind: Any) -> bool:
    """Whether a pyarrow type is one of text."""
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_date(kind: Any) -> bool:
    """Whether a pyarrow type is one of dates or timestamps."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def is_duration(kind: Any) -> bool:
    """Whether a pyarrow type is one of durations or of times of a day."""
    return bool(pa.types.is_duration(kind) or pa.types.is_time(kind))


def decoded(array: Any) -> Any:
    """Return the values of a pyarrow Array whose type is a dictionary, and others as they are."""
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def present_text(text: Any) -> Any:
    """Return an Array of text with null in place of empty cells."""
    if pa.types.is_string_view(text.type):
        text = text.cast(pa.large_string())
    return pc.if_else(pc.equal(text, ""), None, text)


def dictionary_of(array: Any) -> Any:
    """Return an Array of categories as pyarrow's DictionaryArray."""
    if pa.types.is_dictionary(array.type):
        return array
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    return array.dictionary_encode()


Facts = dict[str, Any]
FLOAT32_MAX = float(np.finfo(np.float32).max)
MAX_EXACT = 2**24  # whole numbers up to here are float32


class ColumnError(ValueError):
    """A column that cannot be encoded, because of the cell in a `row` if there is one.

    The `clause` follows the name of the column, as in "must hold dates, but is double".
    """

    def __init__(self, clause: str, row: int | None = None) -> None:
        super().__init__(clause)
        self.clause, self.row = clause, row

    def sentence(self, column: str, first_row: int = 0) -> str:
        """Say what is wrong with a column, in a table after so many rows."""
        where = "" if self.row is None else f" in row {first_row + self.row + 1}"
        return f"column {column!r} {self.clause}{where}"


class EncodingError(ValueError):
    """A table that cannot be encoded; `columns` are those at fault that are there."""

    def __init__(self, message: str, columns: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.columns = list(columns)


class Codes(NamedTuple):
    """The numbers that stand for the cells of a column."""

    values: NDArray[np.float64]  # (n,); missing is NaN
    n_unseen: int = 0  # cells of categories that the encoder does not have
    rounded: bool = False  # whether float32 rounds whole numbers of the column


@dataclass(frozen=True)
class Column(ABC):
    """How one column of a table becomes a feature of its name."""

    name: str
    kind: ClassVar[str]
    has_categories: ClassVar[bool] = False

    def __str__(self) -> str:
        return self.name if self.kind == "number" else f"{self.name} ({self.kind})"

    @abstractmethod
    def codes(self, array: Any) -> Codes:
        """Return what stands for the cells of a pyarrow Array; ColumnError if it cannot."""

    def texts(self, cells: Sequence[float]) -> list[str]:
        """Return the numbers that stand for cells as people write the cells."""
        return number_texts(cells)

    def facts(self) -> Facts:
        """Return the data of the column as JSON's types, without its name and kind."""
        own = {each.name: getattr(self, each.name) for each in fields(self)[1:]}
        return {name: list(fact) if isinstance(fact, tuple) else fact for name, fact in own.items()}

    @classmethod
    def from_facts(cls, name: str, facts: Facts) -> Self:
        """Return the column that `facts` describes; ValueError if they are not of the kind."""
        names = {each.name for each in fields(cls)[1:]}
        if set(facts) != names:
            raise ValueError(
                f"it must have the entries {sorted(names)}, got {reprlib.repr(sorted(facts))}"
            )
        own = {
            each: tuple(fact) if isinstance(fact, list) else fact for each, fact in facts.items()
        }
        return cls(name, **own)


@dataclass(frozen=True)
class NumberColumn(Column):
    """Whole, floating or decimal numbers."""

    kind = "number"

    def codes(self, array: Any) -> Codes:
        """See `Column`."""
        array = decoded(array)
        if not is_number(array.type):
            raise ColumnError(f"must hold numbers, but is {array.type}")
        values = as_float64(array)
        magnitude = np.abs(values)
        largest = np.fmax.reduce(magnitude, initial=0.0)
        if largest > FLOAT32_MAX:
            row = int(np.argmax(magnitude > FLOAT32_MAX))
            raise ColumnError(
                f"must hold numbers that fit into float32, but holds {values[row]:g}", row
            )
        return Codes(values, rounded=bool(largest > MAX_EXACT) and _are_rounded(values))


def _are_rounded(values: NDArray[np.float64]) -> bool:
    """Whether all numbers are whole, and float32 rounds some."""
    present = values[~np.isnan(values)]
    whole = bool((present == np.floor(present)).all())
    # Every float64 from 2^53 on is whole, and may already be a rounded one.
    exact = (present.astype(np.float32) == present) & (np.abs(present) < 2.0**53)
    return whole and not exact.all()


def warn_of_rounded(names: Sequence[str]) -> None:
    """Warn of columns whose whole numbers float32 rounds, if there are some."""
    if names:
        warnings.warn(
            "whole numbers beyond 2^24 are rounded to float32 in the "
            f"column{'s' * (len(names) > 1)} {', '.join(map(repr, names))}",
            stacklevel=callers_level(),
        )


@dataclass(frozen=True)
class BooleanColumn(Column):
    """Booleans, as numbers 0 and 1 or as words."""

    kind = "boolean"

    def codes(self, array: Any) -> Codes:
        """See `Column`."""
        array = decoded(array)
        if is_text(array.type):
            array = as_booleans(array)
        elif not is_number(array.type):
            raise ColumnError(f"must hold booleans, but is {array.type}")
        values = as_float64(array)
        bad = ~(np.isnan(values) | (values == 0) | (values == 1))
        if bad.any():
            row = int(np.argmax(bad))
            raise ColumnError(f"must hold booleans, but holds {values[row]:g}", row)
        return Codes(values)

    def texts(self, cells: Sequence[float]) -> list[str]:
        """See `Column`."""
        return ["true" if cell else "false" for cell in cells]


def as_booleans(text: Any) -> Any:
    """Return an Array of the words true and false, or of 1 and 0, as booleans."""
    words = present_text(pc.ascii_lower(pc.ascii_trim_whitespace(present_text(text))))
    is_true = pc.match_substring_regex(words, r"^(true|1([.,]0*)?)$")
    is_known = pc.or_(is_true, pc.match_substring_regex(words, r"^(false|0([.,]0*)?)$"))
    row = is_known.index(False).as_py()
    if row >= 0:
        raise ColumnError(f"must hold booleans, but holds {shown(text[row].as_py())}", row)
    return is_true


def as_float64(array: Any) -> NDArray[np.float64]:
    """Return an Array of numbers; null is NaN. Its `to_numpy` would import pandas."""
    floats = array.cast(pa.float64(), safe=False)
    if floats.null_count > 0:
        floats = floats.fill_null(np.nan)
    values = floats.buffers()[1]
    if values is None:
        return np.empty(0)
    return np.frombuffer(values, np.float64, len(floats), 8 * floats.offset)


def require_columns(columns: Sequence[str], names: Iterable[str]) -> None:
    """Raise EncodingError if a table with columns of these names lacks some, or has two."""
    faults, repeated = column_faults(columns, names)
    if faults:
        raise EncodingError(f"the table has {faults}", repeated)


def shown(cell: str) -> str:
    """Return a cell between quotes, shortened."""
    return repr(cell if len(cell) <= 60 else f"{cell[:57]}...")


def first_failure(fails: Callable[[Any], bool], cells: Any) -> int:
    """Return the first row at which a conversion of an Array fails, by bisection over its heads."""
    heads = range(1, len(cells) + 1)
    return bisect_left(heads, True, key=lambda n: fails(cells.slice(0, n)))
