"""Coverage in the order of time: a calibration that stays, and two that follow new rows.

    python bench/calibration/drift.py [--quick]

Six data sets with an order: a forest of 300 trees is fitted to a random 4,000 of the first half of
the rows, and calibrated. The second half comes in batches of 100: each is predicted at 0.90, and
then taken in. Results are kept, a line a data set and method, and those that are there are not
made again; all takes about three minutes. Prints a table of docs/coverage_and_width.md.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from hdiforest import HDIForestRegressor
from hdiforest.monitoring import recalibrate

sys.path.insert(0, str(Path(__file__).parents[1]))
import datasets
import study
from rows_unlike import IN_TIME, MAX_ROWS

FOLDER = Path(__file__).parent / "results"
COVERAGE = 0.9
METHODS: dict[str, dict[str, Any] | None] = {
    "static": None,
    "rolling": {"method": "rolling", "window": 500},
    "aci": {"method": "aci", "rate": 0.01},
}
BATCH, MAX_LATER, WINDOW = 100, 10_000, 200


def main() -> None:
    asked = study.parser(__doc__, FOLDER)
    study.chosen(asked, globals(), MAX_ROWS=400, MAX_LATER=300, IN_TIME={"power_plant": None})
    path = study.path_of(FOLDER, "drift")
    for name in IN_TIME:
        if any((f"{name} {method}", 0) not in study.read(path) for method in METHODS):
            found = {(f"{name} {method}", 0): each for method, each in measured(name).items()}
            study.add(path, found)
    print(table(study.read(path)))


def measured(name: str) -> dict[str, Any]:
    """Return what the intervals of each method covered."""
    data = datasets.load(name)
    column = IN_TIME[name]
    time = np.arange(len(data.y)) if column is None else data.X[:, data.features.index(column)]
    order = np.argsort(time, kind="stable")
    first, last = np.split(order, [len(order) // 2])
    rows = np.random.default_rng(0).permutation(first)[:MAX_ROWS]
    last, found = last[:MAX_LATER], {}
    for method, options in METHODS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = HDIForestRegressor(calibration=[COVERAGE], n_jobs=-1, random_state=0)
            model.fit(data.X[rows], data.y[rows])
        parts = []
        for begin in range(0, len(last), BATCH):
            now = last[begin : begin + BATCH]
            parts.append(model.predict_interval(data.X[now], COVERAGE))
            if options is not None:
                recalibrate(model, data.X[now], data.y[now], **options)
        lower, upper = np.concatenate(parts).T
        covered = (lower <= data.y[last]) & (data.y[last] <= upper)
        widths = upper - lower
        found[method] = {
            "rows": len(last),
            "coverage": float(covered.mean()),
            "worst": float(np.convolve(covered, np.ones(WINDOW) / WINDOW, "valid").min()),
            "infinite": float(np.isinf(widths).mean()),
            "width": float(widths[np.isfinite(widths)].mean()),
        }
    return found


def table(results: dict[Any, Any]) -> str:
    """Return a row for each data set."""
    rows = []
    for name in IN_TIME:
        own = {method: results[f"{name} {method}", 0] for method in METHODS}
        row: dict[str, Any] = {"data set": name}
        row |= {f"coverage, {method}": each["coverage"] for method, each in own.items()}
        row |= {f"worst {WINDOW}, {method}": each["worst"] for method, each in own.items()}
        static = own["static"]["width"]
        row |= {f"width, {m}": own[m]["width"] / static for m in ("rolling", "aci")}
        row["infinite, aci"] = own["aci"]["infinite"]
        rows.append(row)
    return study.markdown(rows, ".2f")


if __name__ == "__main__":
    main()
