"""From a table to a fitted model and its out-of-bag record."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from hdiforest.command.extras import need
from hdiforest.command.report import LEVELS, comparison
from hdiforest.command.table_reader import quoted
from hdiforest.command.tables import TableError, TableReader, checked_features, numbers, open_table
from hdiforest.estimator import HDIForestRegressor

NO_RECORD = "No out-of-bag record: every tree saw every row."
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
    frame = need("pyarrow").table({name: X[:, j] for j, name in enumerate(features)})
    return frame, y, weights


def new_forest(extra_trees: bool, **options: Any) -> Any:
    """Return an unfitted forest whose trees leave rows out."""
    kind = ExtraTreesRegressor if extra_trees else RandomForestRegressor
    return kind(bootstrap=True, **options)


def out_of_bag_report(model: HDIForestRegressor, y: Array) -> str:
    """Coverage and width of the model's intervals on its own training rows, as text."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*no out-of-bag interval", UserWarning)
        try:
            hdi = model.oob_interval(LEVELS)
        except ValueError:  # the forest was fitted on all rows; no other error is possible here
            return NO_RECORD
        equal = model.oob_interval(LEVELS, kind="equal_tailed")
    has_interval = ~np.isnan(hdi).any(axis=(1, 2))
    if not has_interval.any():
        return NO_RECORD
    title = f"Out-of-bag record of {has_interval.sum():,} training rows:"
    return f"{title}\n{comparison(y[has_interval], hdi[has_interval], equal[has_interval])}"


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
