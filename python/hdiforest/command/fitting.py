"""From training rows to a fitted model and its out-of-bag record."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from hdiforest.command.calibrating import calibration_report
from hdiforest.command.prediction import calibration_of
from hdiforest.command.report import CALIBRATED_LEVELS, LEVELS, comparison
from hdiforest.estimator import HDIForestRegressor

NO_RECORD = "No out-of-bag record: every tree saw every row."
Array = NDArray[np.float64]


def new_forest(extra_trees: bool, **options: Any) -> Any:
    """Return an unfitted forest whose trees leave rows out."""
    kind = ExtraTreesRegressor if extra_trees else RandomForestRegressor
    return kind(bootstrap=True, **options)


def out_of_bag_report(model: HDIForestRegressor, y: Array) -> str:
    """Coverage and width of the model's intervals on its own training rows, as text.

    Of raw intervals, and of calibrated ones if the model was calibrated at `CALIBRATED_LEVELS`.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*no out-of-bag interval", UserWarning)
        try:
            hdi = model.oob_interval(CALIBRATED_LEVELS)
        except ValueError:  # the forest was fitted on all rows; no other error is possible here
            return NO_RECORD
        equal = model.oob_interval(LEVELS, kind="equal_tailed")
    has_interval = ~np.isnan(hdi).any(axis=(1, 2))
    if not has_interval.any():
        return NO_RECORD
    y, hdi, equal = y[has_interval], hdi[has_interval], equal[has_interval]
    shared = [CALIBRATED_LEVELS.index(level) for level in LEVELS]
    title = f"Out-of-bag record of {len(y):,} training rows:"
    report = f"{title}\n{comparison(y, hdi[..., shared], equal)}"
    calibration = calibration_of(model)
    if calibration is None:
        return report
    return f"{report}\n\n{calibration_report(calibration, y, hdi)}"
