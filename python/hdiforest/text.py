"""Parts of sentences: what any terminal shows as it stands, and choices."""

from __future__ import annotations

from collections.abc import Iterable


def printable(text: str) -> str:
    """Escape what a terminal would not print as it stands, such as control characters."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def alternatives(words: Iterable[str]) -> str:
    """Return the words as a choice: ``a, b or c``."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last
