"""Columns of numbers, booleans, categories and dates as features."""

from __future__ import annotations

import math
import re
import reprlib
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from hdiforest._tables.forms import (
    ZONE,
    ColumnError,
    DateForm,
    Form,
    NumberForm,
    form_from,
    require_cells,
    shown,
)
from hdiforest._tables.names import column_faults, with_note
from hdiforest._utils.checks import number_texts
from hdiforest._utils.optional import pa, pc

# The sorts of cells, by how the names of pyarrow's types begin.
_SORTS = {
    "number": ("bool", "int", "uint", "halffloat", "float", "double", "decimal", "null"),
    "text": ("string", "large_string"),
    "date": ("date", "timestamp"),
}


def sort_of(kind: Any) -> str:
    """Return which of the sorts of cells a pyarrow type holds, or "other"."""
    name = str(kind)
    return next((sort for sort, begins in _SORTS.items() if name.startswith(begins)), "other")


def is_number(kind: Any) -> bool:
    """Whether a pyarrow type is one of numbers: whole, floating or decimal ones, booleans, null."""
    return sort_of(kind) == "number"


def is_text(kind: Any) -> bool:
    """Whether a pyarrow type is one of text."""
    return sort_of(kind) == "text"


def with_leaves(kind: Any, change: Callable[[Any], Any]) -> Any:
    """Return a pyarrow type with changed types of its cells, in lists and structs too."""
    types = pa.types
    if types.is_list(kind) or types.is_large_list(kind):
        make = pa.list_ if types.is_list(kind) else pa.large_list
        return make(with_leaves(kind.value_type, change))
    if types.is_struct(kind):
        inner = (kind.field(i) for i in range(kind.num_fields))
        return pa.struct([each.with_type(with_leaves(each.type, change)) for each in inner])
    return change(kind)


def _without_view(kind: Any) -> Any:
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _without_view(kind.value_type), kind.ordered)
    views = {"string_view": pa.large_string(), "binary_view": pa.large_binary()}
    return views.get(str(kind), kind)


def plain_type(kind: Any) -> Any:
    """Return the type of `plain` arrays."""
    return with_leaves(with_leaves(kind, _without_view), kind_of_cells)


def kind_of_cells(kind: Any) -> Any:
    """Return the type of the cells of a type, of a dictionary those of its values."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def plain(array: Any) -> Any:
    """Return an Array or a ChunkedArray with values in place of dictionaries and views.

    Not all kernels and formats of pyarrow take these, and no file dictionaries that change.
    """
    if (kind := plain_type(array.type)) == array.type:
        return array
    return array.cast(with_leaves(array.type, _without_view)).cast(kind)


def present_text(text: Any) -> Any:
    """Return an Array of text with null in place of empty cells."""
    text = plain(text)
    return pc.if_else(pc.equal(text, ""), None, text)


def dictionary_of(array: Any) -> Any:
    """Return an Array of categories as pyarrow's DictionaryArray."""
    return array if pa.types.is_dictionary(array.type) else plain(array).dictionary_encode()


def without_words(column: Any, words: Iterable[str]) -> Any:
    """Return an Array or a ChunkedArray with null for cells that are one of the words.

    What a word says in the type of the column is such a cell, too: 5.0 for the word 5.
    """
    # pyarrow has no functions for these.
    column_type = column.type
    taken = pa.float32() if pa.types.is_float16(column_type) else _without_view(column_type)
    if taken != column_type:
        column = column.cast(taken)
    kind = kind_of_cells(taken)
    values = [] if pa.types.is_boolean(kind) else [_word_value(word, kind) for word in words]
    if not any(map(len, values)):
        return column
    cells = column.cast(kind)  # of a dictionary its values, and it stays one: it holds categories
    bare = pc.utf8_trim_whitespace(cells) if is_text(kind) else cells
    left = pc.if_else(pc.is_in(bare, value_set=pa.concat_arrays(values)), None, column)
    # Text of words alone may stand for numbers.
    return left if left.null_count < len(left) else pa.nulls(len(left))


