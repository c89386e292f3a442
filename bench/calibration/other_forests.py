"""Intervals from the leaves of other forests, raw and calibrated with rows held out.

    pip install econml scikit-survival   # beside the group bench
    python bench/calibration/other_forests.py [--sets NAME ...] [--quick]

Writes the table of docs/forests.md: coverage and mean width at 0.90, means over five draws of 3,000
rows whose noise grows (700 for the forest, 300 to calibrate, 2,000 to test). Forests have 200 trees
and five rows in a leaf where the library has such an option. Two minutes of one core.
"""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import make_friedman1

from hdiforest import HDIForestRegressor, from_leaves
from hdiforest.adapters.boosters import XGBoostLeaves
from hdiforest.metrics import coverage_score, mean_width_score

sys.path.insert(0, str(Path(__file__).parents[1]))
import study

RESULTS = Path(__file__).parent / "results" / "other_forests"
TREES = {"n_estimators": 200}
LEAF = TREES | {"min_samples_leaf": 5}
LIGHTGBM = TREES | {"min_child_samples": 5, "n_jobs": 1, "verbose": -1}
XGBRF = TREES | {"min_child_weight": 5, "subsample": 1, "reg_lambda": 0, "n_jobs": 1}


class Forest(NamedTuple):
    """Options of a forest, and the line that makes a model of it."""

    options: dict[str, Any]
    line: str = "from_leaves(forest.apply, X, y)"


LIGHTGBM_LINE = "from_leaves(partial(forest.predict, pred_leaf=True), X, y)"
FORESTS = {  # behind a comma: what else tells two forests of a class apart
    "sklearn.ensemble.RandomForestRegressor": Forest(
        LEAF, "HDIForestRegressor.from_forest(forest, X, y)"
    ),
    "sklearn.ensemble.RandomTreesEmbedding": Forest(LEAF | {"max_depth": None}),
    "sklearn.ensemble.IsolationForest": Forest(
        TREES | {"max_samples": 1.0}, "from_leaves(partial(stacked, forest), X, y)"
    ),
    "sklearn.ensemble.GradientBoostingRegressor": Forest(LEAF),
    "econml.grf.RegressionForest": Forest(LEAF),
    "lightgbm.LGBMRegressor, rf": Forest(
        LIGHTGBM | {"boosting_type": "rf", "colsample_bytree": 0.7}, LIGHTGBM_LINE
    ),
    "lightgbm.LGBMRegressor, gbdt": Forest(LIGHTGBM, LIGHTGBM_LINE),
    "xgboost.XGBRFRegressor": Forest(XGBRF | {"max_depth": 8, "colsample_bynode": 0.7}),
    "xgboost.train, aft": Forest(
        {"objective": "survival:aft", "max_depth": 3, "eta": 0.1},
        "from_leaves(XGBoostLeaves(forest), X, y)",
    ),
    "sksurv.ensemble.RandomSurvivalForest": Forest(LEAF | {"low_memory": True}),
}
COLUMNS = {"raw coverage": 3, "raw width": 1, "calibrated coverage": 3, "calibrated width": 1}
QUICK = tuple(name for name in FORESTS if name.startswith("sklearn."))
SCALE = SimpleNamespace(sets=tuple(FORESTS), n_splits=5)


def stacked(forest: Any, X: np.ndarray) -> np.ndarray:
    """Return the leaf of each tree of a forest that has no `apply`."""
    return np.column_stack([tree.apply(X) for tree in forest.estimators_])


def fitted(name: str, X: np.ndarray, y: np.ndarray, seed: int) -> Any:
    module, _, kind = name.partition(",")[0].rpartition(".")
    library, options = import_module(module), FORESTS[name].options
    if kind == "train":
        bounds = library.DMatrix(X, label_lower_bound=y, label_upper_bound=y)
        return library.train(options | {"seed": seed, "nthread": 1}, bounds, 200)
    forest = getattr(library, kind)(random_state=seed, **options)
    if module == "sksurv.ensemble":
        y = import_module("sksurv.util").Surv.from_arrays(np.ones(len(y), dtype=bool), y)
    return forest.fit(X, y)


def measure(name: str, seed: int) -> dict[study.Key, dict]:
    """Return coverage and mean width of one forest on one draw, raw and calibrated."""
    X, mean = make_friedman1(3000, random_state=seed)
    y = mean + (0.5 + 3 * X[:, 3]) * np.random.default_rng(seed).normal(size=3000)
    y += 1 - y.min()  # above 0, as times are
    train, held_out, test = np.split(np.arange(3000), [700, 1000])
    forest = fitted(name, X[train], y[train], seed)
    names = {each.__name__: each for each in (HDIForestRegressor, XGBoostLeaves, partial, stacked)}
    names |= {"from_leaves": from_leaves, "forest": forest, "X": X[train], "y": y[train]}
    model = eval(FORESTS[name].line, names)
    raw = model.predict_interval(X[test], 0.9, kind="hdi")
    model.calibrate(X[held_out], y[held_out])
    calibrated = model.predict_interval(X[test], 0.9)
    pairs = [(coverage_score(y[test], ends), mean_width_score(ends)) for ends in (raw, calibrated)]
    return {(name, seed): dict(zip(COLUMNS, np.ravel(pairs).tolist(), strict=True))}


def table(folder: Path) -> str:
    """Return means over the draws, a row for each forest that has results."""
    rows = []
    for name, forest in FORESTS.items():
        if not (results := study.read(study.path_of(folder, name)).values()):
            continue
        kind, comma, rest = name.partition(",")
        cells = {"forest": f"`{kind}`{comma}{rest}", "model": f"`{forest.line}`"}
        for column, digits in COLUMNS.items():
            cells[column] = f"{np.mean([each[column] for each in results]):.{digits}f}"
        rows.append(cells)
    return f"{study.markdown(rows)}\n"


if __name__ == "__main__":
    study.by_split(globals(), RESULTS, measure, table, SimpleNamespace(sets=QUICK, n_splits=1))
