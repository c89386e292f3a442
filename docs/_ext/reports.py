"""Reads tables of the reports that the benchmarks write."""

import re
from fnmatch import fnmatch


def paragraphs_of(path, section=None):
    """Return the text of a Markdown file, or of one section of it.

    A section begins with a heading, or with a line in bold type, and ends where the next begins.
    """
    text = path.read_text(encoding="utf-8")
    if section is None:
        return text
    parts = re.split(r"^(?:#+ (.*)|\*\*(.*)\*\*)$", text, flags=re.M)
    found = {h or b: body for h, b, body in zip(parts[1::3], parts[2::3], parts[3::3], strict=True)}
    if section not in found:
        raise ValueError(f"{path} has no section {section!r}; it has {sorted(found)}")
    return found[section]


def table_of(text):
    """Return the head and the rows of the first table in a text, as lists of cells."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    if len(lines) < 3:
        raise ValueError("no table where one is expected")
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    head = cells[0]
    rows = [row for row in cells[2:] if len(row) == len(head)]
    return head, rows


def selected(head, rows, columns=None, names=None, only=None, medians=False):
    """Return a table's head and rows with some columns and rows alone.

    Parameters
    ----------
    head : list of str
    rows : list of list of str
    columns : list of str, optional
        Columns to keep, in this order.
    names : list of str, optional
        Patterns of the first cell, such as ``small_*``: rows to keep, in this order.
    only : tuple of str, optional
        A column, and the cell that a row must have there.
    medians : bool
        Keep the first figure of each cell, without its spread, goal and verdict.
    """
    for column in [*(columns or []), *(only or ())[:1]]:
        if column not in head:
            raise ValueError(f"no column {column!r}; the table has {head}")
    if only:
        rows = [row for row in rows if row[head.index(only[0])] == only[1]]
    if names:
        kept = [[row for row in rows if fnmatch(row[0], name)] for name in names]
        for name, found in zip(names, kept, strict=True):
            if not found:
                raise ValueError(f"no row {name!r}; the table has {[row[0] for row in rows]}")
        rows = [row for found in kept for row in found]
    at = [head.index(column) for column in columns or head]
    cells = [[row[k] for k in at] for row in rows]
    if medians:
        cells = [[first, *(cell.split(" ")[0] for cell in rest)] for first, *rest in cells]
    return [head[k] for k in at], cells


def markdown(head, rows):
    """Return a table as lines of Markdown, its first column to the left, others to the right."""
    ruler = ["---", *["---:"] * (len(head) - 1)]
    return [f"| {' | '.join(cells)} |" for cells in (head, ruler, *rows)]
