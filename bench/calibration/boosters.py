"""Intervals of who has a booster: from its leaves, around its mean, and stacked on a forest.

    python bench/calibration/boosters.py [--sets NAME ...] [--quick]

Prints a table of docs/coverage_and_width.md: coverage, mean width and interval score at 0.90, the
last two over those of `HDIForestRegressor().fit`. All have the same 3,000 training rows, or four
fifths of a smaller set; what needs rows to calibrate with takes a quarter of them. One thread, two
splits, the settings of the libraries but 200 rounds at a rate of 0.1. About five minutes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from catboost import CatBoostRegressor
from lightgbm import LGBMRegressor
from xgboost import XGBRegressor, XGBRFRegressor

import protocol
from hdiforest import HDIForestRegressor, from_catboost, from_lightgbm, from_xgboost
from hdiforest.metrics import coverage_score, interval_score, mean_width_score
from protocol import QUICK, Scale, study
from systems.interface import Training, split_quantile

SETS = ("concrete", "power_plant", "protein")
COVERAGE = 0.9
SCALE = Scale("boosters", 3000, 1000, 2, 300, SETS)
OURS = "`HDIForestRegressor().fit`"
BOOSTED = {"n_estimators": 200, "learning_rate": 0.1, "n_jobs": 1}
FOREST = {"n_estimators": 200, "n_jobs": 1}
Fit = Callable[[Training, np.ndarray], np.ndarray]


def leaves(function: Callable[..., Any], booster: Any) -> Fit:
    """Take intervals from the leaves of the booster, calibrated."""

    def fit(training: Training, X: np.ndarray) -> np.ndarray:
        proper, held_out = training.split()
        model = function(booster.fit(proper.X, proper.y), proper.X, proper.y)
        return model.calibrate(held_out.X, held_out.y, coverage=COVERAGE).predict_interval(X)

    return fit


def split(booster: Any) -> Fit:
    """Take the booster's own mean, plus and minus a quantile of held-out residuals."""

    def fit(training: Training, X: np.ndarray) -> np.ndarray:
        proper, held_out = training.split()
        booster.fit(proper.X, proper.y)
        pad = split_quantile(np.abs(held_out.y - booster.predict(held_out.X)), COVERAGE)
        return booster.predict(X)[:, None] + [-pad, pad]

    return fit


def forest(mean: Any = None) -> Fit:
    """Take ours, with the booster as another mean or without."""

    def fit(training: Training, X: np.ndarray) -> np.ndarray:
        model = HDIForestRegressor(calibration=mean is None, random_state=training.seed)
        model.fit(training.X, training.y)
        if mean is not None:
            model.calibrate(mean=mean, random_state=training.seed)
        return model.predict_interval(X, COVERAGE)

    return fit


XGBOOST = XGBRegressor(**BOOSTED)
LIGHTGBM = LGBMRegressor(**BOOSTED, verbose=-1)
CATBOOST = CatBoostRegressor(
    iterations=200, learning_rate=0.1, thread_count=1, verbose=False, allow_writing_files=False
)
XGBOOST_FOREST = XGBRFRegressor(**FOREST, max_depth=12, colsample_bynode=1 / 3, reg_lambda=0)
LIGHTGBM_FOREST = LGBMRegressor(
    **FOREST,
    boosting_type="rf",
    colsample_bytree=0.7,
    min_child_samples=5,
    num_leaves=1024,
    verbose=-1,
)
SYSTEMS = {
    OURS: forest(),
    "`calibrate(mean=XGBRegressor())`": forest(XGBOOST),
    "`calibrate(mean=LGBMRegressor())`": forest(LIGHTGBM),
    "`calibrate(mean=CatBoostRegressor())`": forest(CATBOOST),
    "XGBoost's mean, split conformal": split(XGBOOST),
    "LightGBM's mean, split conformal": split(LIGHTGBM),
    "CatBoost's mean, split conformal": split(CATBOOST),
    "`from_xgboost`, boosted": leaves(from_xgboost, XGBOOST),
    "`from_lightgbm`, boosted": leaves(from_lightgbm, LIGHTGBM),
    "`from_catboost`, boosted": leaves(from_catboost, CATBOOST),
    "`from_xgboost`, random forest": leaves(from_xgboost, XGBOOST_FOREST),
    "`from_lightgbm`, random forest": leaves(from_lightgbm, LIGHTGBM_FOREST),
}


def measured(name: str, seed: int, system: str) -> dict[str, Any]:
    """Return one unit: a system on a split of a data set."""
    data = protocol.datasets.load(name)
    train, test = protocol.split(len(data.y), seed, SCALE)
    training = Training(data.X[train], data.y[train], (COVERAGE,), seed, SCALE.n_trees)
    ends, y = SYSTEMS[system](training, data.X[test]), data.y[test]
    return {
        "data set": name,
        "seed": seed,
        "system": system,
        "coverage": coverage_score(y, ends),
        "width": mean_width_score(ends),
        "score": interval_score(y, ends, COVERAGE),
    }


def main() -> None:
    warnings.filterwarnings("ignore", "(?s).*boosted")
    asked = study.parser(__doc__)
    asked.add_argument("--sets", nargs="+", choices=SETS)
    options = study.chosen(asked, globals(), SETS=("concrete",), SCALE=QUICK)
    names = options.sets or SETS
    units = product(names, range(SCALE.n_splits), SYSTEMS)
    print_table(pd.DataFrame([measured(*unit) for unit in units]), names)


def print_table(table: pd.DataFrame, names: Sequence[str]) -> None:
    """Print coverage, width and score of each system on each data set."""
    means = table.groupby(["data set", "system"], sort=False).mean().drop(columns="seed")
    for column in ("width", "score"):
        means[column] /= means[column].xs(OURS, level="system").reindex(means.index, level=0)
    cells = means.apply(lambda row: ", ".join(f"{each:.2f}" for each in row), axis=1)
    print(cells.unstack("data set").reindex(index=list(SYSTEMS), columns=names).to_markdown())


if __name__ == "__main__":
    main()
