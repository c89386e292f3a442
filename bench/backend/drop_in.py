"""Measure hdiforest.adapters.quantile_forest against quantile-forest, whose interface it has.

    python bench/backend/drop_in.py            # a table in bench/backend/results, 3 minutes
    python bench/backend/drop_in.py --quick    # small, printed only

Both grow the same forests. Their quantiles are compared where leaves keep all samples, and their
calls run in turns in this process, on one thread; what is measured is the processor's time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import quantile_forest
from sklearn.datasets import make_friedman1
from tabulate import tabulate

from hdiforest.adapters import quantile_forest as ours
from turns import seconds_in_turns, study

FOLDER = Path(__file__).parent / "results"
N_TREES = 100
LEVELS = [0.1, 0.5, 0.9]
CASES = [(1, 1), (5, 1), (1, None), (5, None)]  # min_samples_leaf, max_samples_leaf


def main() -> None:
    parser = study.parser(__doc__)
    quick = parser.parse_args().quick
    n, turns = (500, 1) if quick else (20_000, 7)
    X, y = make_friedman1(2 * n, n_features=10, noise=1.0, random_state=0)
    found = [measure(case, X[:n], y[:n], X[n:], turns) for case in CASES]
    table = table_of(found)
    print(table)
    if quick:
        return
    about = {"rows": n, "trees": N_TREES, "levels": LEVELS, "turns": turns}
    about |= {"quantile-forest": version("quantile-forest"), "entries": found}
    text = (
        f"Three quantiles of {n:,} new rows, {N_TREES} trees on {n:,} rows with max_features=1/3: "
        f"seconds of one processor by quantile-forest {about['quantile-forest']} and by "
        "hdiforest.adapters.quantile_forest, "
        f"medians of {turns} turns; ratios with their least and largest.\n\n{table}\n"
    )
    study.write_run(FOLDER / "drop_in.md", about, text)


def measure(
    case: tuple[int, int | None], X: np.ndarray, y: np.ndarray, X_new: np.ndarray, turns: int
) -> dict[str, Any]:
    """Fit both, compare their answers, and time them in turns."""
    least, most = case
    options = {"min_samples_leaf": least, "max_samples_leaf": most, "max_features": 1 / 3}
    forests: dict[str, Any] = {}
    fit_seconds = {}
    for name, module in (("theirs", quantile_forest), ("ours", ours)):
        forest = module.RandomForestQuantileRegressor(N_TREES, random_state=0, **options)
        start = time.process_time()
        forests[name] = forest.fit(X, y)
        fit_seconds[name] = time.process_time() - start
    calls: dict[str, Callable[[], np.ndarray]] = {
        name: lambda forest=forest: forest.predict(X_new, quantiles=LEVELS)
        for name, forest in forests.items()
    }
    apart = float(np.abs(calls["ours"]() - calls["theirs"]()).max())
    if most is None:  # else other samples of a leaf are kept
        assert apart < 1e-8 * y.std(), f"other quantiles than quantile-forest's: {apart}"
    calls["interval"] = lambda: forests["ours"].predict_interval(X_new, 0.8)
    seconds = seconds_in_turns(calls, turns, clock=time.process_time)
    ratios = np.array(seconds["theirs"]) / seconds["ours"]
    return {
        "min_samples_leaf": least,
        "max_samples_leaf": most,
        "apart": apart,
        "fit_seconds": fit_seconds,
        "seconds": {name: float(np.median(own)) for name, own in seconds.items()},
        "times_as_fast": [float(np.median(ratios)), float(ratios.min()), float(ratios.max())],
    }


def table_of(found: list[dict[str, Any]]) -> str:
    headers = ["min_samples_leaf", "max_samples_leaf", "quantile-forest", "here", "ratio"]
    headers += ["shortest intervals, here", "fit, quantile-forest", "fit, here"]
    lines = []
    for one in found:
        seconds, fit = one["seconds"], one["fit_seconds"]
        middle, low, high = one["times_as_fast"]
        line = [str(one["min_samples_leaf"]), str(one["max_samples_leaf"])]
        line += [f"{seconds['theirs']:.2f}", f"{seconds['ours']:.2f}"]
        line += [f"{middle:.1f} ({low:.1f}-{high:.1f})", f"{seconds['interval']:.2f}"]
        line += [f"{fit['theirs']:.1f}", f"{fit['ours']:.1f}"]
        lines.append(line)
    return tabulate(lines, headers, tablefmt="github", disable_numparse=True)


if __name__ == "__main__":
    main()
