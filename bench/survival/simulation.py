"""What intervals of censored times cover, where the times are known.

    python bench/survival/simulation.py [--quick]

Seven settings, 30 and 80 % of 500 rows censored, three draws of each; 1,500 further rows have known
times. Two-sided intervals are asked for 0.8 of the times, lower bounds for 0.9. Two negative
controls are calibrated as the model is: rows that are censored are dropped, or taken as events.
Each forest has 100 trees. Writes results/table.md; five minutes of one core.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor
from threadpoolctl import threadpool_limits

from hdiforest import HDISurvivalForest

sys.path.insert(0, str(Path(__file__).parents[1]))
import study

FOLDER = Path(__file__).parent / "results"
RATES, DRAWS, N, N_TEST, N_TREES = (0.3, 0.8), 3, 500, 1500, 100
TWO_SIDED, LOWER = 0.8, 0.9
SETTINGS = {
    "one scale": "log-normal times, exponential censoring",
    "scale by x": "the spread of log times is 0.15 to 1.35",
    "censoring by x": "the same, censoring rises with two of the features of the times",
    "crossing hazards": "Weibull shape 0.8 or 3",
    "two modes": "early for 0.4 to 0.7 of the rows, late for the others",
    "end of study": "entry at random, the study ends for all",
    "opposed": "times rise and censoring times fall along one feature",
}


def main() -> None:
    quick = {"RATES": (0.5,), "DRAWS": 1, "N": 200, "N_TEST": 200}
    study.chosen(study.parser(__doc__, FOLDER), globals(), **quick)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of coverages that few rows do not allow
        units = product(RATES, SETTINGS, range(DRAWS))
        found = pd.DataFrame(row for unit in units for row in measured(*unit))
    lines = "\n".join(f"* {setting}: {about}" for setting, about in SETTINGS.items())
    about = f"{N} training rows, {N_TEST} test rows, {N_TREES} trees, {DRAWS} draws.\n\n{lines}"
    study.write_tables(FOLDER / "table.md", tables(found), f"# Simulated times\n\n{about}")


def drawn(setting: str, n: int, rate: float, random: np.random.Generator) -> list[np.ndarray]:
    """Return features, times of the event, and of the censoring, of which `rate` come first."""
    X = random.random((n, 8))
    level = 1 + X[:, 0] + np.sin(3 * X[:, 1])
    noise, of_censoring = random.standard_normal((2, n))
    if setting in ("scale by x", "censoring by x"):
        log_time = level + (0.15 + 1.2 * X[:, 2]) * noise
    elif setting == "crossing hazards":
        log_time = level + np.log(random.exponential(size=n)) / np.where(X[:, 2] > 0.5, 3, 0.8)
    elif setting == "two modes":
        is_early = random.random(n) < 0.4 + 0.3 * X[:, 3]
        log_time = level + np.where(is_early, -1, 0.8) + 0.2 * noise
    else:
        log_time = level + (0.7 if setting == "end of study" else 0.5) * noise
    if setting == "censoring by x":
        log_until = 1.5 * (X[:, 0] + X[:, 2] - 1) + 0.8 * of_censoring
    elif setting == "end of study":
        log_until = np.log(0.3 + 0.7 * random.random(n))
    elif setting == "opposed":
        log_until = -4 * (X[:, 0] - 0.5) + 0.5 * of_censoring
    else:
        log_until = np.log(random.exponential(size=n))
    scale = np.quantile(log_time - log_until, 1 - rate)  # moves censoring until the rate is right
    return [X, np.exp(log_time), np.exp(log_until + scale)]


def target(event: np.ndarray, time: np.ndarray) -> np.ndarray:
    """Return the pairs that scikit-survival takes, too."""
    return np.array(list(zip(event, time, strict=True)), [("event", bool), ("time", float)])


def measured(rate: float, setting: str, draw: int) -> Iterator[dict[str, object]]:
    """Yield what each system covers in one draw."""
    random = np.random.default_rng((list(SETTINGS).index(setting), int(10 * rate), draw))
    X, came, until = drawn(setting, N + N_TEST, rate, random)
    event, time = (came <= until)[:N], np.minimum(came, until)[:N]
    X, new_rows, of_new_rows = X[:N], X[N:], came[N:]
    forest = RandomForestRegressor(
        N_TREES, min_samples_leaf=10, max_features=0.5, random_state=draw
    )

    def answers(rows: np.ndarray, event: np.ndarray, calibrate: bool) -> Iterator[np.ndarray]:
        model = HDISurvivalForest(forest, random_state=draw).fit(
            X[rows], target(event[rows], time[rows])
        )
        if calibrate:
            model.calibrate(coverage=[TWO_SIDED, LOWER])
        kind = "calibrated" if calibrate else "equal_tailed"
        yield model.predict_interval(new_rows, TWO_SIDED, kind=kind)
        yield model.predict_interval(new_rows, LOWER, kind="lower")

    all_rows = np.ones(N, dtype=bool)
    given = {
        "calibrated": (all_rows, event, True),
        "raw": (all_rows, event, False),
        "dropped": (event, event, True),
        "as events": (all_rows, all_rows, True),
    }
    for system, arguments in given.items():
        two_sided, bounds = answers(*arguments)
        lower, upper = two_sided.T
        yield {
            "censored": rate,
            "setting": setting,
            "system": system,
            "coverage": np.mean((lower <= of_new_rows) & (of_new_rows <= upper)),
            "infinite": np.mean(np.isinf(upper)),
            "bound holds": np.mean(bounds[:, 0] <= of_new_rows),
            "bound": np.mean(bounds[:, 0]),
        }


def tables(found: pd.DataFrame) -> dict[str, str]:
    """Return a table for each measure: a row a setting, a column a system."""
    titles = {
        "coverage": f"Coverage of two-sided intervals, asked for {TWO_SIDED}",
        "infinite": "Share of infinite upper ends",
        "bound holds": f"Coverage of lower bounds, asked for {LOWER}",
        "bound": "Mean lower bound",
    }
    sections = {}
    for measure, title in titles.items():
        table = found.pivot_table(measure, ["censored", "setting"], "system", sort=False)
        of_rates = table.groupby("censored").agg(["mean", "min", "max"]).stack(future_stack=True)
        of_rates.index.names = table.index.names
        sections[title] = study.markdown(pd.concat([table, of_rates]).reset_index(), ".3f")
    return sections


if __name__ == "__main__":
    main()
