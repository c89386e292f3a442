"""From training rows to a fitted model and its out-of-bag record."""

from __future__ import annotations

import warnings
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit

from hdiforest.calibration.choice import Objective
from hdiforest.command.calibrating import calibration_report, infinite_intervals_refused
from hdiforest.command.prediction import calibration_of
from hdiforest.command.report import CALIBRATED_LEVELS, LEVELS, comparison
from hdiforest.estimator import HDIForestRegressor
from hdiforest.tables.training import TrainingTable

NO_RECORD = "No out-of-bag record: every tree saw every row."
Array = NDArray[np.float64]


def new_forest(extra_trees: bool, **options: Any) -> Any:
    """Return an unfitted forest whose trees leave rows out."""
    kind = ExtraTreesRegressor if extra_trees else RandomForestRegressor
    return kind(bootstrap=True, **options)


def fit_and_calibrate(
    model: HDIForestRegressor,
    table: TrainingTable,
    method: Literal["oob", "split", "cv+", "none"],
    *,
    boost: bool,
    objective: Objective,
    folds: int,
    seed: int,
) -> str:
    """Fit a model and calibrate it at `CALIBRATED_LEVELS`.

    Returns
    -------
    str
        Why it could not be calibrated, or at which levels not, in a line; empty if it was, or if
        method is "none".

    Raises
    ------
    ValueError
        If the model cannot be fitted, or method is not "oob" and it cannot be calibrated.
    """
    options: dict[str, Any] = {"method": method, "objective": objective, "random_state": seed}
    options["mean"] = "boosting" if boost else None
    fitted_on = table
    if method == "split":
        kept, held_out = held_out_rows(table, seed)
        fitted_on, apart = table.rows(kept), table.rows(held_out)
        options |= {"X": apart.X, "y": apart.y}
    if method == "cv+":
        options |= {"cv": folds, "groups": table.groups}
    model.fit(fitted_on.X, fitted_on.y, sample_weight=fitted_on.weights)
    if method == "none":
        return ""
    if method != "oob":
        with infinite_intervals_refused():
            model.calibrate(CALIBRATED_LEVELS, **options)
        return ""
    return calibrate_out_of_bag(model, **options)


def calibrate_out_of_bag(model: HDIForestRegressor, **options: Any) -> str:
    """Calibrate a fitted model at those of `CALIBRATED_LEVELS` that its rows allow.

    Returns
    -------
    str
        As `fit_and_calibrate`.
    """
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "intervals of coverage .* are infinite", UserWarning)
            model.calibrate(CALIBRATED_LEVELS, **options)
    except ValueError as error:
        return f"Not calibrated: {error}\n"
    n_rows = model.calibration_.n
    model._fitted = model._fitted.with_finite_coverages()
    calibration = calibration_of(model)
    known = () if calibration is None else calibration.coverages
    left_out = [f"{level:g}" for level in CALIBRATED_LEVELS if level not in known]
    if not left_out:
        return ""
    return f"Not calibrated at {', '.join(left_out)}: {n_rows} calibration rows are too few\n"


def held_out_rows(table: TrainingTable, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return four fifths of the rows to fit on, and the others; groups are not divided."""
    share = 1 / 5
    n = len(table.y) if table.groups is None else len(np.unique(table.groups))
    if n < 2:
        what = "row" if table.groups is None else "group"
        raise ValueError(f"--calibrate split needs two {what}s or more, and the table has {n}")
    if table.groups is None:
        splitter: Any = ShuffleSplit(1, test_size=share, random_state=seed)
    else:
        splitter = GroupShuffleSplit(1, test_size=share, random_state=seed)
    kept, held_out = next(splitter.split(table.y, groups=table.groups))
    return np.sort(kept), np.sort(held_out)


class OutOfBagRecord(NamedTuple):
    """Raw intervals of the training rows, each from the trees that did not draw the row."""

    rows: NDArray[np.intp]  # (n,) positions of the training rows that have intervals
    y: Array  # (n,)
    hdi: Array  # (n, 2, k) at the k CALIBRATED_LEVELS
    equal_tailed: Array  # (n, 2, k) at the k LEVELS


def out_of_bag_record(model: HDIForestRegressor) -> OutOfBagRecord | None:
    """Return the intervals of the model's own training rows, None if no tree left a row out."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*no out-of-bag interval", UserWarning)
        try:
            hdi = model.oob_interval(CALIBRATED_LEVELS)
        except ValueError:  # the forest was fitted on all rows; no other error is possible here
            return None
        equal = model.oob_interval(LEVELS, kind="equal_tailed")
    rows = np.flatnonzero(~np.isnan(hdi).any(axis=(1, 2)))
    if len(rows) == 0:
        return None
    y = model._require_fitted().require_training_rows().y
    return OutOfBagRecord(rows, y[rows], hdi[rows], equal[rows])


def out_of_bag_report(model: HDIForestRegressor, record: OutOfBagRecord | None) -> str:
    """Coverage and width of the model's intervals on its own training rows, as text.

    Of raw intervals, and of calibrated ones at those of `CALIBRATED_LEVELS` that were calibrated.
    A forest that was fitted on all rows in each tree has no record of raw intervals.
    """
    if record is None:
        return NO_RECORD
    _, y, hdi, equal = record
    shared = [CALIBRATED_LEVELS.index(level) for level in LEVELS]
    title = f"Out-of-bag record of {len(y):,} training rows:"
    report = f"{title}\n{comparison(y, hdi[..., shared], equal)}"
    calibration = calibration_of(model)
    if calibration is None:
        return report
    return f"{report}\n\n{calibration_report(calibration, y, hdi)}"
