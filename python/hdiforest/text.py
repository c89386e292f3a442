"""Parts of messages: escaped text, choices, hints."""

from __future__ import annotations

import math
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
    """Return a number of so many significant digits as people write it: 74,500 or 0.0123.

    Exponents stand where digits would be many: from 10**12 on, and below 0.0001.
    """
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    rounded = float(f"{value:.{digits - 1}e}")
    exponent = math.floor(math.log10(abs(rounded)))
    if not -4 <= exponent < 12:
        return f"{rounded:.{digits}g}"
    return f"{rounded:,.{max(0, digits - 1 - exponent)}f}"


def percentage_hint(level: float, is_allowed: Callable[[float], bool]) -> str:
    """Return a hint to append to an error on a level, empty unless it may be a percentage."""
    is_percentage = level > 1 and is_allowed(level / 100)
    return f" (did you mean {level / 100:g}?)" if is_percentage else ""


def number_texts(numbers: Sequence[float]) -> list[str]:
    """Return numbers with three digits, or with as many more as tell different ones apart."""
    for n_digits in range(3, 18):
        texts = [_number(number, n_digits) for number in numbers]
        if len(set(texts)) == len(set(numbers)):
            break
    return texts


def _number(number: float, n_digits: int) -> str:
    text = f"{number + 0.0:.{n_digits}g}"  # minus zero is zero
    if 1e4 <= abs(float(text)) < 1e15:
        return f"{float(text):,.{n_digits}f}".rstrip("0").rstrip(".")
    return text if "e" not in text or abs(number) < 1 else f"{float(text):.15g}"
