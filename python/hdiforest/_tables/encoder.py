"""TableEncoder: numbers, dates and categories of a table as features; data, without code."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hdiforest._tables import columns as kinds
from hdiforest._tables.columns import Codes, Column, EncodingError, Facts, NumberColumn
from hdiforest._tables.forms import (
    ISO_DATE,
    UNSAID,
    ColumnError,
    DateForm,
    NumberForm,
    Written,
    form_of,
)
from hdiforest._tables.names import listed, with_note
from hdiforest._tables.row_counts import RowCounts, count_rows
from hdiforest._utils.hints import warn_caller
from hdiforest._utils.optional import pa, pc


@dataclass(frozen=True)
class TableEncoder:
    """The features of a forest, each from a column of a table; missing and unknown ones are NaN."""

    entries: tuple[Column, ...]  # in the order of their features, whose names are distinct
    ids: tuple[str, ...] = ()  # columns that name the rows, and need not be there
    missing: tuple[str, ...] = ()  # words of missing cells; see `without_words`

    @classmethod
    def of_numbers(cls, names: Iterable[str]) -> TableEncoder:
        """Return an encoder of plain numbers, a feature each."""
        return cls(tuple(map(NumberColumn, names)))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names that a table must have, in the order of the features, which have the same names."""
        return tuple(entry.name for entry in self.entries)

    @cached_property
    def ordered(self) -> dict[int, Column]:
        """Columns without categories, by their positions."""
        return {j: entry for j, entry in enumerate(self.entries) if not entry.has_categories}

    @property
    def number_columns(self) -> tuple[str, ...]:
        """Names of the columns that hold plain numbers."""
        numbers = (entry for entry in self.entries if isinstance(entry, NumberColumn))
        return tuple(entry.name for entry in numbers if entry.form is None)

    def encode(
        self, table: Any, *, first_row: int = 0, feature_range: NDArray[np.float32] | None = None
    ) -> tuple[NDArray[np.float32], RowCounts]:
        """Return features, (n, n_features) float32, C-ordered, and the counts of their rows.

        The columns of a pyarrow Table or RecordBatch are found by name; what `row` returned is
        taken as it is. `first_row` rows before it count in messages. Raises one EncodingError for
        all columns. O(n) for each column.
        """
        X = table if isinstance(table, np.ndarray) else self._coded(table, first_row)
        counts = count_rows(X, dict(enumerate(self.entries)), feature_range)
        if counts.unseen.total():
            X[np.isinf(X)] = np.nan
        return X, counts

    def _coded(self, table: Any, first_row: int) -> NDArray[np.float32]:
        """Return features as `encode` does, but for `UNSEEN` categories."""
        kinds.require_columns(self.columns, table.schema.names)
        X = np.empty((table.num_rows, len(self.entries)), dtype=np.float32)
        faults, lost = {}, dict[str, list[str]]()
        for j, entry in enumerate(self.entries):
            try:
                codes = self._codes(entry, table.column(entry.name))
            except ColumnError as error:
                faults[entry.name] = error.sentence(f"column {entry.name!r}", first_row)
                continue
            X[:, j] = codes
            if not isinstance(entry, NumberColumn):
                continue
            if _are_rounded(codes):
                lost.setdefault(_ROUNDED, []).append(repr(entry.name))
            elif became := _merged(codes):
                lost.setdefault(_MERGED, []).append(f"{entry.name!r} ({became})")
        if faults:
            raise EncodingError("; ".join(faults.values()), faults)
        for warning, names in lost.items():
            warn_caller(warning.format(f"column{'s' * (len(names) > 1)} {', '.join(names)}"))
        return X

    def _codes(self, entry: Column, column: Any) -> Codes:
        """Return the codes of an Array, or of a ChunkedArray."""
        if self.missing:
            column = kinds.without_words(column, self.missing)
        cells = kinds.plain(column)
        array = cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells
        if pa.types.is_null(array.type):
            return np.full(len(array), np.nan)
        return entry.codes(array)

    def row(self, record: Mapping[str, Any]) -> NDArray[np.float32] | None:
        """Return the row of cells (1, n_features); None if only a table can say what it is.

        A cell is a column by itself. Those of the plain kinds are coded without Arrow.
        """
        if self.missing:
            return None
        codes = []
        try:
            for entry in self.entries:
                code = entry.code(record[entry.name])
                codes.append(self._code(entry, record[entry.name]) if code is None else code)
        except Exception:  # of any cell: the table refuses it, or another one, in its own words
            return None
        return np.array([codes], dtype=np.float32)

    def _code(self, entry: Column, cell: Any) -> float:
        """Return the code of a cell by Arrow; it raises what the table would, or more."""
        if cell is None:
            return math.nan
        codes = self._codes(entry, pa.array([cell], from_pandas=True))
        if isinstance(entry, NumberColumn) and _are_rounded(codes):
            raise ValueError("a warning is due")
        return float(codes[0])

    def require_present(self, X: NDArray[np.floating[Any]], *, first_row: int = 0) -> None:
        """Raise EncodingError if features are missing, for a forest that does not take that."""
        missing = np.isnan(X)
        if missing.any():
            row, j = np.unravel_index(int(missing.argmax()), X.shape)
            name, number = self.columns[j], first_row + row + 1
            what = f"column {name!r} has a missing cell or an unknown category in row {number}"
            raise EncodingError(f"the forest takes no missing values, but {what}", [name])

    def __str__(self) -> str:
        return ", ".join(map(str, self.entries))

    def described(self, feature_range: NDArray[Any]) -> dict[str, str]:
        """Return by a title the columns that became one kind of features, and what else is known.

        `feature_range`, (2, n_features), holds the least and the greatest value of each feature.
        """
        lines: dict[str, list[str]] = {}
        for kind in kinds.KINDS:
            pairs = zip(self.entries, feature_range.T.tolist(), strict=True)
            line = [entry.noted(ends) for entry, ends in pairs if entry.kind == kind]
            lines[f"{kind.removesuffix('y')}{'ies' if kind.endswith('y') else 's'}"] = line
        lines["ids"] = list(map(with_note, self.ids))
        text = {f"{title} ({len(line):,})": listed(line) for title, line in lines.items() if line}
        return text | ({"read as missing": listed(map(repr, self.missing))} if self.missing else {})

    def facts(self) -> Facts:
        """Return the encoder as JSON's types; `from_facts` reads them."""
        facts = {"columns": [each.facts() for each in self.entries], "ids": list(self.ids)}
        return facts | ({"missing": list(self.missing)} if self.missing else {})

    @classmethod
    def from_facts(cls, facts: Any) -> TableEncoder:
        """Return the encoder that `facts` made; ValueError if an entry is not what it must be."""
        if not isinstance(facts, dict) or set(facts) - {"missing"} != {"columns", "ids"}:
            raise ValueError("an encoder must have the entries columns and ids")
        columns, ids, missing = facts["columns"], facts["ids"], facts.get("missing", [])
        if not isinstance(columns, list) or not columns:
            raise ValueError("the columns of an encoder must be a list that is not empty")
        for what, texts in {"ids": ids, "words for missing cells": missing}.items():
            if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
                raise ValueError(f"the {what} of an encoder must be a list of texts")
        entries = tuple(map(kinds.column_of, columns))
        names = [*(entry.name for entry in entries), *ids]
        if len(set(names)) != len(names):
            raise ValueError("the columns of an encoder must have distinct names")
        return cls(entries, tuple(ids), tuple(missing))

    def __reduce__(self) -> tuple[Callable[[Any], TableEncoder], tuple[Facts]]:
        # Without the Arrow arrays that columns make once.
        return TableEncoder.from_facts, (self.facts(),)


