"""A calibration as a table, of text and of HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple


class Row(NamedTuple):
    """Cells of one coverage; the names are the table's head."""

    nominal: str
    coverage: str  # of the calibration rows
    audit: str  # coverage of rows that neither chose nor padded
    worst_of_five: str  # least coverage of five bins by width, in the audit
    width: str
    chosen: str


_HEAD = tuple(name.replace("_", " ") for name in Row._fields)


def text_table(rows: Sequence[Row]) -> str:
    """Return lines with aligned columns."""
    lines = [_HEAD, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def html_table(title: str, rows: Sequence[Row], note: str) -> str:
    """Return a table with a caption and a paragraph below."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in _HEAD)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return (
        f"<table><caption>{escape(title)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table><p>{escape(note)}</p>"
    )
