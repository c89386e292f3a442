"""One step ahead in time: features as they are, with lags of the target, and differences to one.

    python bench/calibration/time_series.py [--quick]

Prints a table of docs/coverage_and_width.md. Each forest has 300 trees, and a random 4,000 of the
first four fifths of the rows as training rows; it is asked about the last fifth. "Newest fifth"
calibrates by the newest fifth of the training rows, which the forest is not fitted to. About three
minutes.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from hdiforest import HDIForestRegressor
from hdiforest.calibration import OutOfBag
from hdiforest.metrics import coverage_score, interval_score, mean_width_score

sys.path.insert(0, str(Path(__file__).parents[1]))
import datasets
import study

COVERAGE = 0.9
MAX_ROWS = 4000
# Time, the column of the series if there are several, and the lags: steps of time.
SERIES = {
    "hotel_rates": ("arrival_date", None, (1, 7)),
    "chicago": ("date", None, (1, 7)),
    "txhousing": ("date", "city", (1, 12)),
    "computers": ("trend", None, (1, 2)),
}


def main() -> None:
    one = {"MAX_ROWS": 400, "SERIES": {"computers": SERIES["computers"]}}
    study.chosen(study.parser(__doc__), globals(), **one)
    warnings.filterwarnings("ignore", "intervals of coverage 0.9 covered")
    found = (row for name in SERIES for row in one_step_ahead(name))
    print(study.markdown(found, ".2f"))


def one_step_ahead(name: str) -> Iterator[dict[str, object]]:
    """Yield what came, for three ways to tell the forest of the past."""
    data = datasets.load(name)
    of_time, of_series, steps = SERIES[name]
    time = data.X[:, data.features.index(of_time)]
    series = 0 * time if of_series is None else data.X[:, data.features.index(of_series)]
    lags = lagged_means(data.y, time, series, steps)
    known = np.flatnonzero(~np.isnan(lags[:, 0]))
    first, last = np.split(known[np.argsort(time[known], kind="stable")], [4 * len(known) // 5])
    rows = first[np.sort(np.random.default_rng(0).permutation(len(first))[:MAX_ROWS])]
    with_lags = np.column_stack([data.X, lags])
    for shown, X, y in (
        ("as they are", data.X, data.y),
        ("lags", with_lags, data.y),
        ("lags, difference", with_lags, data.y - lags[:, 0]),
    ):
        model = HDIForestRegressor(calibration=False, random_state=0).fit(X[rows], y[rows])
        model.calibrate(coverage=COVERAGE, method=OutOfBag(order=time[rows]), random_state=0)
        (level,) = model.calibration_.levels
        ends = model.predict_interval(X[last], COVERAGE)
        older, newest = np.split(rows, [4 * len(rows) // 5])
        split = HDIForestRegressor(calibration=False, random_state=0).fit(X[older], y[older])
        split.calibrate(X[newest], y[newest], coverage=COVERAGE)
        split_ends = split.predict_interval(X[last], COVERAGE)
        yield {
            "data set": name,
            "features": shown,
            "cross-check": level.cross_check.coverage,
            "later rows": level.later.coverage,
            "what came": coverage_score(y[last], ends),
            "width / sd of y": mean_width_score(ends) / data.y.std(),
            "score / sd": np.mean(interval_score(y[last], ends, COVERAGE)) / data.y.std(),
            "newest fifth": coverage_score(y[last], split_ends),
            "its score / sd": np.mean(interval_score(y[last], split_ends, COVERAGE)) / data.y.std(),
        }


def lagged_means(
    y: np.ndarray, time: np.ndarray, series: np.ndarray, steps: Sequence[int]
) -> np.ndarray:
    """Return the mean target of each row's series at earlier times, (n, len(steps))."""
    frame = pd.DataFrame({"series": series, "time": time})
    means = pd.Series(y).groupby([frame.series, frame.time]).mean()
    earlier = [means.groupby(level="series").shift(step) for step in steps]
    at = pd.MultiIndex.from_frame(frame)
    return np.column_stack([values.reindex(at).to_numpy() for values in earlier])


if __name__ == "__main__":
    main()