# Warnings of what float32 takes from the numbers of some columns.
_ROUNDED = "whole numbers beyond 2^24 are rounded to float32 in the {}"
_MERGED = (
    "float32 merges most of the different numbers in the {}; subtract a constant, so that they are "
    "near 0"
)


def _are_rounded(values: NDArray[np.float64]) -> bool:
    """Whether all of some numbers are whole, and float32 rounds one of them."""
    if not (np.abs(values) > kinds.MAX_EXACT).any():
        return False
    present = values[~np.isnan(values)]
    # Every float64 from 2^53 on is whole, and may already be a rounded one.
    exact = (present.astype(np.float32) == present) & (np.abs(present) < 2.0**53)
    return bool((present == np.floor(present)).all() and not exact.all())


def _merged(values: NDArray[np.float64]) -> str:
    """Say how many different ones of the first numbers float32 merges, if these are most."""
    first = values[:_FIRST]
    narrow = first.astype(np.float32)
    if len(first) < _FEWEST or ((narrow == first) | np.isnan(first)).all():
        return ""
    n, n_left = (1 + np.count_nonzero(np.diff(np.sort(each)) > 0) for each in (first, narrow))
    of = f" of the first {_FIRST:,}" if len(values) > _FIRST else ""
    return f"{n}{of} become {n_left}" if n >= _FEWEST and 2 * n_left < n else ""


