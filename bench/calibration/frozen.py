"""Intervals around a booster that is fitted already: ours, crepes' and MAPIE's prefit calls.

    python bench/calibration/frozen.py             # what is missing
    python bench/calibration/frozen.py --tables    # the table again
    python bench/calibration/frozen.py --quick

Of each set and split 2,000 rows or four fifths are divided: LightGBM (200 rounds at a rate of 0.1)
is fitted on a half of them, and the other half, which is new to it, is what the systems get.
Coverage, mean width and interval score at 0.90 of up to 2,000 test rows, the last two in standard
deviations of the target. Each finished split of a data set is written at once and skipped when
present. Four minutes of one core.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from crepes import WrapRegressor
from crepes.extras import DifficultyEstimator
from lightgbm import LGBMRegressor
from mapie.conformity_scores import ResidualNormalisedScore
from mapie.regression import SplitConformalRegressor
from sklearn.frozen import FrozenEstimator

from hdiforest import HDIForestRegressor
from hdiforest.metrics import coverage_score, interval_score, mean_width_score
from protocol import RESULTS, Scale, datasets, split, study

SETS = ("concrete", "parkinsons", "power_plant", "protein")
SCALE = Scale("frozen", 2000, 2000, 5, 300, SETS)
COVERAGE = 0.9
OURS = "`HDIForestRegressor().fit(X, y).calibrate(mean=FrozenEstimator(booster))`"
Rows = tuple[np.ndarray, np.ndarray]


def ours(booster: Any, rows: Rows, X: np.ndarray, seed: int) -> np.ndarray:
    model = HDIForestRegressor(calibration=False, n_jobs=1, random_state=seed).fit(*rows)
    if booster is not None:
        booster = FrozenEstimator(booster)
    return model.calibrate(mean=booster, coverage=COVERAGE).predict_interval(X, COVERAGE)


def crepes(booster: Any, rows: Rows, X: np.ndarray, difficulty: Any = None) -> np.ndarray:
    wrapped = WrapRegressor(booster)
    wrapped.calibrate(*rows, de=difficulty)
    return wrapped.predict_int(X, confidence=COVERAGE)


def by_neighbours(booster: Any, rows: Rows, X: np.ndarray) -> np.ndarray:
    """Divide residuals by those of the 25 nearest rows of a half, and calibrate by the other."""
    (X_near, X_rest), (y_near, y_rest) = (np.array_split(part, 2) for part in rows)
    difficulty = DifficultyEstimator()
    difficulty.fit(X=X_near, residuals=y_near - booster.predict(X_near), scaler=True)
    return crepes(booster, (X_rest, y_rest), X, difficulty=difficulty)


def mapie(booster: Any, rows: Rows, X: np.ndarray, score: Any = "absolute") -> np.ndarray:
    model = SplitConformalRegressor(booster, COVERAGE, conformity_score=score, prefit=True)
    return model.conformalize(*rows).predict_interval(X)[1][:, :, 0]


def normalised(booster: Any, rows: Rows, X: np.ndarray, seed: int) -> np.ndarray:
    """Divide residuals by a linear model of them, which a half of the rows is for."""
    return mapie(booster, rows, X, score=ResidualNormalisedScore(random_state=seed))


SYSTEMS: dict[str, Callable[[Any, Rows, np.ndarray, int], np.ndarray]] = {
    OURS: ours,
    "the same without the booster": lambda _, *args: ours(None, *args),
    "crepes, `WrapRegressor(booster)`": lambda *args: crepes(*args[:3]),
    "crepes, the same with `DifficultyEstimator()`": lambda *args: by_neighbours(*args[:3]),
    "MAPIE, `SplitConformalRegressor(booster, prefit=True)`": lambda *args: mapie(*args[:3]),
    "MAPIE, the same with `ResidualNormalisedScore()`": normalised,
}


def measure(name: str, seed: int) -> dict[study.Key, dict]:
    """Return the measures of each system on one split."""
    data = datasets.load(name)
    train, test = split(len(data.y), seed, SCALE)
    known, new = np.array_split(train, 2)
    booster = LGBMRegressor(n_estimators=200, learning_rate=0.1, n_jobs=1, verbose=-1)
    booster.fit(data.X[known], data.y[known])
    y, sd, found = data.y[test], data.y.std(), {}
    for system, intervals in SYSTEMS.items():
        ends = intervals(booster, (data.X[new], data.y[new]), data.X[test], seed)
        found[system, seed] = {
            "n_rows": len(new),
            "coverage": float(coverage_score(y, ends)),
            "width": float(mean_width_score(ends) / sd),
            "score": float(interval_score(y, ends, COVERAGE) / sd),
        }
    return found


def table(folder: Path) -> str:
    """Return coverage, width and score of each system on each data set, means over splits."""
    known = {name: study.read(study.path_of(folder, name)) for name in SETS}
    known = {name: results for name, results in known.items() if results}
    rows = []
    for system in SYSTEMS:
        cells = {}
        for name, results in known.items():
            own = [r for (key, _), r in results.items() if key == system]
            means = [
                np.mean([each[what] for each in own]) for what in ("coverage", "width", "score")
            ]
            cells[name] = ", ".join(f"{each:.2f}" for each in means)
        rows.append({"system": system} | cells)
    text = study.markdown(rows)
    return f"## Intervals at 0.90 around a fitted booster: coverage, width, score\n\n{text}\n"


if __name__ == "__main__":
    study.by_split(
        globals(),
        RESULTS / SCALE.name,
        measure,
        table,
        SCALE._replace(sets=("concrete",), max_training=400, n_trees=80, n_splits=1),
    )
