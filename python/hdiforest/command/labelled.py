"""Tables with a target: those to fit to, and those to measure a model on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdiforest.command.extras import need
from hdiforest.command.prediction import feature_columns, has_names, with_names
from hdiforest.command.table_reader import quoted
from hdiforest.command.tables import TableError, TableReader, checked_features, numbers, open_table
from hdiforest.estimator import HDIForestRegressor

Array = NDArray[np.float64]


class TrainingTable(NamedTuple):
    """What a forest is fitted and calibrated on."""

    X: Any  # pyarrow.Table of float64
    y: Array  # (n,)
    weights: Array | None  # (n,)
    groups: NDArray[np.int64] | None  # (n,) number of the group of each row

    def rows(self, chosen: NDArray[np.intp]) -> TrainingTable:
        """Return some of the rows."""
        weights = None if self.weights is None else self.weights[chosen]
        groups = None if self.groups is None else self.groups[chosen]
        return TrainingTable(self.X.take(chosen), self.y[chosen], weights, groups)


def read_training_table(
    path: Path,
    target: str,
    *,
    drop: Sequence[str] = (),
    sample_weight: str | None = None,
    groups: str | None = None,
) -> TrainingTable:
    """Read features, target, weights and groups.

    Features are all columns but the target, the weights, the groups and the dropped ones.

    Raises
    ------
    TableError
        If a column is missing or holds anything but finite numbers (a feature may hold missing
        cells, and groups are any text), if no feature is left, a row has no group, or there are no
        rows.
    """
    special = [target] if sample_weight is None else [target, sample_weight]
    kept = [] if groups is None else [groups]
    left_out = {*special, *kept, *drop}
    with open_table(path) as table:
        features = [name for name in table.names if name not in left_out]
        try:
            table.require([*features, *special], kept, left_out=drop)
            if not features:
                raise TableError(f"{path} has no column left to predict '{target}' from")
            matrix, texts = _read_all(table, [*features, *special], kept)
        except TableError as error:
            raise TableError(f"{error}{_drop_hint(error, table.names, left_out)}") from None
    X, y = matrix[:, : len(features)], matrix[:, len(features)]
    checked_features(X, features, path)
    _require_finite(y, f"{path}: target '{target}'")
    weights = None
    if sample_weight is not None:
        weights = matrix[:, -1]
        _require_finite(weights, f"{path}: sample weight '{sample_weight}'")
    numbered = None if groups is None else _group_numbers(texts, path, groups)
    return TrainingTable(with_names(X, features), y, weights, numbered)


def read_labelled_table(model: HDIForestRegressor, path: Path, target: str) -> tuple[Any, Array]:
    """Read the features of a fitted model and the target, both for all rows.

    Returns
    -------
    X : pyarrow.Table or (n, n_features) float64
        Without names if the model was fitted without.
    y : (n,) float64

    Raises
    ------
    TableError
        As `read_training_table`.
    """
    with open_table(path) as table:
        features = feature_columns(model, table, [target])
        matrix, _ = _read_all(table, [*features, target], [])
    X, y = np.ascontiguousarray(matrix[:, :-1]), matrix[:, -1]
    checked_features(X, features, path)
    _require_finite(y, f"{path}: target '{target}'")
    return (with_names(X, features) if has_names(model) else X), y


def _read_all(table: TableReader, columns: list[str], kept: list[str]) -> tuple[Array, list[Any]]:
    """Return the columns of numbers as a matrix, and batches of the kept columns."""
    parts, texts = [], []
    for batch in table.batches(columns, kept):
        parts.append(numbers(batch, len(columns)))
        texts.append(batch.select(range(len(columns), batch.num_columns)))
    if not parts:
        raise TableError(f"{table.path} has no rows")
    return np.concatenate(parts), texts


def _group_numbers(batches: list[Any], path: Path, name: str) -> NDArray[np.int64]:
    column = need("pyarrow").concat_tables(batches).column(0).combine_chunks()
    if column.null_count > 0:
        first = column.is_null().index(True).as_py()
        raise TableError(f"{path}: groups '{name}' must be given, but row {first + 1} has none")
    encoded: NDArray[np.int64] = column.dictionary_encode().indices.to_numpy().astype(np.int64)
    return encoded


def _drop_hint(error: TableError, names: list[str], special: set[str]) -> str:
    """Say how the features at fault can be left out; the target and the weights cannot."""
    bad = [name for name in dict.fromkeys(error.columns) if name not in special]
    if not bad:
        return ""
    arguments = " ".join(quoted(name.replace("'", "'\\''")) for name in bad)
    what = "it" if sum(map(names.count, bad)) == 1 else "them"
    return f" (--drop {arguments} leaves {what} out)"


def _require_finite(values: Array, what: str) -> None:
    bad = ~np.isfinite(values)
    if bad.any():
        first = int(np.argmax(bad))
        held = "a missing cell" if np.isnan(values[first]) else "infinity"
        raise TableError(
            f"{what} must be finite in every row, but {bad.sum()} of {len(values)} rows are not: "
            f"row {first + 1} holds {held}"
        )
