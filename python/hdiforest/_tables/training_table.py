"""From a training table to the features of a forest, their encoder, targets, weights and groups."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from hdiforest._tables.columns import (
    DateColumn,
    EncodingError,
    as_float64,
    dictionary_of,
    is_number,
    is_text,
    plain,
    without_words,
)
from hdiforest._tables.encoder import Categorical, TableEncoder, learn
from hdiforest._tables.formats import open_table
from hdiforest._tables.forms import (
    DIGITS_OF_DATES,
    UNSAID,
    ColumnError,
    NumberForm,
    Written,
    form_of,
)
from hdiforest._tables.names import column_faults, listed, with_note
from hdiforest._tables.read import TableError, TableReader, TextForm, joined, refuse
from hdiforest._utils import Array
from hdiforest._utils.checks import aligned, count_rows
from hdiforest._utils.optional import pa, pc


class TrainingTable(NamedTuple):
    """What a forest is fitted and calibrated on."""

    X: Any  # pyarrow.Table of float32, or of the columns as they were read
    y: Array  # (n,)
    weights: Array | None  # (n,)
    groups: NDArray[np.int64] | None  # (n,) number of the group of each row
    encoder: TableEncoder | None  # None: all columns are plain numbers, and none names the rows
    columns: dict[str, str]  # what became of them; see `described`
    has_target: NDArray[np.bool_]  # of each row that was given; others are left out
    event: NDArray[np.bool_] | None = None  # (n,) whether the target is the time of an event

    def rows(self, chosen: NDArray[np.intp]) -> TrainingTable:
        """Return some of the rows."""
        given = {name: getattr(self, name) for name in ("weights", "groups", "event")}
        parts: dict[str, Any] = {
            name: None if cells is None else cells[chosen] for name, cells in given.items()
        }
        return self._replace(X=self.X.take(chosen), y=self.y[chosen], **parts)

    def summary(self, order: str = "") -> str:
        """Return what became of the columns as text; `order` says what to do with a date."""
        entries = () if self.encoder is None else self.encoder.entries
        dates = [entry.name for entry in entries if isinstance(entry, DateColumn)]
        later = {"later rows": order.format(quote(dates[0]))} if order and dates else {}
        return aligned([list(line) for line in (self.columns | later).items()], left=2)


@dataclass(frozen=True)
class Roles:
    """What the columns of a training table are for."""

    target: str
    drop: Sequence[str] = ()
    ids: Sequence[str] = ()  # no features either, but an encoder remembers them
    sample_weight: str | None = None
    groups: str | None = None
    event: str | None = None  # whether it came at the time that the target is
    categorical: Categorical = "auto"  # see `hdiforest._tables.encoder.learn`
    missing: Sequence[str] = ()  # words of missing cells
    drop_missing_target: bool = False  # whether rows without a target are left out
    written: Written = UNSAID

    @property
    def numbers(self) -> list[str]:
        """Columns that must hold finite numbers."""
        return [self.target] if self.sample_weight is None else [self.target, self.sample_weight]

    @property
    def declared(self) -> list[str]:
        """Columns that are declared categories or dates."""
        categories = [] if isinstance(self.categorical, str) else list(self.categorical)
        return [*categories, *self.written.date_formats]

    @property
    def special(self) -> set[str | None]:
        """Columns that are no features."""
        return {*self.numbers, self.groups, self.event, *self.left_out}

    @property
    def left_out(self) -> set[str]:
        """Columns that need not be read."""
        return {*self.drop, *self.ids} - set(self.numbers) - {self.groups, self.event}

    def require(self, names: Sequence[str], source: str) -> None:
        """Raise TableError if columns with a role are not in a table, or twice."""
        others = [*self.declared, *self.drop, *self.ids, *filter(None, [self.event])]
        faults, _ = column_faults(self.numbers, names, there=others)
        if faults:
            raise TableError(f"{source} has {faults}")

    def features(self, names: Sequence[str], source: str) -> list[str]:
        """Return the names of the features among those of a table."""
        special = self.special
        if features := [name for name in names if name not in special]:
            return features
        raise TableError(f"{source} has no column left to predict '{self.target}' from")


def read_training_table(
    path: Path, target: str, form: TextForm | None = None, **roles: Any
) -> TrainingTable:
    """Read a table from a file; see `Roles` for further arguments. Raises TableError."""
    all_roles = Roles(target, **roles)
    form = replace(form or TextForm(), missing=list(all_roles.missing))
    return read_training_tables([partial(open_table, path, form=form)], str(path), all_roles)


def read_training_tables(
    opened: Sequence[Callable[[], TableReader]], source: str, roles: Roles
) -> TrainingTable:
    """Read tables of equal columns, which the functions open, as one; see `read_training_table`.

    `source` is their name in errors. A single one may be a pipe.
    """
    every = set[str]()
    if len(opened) > 1:
        every = _columns_of_all(opened, source, roles)
        source = f"{source} ({len(opened):,} tables as one)"
    try:
        raw, numbers = _typed(opened, source, roles, every)
        return training_table(raw, source, roles, numbers)
    except TableError as error:
        raise TableError(f"{error}{_hint(error, roles.special)}") from None


def _typed(
    opened: Sequence[Callable[[], TableReader]], source: str, roles: Roles, every: set[str]
) -> tuple[Any, list[str]]:
    """Return the columns that have a role as one pyarrow Table, and those that number the rows.

    The columns of a CSV are text, but for those of which all cells are numbers.
    """
    declared = {*roles.declared, *filter(None, [roles.groups, roles.event])}
    left_out = {*roles.drop, *roles.ids} - every
    tables = list[tuple[TableReader, Any]]()
    for open_one in opened:
        with open_one() as table:
            columns = [name for name in table.names if name not in roles.left_out]
            table.require([], [*roles.numbers, *columns, *declared], left_out)
            parts = list(table.batches([], columns))
        if parts:
            tables.append((table, pa.concat_tables(parts)))
    if not tables:
        raise TableError(f"{source} has no rows")
    paths, names = [table.path for table, _ in tables], tables[0][1].column_names
    cells = (
        [table.without_missing(rows[name]) for table, rows in tables]
        if name in declared
        else _typed_column(tables, name, name in roles.numbers)
        for name in names
    )
    parts = [pa.table(list(each), names) for each in zip(*cells, strict=True)]
    numbering = [row_numbers(part, {*roles.special, *roles.declared}) for part in parts]
    raw = joined(list(zip(paths, parts, strict=True)))
    return raw, [name for name in numbering[0] if all(name in others for others in numbering)]


def _typed_column(
    tables: Sequence[tuple[TableReader, Any]], name: str, are_numbers: bool
) -> list[Any]:
    """Return a column of each table; text of a CSV is numbers if all cells of all tables are.

    The words true and false alone are text, and so are dates such as 20240531.
    """
    columns = [table.without_missing(rows[name]) for table, rows in tables]
    pairs = zip(tables, columns, strict=True)
    texts = [c for (table, _), c in pairs if table.is_text and c.null_count < len(c)]
    for pattern in (r"^(?i:\s*(true|false)\s*)$", DIGITS_OF_DATES) if texts else ():
        are_of_kind = (pc.all(pc.match_substring_regex(text, pattern)).as_py() for text in texts)
        if not are_numbers and all(are_of_kind):
            return columns
    with suppress(pa.ArrowInvalid):
        return [table.typed(name, c) for (table, _), c in zip(tables, columns, strict=True)]
    return columns


def _columns_of_all(
    opened: Sequence[Callable[[], TableReader]], source: str, roles: Roles
) -> set[str]:
    """Return the columns that tables have; one TableError for all that do not go together."""
    names, faults = dict[Path, dict[str, None]](), list[str]()
    for open_one in opened:
        try:
            with open_one() as table:
                names[table.path] = dict.fromkeys(table.names)
        except TableError as error:
            faults.append(str(error))
    having = {name: path for path, columns in reversed(names.items()) for name in columns}
    for name, path in having.items():
        lacking = [other for other, columns in names.items() if name not in columns]
        if lacking and name not in roles.left_out:
            hint = "" if name in roles.special else f"; --drop {quote(name)} leaves it out"
            faults.append(f"{lacking[0]} has no column '{name}', which {path} has{hint}")
    refuse(faults, f"the {len(opened)} tables of {source} do not go together")
    return set(having)


def training_table(
    raw: Any, source: str, roles: Roles, numbers: Sequence[str] | None = None
) -> TrainingTable:
    """Return what a forest is fitted on; as `read_training_table`, of a pyarrow Table `raw`.

    `numbers` are the columns that number its rows, if that is known.
    """
    names = raw.schema.names
    arrays = [without_words(column, roles.missing) for column in raw.columns]
    raw = pa.Table.from_arrays(arrays, names)
    has_target = np.ones(raw.num_rows, dtype=bool)
    if roles.drop_missing_target:
        has_target = ~pc.is_null(raw[roles.target], nan_is_null=True).to_numpy()
        raw = raw.filter(has_target)
        if raw.num_rows == 0:
            raise TableError(f"{source}: target '{roles.target}' has no value in any row")
    hint = "; --drop-missing-target (drop_missing_target=True in Python) leaves such rows out"
    written, weight, weights = roles.written, roles.sample_weight, None
    y = numbers_of(raw[roles.target], f"{source}: target '{roles.target}'", written, hint)
    if weight is not None:
        weights = numbers_of(raw[weight], f"{source}: sample weight '{weight}'", written)
    if numbers is None:
        numbers = row_numbers(raw, {*roles.special, *roles.declared})
    features = roles.features([name for name in names if name not in numbers], source)
    event = (
        None
        if roles.event is None
        else _events(raw[roles.event], f"{source}: event '{roles.event}'")
    )
    groups = None if roles.groups is None else _group_numbers(raw, roles.groups, source)
    table = raw.select([i for i, name in enumerate(names) if name in set(features)])
    try:
        learned: dict[str, Any] = {"ids": roles.ids, "missing": roles.missing, "written": written}
        encoder = learn(table, categorical=roles.categorical, **learned)
        X, counts = encoder.encode(table)
    except EncodingError as error:
        raise TableError(f"{source}: {error}", error.columns) from None
    if empty := [name for name, n in counts.missing.items() if n == len(y)]:
        s, have, them = ("s", "have", "them") if len(empty) > 1 else ("", "has", "it")
        fault = f"column{s} {listed(map(repr, empty))} {have} no value in any row"
        option = f"--drop {' '.join(map(quote, empty))} (drop={empty} in Python)"
        raise TableError(f"{source}: {fault}; {option} leaves {them} out")
    columns = encoder.described(np.stack([np.fmin.reduce(X), np.fmax.reduce(X)]))
    left_out = dict.fromkeys(numbers, "row numbers") | dict.fromkeys(roles.drop, "dropped")
    lines = {
        "left out": [with_note(name, why) for name, why in left_out.items()],
        "missing cells": [with_note(c, f"{n:,}") for c, n in counts.missing.most_common() if n],
        "rows left out": [f"{count_rows(~has_target)} without the target"] * (not has_target.all()),
    }
    columns |= {title: listed(entries) for title, entries in lines.items() if entries}
    is_plain = set(encoder.number_columns) == set(encoder.columns)
    kept = None if is_plain and not (encoder.ids or encoder.missing) else encoder
    features_of_rows = with_names(X, features)
    return TrainingTable(features_of_rows, y, weights, groups, kept, columns, has_target, event)


def numbers_of(column: Any, what: str, written: Written, hint: str = "") -> Array:
    """Return a pyarrow column of finite numbers, perhaps as text; TableError says `what` it is.

    A missing cell gets a hint.
    """
    array = plain(column.combine_chunks())
    if is_text(array.type):
        try:
            form = form_of(array, written=replace(written, date_formats={}))
            array = (form if isinstance(form, NumberForm) else NumberForm()).read(array)
        except ColumnError as error:
            raise TableError(error.sentence(what)) from None
    if not is_number(array.type):
        raise TableError(f"{what} must hold numbers, but is {array.type}")
    values = as_float64(array)
    bad = ~np.isfinite(values)
    if bad.any():
        first = int(np.argmax(bad))
        cell = f"a missing cell{hint}" if np.isnan(values[first]) else "infinity"
        wrong = f"{count_rows(bad)} are not: row {first + 1} holds {cell}"
        raise TableError(f"{what} must be finite in every row, but {wrong}")
    return values


# Words for an event that came, and for one that did not, beside booleans.
_CAME = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _events(column: Any, what: str) -> NDArray[np.bool_]:
    """Return whether the event came in each row; TableError unless all cells say so."""
    cells = plain(column.combine_chunks()).to_pylist()
    texts = [f"{cell:g}" if isinstance(cell, float) else str(cell).lower() for cell in cells]
    for row, text in enumerate(texts, 1):
        if text not in _CAME:
            got = f"row {row} holds {cells[row - 1]!r}"
            raise TableError(f"{what} must be true or false, yes or no, or 1 or 0, but {got}")
    return np.array([_CAME[text] for text in texts])


def _group_numbers(raw: Any, name: str, source: str) -> NDArray[np.int64]:
    array = raw[name].combine_chunks()
    if array.null_count > 0:
        first = array.is_null().index(True).as_py()
        raise TableError(f"{source}: groups '{name}' must be given, but row {first + 1} has none")
    return cast("NDArray[np.int64]", dictionary_of(array).indices.to_numpy().astype(np.int64))


def _hint(error: TableError, special: set[str | None]) -> str:
    """Say what to do with the features at fault; the target and the weights are needed."""
    bad = [name for name in dict.fromkeys(error.columns) if name not in special]
    them = "it" if len(bad) == 1 else "them"
    hint = f"--drop {' '.join(map(quote, bad))} leaves {them} out, --id also keeps {them} when "
    hint += f"scoring, --categorical takes {them} as categories, --missing WORD a word as missing"
    return f" ({hint})" if bad else ""


def with_names(X: NDArray[np.floating[Any]], names: Sequence[str]) -> Any:
    """Return a matrix as a pyarrow Table."""
    return pa.table(dict(zip(names, X.T, strict=True)))


# An index without a name, as pandas writes it, and as it is read of a CSV of pandas or R.
_OF_PANDAS = re.compile(r"__index_level_\d+__")
_NAMELESS = re.compile(r"\s*|Unnamed: 0(\.\d+)*")


def row_numbers(table: Any, named: Collection[str | None]) -> list[str]:
    """Return the columns of a pyarrow Table that number its rows, but for those that are `named`.

    They are the index of pandas without a name, and first columns without a name of whole numbers
    most of which are distinct: rows may be drawn, and tables be joined, after they were numbered.
    """
    names = [name for name in table.schema.names if name not in named]
    of_pandas = list(filter(_OF_PANDAS.fullmatch, names))

    def numbers(name: str) -> bool:
        position = table.schema.names.index(name)  # of columns of one name, which are refused later
        return bool(_NAMELESS.fullmatch(name)) and _number_rows(table.column(position))

    return of_pandas + list(takewhile(numbers, (name for name in names if name not in of_pandas)))


def _number_rows(column: Any) -> bool:
    cells = plain(column.combine_chunks())
    if not is_number(cells.type):
        return False
    values = as_float64(cells.drop_null())  # one may be a word for missing cells
    is_whole = bool(((values >= 0) & (values == np.floor(values))).all())
    return is_whole and 2 * len(np.unique(values)) >= len(cells)