def _word_value(word: str, kind: Any) -> Any:
    """Return an Array of the value of a type that a word says; it is empty if there is none."""
    for read in (str, float):
        with suppress(pa.ArrowException, ValueError):
            return pa.array([read(word)]).cast(kind)
    return pa.nulls(0, kind)


Facts = dict[str, Any]
FLOAT32_MAX = float(np.finfo(np.float32).max)
_MAX = float(np.finfo(np.float64).max)
MAX_EXACT = 2**24  # whole numbers up to here are float32
_PLAIN_NUMBERS = {bool, int, float, np.bool_, np.int64, np.float64, np.float32}


class EncodingError(ValueError):
    """A table that cannot be encoded; `columns` are those at fault that are there."""

    def __init__(self, message: str, columns: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.columns = list(columns)


Codes = NDArray[np.float64]  # (n,), what stands for the cells of a column; missing is NaN
UNSEEN = math.inf  # the code of categories that the encoder does not have


@dataclass(frozen=True)
class Column(ABC):
    """How one column of a table becomes a feature of its name."""

    name: str
    kind: ClassVar[str]
    holds: ClassVar[str]  # what its cells are, in messages
    sorts: ClassVar[tuple[str, ...]]  # of cells that it takes, see `sort_of`
    has_categories: ClassVar[bool] = False

    def __str__(self) -> str:
        kind = "" if self.kind == "number" else self.kind
        return with_note(self.name, kind, str(self._form or ""))

    @property
    def _form(self) -> Form | None:
        return vars(self).get("form")

    def noted(self, ends: Sequence[float]) -> str:
        """Return the name with a note of how text was read, and of the detail."""
        return with_note(self.name, str(self._form or ""), self.detail(ends))

    def detail(self, ends: Sequence[float]) -> str:  # noqa: ARG002
        """Say what its training cells were, for the numbers of the least and the greatest one."""
        return ""

    def codes(self, array: Any) -> Codes:
        """Return what stands for the cells of a `plain` Array, not of nulls, or ColumnError."""
        if self._form is not None and is_text(array.type):
            array = self._form.read(array)
        if sort_of(array.type) not in self.sorts:
            raise ColumnError(f"must hold {self.holds}, but is {array.type}")
        return self._codes(array)

    @abstractmethod
    def _codes(self, array: Any) -> Codes:
        """Return what stands for cells of one of `sorts`."""

    def code(self, cell: Any) -> float | None:  # noqa: ARG002
        """Return what `codes` returns for a cell of Python; None if only that can say it."""
        return None

    def texts(self, cells: Sequence[float]) -> list[str]:
        """Return the numbers that stand for cells as people write the cells."""
        return number_texts(cells)

    def facts(self) -> Facts:
        """Return the column as JSON's types; `column_of` reads them."""
        entries = {name: fact for name, fact in asdict(self).items() if fact is not None}
        lists = {name: list(fact) for name, fact in entries.items() if isinstance(fact, tuple)}
        return entries | lists | {"kind": self.kind}


@dataclass(frozen=True)
class NumberColumn(Column):
    """Whole, floating or decimal numbers, or text of one form."""

    form: NumberForm | None = None  # None: no text
    kind, holds, sorts = "number", "numbers", ("number",)

    def _codes(self, array: Any) -> Codes:
        values = as_float64(array)
        is_beyond = np.abs(values) > FLOAT32_MAX
        require_cells(~is_beyond, "numbers that fit into float32", values)
        return values

    def code(self, cell: Any) -> float | None:
        if type(cell) not in _PLAIN_NUMBERS:
            return None
        return float(cell) if -MAX_EXACT <= cell <= MAX_EXACT or cell != cell else None


class BooleanColumn(Column):
    """Booleans, as numbers 0 and 1 or as words."""

    kind, holds, sorts = "boolean", "booleans", ("number", "text")

    def _codes(self, array: Any) -> Codes:
        if is_text(array.type):
            words = present_text(pc.ascii_lower(pc.ascii_trim_whitespace(present_text(array))))
            is_true = pc.match_substring_regex(words, r"^(true|1([.,]0*)?)$")
            is_known = pc.or_(is_true, pc.match_substring_regex(words, r"^(false|0([.,]0*)?)$"))
            require_cells(is_known.fill_null(True).to_numpy(False), self.holds, array)
            array = is_true
        values = as_float64(array)
        require_cells(np.isnan(values) | (values == 0) | (values == 1), self.holds, values)
        return values

    def code(self, cell: Any) -> float | None:
        return float(cell) if isinstance(cell, bool) else None

    def texts(self, cells: Sequence[float]) -> list[str]:
        return ["true" if cell else "false" for cell in cells]


def as_float64(array: Any) -> NDArray[np.float64]:
    """Return an Array of numbers; null is NaN. Its `to_numpy` would import pandas."""
    floats = array.cast(pa.float64(), safe=False)
    if floats.null_count > 0:
        floats = floats.fill_null(np.nan)
    values = floats.buffers()[1]
    if values is None:
        return np.empty(0)
    return np.frombuffer(values, np.float64, len(floats), 8 * floats.offset)


def require_columns(
    needed: Iterable[Any], names: Iterable[Any], table: str = "the table", who: str = ""
) -> None:
    """Raise EncodingError if a table lacks columns, or has two of a name; see `column_faults`."""
    faults, repeated = column_faults(needed, names, who)
    if faults:
        raise EncodingError(f"{table} has {faults}", repeated)


def fails(convert: Callable[[Any], Any], cells: Any) -> bool:
    """Whether pyarrow refuses a conversion."""
    with suppress(pa.ArrowException, OverflowError, TypeError, ValueError):
        convert(cells)
        return False
    return True


def first_failure(failing: Callable[[Any], bool], cells: Any) -> int:
    """Return the first row at which a conversion of an Array fails, by bisection over its heads."""
    heads = range(1, len(cells) + 1)
    return bisect_left(heads, True, key=lambda n: failing(cells.slice(0, n)))


@dataclass(frozen=True)
class CategoryColumn(Column):
    """Categories, which are texts or numbers."""

    # Distinct; the code of each is its position, and every other value is missing. Whole numbers
    # are int where they come from such a column: float64 would merge them from 2^53 on.
    values: tuple[str, ...] | tuple[float, ...]
    kind, holds, sorts = "category", "categories", ("number", "text")
    has_categories = True

    def __post_init__(self) -> None:
        values = self.values
        if not isinstance(values, tuple):
            raise ValueError("values must be a list")
        are_numbers = all(
            isinstance(each, int | float) and type(each) is not bool and abs(each) <= _MAX
            for each in values
        )
        # Arrow cannot hold halves of surrogate pairs.
        are_texts = all(
            isinstance(each, str) and 0 < len(each) == len(each.encode(errors="ignore").decode())
            for each in values
        )
        if not (are_numbers or are_texts):
            raise ValueError("values must be texts that are not empty, or finite numbers")
        if len(set(values)) != len(values):
            raise ValueError("values must be distinct")
        if len(values) > MAX_EXACT:
            raise ValueError(f"values must be at most {MAX_EXACT} categories")
        self._places  # noqa: B018 (made before the first row comes)

    def __str__(self) -> str:
        return f"{self.name} ({len(self.values):,} categories)"

    def detail(self, ends: Sequence[float]) -> str:  # noqa: ARG002
        two = self.values[:2]
        texts = [shown(v) for v in two if isinstance(v, str)] or number_texts(cast("Any", two))
        return f"{len(self.values):,}: {', '.join(texts)}{', ...' * (len(self.values) > 2)}"

    def _codes(self, array: Any) -> Codes:
        distinct, index = _distinct_cells(array)
        if self._are_texts:
            distinct = distinct.cast(pa.large_string())
        cells = distinct.to_pylist()
        codes = [math.nan if cell is None else self._code_of(cell) for cell in cells]
        return np.array([*codes, math.nan])[index]

    def code(self, cell: Any) -> float | None:
        is_plain = type(cell) is str and cell.isprintable() and cell != ""
        if not self._are_texts:
            is_plain |= type(cell) in (int, float) and -(2**63) <= cell < 2**63
        return self._code_of(cell) if is_plain else None

    def _code_of(self, cell: Any) -> float:
        return self._places.get(cell if self._are_texts else _exact(cell), UNSEEN)

    @cached_property
    def _are_texts(self) -> bool:
        return any(isinstance(each, str) for each in self.values)

    @cached_property
    def _places(self) -> dict[Any, int]:
        """The codes of categories; of numbers as they are and as Python writes them."""
        places: dict[Any, int] = {each: i for i, each in enumerate(self.values)}
        if not self._are_texts:
            places |= {Decimal(repr(each)): i for each, i in places.items()}
        return places


def counted(array: Any) -> tuple[Any, NDArray[np.int64]]:
    """Return the distinct cells that an Array has, text as large_string, and their counts."""
    cells, index = _distinct_cells(array)
    n_cells = np.bincount(index, minlength=len(cells) + 1)[:-1]
    pairs = pa.table({"cell": cells, "n": n_cells}).drop_null()
    # Cells that are written in two ways are one category.
    found = pairs.group_by("cell", use_threads=False).aggregate([("n", "sum")]).combine_chunks()
    return found["cell"].combine_chunks(), found["n_sum"].to_numpy()


def categories(distinct: Any) -> tuple[Any, ...]:
    """Return distinct cells as categories; decimals as numbers, or else as text, if they are."""
    cells = distinct.to_pylist()
    if not pa.types.is_decimal(distinct.type):
        return tuple(cells)
    numbers = [int(each) if int(each) == each else float(each) for each in cells]
    are_exact = all(Decimal(repr(n)) == each for n, each in zip(numbers, cells, strict=True))
    return tuple(numbers if are_exact else distinct.cast(pa.large_string()).to_pylist())


def _distinct_cells(array: Any) -> tuple[Any, NDArray[np.int64]]:
    """Return distinct cells, text as large_string, and which each is; missing: beyond."""
    encoded = dictionary_of(array)
    distinct = encoded.dictionary
    index: NDArray[np.int64] = encoded.indices.cast(pa.int64()).fill_null(len(distinct)).to_numpy()
    if is_text(distinct.type):
        return present_text(distinct).cast(pa.large_string()), index
    if pa.types.is_floating(distinct.type) or pa.types.is_null(distinct.type):
        numbers = distinct.cast(pa.float64()).to_numpy(zero_copy_only=False)
        distinct = pa.array(numbers + 0.0, from_pandas=True)  # minus zero is zero
    return distinct, index


def _exact(cell: Any) -> Any:
    """Return a text or a Decimal as a number equal to it if that is whole; others as they are.

    What is no number stays unseen, as NaN.
    """
    if not isinstance(cell, str | Decimal):
        return cell
    with suppress(ValueError, ArithmeticError):
        number = float(cell)
        return Decimal(cell) if number.is_integer() else number
    return math.nan


_OF_ARROW = {"s": "second", "ms": "millisecond", "us": "microsecond", "ns": "nanosecond"}
# How many make a day, by the name of the unit.
UNITS = {"day": 1, "hour": 24, "minute": 24 * 60}
UNITS |= {unit: 24 * 3600 * 1000**i for i, unit in enumerate(_OF_ARROW.values())}

# Days since 1970-01-01 of 0001-01-01 and of 9999-12-31: what ISO 8601 writes with four digits.
FIRST_DAY, LAST_DAY = -719162, 2932896

# What `datetime.fromisoformat` reads as Arrow does.
_PLAIN_STAMP = re.compile(
    "[0-9]{4}-[0-9]{2}-[0-9]{2}"
    "([T ]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?)?"
)
_EPOCHS = datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)  # without a time zone, with one


