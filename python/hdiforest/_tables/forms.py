"""How the texts of a column write numbers or dates: found from its cells, and read by pyarrow."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hdiforest._utils.checks import CallError, alternatives, check_choice
from hdiforest._utils.optional import pa, pc


class ColumnError(ValueError):
    """A column that cannot be encoded, for its cell in a `row`; `clause` follows its name."""

    def __init__(self, clause: str, row: int | None = None, advice: str = "") -> None:
        super().__init__(clause)
        self.clause, self.row, self.advice = clause, row, advice

    def sentence(self, subject: str, first_row: int = 0) -> str:
        """Say what is wrong with a column, such as `column 'a'`, in a table after so many rows."""
        where = "" if self.row is None else f" in row {first_row + self.row + 1}"
        return f"{subject} {self.clause}{where}{self.advice}"


def shown(cell: Any) -> str:
    """Return a number as it is, and a cell of text, of Arrow too, between quotes, shortened."""
    if isinstance(cell, np.floating):
        return f"{cell:g}"
    text = str(cell)
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def require_cells(
    fits: NDArray[np.bool_], what: str, cells: Any, show: Callable[[Any], str] = shown
) -> None:
    """Raise ColumnError for the first one of some cells that does not fit `what` must be there."""
    if not fits.all():
        row = int(np.argmin(fits))
        raise ColumnError(f"must hold {what}, but holds {show(cells[row])}", row)


class Form(ABC):
    """How every text of a column is written."""

    def read(self, array: Any) -> Any:
        """Return the values of an Array of text, null for blanks; ColumnError for another form."""
        encoded = array.cast(pa.large_string()).dictionary_encode()
        values = self.values(encoded.dictionary)
        is_odd = pc.and_(values.is_null(), _is_filled(encoded.dictionary)).take(encoded.indices)
        fits = pc.invert(is_odd.fill_null(False)).to_numpy(False)
        require_cells(fits, str(self), array)
        return values.take(encoded.indices)

    @abstractmethod
    def values(self, cells: Any) -> Any:
        """Return the values of an Array of large_string, null for what is written otherwise."""


_SPACE = r"[\s\p{Z}]"
_MINUS = r"[-\x{2212}]"
# Between thousands, and what stands for it in a pattern.
_GROUPS = {"": "", ",": ",", ".": r"\.", " ": _SPACE, "'": r"['\x{2019}]", "_": "_"}
_SEPARATORS = list(_GROUPS)
THOUSANDS = _SEPARATORS[1:]
_CODES = (
    "AED|ARS|AUD|BGN|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|EGP|EUR|GBP|HKD|HUF|IDR|ILS|INR|JPY|KRW|MAD|"
    "MXN|MYR|NGN|NOK|NZD|PEN|PHP|PKR|PLN|RON|RSD|RUB|SAR|SEK|SGD|THB|TRY|TWD|UAH|USD|VND|ZAR"
)
_CURRENCY = rf"(?:{_CODES}|[A-Z]{{0,3}}\p{{Sc}}|Rs\.?|kr\.?|Fr\.?)"
_UNIT = '(?:[%‰°"″]|°?\\p{L}+[.²³0-9]?(?:/\\p{L}+[²³0-9]?)?)'
_ORDINAL = r"\n(?:st|nd|rd|th)$"
_CLEAR = rf"^(?:{_CURRENCY})?\n(?:{_CURRENCY}|[%‰°])?$"


def _number_pattern(prefix: str, body: str, suffix: str) -> str:
    """Return a pattern of numbers with a sign, which accounts write as (57) or 57-."""
    sign, blank = r"[-+\x{2212}]", rf"{_SPACE}*"
    return (
        rf"^{blank}(?P<open>\()?(?P<sign>{sign})?{blank}(?P<prefix>{prefix}){blank}"
        rf"(?P<inner>{sign})?{blank}(?P<body>{body}){blank}(?P<suffix>{suffix}){blank}"
        rf"(?P<behind>{_MINUS})?(?P<close>\))?{blank}$"
    )


_EXPONENT = r"(?:[eE][-+]?\d+)?"
_ANY_GROUP = rf"(?:[.,'\x{{2019}}_]|{_SPACE})"
_LIKE_A_NUMBER = (
    rf"(?:\d{{1,3}}(?:{_ANY_GROUP}\d{{2,3}})*{_ANY_GROUP}\d{{3}}(?:[.,]\d*)?|\d+(?:[.,]\d*)?|[.,]\d+)"
    rf"{_EXPONENT}"
)


@dataclass(frozen=True)
class NumberForm(Form):
    """Numbers with a currency before them, or a currency, a unit or % behind them."""

    prefix: str = ""
    suffix: str = ""
    thousands: str = ""
    decimal: str = "."

    def __post_init__(self) -> None:
        are_texts = isinstance(self.prefix, str) and isinstance(self.suffix, str)
        if not (are_texts and self.thousands in _SEPARATORS and self.decimal in (".", ",")):
            raise ValueError("the form of numbers must have texts and known separators")
        if self.thousands == self.decimal:
            raise ValueError("thousands and decimal must differ")

    def __str__(self) -> str:
        return f"numbers as {self.prefix}1{self.thousands}234{self.decimal}5{self.suffix}"

    @cached_property
    def _pattern(self) -> str:
        group, point = _GROUPS[self.thousands], re.escape(self.decimal)
        # India groups by two digits above the thousands.
        whole = rf"(?:[1-9]\d{{0,2}}(?:{group}\d{{2,3}})*{group}\d{{3}}|\d+)" if group else r"\d+"
        body = rf"(?:{whole}(?:{point}\d*)?|{point}\d+){_EXPONENT}"
        return _number_pattern(re.escape(self.prefix), body, re.escape(self.suffix))

    def values(self, cells: Any) -> Any:
        captures = pc.extract_regex(cells, self._pattern)
        numbers = pc.struct_field(captures, "body")
        if self.thousands:
            numbers = pc.replace_substring_regex(numbers, _GROUPS[self.thousands], "")
        numbers = pc.replace_substring(numbers, self.decimal, ".").cast(pa.float64())
        marks = (pc.struct_field(captures, each) for each in _MARKS)
        marks = pc.binary_join_element_wise(*marks, pa.scalar("", cells.type))
        negative, any_sign = (pa.array(each, cells.type) for each in (_NEGATIVE, _SIGNS))
        numbers = pc.if_else(pc.is_in(marks, negative), pc.negate(numbers), numbers)
        return pc.if_else(pc.is_in(marks, any_sign), numbers, None)


_MARKS = ("open", "sign", "inner", "behind", "close")
_NEGATIVE = ["-", "\u2212", "()"]
_SIGNS = ["", "+", *_NEGATIVE]

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
# What stands for each sign of `strptime`; days of the week say nothing more.
_DIRECTIVES = {
    "Y": r"(?P<Y>\d{4})", "y": r"(?P<y>\d\d)", "m": "(?P<m>0?[1-9]|1[0-2])",
    "d": r"(?P<d>0?[1-9]|[12]\d|3[01])", **dict.fromkeys("aA", "[a-zA-Z]+"),
    **dict.fromkeys("bB", rf"(?P<b>(?i:{'|'.join(_MONTHS)})[a-zA-Z]*\.?)"),
    "H": r"(?P<H>[01]?\d|2[0-3])", "I": "(?P<I>0?[1-9]|1[0-2])", "M": r"(?P<M>[0-5]\d)",
    "S": r"(?P<S>[0-5]\d)(?P<f>\.\d{1,9}|)", "p": r"(?P<p>[aApP]\.?[mM]\.?)",
}  # fmt: skip


@dataclass(frozen=True)
class DateForm(Form):
    """Dates as `strptime` writes them, of years with two digits those from 1969 to 2068."""

    format: str

    def __post_init__(self) -> None:
        names = re.findall("%(.?)", self.format) if isinstance(self.format, str) else [""]
        if not set(names) <= set(_DIRECTIVES) or len(set(names)) < len(names):
            directives = f"%{', %'.join(_DIRECTIVES)}, each once"
            raise ValueError(f"the date format {self.format!r} must be of {directives}")
        if len({"Y", "y"} & {*names}) != 1 or len({"m", "b", "B"} & {*names}) != 1:
            raise ValueError(f"the date format {self.format!r} must have a year and a month")
        if ("I" in names) != ("p" in names):
            raise ValueError(f"the date format {self.format!r} must have both %I and %p or neither")

    def __str__(self) -> str:
        years = " (years 1969 to 2068)" if "%y" in self.format else ""
        return f"dates as {self.format}{years}"

    @cached_property
    def _pattern(self) -> str:
        whole = re.sub("%(.)", lambda sign: _DIRECTIVES[sign[1]], re.escape(self.format))
        if re.search("%[YymdHIMS]%[YymdHIMS]", self.format):  # where numbers have their full length
            whole = whole.replace("0?", "0").replace("[01]?", "[01]")
        return rf"^{_SPACE}*{whole}{_SPACE}*$"

    def values(self, cells: Any) -> Any:
        captures = pc.extract_regex(cells, self._pattern)
        part = {each.name: pc.struct_field(captures, each.name) for each in captures.type}
        if "b" in part:
            short = pc.ascii_lower(pc.utf8_slice_codeunits(part.pop("b"), 0, 3))
            part["m"] = pc.add(pc.index_in(short, pa.array(_MONTHS, short.type)), 1)
        if "f" in part:
            part["f"] = pc.utf8_slice_codeunits(pc.utf8_rpad(part["f"], 7, "0"), 1, 7)
        if "p" in part:
            part["p"] = pc.match_substring_regex(part["p"], "^[pP]")
        number: dict[str, Any] = {
            name: each.cast(pa.int64()).fill_null(1).to_numpy(False) for name, each in part.items()
        }
        year = number["Y"] if "Y" in number else (number["y"] - 69) % 100 + 1969
        months = ((year - 1970) * 12 + number["m"] - 1).astype("datetime64[M]")
        first, after = (each.astype("datetime64[D]").astype(int) for each in (months, months + 1))
        hour = number["I"] % 12 + 12 * number["p"] if "I" in number else number.get("H", 0)
        day, minute, second = (number.get(*each) for each in (("d", 1), ("M", 0), ("S", 0)))
        seconds = (first + day - 1) * 86400 + hour * 3600 + minute * 60 + second
        is_odd = (day > after - first) | ~captures.is_valid().to_numpy(False)
        ticks = seconds * 10**6 + number.get("f", 0)
        return pa.array(np.where(is_odd, 0, ticks), pa.timestamp("us"), mask=is_odd)


def form_from(facts: Any) -> NumberForm | DateForm:
    """Return the form that `facts` describes, or raise ValueError."""
    if isinstance(facts, dict):
        for kind in (NumberForm, DateForm):
            if facts.keys() == kind.__dataclass_fields__.keys():
                return kind(**facts)
    raise ValueError("the form of a column must be one of numbers or of dates")


@dataclass(frozen=True)
class Written:
    """What is said of how texts are written; None: what their cells say."""

    date_formats: Mapping[str, str] = field(default_factory=dict)  # by column
    thousands: str | None = None
    decimal: str | None = None

    def __post_init__(self) -> None:
        check_choice("thousands", self.thousands, [None, *THOUSANDS])
        check_choice("decimal", self.decimal, [None, ".", ","])
        if self.decimal is not None and self.thousands == self.decimal:
            raise CallError("{thousands} and {decimal} must differ")
        for text in self.date_formats.values():
            DateForm(text)

    @property
    def point(self) -> str:
        """The decimal sign of numbers in which nothing else says it."""
        return self.decimal or ("," if self.thousands == "." else ".")

    def allows(self, form: NumberForm) -> bool:
        """Whether numbers may be written so."""
        return (self.thousands is None or form.thousands in ("", self.thousands)) and (
            form.decimal == self.decimal
            or (self.decimal is None and form.decimal != self.thousands)
        )


UNSAID = Written()


def form_of(array: Any, name: str = "COL", written: Written = UNSAID) -> Form | None:
    """Return how all present cells of an Array of text write numbers or dates.

    None if they do not, or are dates of ISO 8601. ColumnError if two readings are possible, or most
    cells are numbers or dates, but not all in one form. `name` is that of the column in advice.
    """
    array = array.cast(pa.large_string())
    cells = pc.unique(array).drop_null()
    cells = cells.filter(_is_filled(cells))
    if len(cells) == 0:
        return None
    if name in written.date_formats:
        form = DateForm(written.date_formats[name])
        form.read(array)
        return form
    return _date_form(cells, name, array) or _number_form(cells, written, array)


def _odd_cell(what: str, cells: Any, fits: NDArray[np.bool_], array: Any) -> ColumnError:
    """Return the error of a column that has a cell which is not written as most others are."""
    usual, odd = (cells[int(np.argmax(each))] for each in (fits, ~fits))
    clause = f"holds {what} such as {shown(usual)}, but {shown(odd)}"
    return ColumnError(clause, array.index(odd).as_py())


def _is_filled(cells: Any) -> Any:
    return pc.match_substring_regex(cells, r"[^\s\p{Z}]")


def _sample(cells: Any) -> Any:
    """Return at most 1,000 cells from all over an Array."""
    return cells.take(pa.array(np.unique(np.linspace(0, len(cells) - 1, 1000).astype(int))))


ZONE = r"(?:Z|[+-]\d\d(?::?\d\d)?)"
ISO_DATE = rf"^\d{{4}}-\d\d-\d\d(?:[T ]\d\d(?::?\d\d(?::?\d\d(?:\.\d{{1,9}})?)?)?{ZONE}?)?$"

# Formats by their shape: 9 stands for digits, a for letters, / for one of four signs.
_DATES = {
    "9/9/9": ("%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d/%m/%y", "%m/%d/%y", "%y/%m/%d"),
    "9/a/9": ("%d/%b/%Y", "%Y/%b/%d", "%d/%b/%y"),
    "a/9/9": ("%b/%d/%Y", "%b/%d/%y"),
    "a 9, 9": ("%b %d, %Y", "%b %d, %y"),
    "9/9": ("%Y/%m", "%m/%Y"),
    "a/9": ("%b/%Y", "%b/%y"),
    "9a9": ("%d%b%Y", "%d%b%y"),
    "9": ("%Y%m%d", "%Y%m%d%H%M%S"),
}
_SHAPE = re.compile(
    r"(?s)(a(?P<weekday>,? )(?=a|9.a|9[-/.]9))?(?P<date>.+?)"
    r"((?P<between>, | |a)9:9(?P<second>:9(\.9)?)?(?P<end> ?a(\.a\.)?)?)?"
)
# Digits alone are dates only of these years.
DIGITS_OF_DATES = r"^\s*(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:\d{6})?\s*$"


def _formats(shape: str) -> Iterator[str]:
    """Yield the formats of dates that may have a shape."""
    captures = cast("Any", _SHAPE.fullmatch(shape)).groupdict()
    date, between, second, end = (captures[n] for n in ("date", "between", "second", "end"))
    times = [""]
    if between is not None:
        rest = ":%M" + ("" if second is None else ":%S")
        ends = [""] if end is None else ["Z", " UTC", " GMT"]
        times = [f"%H{rest}{each}" for each in ends]
        times += [] if end is None else [f"%I{rest}{' ' * (end[0] == ' ')}%p"]
        times = [("T" if between == "a" else between) + each for each in times]
    weekday = "" if captures["weekday"] is None else f"%a{captures['weekday']}"
    sign = next((each for each in "-./ " if each in date), "/")
    for text in _DATES.get(date) or _DATES.get(date.replace(sign, "/"), ()):
        # No country writes the month in front of the day with points.
        if not ((sign == "." and text.startswith("%m/%d")) or (between and "%H" in text)):
            yield from (weekday + text.replace("/", sign) + time for time in times)


def _date_form(cells: Any, name: str, array: Any) -> DateForm | None:
    shapes = pc.replace_substring_regex(pc.utf8_trim_whitespace(_sample(cells)), r"\d+", "9")
    shapes = pc.unique(pc.replace_substring_regex(shapes, "[a-zA-Z]+", "a")).to_pylist()
    formats = dict.fromkeys(each for shape in shapes if shape for each in _formats(shape))
    if not pc.all(pc.match_substring_regex(cells, DIGITS_OF_DATES)).as_py():
        formats = {each: None for each in formats if each not in _DATES["9"]}
    fits = {each: DateForm(each).values(cells).is_valid().to_numpy(False) for each in formats}
    fits[""] = pc.match_substring_regex(cells, ISO_DATE).to_numpy(False)
    whole = [each for each, fit in fits.items() if fit.all()]
    if "" in whole:
        return None
    if len(whole) > 1:
        two = " and ".join(map(shown, cells.slice(0, 2).to_pylist()))
        options = alternatives(repr(f"{name}={each}") for each in whole)
        advice = f"; --date-format {options} says which (in Python date_formats)"
        raise ColumnError(f"holds dates that can be read in {len(whole)} ways, {two}", None, advice)
    if not whole and 2 * np.logical_or.reduce(list(fits.values())).sum() > len(cells):
        raise _odd_cell("dates", cells, max(fits.values(), key=np.sum), array)
    return DateForm(whole[0]) if whole else None


def _number_form(cells: Any, written: Written, array: Any) -> NumberForm | None:
    if written.allows(NumberForm()):
        with suppress(pa.ArrowInvalid):
            plain = pc.utf8_trim_whitespace(cells)
            numbers = plain.cast(pa.float64())
            if pc.all(pc.is_finite(numbers)).as_py():
                # Whole numbers that float64 cannot tell apart are ids.
                is_long = pc.and_(pc.utf8_is_digit(plain), pc.greater_equal(numbers, 2.0**53))
                return None if pc.any(is_long).as_py() else NumberForm()
    like = _number_pattern(f"{_CURRENCY}?", _LIKE_A_NUMBER, f"(?:{_CURRENCY}|{_UNIT})?")
    sample = _sample(cells)
    captures = pc.extract_regex(sample, like)
    affixes = (pc.struct_field(captures, each) for each in ("prefix", "suffix"))
    signs = pc.binary_join_element_wise(*affixes, pa.scalar("\n", cells.type))
    counted = pc.value_counts(signs.filter(pc.invert(pc.match_substring_regex(signs, _ORDINAL))))
    kinds, counts = counted.field("values"), counted.field("counts").to_numpy(False)
    if 4 * counts.sum() < len(sample):
        return None
    prefix, suffix = kinds[int(np.argmax(counts))].as_py().split("\n")
    there = [
        c for c, sign in _GROUPS.items() if pc.any(pc.match_substring_regex(cells, sign)).as_py()
    ]
    decimals = (".", ",") if {".", ","} & {*there} else (written.point,)
    forms = [NumberForm(prefix, suffix, t, d) for d in decimals for t in there if t != d]
    read = [(form, form.values(cells)) for form in forms]
    fits = [values.is_valid().to_numpy(False) for _, values in read]
    whole = [(form, values) for form, values in read if values.null_count == 0]
    if not whole:
        # Codes such as 12A and 14B are numbers with units only if nearly all have the same one.
        is_clear = pc.match_substring_regex(kinds, _CLEAR).to_numpy(False)
        n_clear, n_usual = counts[is_clear].sum(), max(map(np.sum, fits))
        if n_usual > 0 and (2 * n_clear > len(sample) or 4 * n_usual > 3 * len(cells)):
            raise _odd_cell("numbers", cells, max(fits, key=np.sum), array)
        return None
    allowed = [(form, values) for form, values in whole if written.allows(form)]
    two = " and ".join(map(shown, cells.slice(0, 2).to_pylist()))
    if not allowed:
        raise ColumnError(f"holds {two}, which thousands and decimal do not allow")
    if not all(values.equals(allowed[0][1]) for _, values in allowed):
        sign = next(form.thousands for form, _ in allowed if form.thousands in (".", ","))
        advice = f"; --thousands {sign!r} or --decimal {sign!r} says which (in Python too)"
        raise ColumnError(f"holds numbers that can be read in two ways, {two}", None, advice)
    return allowed[0][0]
