"""False alarms of `CoverageMonitor`, and how long it takes to find noise that doubles.

    python bench/calibration/alarms.py

300 runs: a forest of 100 trees fitted to 800 rows of Friedman's function with unit noise watches
2,000 new rows, in batches of 100, and then 1,000 whose noise has doubled. The allowance of two
standard errors was chosen on the seeds below 100; the others judge. Results are kept, a line a
run, and those that are there are not made again; all takes about nine minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor
from hdiforest.monitoring import CoverageMonitor

sys.path.insert(0, str(Path(__file__).parents[1]))
import datasets
from store import RESULTS, add, path_of, read

N_RUNS = 300
N_TRAIN, N_ALIKE, N_NOISY, BATCH = 800, 2000, 1000, 100


def main() -> None:
    path = path_of(RESULTS, "alarms")
    for seed in range(N_RUNS):
        if ("monitor", seed) not in read(path):
            add(path, {("monitor", seed): run(seed)})
    print(table(read(path)))


def run(seed: int) -> dict[str, Any]:
    """Return the coverage of the rows alike, and the row of each alarm."""
    X, y = datasets.friedman(N_TRAIN + N_ALIKE + N_NOISY, seed)
    noisy = slice(N_TRAIN + N_ALIKE, None)
    y[noisy] += y[noisy] - datasets.friedman_mean(X[noisy])
    forest = RandomForestRegressor(100, n_jobs=-1, random_state=seed)
    model = HDIForestRegressor(forest).fit(X[:N_TRAIN], y[:N_TRAIN])
    monitor = CoverageMonitor(model)
    for begin in range(N_TRAIN, len(y), BATCH):
        monitor.update(X[begin : begin + BATCH], y[begin : begin + BATCH])
        if begin + BATCH == N_TRAIN + N_ALIKE:
            coverage = monitor.state.coverage
    return {"coverage": coverage, "alarms": monitor.state.alarms}


def table(runs: dict[Any, Any]) -> str:
    """Return alarms without drift, and after it, of the runs that chose and of those that judge."""
    rows = []
    for name in ("coverage", "drift"):
        for what, seeds in (("chose", range(100)), ("judge", range(100, N_RUNS))):
            found = [runs["monitor", seed]["alarms"].get(name, np.inf) for seed in seeds]
            at = np.array(found) - N_ALIKE
            rows.append(
                {
                    "evidence": name,
                    "runs": f"{len(at)} that {what}",
                    "false alarms": int((at <= 0).sum()),
                    "noise found": int(((at > 0) & np.isfinite(at)).sum()),
                    "median rows until then": np.median(at[(at > 0) & np.isfinite(at)]),
                }
            )
    return pd.DataFrame(rows).to_markdown(index=False, floatfmt=".0f")


if __name__ == "__main__":
    main()
