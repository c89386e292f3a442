"""Columns of dates, timestamps and durations: numbers that float32 keeps as exactly as it can."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hdiforest._tables.columns import (
    Codes,
    Column,
    ColumnError,
    decoded,
    first_failure,
    is_date,
    is_duration,
    is_text,
    present_text,
    shown,
)
from hdiforest._utils.optional import pa, pc

# How many make a day, by the name of the unit.
UNITS = {
    "day": 1,
    "hour": 24,
    "minute": 24 * 60,
    "second": 24 * 3600,
    "millisecond": 24 * 3600 * 10**3,
    "microsecond": 24 * 3600 * 10**6,
    "nanosecond": 24 * 3600 * 10**9,
}
_OF_ARROW = {"s": "second", "ms": "millisecond", "us": "microsecond", "ns": "nanosecond"}

# Days since 1970-01-01 of 0001-01-01 and of 9999-12-31: what ISO 8601 writes with four digits.
FIRST_DAY, LAST_DAY = -719162, 2932896

_ZONED = r"(?:Z|[+-]\d\d(?::?\d\d)?)$"
ISO_DATE = (
    r"^\d{4}-\d\d-\d\d(?:[T ]\d\d(?::?\d\d(?::?\d\d(?:\.\d{1,9})?)?)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?$"
)


@dataclass(frozen=True)
class DateColumn(Column):
    """Dates or timestamps, as a number of units since a day of reference.

    Whole numbers of the unit are exact in float32 up to 2^24 units from the reference.
    """

    unit: str  # one of `UNITS`
    reference: int  # in days since 1970-01-01
    zoned: bool  # whether the timestamps have a time zone; the number is then that of UTC
    kind = "date"

    def __post_init__(self) -> None:
        if not isinstance(self.unit, str) or self.unit not in UNITS:
            raise ValueError(f"unit must be one of {list(UNITS)}")
        if type(self.reference) is not int or not FIRST_DAY <= self.reference <= LAST_DAY:
            raise ValueError("reference must be a day of the years 1 to 9999")
        if not isinstance(self.zoned, bool):
            raise ValueError("zoned must be true or false")

    def __str__(self) -> str:
        return f"{self.name} (date, in {self.unit}s)"

    def codes(self, array: Any) -> Codes:
        """See `Column`."""
        array = decoded(array)
        stamps = as_timestamps(array, self.zoned)
        days, rest, per_day = whole_days(stamps)
        n_units = UNITS[self.unit]
        values = (days - self.reference) * float(n_units) + rest * (n_units / per_day)
        values[is_null(stamps)] = np.nan
        return Codes(values)

    def texts(self, cells: Sequence[float]) -> list[str]:
        """See `Column`."""
        days = self.reference + np.array(cells) / UNITS[self.unit]
        seconds = np.rint(np.clip(days, FIRST_DAY, LAST_DAY) * UNITS["second"])
        width = {"day": 10, "hour": 16, "minute": 16}.get(self.unit, 19)
        stamps = np.datetime_as_string(seconds.astype("datetime64[s]"))
        return [stamp[:width].replace("T", " ") for stamp in stamps.tolist()]

    @classmethod
    def learned(cls, name: str, array: Any) -> Self:
        """Return a column for the dates of an Array: whole numbers near the median, if possible."""
        array = decoded(array)
        zoned = has_zone(array)
        stamps = as_timestamps(array, zoned)
        present = ~is_null(stamps)
        days, rest, per_day = whole_days(stamps)
        days, rest = days[present], rest[present]
        reference = int(np.median(days)) if len(days) else 0
        unit = next(
            name for name, n in UNITS.items() if n >= per_day or not (rest % (per_day // n)).any()
        )
        return cls(name, unit, reference, zoned)


@dataclass(frozen=True)
class DurationColumn(Column):
    """Durations or times of a day, in seconds."""

    kind = "duration"

    def codes(self, array: Any) -> Codes:
        """See `Column`."""
        array = decoded(array)
        if pa.types.is_null(array.type):
            return Codes(np.full(len(array), np.nan))
        if not is_duration(array.type):
            raise ColumnError(f"must hold durations or times, but is {array.type}")
        values = _integers(array) / (UNITS[_OF_ARROW[array.type.unit]] // UNITS["second"])
        values[is_null(array)] = np.nan
        return Codes(values)

    def texts(self, cells: Sequence[float]) -> list[str]:
        """See `Column`."""
        return [f"{text} s" for text in super().texts(cells)]


def as_timestamps(array: Any, zoned: bool) -> Any:
    """Return an Array of dates of the years 1 to 9999, or raise ColumnError, as timestamps."""
    zone = "UTC" if zoned else None
    kind = array.type
    if is_text(kind):
        types = pa.timestamp("us", zone), pa.timestamp("ns", zone)
        what = "timestamps with a time zone" if zoned else "dates without a time zone"
        text = present_text(array)
        stamps = _parsed(text, types, f"{what} such as {_example(zoned)}")
        _require_in_range(stamps, text)
        return stamps
    if pa.types.is_null(kind):
        return array.cast(pa.timestamp("s", zone))
    if not is_date(kind):
        raise ColumnError(f"must hold dates, but is {kind}")
    if zoned != (getattr(kind, "tz", None) is not None):
        wanted = "with" if zoned else "without"
        raise ColumnError(f"must hold dates {wanted} a time zone, but is {kind}")
    if pa.types.is_date32(kind):
        array = array.cast(pa.timestamp("s"))
    elif pa.types.is_date64(kind):
        array = array.cast(pa.timestamp("ms"))
    _require_in_range(array)
    return array


def has_zone(array: Any) -> bool:
    """Whether the first date of an Array has a time zone."""
    if not is_text(array.type):
        return getattr(array.type, "tz", None) is not None
    present = present_text(array).drop_null()
    return len(present) > 0 and bool(
        pc.match_substring_regex(present.slice(0, 1), f"[T ].*{_ZONED}")[0].as_py()
    )


def whole_days(stamps: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Return days since 1970-01-01, the ticks left over, and the ticks of a day."""
    per_day = UNITS[_OF_ARROW[stamps.type.unit]]
    ticks = _integers(stamps)
    days = ticks // per_day
    return days, ticks - days * per_day, per_day


