"""From a training table to the features of a forest, their encoder, targets, weights and groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from hdiforest._tables.columns import (
    EncodingError,
    as_float64,
    decoded,
    dictionary_of,
    is_number,
    is_text,
)
from hdiforest._tables.encoder import Categorical, TableEncoder, learn
from hdiforest._tables.formats import open_table
from hdiforest._tables.forms import UNSAID, ColumnError, NumberForm, Written, form_of
from hdiforest._tables.names import column_faults
from hdiforest._tables.read import TableError, TextForm
from hdiforest._utils import Array
from hdiforest._utils.checks import count_rows
from hdiforest._utils.optional import pa


class TrainingTable(NamedTuple):
    """What a forest is fitted and calibrated on."""

    X: Any  # pyarrow.Table of float32, or of the columns as they were read
    y: Array  # (n,)
    weights: Array | None  # (n,)
    groups: NDArray[np.int64] | None  # (n,) number of the group of each row
    encoder: TableEncoder | None  # None: all columns are numbers, and none names the rows

    def rows(self, chosen: NDArray[np.intp]) -> TrainingTable:
        """Return some of the rows."""
        weights = None if self.weights is None else self.weights[chosen]
        groups = None if self.groups is None else self.groups[chosen]
        return TrainingTable(self.X.take(chosen), self.y[chosen], weights, groups, self.encoder)


@dataclass(frozen=True)
class Roles:
    """What the columns of a training table are for."""

    target: str
    drop: Sequence[str] = ()
    ids: Sequence[str] = ()  # no features either, but an encoder remembers them
    sample_weight: str | None = None
    groups: str | None = None
    categorical: Categorical = "auto"  # see `hdiforest._tables.encoder.learn`
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
        return {*self.numbers, self.groups, *self.left_out}

    @property
    def left_out(self) -> set[str]:
        """Columns that need not be read."""
        return {*self.drop, *self.ids} - set(self.numbers) - {self.groups}

    def require(self, names: Sequence[str], source: str) -> None:
        """Raise TableError if columns with a role are not in a table, or twice."""
        others = [*self.declared, *self.drop, *self.ids]
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
    path: Path, target: str, form: TextForm | None = None, *, encoded: bool = True, **roles: Any
) -> TrainingTable:
    """Read a table from a file; see `Roles` for further arguments. Raises TableError.

    Features that are not `encoded` stay as they are.
    """
    found = Roles(target, **roles)
    texts = [*found.declared, *([] if found.groups is None else [found.groups])]
    try:
        raw = _typed(path, form, found, texts)
    except TableError as error:
        if not (error.columns and path.is_file()):
            raise
        # Their forms are found when all of their cells are there.
        raw = _typed(path, form, found, [*texts, *error.columns])
    try:
        return training_table(raw, str(path), found, encoded=encoded)
    except TableError as error:
        raise TableError(f"{error}{_hint(error, raw.schema.names, found.special)}") from None


def _typed(path: Path, form: TextForm | None, roles: Roles, texts: Sequence[str]) -> Any:
    """Read the columns of a file that have a role, some of a CSV as text, as a pyarrow Table."""
    with open_table(path, form=form) as table:
        names = [name for name in table.names if name not in roles.left_out]
        numbers = [name for name in roles.numbers if name not in texts]
        try:
            table.require(
                numbers, [*roles.numbers, *names, *texts], left_out=[*roles.drop, *roles.ids]
            )
            roles.features(names, str(path))
            parts = list(table.typed_batches(names, numbers, texts))
        except TableError as error:
            hint = _hint(error, table.names, roles.special)
            raise TableError(f"{error}{hint}", error.columns) from None
    if not parts:
        raise TableError(f"{path} has no rows")
    return pa.concat_tables(parts, promote_options="default")


def training_table(raw: Any, source: str, roles: Roles, *, encoded: bool = True) -> TrainingTable:
    """Return what a forest is fitted on; as `read_training_table`, of a pyarrow Table `raw`."""
    names = raw.schema.names
    written, weight, weights = roles.written, roles.sample_weight, None
    y = numbers_of(raw[roles.target], f"{source}: target '{roles.target}'", written)
    if weight is not None:
        weights = numbers_of(raw[weight], f"{source}: sample weight '{weight}'", written)
    features = roles.features(names, source)
    groups = None if roles.groups is None else _group_numbers(raw, roles.groups, source)
    table = raw.select([i for i, name in enumerate(names) if name in set(features)])
    if not encoded:
        return TrainingTable(table, y, weights, groups, None)
    try:
        encoder = learn(table, categorical=roles.categorical, ids=roles.ids, written=written)
        X, _ = encoder.encode(table)
    except EncodingError as error:
        raise TableError(f"{source}: {error}", error.columns) from None
    is_plain = set(encoder.number_columns) == set(encoder.columns) and not encoder.ids
    return TrainingTable(with_names(X, features), y, weights, groups, None if is_plain else encoder)


def numbers_of(column: Any, what: str, written: Written) -> Array:
    """Return a pyarrow column of finite numbers, perhaps as text; TableError says `what` it is."""
    array = decoded(column.combine_chunks())
    if is_text(array.type):
        try:
            form = form_of(array, written=replace(written, date_formats={}))
            array = (form if isinstance(form, NumberForm) else NumberForm()).read(array)
        except ColumnError as error:
            raise TableError(error.sentence(what)) from None
    if not is_number(array.type):
        raise TableError(f"{what} must hold numbers, but is {array.type}")
    values = as_float64(array)
    require_finite(values, what)
    return values


def require_finite(values: Array, what: str) -> None:
    """Raise TableError if a number is missing or infinite."""
    bad = ~np.isfinite(values)
    if bad.any():
        first = int(np.argmax(bad))
        held = "a missing cell" if np.isnan(values[first]) else "infinity"
        wrong = f"{count_rows(bad)} are not: row {first + 1} holds {held}"
        raise TableError(f"{what} must be finite in every row, but {wrong}")


def _group_numbers(raw: Any, name: str, source: str) -> NDArray[np.int64]:
    array = raw[name].combine_chunks()
    if array.null_count > 0:
        first = array.is_null().index(True).as_py()
        raise TableError(f"{source}: groups '{name}' must be given, but row {first + 1} has none")
    return cast("NDArray[np.int64]", dictionary_of(array).indices.to_numpy().astype(np.int64))


def _hint(error: TableError, names: list[str], special: set[str | None]) -> str:
    """Say what to do with the features at fault; the target and the weights are needed."""
    bad = [name for name in dict.fromkeys(error.columns) if name not in special]
    it = "it" if sum(map(names.count, bad)) == 1 else "them"
    hint = f"--drop {' '.join(map(quote, bad))} leaves {it} out"
    if all(names.count(name) == 1 for name in bad):
        hint += f", --id does so and keeps {it} when scoring"
        hint += f", --categorical takes {it} as categories"
    return f" ({hint})" if bad else ""


def with_names(X: NDArray[np.floating[Any]], names: Sequence[str]) -> Any:
    """Return a matrix as a pyarrow Table."""
    return pa.table(dict(zip(names, X.T, strict=True)))
