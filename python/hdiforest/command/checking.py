"""How a model's intervals do on a table with known targets."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdiforest._estimators.hdi_forest import HDIForestRegressor
from hdiforest._model.predict import AnyKind
from hdiforest._tables.row_counts import RowCounts
from hdiforest._utils.checks import significant
from hdiforest._utils.warnings import hints_that_name
from hdiforest.command.report import aligned
from hdiforest.metrics import coverage_by_width, coverage_score, interval_score, mean_width_score


@dataclass(frozen=True)
class LevelCheck:
    """Measures of the intervals of one nominal level; None where they are not finite."""

    nominal: float
    coverage: float
    standard_error: float  # binomial, of the coverage
    mean_width: float | None
    interval_score: float | None
    # Narrow, middle, wide: thirds of the intervals that are wider than zero.
    coverage_by_width: tuple[float | None, float | None, float | None]


@dataclass(frozen=True)
class Check:
    """Measures of a model on labelled rows."""

    kind: AnyKind
    rows: int  # those measured
    rows_without_interval: int  # whose leaves are all empty
    levels: tuple[LevelCheck, ...]
    # See `RowCounts`; by column, if there are any.
    unknown_categories: dict[str, int]
    out_of_range: dict[str, int]
    rows_out_of_range: int
    rows_without_values: int

    def json(self) -> str:
        """Return an object of the attributes."""
        return json.dumps(asdict(self), indent=2, allow_nan=False)

    def text(self) -> str:
        """Return a table with a title."""
        rows = [
            [
                *("nominal", "coverage", "mean width", "interval score"),
                *("narrow third", "middle third", "wide third"),
            ]
        ]
        for level in self.levels:
            cells = [
                f"{level.nominal:g}",
                f"{level.coverage:.3f} ± {level.standard_error:.3f}",
                *(
                    "inf" if each is None else significant(each)
                    for each in (level.mean_width, level.interval_score)
                ),
                *("-" if third is None else f"{third:.3f}" for third in level.coverage_by_width),
            ]
            rows.append(cells)
        left_out = ""
        if self.rows_without_interval:
            left_out = f"; {self.rows_without_interval:,} rows without an interval are left out"
        title = f"Intervals of kind {self.kind} on {self.rows:,} rows{left_out}"
        return f"{title}; coverage of each third by width:\n{aligned(rows)}"


def check(
    model: HDIForestRegressor,
    X: Any,
    y: NDArray[np.float64],
    kind: AnyKind,
    levels: list[float],
    counts: RowCounts,
) -> Check:
    """Measure intervals of a model of one target.

    Parameters
    ----------
    model : HDIForestRegressor
    X : (n, n_features) table or array
    y : (n,) array
        Finite.
    kind : {"calibrated", "hdi", "equal_tailed", "smoothed_hdi"}
    levels : list of k floats
        Above 0 and below 1.
    counts : RowCounts
        Of the rows.

    Raises
    ------
    ValueError
        If the model has several targets, or no row has an interval.
    """
    fit = "the table of 'hdiforest fit' or its --report"
    usual, hdi = f"{fit} (oob_interval in Python)", f"{fit} (oob_interval(kind='hdi') in Python)"
    with hints_that_name(usual, hdi, fit):
        intervals = model.predict_interval(X, levels, kind=kind)
    has_interval = ~np.isnan(intervals).any(axis=(1, 2))
    if not has_interval.any():
        raise ValueError(f"none of {len(y)} rows has an interval: all leaves of each are empty")
    y, intervals = y[has_interval], intervals[has_interval]
    return Check(
        kind=kind,
        rows=len(y),
        rows_without_interval=int((~has_interval).sum()),
        levels=tuple(_measured(y, intervals[..., j], level) for j, level in enumerate(levels)),
        unknown_categories={name: n for name, n in counts.unseen.items() if n > 0},
        out_of_range=dict(counts.out_of_range),
        rows_out_of_range=counts.n_rows_out_of_range,
        rows_without_values=counts.n_rows_without_values,
    )


def _measured(y: NDArray[np.float64], ends: NDArray[np.float64], level: float) -> LevelCheck:
    share = float(coverage_score(y, ends))
    narrow, middle, wide = map(_finite, coverage_by_width(y, ends, 3).coverage[1:])
    return LevelCheck(
        nominal=level,
        coverage=share,
        standard_error=math.sqrt(share * (1 - share) / len(y)),
        mean_width=_finite(mean_width_score(ends)),
        interval_score=_finite(interval_score(y, ends, level)),
        coverage_by_width=(narrow, middle, wide),
    )


def _finite(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None
