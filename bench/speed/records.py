"""What a record costs `BatchScorer` beyond the query of the same row as an array.

    python bench/speed/records.py [--quick]

3,000 training rows of ten columns (numbers, booleans, two of categories, a date), 100 trees, not
calibrated and calibrated. Shown are the tenth percentiles of batches of ten calls, in microseconds
of the processor, of the query, of a record and of the same record in a list, which is read as a
table. Half a minute.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor

from hdiforest import fit_table
from hdiforest.calibration._predict import predict_mean_and_intervals
from hdiforest.serving import BatchScorer

sys.path.insert(0, str(Path(__file__).parents[1]))
import study

N_ROWS, N_BATCHES = 3000, 200
RECORD = {f"x{j}": 0.5 for j in range(5)} | {
    "rooms": 3, "town": "Lyon", "heating": "gas", "lift": True, "sold": datetime(2021, 3, 4),
}  # fmt: skip


def main() -> None:
    study.chosen(study.parser(__doc__), globals(), N_ROWS=300, N_BATCHES=3)
    model = fit_table(_table(N_ROWS), "price", estimator=ExtraTreesRegressor(bootstrap=True))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.hdi"
        model.save(path)
        rows = [_times(BatchScorer(path, 0.9, kind=kind)) for kind in ("hdi", "calibrated")]
    print(study.markdown(rows, ".0f"))


def _times(scorer: BatchScorer) -> dict[str, object]:
    fitted = scorer.open().model.fitted
    X, _ = fitted.encode(fitted.encoder.row(RECORD), fitted.encoder)
    work: dict[str, Callable[[], object]] = {
        "query": lambda: predict_mean_and_intervals(fitted, X, [0.9], scorer.kind, 1),
        "record": lambda: scorer(RECORD),
        "as a table": lambda: scorer([RECORD]),
    }
    times = {name: _microseconds(each) for name, each in work.items()}
    return {"kind": scorer.kind} | times | {"beyond": times["record"] - times["query"]}


def _microseconds(work: Callable[[], object]) -> float:
    """Return the tenth percentile of the time of a call."""
    seconds = []
    for _ in range(N_BATCHES):
        start = time.process_time()
        for _ in range(10):
            work()
        seconds.append((time.process_time() - start) / 10)
    return float(np.quantile(seconds, 0.1)) * 1e6


def _table(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"x{j}": rng.normal(size=n) for j in range(5)})
    table = table.assign(rooms=rng.integers(1, 9, n), town=rng.choice(["Lyon", "Nice", "Metz"], n))
    table = table.assign(heating=rng.choice(["gas", "wood"], n), lift=rng.random(n) < 0.5)
    days = pd.to_timedelta(rng.integers(0, 1000, n), unit="D")
    price = table["x0"] + table["rooms"] + (table["town"] == "Nice") + rng.normal(size=n)
    return table.assign(sold=pd.Timestamp("2020-01-01") + days, price=price)


if __name__ == "__main__":
    main()
