"""Parts of messages: escaped text, choices, hints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence


def printable(text: str) -> str:
    """Escape what a terminal would not print as it stands, such as control characters."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


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
