"""Checks of arguments, words and numbers of messages, and how many threads `n_jobs` stands for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from html import escape
from inspect import signature
from numbers import Integral
from string import Formatter
from typing import Any, TypeVar, cast

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike

from hdiforest._utils import Array

_Method = TypeVar("_Method", bound=Callable[..., Any])


def check_choice(name: str, value: object, choices: Iterable[str | None]) -> None:
    """Raise ValueError unless it is one of the words, or None where that is among them."""
    words = tuple(choices)
    if not (value is None or isinstance(value, str)) or value not in words:
        raise ValueError(f"{name} must be {alternatives(map(repr, words))}, got {value!r}")


def check_flag(name: str, value: object) -> None:
    """Raise ValueError unless it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def reals(name: str, value: ArrayLike) -> Array:
    """Return the argument `name` as float64."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers: {error}") from None


# What stands for an argument of other libraries, or for one of the forest.
_INSTEAD = {
    "alpha": "; alpha=0.1 is coverage=0.9 here",
    "confidence_level": "; confidence_level=0.9 is coverage=0.9 here",
    "__init__": "; arguments of a forest are given to it: estimator=ExtraTreesRegressor(100, "
    "bootstrap=True)",
}


def known_arguments(method: _Method) -> _Method:
    """Let a method refuse unknown arguments by the name of the class that it is called of."""
    names = frozenset(signature(method).parameters)

    @wraps(method)
    def call(self: Any, /, *args: Any, **options: Any) -> Any:
        if not names.issuperset(options):
            name = next(name for name in options if name not in names)
            called = f"{type(self).__name__}.{method.__name__}()".replace(".__init__", "")
            instead = _INSTEAD.get(name, _INSTEAD.get(method.__name__, ""))
            raise TypeError(f"{called} got an unexpected keyword argument {name!r}{instead}")
        return method(self, *args, **options)

    return cast("_Method", call)


class CallError(ValueError):
    """A ValueError that the command says in options: what it says of Python are fields of a form.

    A field is one of the `words`, or else an argument; `data` is what some words are about.
    """

    def __init__(self, form: str, data: str = "", **words: str) -> None:
        super().__init__(form, data)
        self.form, self.data, self.words = form, data, words

    def __str__(self) -> str:
        return self.message(self.words)

    def message(self, words: Mapping[str, str], before_arguments: str = "") -> str:
        """Return the message with these words in its fields."""
        fields = (name for _, name, _, _ in Formatter().parse(self.form) if name is not None)
        return self.form.format_map({f: words.get(f, before_arguments + f) for f in fields})


def as_written(levels: Any) -> Any:
    """Return levels of less than 64 bits as float64 that is written alike, others as they are."""
    if isinstance(levels, list | tuple):
        return [as_written(level) for level in levels]
    numbers = np.asarray(levels) if hasattr(levels, "dtype") else np.array(0)
    is_narrow = numbers.dtype.kind == "f" and numbers.dtype.itemsize < 8
    return numbers.astype(str).astype(np.float64)[()] if is_narrow else levels


def shares(name: str, value: Any, *, one: bool = False) -> Array:
    """Return one coverage or level, or some, above 0 and below 1, or also `one`, as float64."""
    try:
        numbers = np.asarray(as_written(value))
    except ValueError:  # lists of several lengths
        numbers = np.array(None)
    is_list = numbers.ndim < 2 and numbers.size > 0
    if not is_list or numbers.dtype.kind not in "iuf":  # such as texts and booleans
        raise ValueError(f"{name} must be a number or a list of numbers, got {value!r}")
    for share in numbers.flat:
        if not (0 < share < 1 or (one and share == 1)):
            hint = percentage_hint(share, lambda level: level < 1)
            most = "at most 1" if one else "below 1"
            raise CallError(f"{{{name}}} must be above 0 and {most}, got {share:g}{hint}")
    return numbers.astype(np.float64)


def one_share(name: str, value: Any) -> float:
    """Return one coverage above 0 and below 1."""
    if np.ndim(value) > 0 or isinstance(value, str | bool | None):
        raise ValueError(f"{name} must be one number above 0 and below 1, got {value!r}")
    return float(shares(name, value))


def checked_floor(value: Any) -> float:
    """Return the argument `min_coverage`: 0, or above 0 and below 1."""
    return one_share("min_coverage, if not 0,", value) if np.ndim(value) or value != 0 else 0.0


def check_size(name: str, value: Any) -> None:
    """Raise ValueError unless it is one finite number from 0 on."""
    size = reals(name, value)
    if not (size.ndim == 0 and 0 <= size < np.inf):
        raise ValueError(f"{name} must be a number from 0 on and finite, got {value!r}")


def checked_coverages(value: Any) -> tuple[float, ...]:
    """Return distinct coverages, ascending, at least one, of a number or a list of numbers."""
    coverages = np.sort(shares("coverage", value).reshape(-1))
    if (np.diff(coverages) == 0).any():
        raise ValueError(f"coverage must be one or more distinct numbers, got {value!r}")
    return tuple(coverages.tolist())


def check_whole_number(name: str, value: object, least: int = 1) -> int:
    """Return a whole number from the least on; True and False are none."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number from {least} on, got {value!r}")
    return int(value)


