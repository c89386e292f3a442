"""Time of `diagnose`, `recalibrate` and of counting rows, in turns with that of scoring.

    python bench/speed/after_fit.py [--quick]

20,000 training rows of ten features, calibrated and not; 20,000 rows are diagnosed, 10,000
recalibrate a model of five coverages. Each ratio is the median over turns. About a minute.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from hdiforest import HDIForestRegressor
from hdiforest._tables.encoder import TableEncoder
from hdiforest._tables.row_counts import count_rows
from hdiforest.inspection import diagnose
from hdiforest.monitoring import recalibrate

sys.path.insert(0, str(Path(__file__).parents[1]))
import datasets
import study

TURNS, N_ROWS, N_TREES = 7, 20_000, (100, 300)
COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)


def main() -> None:
    study.chosen(study.parser(__doc__), globals(), TURNS=1, N_ROWS=600, N_TREES=(60,))
    X, y = datasets.friedman(N_ROWS, 0)
    new, y_new = datasets.friedman(N_ROWS, 1)
    few = slice(N_ROWS // 2)
    rows = []
    for trees in N_TREES:
        forest = ExtraTreesRegressor(trees, bootstrap=True, n_jobs=-1, random_state=0)
        raw = HDIForestRegressor(forest, calibration=False, n_jobs=-1).fit(X, y)
        model = HDIForestRegressor(forest, calibration=COVERAGES, n_jobs=-1).fit(X, y)
        rows += [
            _row(trees, "diagnose / raw interval, not calibrated", 3,
                 lambda own=raw: diagnose(own, new),
                 lambda own=raw: own.predict_interval(new, 0.9, kind="hdi")),
            _row(trees, "diagnose / raw interval, calibrated", 3,
                 lambda own=model: diagnose(own, new),
                 lambda own=model: own.predict_interval(new, 0.9, kind="hdi")),
            *(
                _row(trees, f"recalibrate / calibrated intervals, {method}", 1.2,
                     lambda own=model, m=method: recalibrate(
                         own, new[few], y_new[few], method=m),
                     lambda own=model: own.predict_interval(new[few], COVERAGES))
                for method in ("rolling", "aci")
            ),
            _row(trees, "counting / raw interval", 0.02,
                 lambda own=raw: _count(own, new),
                 lambda own=raw: own.predict_interval(new, 0.9, kind="hdi")),
        ]  # fmt: skip
    print(study.markdown(rows, ".3g"))


def _count(model: HDIForestRegressor, X: np.ndarray) -> None:
    columns = TableEncoder.of_numbers(f"x{j}" for j in range(X.shape[1])).ordered
    count_rows(X, columns, model._fitted_forest().facts.feature_range)


def _row(
    trees: int, what: str, goal: float, work: Callable[[], object], yardstick: Callable[[], object]
) -> dict[str, object]:
    """Return the ratio of two times, both measured in each turn."""
    work(), yardstick()
    ratios = []
    for _ in range(TURNS):
        seconds = []
        for each in (work, yardstick):
            start = time.perf_counter()
            each()
            seconds.append(time.perf_counter() - start)
        ratios.append(seconds[0] / seconds[1])
    return {"trees": trees, "ratio": what, "median": np.median(ratios), "goal": goal}


if __name__ == "__main__":
    main()
