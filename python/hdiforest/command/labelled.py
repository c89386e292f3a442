"""Tables with a target: those to fit to, and those to measure a model on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdiforest.command.prediction import feature_columns, has_names, with_names
from hdiforest.command.table_reader import quoted
from hdiforest.command.tables import TableError, TableReader, checked_features, numbers, open_table
from hdiforest.estimator import HDIForestRegressor

Array = NDArray[np.float64]


def read_training_table(
    path: Path, target: str, *, drop: Sequence[str] = (), sample_weight: str | None = None
) -> tuple[Any, Array, Array | None]:
    """Read features, target and weights.

    Returns
    -------
    X : pyarrow.Table
        Every column but the target, the weights and the dropped ones, as float64.
    y : (n,) float64
    weights : (n,) float64 or None

    Raises
    ------
    TableError
        If a column is missing or holds anything but finite numbers (a feature may hold missing
        cells), if no feature is left, or there are no rows.
    """
    special = [target] if sample_weight is None else [target, sample_weight]
    left_out = {*special, *drop}
    with open_table(path) as table:
        features = [name for name in table.names if name not in left_out]
        try:
            table.require([*features, *special], left_out=drop)
            if not features:
                raise TableError(f"{path} has no column left to predict '{target}' from")
            matrix = _read_all(table, [*features, *special])
        except TableError as error:
            raise TableError(f"{error}{_drop_hint(error, table.names, left_out)}") from None
    X, y = matrix[:, : len(features)], matrix[:, len(features)]
    checked_features(X, features, path)
    _require_finite(y, f"{path}: target '{target}'")
    weights = None
    if sample_weight is not None:
        weights = matrix[:, -1]
        _require_finite(weights, f"{path}: sample weight '{sample_weight}'")
    return with_names(X, features), y, weights


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
        matrix = _read_all(table, [*features, target])
    X, y = np.ascontiguousarray(matrix[:, :-1]), matrix[:, -1]
    checked_features(X, features, path)
    _require_finite(y, f"{path}: target '{target}'")
    return (with_names(X, features) if has_names(model) else X), y


def _read_all(table: TableReader, columns: list[str]) -> Array:
    parts = [numbers(batch, len(columns)) for batch in table.batches(columns, [])]
    if not parts:
        raise TableError(f"{table.path} has no rows")
    return np.concatenate(parts)


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
