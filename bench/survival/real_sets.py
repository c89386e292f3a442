"""HDISurvivalForest beside the forest of scikit-survival: error, order, memory and time.

    python bench/survival/real_sets.py [--quick]

Needs scikit-survival and its four data sets: 100 trees in four folds. "Same trees" are those of its
RandomSurvivalForest, "own trees" grow on residuals. The Brier score is over the 0.05 to 0.95
quantiles of all times. Memory and time: 10,000 simulated rows, half of them censored. Writes
results/real_sets.md; four minutes of one core.
"""

from __future__ import annotations

import pickle
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import StratifiedKFold
from sksurv import datasets as of_sksurv
from sksurv.ensemble import RandomSurvivalForest
from sksurv.metrics import concordance_index_censored, integrated_brier_score

from hdiforest import HDISurvivalForest

sys.path.insert(0, str(Path(__file__).parents[1]))
from simulation import drawn, target

import study

FOLDER = Path(__file__).parent / "results"
SETS: dict[str, Any] = {
    "whas500": of_sksurv.load_whas500,
    "gbsg2": of_sksurv.load_gbsg2,
    "veterans": of_sksurv.load_veterans_lung_cancer,
    "flchain": of_sksurv.load_flchain,
}
MAX_ROWS, N_TREES, LEAF_SIZES = 2500, 100, (3, 10)
# Distinct times, and trees: scikit-survival keeps 16 bytes for each node and time.
LARGE, N_LARGE, N_ASKED = {1_000: 10, 10_000: 3}, 10_000, 20_000


def main() -> None:
    quick = {"SETS": {"veterans": SETS["veterans"]}, "N_TREES": 20, "LARGE": {100: 2}}
    study.chosen(study.parser(__doc__, FOLDER), globals(), **quick, N_LARGE=500)
    warnings.simplefilter("ignore")
    errors = pd.DataFrame(row for name in SETS for row in in_folds(name))
    keys, sections = ["set", "rows", "censored", "leaf"], {}
    for measure, title in {"ibs": "Integrated Brier score", "c": "Concordance index"}.items():
        table = errors.pivot_table(measure, keys, "system", sort=False).reset_index()
        sections[title] = study.markdown(table, ".4f")
    of_trees = (costs(n_times, n_trees) for n_times, n_trees in LARGE.items())
    sections["Memory and time, in one thread"] = study.markdown(of_trees, ".4g")
    study.write_tables(FOLDER / "real_sets.md", sections, "# Beside scikit-survival")


def load(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features as numbers, events and times of some rows at random."""
    table, y = SETS[name]()
    table = table.drop(columns="chapter", errors="ignore")  # the cause of death tells that it came
    columns = [
        column.cat.codes.where(column.notna()) if column.dtype == "category" else column
        for _, column in table.items()
    ]
    rows = np.random.default_rng(0).permutation(len(table))[:MAX_ROWS]
    event, times = (y[field][rows] for field in y.dtype.names)
    return np.column_stack(columns).astype(np.float32)[rows], event, times.astype(float)


def in_folds(name: str) -> Iterator[dict[str, object]]:
    """Yield error and order of each system in each fold."""
    X, event, times = load(name)
    folds = list(StratifiedKFold(4, shuffle=True, random_state=0).split(X, event))
    grid = np.unique(np.quantile(times, np.linspace(0.05, 0.95, 100)))
    for leaf, (train, test) in product(LEAF_SIZES, folds):
        y = target(event[train], times[train])
        test = test[times[test] < times[train].max()]  # known follow-up
        y_test = target(event[test], times[test])
        at = grid[(grid > times[test].min()) & (grid < times[test].max())]
        options: dict[str, Any] = {"min_samples_leaf": leaf, "random_state": 0}
        theirs = RandomSurvivalForest(N_TREES, min_samples_split=2 * leaf, **options)
        theirs.fit(X[train], y)
        own = RandomForestRegressor(N_TREES, max_features=1 / 3, **options)
        for system, model in {
            "RandomSurvivalForest": theirs,
            "same trees": HDISurvivalForest.from_forest(theirs, X[train], y),
            "own trees": HDISurvivalForest(own).fit(X[train], y),
        }.items():
            order = concordance_index_censored(event[test], times[test], model.predict(X[test]))
            if model is theirs:
                curves = [curve(at) for curve in theirs.predict_survival_function(X[test])]
            else:
                curves = model.predict_survival_function(X[test], at, return_array=True)
            yield {
                "set": name,
                "rows": len(X),
                "censored": round(1 - event.mean(), 2),
                "leaf": leaf,
                "system": system,
                "ibs": integrated_brier_score(y, y_test, curves, at),
                "c": order[0],
            }


def seconds(call: Any) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def costs(n_times: int, n_trees: int) -> dict[str, object]:
    """Return what a tree of each forest takes."""
    X, came, until = drawn("one scale", N_LARGE + N_ASKED, 0.5, np.random.default_rng(0))
    event, times = came <= until, np.minimum(came, until)
    if n_times < N_LARGE:
        classes = np.quantile(times, np.linspace(0, 1, n_times + 1)[1:])
        times = classes[np.searchsorted(classes, times)]
    X, asked = np.split(X.astype(np.float32), [N_LARGE])
    y = target(event[:N_LARGE], times[:N_LARGE])
    theirs = RandomSurvivalForest(n_trees, min_samples_leaf=15, random_state=0)
    of_fit = seconds(lambda: theirs.fit(X, y))
    own = RandomForestRegressor(100, min_samples_leaf=15, max_features=1 / 3, random_state=0)
    of_own_fit = seconds(lambda: HDISurvivalForest(own).fit(X, y))
    model = HDISurvivalForest.from_forest(theirs, X, y)
    with tempfile.TemporaryDirectory() as folder:
        model.save(file := Path(folder) / "model", training_rows=False)
        ours = file.stat().st_size / n_trees
    few = asked[: N_ASKED // 40]
    curves = seconds(lambda: theirs.predict_survival_function(few, return_array=True)) / len(few)
    intervals = seconds(lambda: model.predict_interval(asked, 0.8, kind="hdi")) / N_ASKED
    memory = len(pickle.dumps(theirs)) / n_trees
    return {
        "distinct times": len(np.unique(times[:N_LARGE])),
        "trees": n_trees,
        "theirs, MB a tree": memory / 1e6,
        "model file, MB a tree": ours / 1e6,
        "memory ratio": memory / ours,
        "their fit, s a tree": of_fit / n_trees,
        "own fit, s a tree": of_own_fit / 100,
        "their curve, us a row and tree": 1e6 * curves / n_trees,
        "interval, us a row and tree": 1e6 * intervals / n_trees,
        "time ratio": curves / intervals,
    }


if __name__ == "__main__":
    main()
