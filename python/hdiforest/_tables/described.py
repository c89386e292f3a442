"""What the columns of a table became, and which are row numbers: what a fit and `inspect` say."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdiforest._tables.columns import KINDS, as_float64, is_number, plain
from hdiforest._tables.encoder import TableEncoder
from hdiforest._tables.names import listed

# An index without a name, as pandas writes it, and as it is read of a CSV of pandas or R.
_OF_PANDAS = re.compile(r"__index_level_\d+__")
_NAMELESS = re.compile(r"\s*|Unnamed: 0(\.\d+)*")


def described(encoder: TableEncoder, feature_range: NDArray[Any]) -> dict[str, str]:
    """Return by a title the columns that became one kind of features, and what else is known.

    `feature_range`, (2, n_features), holds the least and the greatest value of each feature.
    """
    lines = {}
    pairs = list(zip(encoder.entries, feature_range.T.tolist(), strict=True))
    for kind in KINDS:
        notes = ((e, ", ".join(filter(None, [e.reading, e.detail(ends)]))) for e, ends in pairs)
        own = [with_note(entry.name, note) for entry, note in notes if entry.kind == kind]
        if own:
            plural = f"{kind.removesuffix('y')}{'ies' if kind.endswith('y') else 's'}"
            lines[f"{plural} ({len(own):,})"] = listed(own)
    if encoder.ids:
        lines[f"ids ({len(encoder.ids):,})"] = listed(with_note(name) for name in encoder.ids)
    if encoder.missing:
        lines["read as missing"] = listed(map(repr, encoder.missing))
    return lines


def with_note(name: str, note: str = "") -> str:
    """Return the name of a column with a note in brackets."""
    return f"{name or '(no name)'} ({note})" if note else name or "(no name)"


def row_numbers(table: Any, named: Collection[str | None]) -> list[str]:
    """Return the columns of a pyarrow Table that number its rows, but for those that are `named`.

    They are the index of pandas without a name, and first columns without a name of whole numbers
    most of which are distinct: rows may be drawn, and tables be joined, after they were numbered.
    """
    names = [name for name in table.schema.names if name not in named]
    found = list(filter(_OF_PANDAS.fullmatch, names))

    def numbers(name: str) -> bool:
        at = table.schema.names.index(name)  # of columns of one name, which are refused later
        return bool(_NAMELESS.fullmatch(name)) and _number_rows(table.column(at))

    return found + list(takewhile(numbers, (name for name in names if name not in found)))


def _number_rows(column: Any) -> bool:
    cells = plain(column.combine_chunks())
    if not is_number(cells.type):
        return False
    values = as_float64(cells.drop_null())  # one may be a word for missing cells
    is_whole = bool(((values >= 0) & (values == np.floor(values))).all())
    return is_whole and 2 * len(np.unique(values)) >= len(cells)
