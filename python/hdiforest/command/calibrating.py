"""Calibration of models by the command, and what it says of one."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from hdiforest.calibration.base_record import Record
from hdiforest.command.report import aligned
from hdiforest.metrics import coverage_score, mean_width_score


@contextmanager
def infinite_intervals_refused() -> Iterator[None]:
    """Raise the warning of `calibrate` that intervals are infinite as ValueError."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "intervals of coverage .* are infinite", UserWarning)
        try:
            yield
        except UserWarning as warning:
            raise ValueError(str(warning)) from None


def calibration_report(
    calibration: Record, y: NDArray[np.float64], raw: NDArray[np.float64]
) -> str:
    """Coverage and mean width of raw and calibrated intervals out of bag, as a table.

    Parameters
    ----------
    calibration : Record
        Of k coverages.
    y : (n,) array
        Training targets.
    raw : (n, 2, k) array
        Raw out-of-bag intervals at these coverages.
    """
    rows = [["coverage", "raw HDI inside", "mean width", "calibrated inside", "mean width"]]
    for j, level in enumerate(calibration.levels):
        audit = level.audit
        rows.append(
            [
                f"{level.coverage:g}",
                f"{coverage_score(y, raw[..., j]):.3f}",
                f"{mean_width_score(raw[..., j]):.4g}",
                "-" if audit is None else f"{audit.coverage:.3f} ± {audit.standard_error:.3f}",
                f"{level.mean_width:.4g}",
            ]
        )
    return f"Calibrated on {calibration.n:,} {_HOW[calibration.method]}:\n{aligned(rows)}"


# On which rows, and what "calibrated inside" is.
_HOW = {
    "oob": "training rows, out of bag; 'calibrated inside' is of intervals chosen on the other "
    "half of them",
    "split": "rows held out of the fit; 'calibrated inside' is of intervals padded on the other "
    "half of them",
    "cv+": "training rows, each held out of a fold; 'calibrated inside' is of intervals padded on "
    "the other folds",
}