def is_null(array: Any) -> NDArray[np.bool_]:
    """Return which cells of an Array are missing."""
    missing: NDArray[np.bool_] = array.is_null().to_numpy(zero_copy_only=False)
    return missing


def _integers(array: Any) -> NDArray[np.int64]:
    """Return the ticks of an Array of times; those of missing cells are 0."""
    width = pa.int32() if pa.types.is_time32(array.type) else pa.int64()
    ticks: NDArray[np.int64] = array.cast(width).fill_null(0).to_numpy().astype(np.int64)
    return ticks


def _require_in_range(stamps: Any, text: Any = None) -> None:
    """Raise ColumnError if a timestamp, that `text` was read as, is out of range."""
    days, _, _ = whole_days(stamps)
    bad = (days < FIRST_DAY) | (days > LAST_DAY)
    if bad.any():
        row = int(np.argmax(bad))
        held = f"{_integers(stamps)[row]} {_OF_ARROW[stamps.type.unit]}s since 1970"
        if text is not None:
            held = shown(text[row].as_py())
        raise ColumnError(f"must hold dates of the years 1 to 9999, but holds {held}", row)


def _parsed(text: Any, types: tuple[Any, ...], expected: str) -> Any:
    """Return text as the first of the types that all cells can be read as."""
    for kind in types:
        with suppress(pa.ArrowInvalid):
            return text.cast(kind)
    row = first_failure(lambda part: not any(_can_cast(part, kind) for kind in types), text)
    raise ColumnError(f"must hold {expected}, but holds {shown(text[row].as_py())}", row)


def _can_cast(array: Any, kind: Any) -> bool:
    try:
        array.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _example(zoned: bool) -> str:
    return "2024-05-31T12:00:00Z" if zoned else "2024-05-31 or 2024-05-31 12:00:00"
