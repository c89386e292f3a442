"""Coverage of rows that are not mixed with the training rows: later ones, and single groups.

    python bench/calibration/rows_unlike.py [--quick]

Prints tables of docs/coverage_and_width.md. Each forest has 300 trees, and 4,000 training rows at
most. In time: fitted to a random part of the first four fifths, asked about the last fifth. By
group: fitted to a random half of the rows, asked about the others. About ten minutes.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from hdiforest import HDIForestRegressor
from hdiforest.calibration import OutOfBag
from hdiforest.metrics import coverage_score, mean_width_score

sys.path.insert(0, str(Path(__file__).parents[1]))
import datasets
import study

COVERAGE = 0.9
MAX_ROWS = 4000
# What rows are ordered by; None: as they are.
IN_TIME = {
    "hotel_rates": "arrival_date",
    "chicago": "date",
    "txhousing": "date",
    "rain_ibk": None,
    "computers": "trend",
    "storms": "year",
}


def main() -> None:
    one = {"MAX_ROWS": 400, "IN_TIME": {"computers": "trend"}}
    study.chosen(study.parser(__doc__), globals(), **one)
    warnings.filterwarnings("ignore", "intervals of coverage 0.9 covered")
    print("Coverage of later rows, at 0.90\n")
    print(study.markdown(map(in_time, IN_TIME), ".2f"))
    print("\nCoverage of groups, at 0.90\n")
    rows = [*map(simulated, (False, True)), *map(by_city, (False, True))]
    print(study.markdown(rows, ".3f"))


def in_time(name: str) -> dict[str, object]:
    """Return what the calibration says, and what came."""
    data = datasets.load(name)
    column = IN_TIME[name]
    time = np.arange(len(data.y)) if column is None else data.X[:, data.features.index(column)]
    order = np.argsort(time, kind="stable")
    first, last = np.split(order, [4 * len(order) // 5])
    rows = np.random.default_rng(0).permutation(first)[:MAX_ROWS]
    model = HDIForestRegressor(calibration=False, random_state=0)
    model.fit(data.X[rows], data.y[rows]).calibrate(
        coverage=COVERAGE, method=OutOfBag(order=time[rows]), random_state=0
    )
    (level,) = model.calibration_.levels
    ends = model.predict_interval(data.X[last], COVERAGE)
    return {
        "data set": name,
        "cross-check": level.cross_check.coverage,
        "later rows": level.later.coverage,
        "its blocks": f"{min(level.later.blocks):.2f} to {max(level.later.blocks):.2f}",
        "what came": coverage_score(data.y[last], ends),
    }


def simulated(own: bool) -> dict[str, object]:
    """Twenty groups with noise of sd 0.5 to 1.5, which the forest does not know."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 20, 2 * MAX_ROWS)
    X = rng.normal(size=(2 * MAX_ROWS, 5))
    y = X[:, 0] + np.linspace(0.5, 1.5, 20)[groups] * rng.normal(size=len(X))
    return _coverages("simulated, 20 groups", X, y, groups, own)


def by_city(own: bool) -> dict[str, object]:
    data = datasets.load("txhousing")
    groups = data.X[:, data.features.index("city")]
    order = np.random.default_rng(0).permutation(len(groups))
    return _coverages("txhousing, 46 cities", data.X[order], data.y[order], groups[order], own)


def _coverages(
    name: str, X: np.ndarray, y: np.ndarray, groups: np.ndarray, own: bool
) -> dict[str, object]:
    half = len(y) // 2
    model = HDIForestRegressor(calibration=False, random_state=0).fit(X[:half], y[:half])
    model.calibrate(coverage=COVERAGE, by=groups[:half] if own else None, random_state=0)
    ends = model.predict_interval(X[half:], COVERAGE, by=groups[half:] if own else None)
    covered = (ends[:, 0] <= y[half:]) & (y[half:] <= ends[:, 1])
    shares = pd.Series(covered).groupby(groups[half:]).mean()
    return {
        "rows": name,
        "conformal quantiles": "of each group" if own else "common",
        "coverage": covered.mean(),
        "least group": shares.min(),
        "largest": shares.max(),
        "sd over groups": shares.std(),
        "mean width / sd of y": float(mean_width_score(ends)) / y.std(),
    }


if __name__ == "__main__":
    main()