Categorical = Literal["auto"] | Sequence[str]

_FIRST, _FEWEST = 1024, 10

# A column of text with more distinct cells than this, and than half its rows, names the rows.
_FEW = 20


def learn(
    table: Any,
    *,
    categorical: Categorical = "auto",
    ids: Collection[str] = (),
    missing: Collection[str] = (),
    written: Written = UNSAID,
) -> TableEncoder:
    """Choose how the columns of a training table, of pyarrow, become features, but for `ids`.

    The codes of categories are their ranks by frequency: ranks by the mean of the targets would
    tell the forest the target of each training row. `categorical` names columns of categories
    besides dictionaries and text that is `written` as neither numbers nor dates; words of `missing`
    are null already. Raises one EncodingError for all columns.
    """
    named = [] if isinstance(categorical, str) else list(categorical)
    names, all_names = [n for n in table.schema.names if n not in ids], set(table.schema.names)
    kinds.require_columns([*names, *(n for n in named if n not in all_names)], table.schema.names)
    if not names:
        raise EncodingError("the table has no column left to predict from")
    for name in written.date_formats:
        if name not in names or name in named:
            raise EncodingError(
                f"a date format is given for {name!r}, which is no feature of dates"
            )
    entries, faults = [], {}
    for name in names:
        try:
            entries.append(_learned(name, table.column(name), name in named, written))
        except ColumnError as error:
            faults[name] = error.sentence(f"column {name!r}")
        except ValueError as error:  # what cannot be read from a file must not be fitted on
            faults[name] = f"column {name!r} cannot be encoded: {error}"
    if faults:
        raise EncodingError("; ".join(faults.values()), faults)
    return TableEncoder(tuple(entries), tuple(dict.fromkeys(ids)), tuple(missing))


def _learned(name: str, column: Any, is_categorical: bool, written: Written) -> Column:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    kind = kinds.kind_of_cells(array.type)
    sort = kinds.sort_of(kind)
    if name in written.date_formats:
        if not (sort == "text" or pa.types.is_integer(kind)):
            raise ColumnError(f"is {kind}, so it takes no date format")
        array, sort = kinds.plain(array).cast(pa.large_string()), "text"
    if pa.types.is_boolean(kind):
        return kinds.BooleanColumn(name)
    if sort == "date":
        return kinds.DateColumn.learned(name, array)
    if sort == "other":
        raise ColumnError(f"must hold numbers, booleans, dates or categories, but is {kind}")
    if not (is_categorical or pa.types.is_dictionary(array.type)):
        if sort == "number":
            return NumberColumn(name)
        match form_of(array, name, written):
            case NumberForm() as numbers:
                return NumberColumn(name, numbers)
            case DateForm() as dates:
                return kinds.DateColumn.learned(name, array, dates)
    distinct, counts = kinds.counted(array)
    if sort == "text" and not is_categorical and len(distinct) > 0:
        words = pc.unique(pc.ascii_lower(pc.ascii_trim_whitespace(distinct)))
        if len(words) <= 2 and set(words.to_pylist()) <= {"true", "false"}:
            return kinds.BooleanColumn(name)
        if pc.all(pc.match_substring_regex(distinct, ISO_DATE)).as_py():
            return kinds.DateColumn.learned(name, array)
        n, n_cells = len(distinct), counts.sum()
        if n > _FEW and 2 * n > n_cells:
            what = f"{n:,} categories in {n_cells:,} rows, and so says little about new rows"
            may_be = "an id, free text, or dates of an unknown form"
            raise ColumnError(f"has {what}: {may_be}")
    order = np.argsort(-counts, kind="stable")  # the most frequent first
    return kinds.CategoryColumn(name, kinds.categories(distinct.take(pa.array(order))))
