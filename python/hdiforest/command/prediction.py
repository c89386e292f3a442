"""What a model predicts for the rows of a table: which kind and levels, and from which columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hdiforest._model.fitted import FittedForest
from hdiforest._model.predict import AnyKind, UnknownCoverageError, chosen_kind_and_levels
from hdiforest._tables.read import TableError, TableReader
from hdiforest.calibration._result import Record
from hdiforest.command.report import CALIBRATED_LEVELS
from hdiforest.command.usage import UsageError

if TYPE_CHECKING:
    from hdiforest._estimators.hdi_forest import HDIForestRegressor


Rows = NDArray[np.float32] | NDArray[np.float64]


def calibration_of(model: HDIForestRegressor) -> Record | None:
    """Return the calibration of a model, None without one."""
    calibration: Record | None = getattr(model, "calibration_", None)
    return calibration


def levels_to_show(model: HDIForestRegressor) -> list[float]:
    """Return `CALIBRATED_LEVELS` and those that the model was calibrated at, ascending."""
    calibration = calibration_of(model)
    return sorted({*CALIBRATED_LEVELS, *([] if calibration is None else calibration.coverages)})


def kind_and_levels(
    fitted: FittedForest,
    kind: AnyKind | None,
    levels: Sequence[float] | None,
    n_threads: Callable[[], int],
) -> tuple[AnyKind, list[float]]:
    """Return what `chosen_kind_and_levels` does; what it refuses is a UsageError."""
    try:
        return chosen_kind_and_levels(fitted, kind, levels, n_threads)
    except UnknownCoverageError as error:
        ways = f"{_calls(error)}, or --kind hdi"
        raise UsageError(f"--{error.fact}; the ways out are {ways}") from None
    except ValueError as error:
        is_option = str(error).startswith(("kind", "coverage"))
        raise UsageError(f"--{error}" if is_option else str(error)) from None


def _calls(error: UnknownCoverageError) -> str:
    """Say how to calibrate all coverages in the same way."""
    if error.method == "jackknife+":
        return f"{error.calls()} in Python"
    options = error.options
    call = "'hdiforest fit' with "
    if "confidence" in options:
        call = f"'hdiforest calibrate' with --confidence {options['confidence']} "
    elif error.method != "oob":
        call += f"--calibrate {error.method} "
    call += "--boost " * ("mean" in options) + "--groups COL " * ("groups" in options)
    rows = "" if options else " or --training-rows"
    return f"{call}--coverage {' '.join(f'{each:g}' for each in error.coverages)}{rows}"


def has_names(model: HDIForestRegressor) -> bool:
    """Whether the model was fitted to a table with column names."""
    return hasattr(model, "feature_names_in_")


def feature_columns(fitted: FittedForest, table: TableReader, others: Sequence[str]) -> list[str]:
    """Return the columns that the model takes, in its order.

    A model without names takes all but the `others`, or raises TableError if their number is wrong.
    """
    if fitted.coding is not None:
        return list(fitted.coding.columns)
    if fitted.feature_names is not None:
        return [str(name) for name in fitted.feature_names]
    columns = [name for name in table.names if name not in others]
    if len(columns) != fitted.n_features:
        raise TableError(
            f"the model was fitted without column names and takes {fitted.n_features} columns "
            f"in their order; {table.path} has {len(columns)} that neither --keep nor --target "
            f"names{table.separator_hint()}"
        )
    return columns