def check_targets(name: str, value: ArrayLike, n_outputs: int = 1) -> Array:
    """Return finite targets, (n,) or of several outputs (n, n_outputs), at least one.

    A table of one column may be given for (n,).
    """
    y, of_row = reals(name, value), (n_outputs,)[n_outputs == 1 :]
    if not of_row and y.shape[1:] == (1,) and hasattr(value, "columns"):
        y = y[:, 0]
    if y.ndim == 0 or y.shape[1:] != of_row or len(y) == 0:
        expected = f"(n, {n_outputs})" if of_row else "(n,)"
        raise ValueError(f"{name} must have shape {expected} with n > 0, got {y.shape}")
    if not np.isfinite(y).all():
        bad = ~np.isfinite(y.reshape(len(y), -1)).all(axis=1)
        raise ValueError(f"{name} must be finite, got {count_rows(bad)} that are not")
    return y


def check_as_many(name: str, value: Array, n: int | None) -> None:
    """Raise ValueError unless there are values for n rows; None: of which the number is unknown."""
    if n is not None and len(value) != n:
        raise ValueError(f"{name} must have shape {(n, *value.shape[1:])}, got {value.shape}")


def check_one_for_each(name: str, shape: tuple[int, ...], n: int) -> None:
    """Raise ValueError unless the shape of an argument is that of one value for each of n rows."""
    if shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {shape}")


def check_no_interval_is_empty(ends: Array) -> None:
    """Raise ValueError if one of the intervals of rows, (n, ...), is NaN."""
    n_empty = np.count_nonzero(np.isnan(ends).any(axis=tuple(range(1, ends.ndim))))
    if n_empty > 0:
        raise ValueError(f"{n_empty} of the {len(ends)} rows of X have no interval")


def check_weights(name: str, value: ArrayLike, n: int, *, positive: bool = False) -> Array:
    """Return weights of n rows, (n,): finite, not negative and not all zero, or all positive."""
    weights = reals(name, value)
    check_one_for_each(name, weights.shape, n)
    finite = np.isfinite(weights).all()
    if positive and not (finite and (weights > 0).all()):
        raise ValueError(f"{name} must be finite and positive")
    if not (finite and (weights >= 0).all() and (weights > 0).any()):
        raise ValueError(f"{name} must be finite, not negative, and not all zero")
    return weights


def count_rows(bad: Any) -> str:
    """Say how many of the rows are bad."""
    return f"{int(bad.sum())} of {len(bad)} rows"


def printable(text: object) -> str:
    """Escape what a terminal would not print as it stands, such as control characters."""
    letters = str(text)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in letters)


