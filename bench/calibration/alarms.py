"""False alarms of `CoverageMonitor`, and how long it takes to find noise that doubles.

    python bench/calibration/alarms.py [--quick]

300 runs: a forest of 100 trees fitted to 800 rows of Friedman's function with unit noise watches
2,000 new rows, in batches of 100, and then 1,000 whose noise has doubled. The allowance of two
standard errors was chosen on the seeds below 100; the others judge. Results are kept, a line a
run, and those that are there are not made again; all takes about nine minutes.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor
from hdiforest.monitoring import CoverageMonitor

sys.path.insert(0, str(Path(__file__).parents[1]))
import datasets
import study

FOLDER = Path(__file__).parent / "results"
N_RUNS, N_CHOSE = 300, 100
N_TRAIN, N_ALIKE, N_NOISY, BATCH = 800, 2000, 1000, 100


def main() -> None:
    asked = study.parser(__doc__, FOLDER)
    study.chosen(asked, globals(), N_RUNS=2, N_CHOSE=1, N_TRAIN=400, N_ALIKE=200, N_NOISY=200)
    path = study.path_of(FOLDER, "alarms")
    for seed in range(N_RUNS):
        study.keep(path, ("monitor", seed), partial(run, seed))
    print(table(study.read(path)))


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
        for what, seeds in (("chose", range(N_CHOSE)), ("judge", range(N_CHOSE, N_RUNS))):
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
    return study.markdown(rows, ".0f")


if __name__ == "__main__":
    main()
