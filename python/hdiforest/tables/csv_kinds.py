"""Tells columns of numbers from columns of text by the cells of a CSV."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

from hdiforest._utils.optional import need

Kind = Literal["number", "text"]


def _number(decimal: str) -> str:
    point = re.escape(decimal)
    return rf"^\s*[+-]?(\d+{point}?\d*|{point}\d+)([eE][+-]?\d+)?\s*$"


def kind_of(
    text: Any, as_numbers: Callable[[Any], Any], decimal: str
) -> Literal["number", "text", "mixed"] | None:
    """Return what the cells of a column are; None if all are missing.

    Columns of the words true and false alone are text, and those with numbers in more than half of
    their distinct cells, but not in all, are mixed.

    Parameters
    ----------
    text : pyarrow.Array
        Missing cells are null.
    as_numbers : callable
        Returns numbers, or raises pyarrow.ArrowInvalid.
    decimal : str
        Sign before the decimals of a number.
    """
    pa, pc = need("pyarrow"), need("pyarrow.compute")
    cells = pc.unique(text.drop_null())
    if len(cells) == 0:
        return None
    if pc.all(pc.match_substring_regex(cells, r"^(?i:\s*(true|false)\s*)$")).as_py():
        return "text"
    try:
        as_numbers(cells)
    except pa.ArrowInvalid:
        n_numbers = pc.sum(pc.match_substring_regex(cells, _number(decimal))).as_py()
        return "mixed" if 2 * n_numbers > len(cells) else "text"
    return "number"


def odd_one(text: Any, decimal: str) -> tuple[int, str]:
    """Return position and content of the first cell of a mixed column that is no number."""
    pc = need("pyarrow.compute")
    row = pc.match_substring_regex(text, _number(decimal)).index(False).as_py()
    return row, text[row].as_py()