def alternatives(words: Iterable[str]) -> str:
    """Return the words as a choice: ``a, b or c``."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def significant(value: float, digits: int = 3) -> str:
    """Return a number of at most so many digits as people write it: 74,500, 2010 or 0.0123.

    Exponents stand where digits would be many: from 10**15 on, and below 0.0001.
    """
    rounded = float(f"{value:.{digits}g}") + 0.0  # minus zero is zero
    separator = "," if abs(rounded) >= 1e4 else ""
    return f"{rounded:{separator}.{max(digits, 15)}g}"


def count_text(n: int) -> str:
    """Return a count as people read it: in full, or from a million on such as 1.23 million."""
    for size, unit in ((10**9, "billion"), (10**6, "million")):
        if n >= size:
            return f"{significant(n / size)} {unit}"
    return f"{n:,}"


def size_text(n_bytes: float) -> str:
    """Return a number of bytes as people read it, such as 4.2 MB."""
    for unit in ("bytes", "kB", "MB"):
        if n_bytes < 999.5:
            return f"{significant(n_bytes)} {unit}"
        n_bytes /= 1000
    return f"{significant(n_bytes)} GB"


def time_text(seconds: float) -> str:
    """Return a time as people read it, such as 0.42 s, 3 min 5 s or 2 h 10 min; 1 ms at least."""
    if seconds < 59.95:
        return f"{significant(max(seconds, 0.001))} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60} min"


def aligned(rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """Lay out rows of escaped cells in columns: `left` ones to the left, others to the right."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if j < left else cell.rjust(width)
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def html_table(rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """Return rows of cells as a table of HTML, the first of them as its head."""
    head, *body = (
        "".join(f"<{tag}>{escape(printable(cell))}</{tag}>" for cell in row)
        for row, tag in zip(rows, ["th", *["td"] * (len(rows) - 1)], strict=True)
    )
    title = f"<caption>{escape(printable(caption))}</caption>" if caption else ""
    lines = "".join(f"<tr>{row}</tr>" for row in body)
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def percentage_hint(level: float, is_allowed: Callable[[float], bool]) -> str:
    """Return a hint to append to an error on a level, empty unless it may be a percentage."""
    is_percentage = level > 1 and is_allowed(level / 100)
    return f" (did you mean {level / 100:g}?)" if is_percentage else ""


def number_texts(numbers: Sequence[float]) -> list[str]:
    """Return numbers with three digits, or with as many more as tell different ones apart."""
    for n_digits in range(3, 18):
        texts = [significant(number, n_digits) for number in numbers]
        if len(set(texts)) == len(set(numbers)):
            break
    return texts


def checked_random_state(random_state: Any) -> RandomState:
    """Return a RandomState for a seed, a RandomState or None; True and False are no seeds."""
    from sklearn.utils import check_random_state  # serving does without scikit-learn

    seed = "" if isinstance(random_state, bool) else random_state
    try:
        random: RandomState = check_random_state(seed)
    except ValueError:
        raise ValueError(
            "random_state must be a whole number from 0 to 2**32 - 1, a RandomState or None, got "
            f"{random_state!r}"
        ) from None
    return random


def checked_seed(random_state: Any) -> int:
    """Return a seed as it is, 0 for None, and of a RandomState a number that it draws."""
    seed = 0 if random_state is None else random_state
    random = checked_random_state(seed)
    return int(seed) if isinstance(seed, Integral) else int(random.randint(2**31 - 1))


def check_n_jobs(n_jobs: Any) -> None:
    """Raise ValueError unless it is a whole number other than 0, or None."""
    is_whole = isinstance(n_jobs, int | np.integer) and not isinstance(n_jobs, bool)
    if n_jobs is not None and (not is_whole or n_jobs == 0):
        raise ValueError(f"n_jobs must be a whole number other than 0, or None, got {n_jobs!r}")


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads that `n_jobs` stands for, or raise ValueError.

    None means 1, or what ``joblib.parallel_config`` says; -1 all processors that the process has.
    """
    check_n_jobs(n_jobs)
    from joblib.parallel import SequentialBackend, ThreadingBackend, get_active_backend

    backend, configured = get_active_backend()
    n_jobs = configured if n_jobs is None else n_jobs
    # joblib's threading backend counts, whichever backend is active, because daemonic processes may
    # start threads too. The sequential backend is that of nested workers, which must start none.
    threads = backend if isinstance(backend, SequentialBackend) else ThreadingBackend()
    n_threads: int = threads.effective_n_jobs(n_jobs)
    # Other pools tell their workers by this variable alone how many processors they may use.
    limit = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if n_jobs is not None and n_jobs < 0 and limit.isdecimal() and int(limit) > 0:
        n_threads = min(n_threads, int(limit))
    return n_threads
