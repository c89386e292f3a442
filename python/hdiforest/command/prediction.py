"""What a model predicts for the rows of a table: which kind and levels, and from which columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hdiforest.calibration.base_record import Record
from hdiforest.command.extras import need
from hdiforest.command.tables import TableError, TableReader
from hdiforest.conditional import Kind
from hdiforest.estimator import HDIForestRegressor
from hdiforest.threads import thread_count

AnyKind = Literal["calibrated", Kind]
USUAL_LEVEL = 0.9
Array = NDArray[np.float64]
Rows = NDArray[np.float32] | NDArray[np.float64]


def calibration_of(model: HDIForestRegressor) -> Record | None:
    """Return the calibration of a model, None without one."""
    calibration: Record | None = getattr(model, "calibration_", None)
    return calibration


def kind_and_levels(
    model: HDIForestRegressor, kind: AnyKind | None, levels: Sequence[float] | None
) -> tuple[AnyKind, list[float]]:
    """Return what to predict, with the defaults for what is None.

    The kind is "calibrated" if the model is, else "hdi". The level is 0.9, or the lowest that was
    calibrated if 0.9 was not.

    Raises
    ------
    ValueError
        If the kind is "calibrated" and the model is not, or not at one of the levels and has no
        training rows to be calibrated on.
    """
    calibration = calibration_of(model)
    if kind is None:
        kind = "hdi" if calibration is None else "calibrated"
    if kind != "calibrated":
        return kind, [USUAL_LEVEL] if levels is None else list(levels)
    if calibration is None:
        raise ValueError("kind must not be calibrated, because the model has no calibration")
    if levels is None:
        known = calibration.coverages
        usual = (level for level in known if math.isclose(level, USUAL_LEVEL, abs_tol=1e-9))
        return kind, [next(usual, known[0])]
    calibration = model._calibration_at(levels)
    for level in levels:
        calibration.position(level)
    return kind, list(levels)


def has_names(model: HDIForestRegressor) -> bool:
    """Whether the model was fitted to a table with column names."""
    return hasattr(model, "feature_names_in_")


def feature_columns(
    model: HDIForestRegressor, table: TableReader, others: Sequence[str]
) -> list[str]:
    """Return the columns that the model takes, in its order.

    A model without names takes all but the `others`, or raises TableError if their number is wrong.
    """
    if has_names(model):
        return [str(name) for name in model.feature_names_in_]
    columns = [name for name in table.names if name not in others]
    if len(columns) != model.n_features_in_:
        raise TableError(
            f"the model was fitted without column names and takes {model.n_features_in_} columns "
            f"in their order; {table.path} has {len(columns)} that neither --keep nor --target "
            f"names{table.separator_hint()}"
        )
    return columns


def with_names(X: Rows, names: Sequence[str]) -> Any:
    """Return a matrix as a pyarrow Table."""
    return need("pyarrow").table({name: X[:, j] for j, name in enumerate(names)})


def mean_and_intervals(
    model: HDIForestRegressor, X: Rows, levels: list[float], kind: AnyKind
) -> tuple[Array, Array]:
    """Return means (n,) and intervals (n, 2, k) of the rows of a model of one target."""
    shape = (len(X),) if model.scorer_.index.scalar_output else (len(X), 1)
    mean = np.empty(shape)
    if kind == "calibrated":
        intervals = model._calibrated_intervals(model._require_fitted(), X, levels, mean)
    else:
        n_threads = thread_count(model.n_jobs)
        intervals = model.scorer_.intervals(X, levels, kind, mean=mean, n_threads=n_threads)
    return mean.reshape(-1), intervals.reshape(len(X), 2, len(levels))