@dataclass(frozen=True)
class DateColumn(Column):
    """Dates or timestamps, as a number of units since a day of reference."""

    unit: str  # one of `UNITS`
    reference: int  # in days since 1970-01-01
    zoned: bool  # whether the timestamps have a time zone; the number is then that of UTC
    form: DateForm | None = None  # of text; None: ISO 8601
    kind, holds, sorts = "date", "dates", ("date", "text")

    def __post_init__(self) -> None:
        if not isinstance(self.unit, str) or self.unit not in UNITS:
            raise ValueError(f"unit must be one of {list(UNITS)}")
        if type(self.reference) is not int or not FIRST_DAY <= self.reference <= LAST_DAY:
            raise ValueError("reference must be a day of the years 1 to 9999")
        if not isinstance(self.zoned, bool):
            raise ValueError("zoned must be true or false")

    def __str__(self) -> str:
        return with_note(self.name, f"date, in {self.unit}s", str(self.form or ""))

    def detail(self, ends: Sequence[float]) -> str:
        # A minute more: float32 may have rounded midnight down.
        minute = UNITS[self.unit] / UNITS["minute"]
        return " to ".join(stamp[:10] for stamp in self.texts([end + minute for end in ends]))

    def codes(self, array: Any) -> Codes:
        if self.form is not None and pa.types.is_integer(array.type):  # such as 20240531
            array = array.cast(pa.large_string())
        return super().codes(array)

    def _codes(self, array: Any) -> Codes:
        stamps = as_timestamps(array, self.zoned)
        values: Codes = self._units(*whole_days(stamps))
        values[stamps.is_null().to_numpy(False)] = np.nan
        return values

    def code(self, cell: Any) -> float | None:
        stamp = cell if type(cell) is datetime and cell.tzinfo in (None, UTC) else None
        if type(cell) is date:
            stamp = datetime.combine(cell, time())
        elif type(cell) is str and self.form is None and _PLAIN_STAMP.fullmatch(cell):
            with suppress(ValueError):  # such as the 30th of February
                stamp = datetime.fromisoformat(cell)
        if stamp is None or (stamp.tzinfo is not None) != self.zoned:
            return None
        days, rest = divmod(stamp - _EPOCHS[self.zoned], timedelta(1))
        is_in_range = FIRST_DAY <= days <= LAST_DAY
        ticks = rest // timedelta(microseconds=1)
        return self._units(days, ticks, UNITS["microsecond"]) if is_in_range else None

    def _units(self, days: Any, rest: Any, per_day: int) -> Any:
        """Return how many units since the reference whole days and some ticks are."""
        n_units = UNITS[self.unit]
        return (days - self.reference) * float(n_units) + rest * (n_units / per_day)

    def texts(self, cells: Sequence[float]) -> list[str]:
        days = self.reference + np.array(cells) / UNITS[self.unit]
        seconds = np.rint(np.clip(days, FIRST_DAY, LAST_DAY) * UNITS["second"])
        width = {"day": 10, "hour": 16, "minute": 16}.get(self.unit, 19)
        stamps = np.datetime_as_string(seconds.astype("datetime64[s]"))
        return [stamp[:width].replace("T", " ") for stamp in stamps.tolist()]

    @classmethod
    def learned(cls, name: str, array: Any, form: DateForm | None = None) -> Self:
        """Return a column for the dates of an Array: whole numbers near the median, if possible."""
        array = plain(array) if form is None else form.read(array)
        zoned = getattr(array.type, "tz", None) is not None
        if is_text(array.type):
            first = present_text(array).drop_null().slice(0, 1)
            zoned = bool(pc.any(pc.match_substring_regex(first, f"[T ].*{ZONE}$")).as_py())
        stamps = as_timestamps(array, zoned)
        days, rest, per_day = whole_days(stamps.drop_null())
        reference = int(np.median(days)) if len(days) else 0
        fine = (u for u, n in UNITS.items() if n >= per_day or not (rest % (per_day // n)).any())
        return cls(name, next(fine), reference, zoned, form)


def as_timestamps(array: Any, zoned: bool) -> Any:
    """Return an Array of dates of the years 1 to 9999, or raise ColumnError, as timestamps."""
    zone = "UTC" if zoned else None
    kind = array.type
    if is_text(kind):
        types = pa.timestamp("us", zone), pa.timestamp("ns", zone)
        text = present_text(array)
        for each in types:
            with suppress(pa.ArrowInvalid):
                return _in_range(text.cast(each), text)
        what = "dates without a time zone such as 2024-05-31 or 2024-05-31 12:00:00"
        if zoned:
            what = "timestamps with a time zone such as 2024-05-31T12:00:00Z"
        row = first_failure(lambda part: all(fails(part.cast, each) for each in types), text)
        raise ColumnError(f"must hold {what}, but holds {shown(text[row].as_py())}", row)
    if zoned != (getattr(kind, "tz", None) is not None):
        wanted = "with" if zoned else "without"
        raise ColumnError(f"must hold dates {wanted} a time zone, but is {kind}")
    if pa.types.is_date(kind):
        array = array.cast(pa.timestamp("s" if pa.types.is_date32(kind) else "ms"))
    return _in_range(array)


def whole_days(stamps: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Return days since 1970-01-01, the ticks left over, and the ticks of a day."""
    per_day = UNITS[_OF_ARROW[stamps.type.unit]]
    ticks = _integers(stamps)
    days = ticks // per_day
    return days, ticks - days * per_day, per_day


def _integers(stamps: Any) -> NDArray[np.int64]:
    """Return the ticks of an Array of timestamps; those of missing cells are 0."""
    return cast("NDArray[np.int64]", stamps.cast(pa.int64()).fill_null(0).to_numpy())


def _in_range(stamps: Any, text: Any = None) -> Any:
    """Return the timestamps that `text` was read as; ColumnError if one is out of range."""
    days, _, _ = whole_days(stamps)
    is_in_range, what = (days >= FIRST_DAY) & (days <= LAST_DAY), "dates of the years 1 to 9999"
    if text is None:
        since = f"{{}} {_OF_ARROW[stamps.type.unit]}s since 1970"
        require_cells(is_in_range, what, _integers(stamps), since.format)
    else:
        require_cells(is_in_range, what, text)
    return stamps


_ALL: list[type[Column]] = [NumberColumn, BooleanColumn, DateColumn, CategoryColumn]
KINDS = {each.kind: each for each in _ALL}


def column_of(facts: Any) -> Column:
    """Return the column that `facts` describes, or raise ValueError."""
    if not isinstance(facts, dict) or not all(isinstance(key, str) for key in facts):
        raise ValueError("a column of an encoder must be an object")
    entries = {key: tuple(f) if isinstance(f, list) else f for key, f in facts.items()}
    name, kind = entries.get("name"), entries.pop("kind", None)
    if not isinstance(name, str):
        raise ValueError(f"the name of a column must be a text, got {reprlib.repr(name)}")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"a column must be one of {list(KINDS)}, got {reprlib.repr(kind)}")
    made: Any = KINDS[kind]
    names = {each.name for each in fields(made)}
    try:
        if "form" in entries:
            entries["form"] = form_from(entries["form"])
        if entries.keys() | (names & {"form"}) != names:
            got = reprlib.repr(sorted(entries))
            raise ValueError(f"it must have the entries {sorted(names)}, got {got}")
        column: Column = made(**entries)
    except ValueError as error:
        raise ValueError(f"column {reprlib.repr(name)}: {error}") from None
    return column
