"""One unit of work: a system fitted to the training rows of a split, measured on its test rows."""

from __future__ import annotations

import sys
import time
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from hdiforest.metrics import coverage_by_width, coverage_score, interval_score, mean_width_score
from systems.interface import System, Training

sys.path.insert(0, str(Path(__file__).parents[1]))
import datasets
import study as study  # of the scripts beside this one, too

RESULTS = Path(__file__).parent / "results"
N_FIFTHS = 5
N_FEATURES = 5  # whose fifths are looked at


class Scale(NamedTuple):
    """How large a run is; each has a folder of results."""

    name: str
    max_training: int
    max_test: int
    n_splits: int
    n_trees: int
    sets: tuple[str, ...]


LATEST = tuple(sorted((*datasets.LATEST, *datasets.MORE_ZIPPED)))
SETS = (*datasets.NAMES, *datasets.MORE, *LATEST)
# What tables are made of beside that of all. Defaults were chosen on the paper's sets and on every
# second one of the next sixteen, and are judged on the rest.
GROUPS = {
    "plain targets": tuple(name for name in SETS if name not in datasets.SPIKY),
    "spiky targets": datasets.SPIKY,
    "the paper's sets": datasets.NAMES,
    "other sets that chose": tuple(sorted(datasets.MORE))[::2],
    "sets that judge": tuple(sorted(datasets.MORE))[1::2],
    "twelve more that judge": LATEST,
}
EVALUATION = Scale("evaluation", 2000, 2000, 5, 200, SETS)
# Sets of which the evaluation leaves training rows out.
LARGER = (
    *("parkinsons", "naval", "power_plant", "protein", "online_news"),
    *("cps1988", "diamonds", "hotel_rates", "movies", "ten_mile_race"),
)
FULL_SIZE = Scale("full_size", 10_000, 2000, 2, 200, LARGER)
# With fewer trees too few leave a row out to calibrate.
QUICK = Scale("quick", 240, 100, 1, 80, SETS)


def measure(system: System, name: str, seed: int, scale: Scale) -> dict[str, Any]:
    """Fit a system and measure it at each of its coverages; widths in sds of the target."""
    data = datasets.load(name)
    train, test = split(len(data.y), seed, scale)
    training = Training(data.X[train], data.y[train], system.coverages, seed, scale.n_trees)
    spread = data.y.std(), np.ptp(data.y)
    strata = strata_of(data, train, test)
    return measure_on(system, training, data.X[test], data.y[test], spread, strata)


def measure_on(
    system: System,
    training: Training,
    X: np.ndarray,
    y: np.ndarray,
    spread: tuple[float, float],
    strata: dict[str, np.ndarray] | None = None,
) -> dict[str, Any]:
    """Fit a system and measure it on test rows; `spread` is the target's sd and range."""
    start = time.process_time()
    intervals_of = system.fit(training)
    fitted = time.process_time()
    intervals = intervals_of(X)
    predicted = time.process_time()
    return {
        "n_train": len(training.y),
        "n_test": len(y),
        "fit_seconds": round(fitted - start, 3),
        "predict_seconds": round(predicted - fitted, 3),
        "at": scores(y, intervals, system.coverages, *spread, strata),
    }


def split(n: int, seed: int, scale: Scale) -> tuple[np.ndarray, np.ndarray]:
    """Return training and test rows: random, at most so many, a fifth at least for the test."""
    order = np.random.default_rng(seed).permutation(n)
    n_train = min(scale.max_training, round(0.8 * n))
    return order[:n_train], order[n_train : n_train + scale.max_test]


def strata_of(data: datasets.DataSet, train: np.ndarray, test: np.ndarray) -> dict[str, np.ndarray]:
    """Return the fifths of the test rows, the same for all systems.

    "prediction" is by the mean of a small forest, the others by the features that matter most;
    stratum 0 has the rows where a feature is missing.
    """
    strata = {"prediction": _fifths(_forest(data, train).predict(data.X[test]))}
    for feature in _main_features(data.name):
        strata[data.features[feature]] = _fifths(data.X[test, feature])
    return strata


@lru_cache
def _main_features(name: str) -> tuple[int, ...]:
    data = datasets.load(name)
    rows = np.random.default_rng(0).permutation(len(data.y))[: EVALUATION.max_training]
    importances = _forest(data, rows).feature_importances_
    return tuple(int(feature) for feature in np.argsort(-importances)[:N_FEATURES])


def _forest(data: datasets.DataSet, rows: np.ndarray) -> RandomForestRegressor:
    forest = RandomForestRegressor(50, min_samples_leaf=5, max_features=1 / 3, random_state=0)
    return forest.fit(data.X[rows], data.y[rows])


def _fifths(values: np.ndarray) -> np.ndarray:
    """Return 1 to 5 from the least values to the largest, equal ones together; 0 where missing."""
    edges = np.nanquantile(values, np.arange(1, N_FIFTHS) / N_FIFTHS)
    return np.where(np.isnan(values), 0, 1 + np.searchsorted(edges, values, side="left"))


def scores(
    y: np.ndarray,
    intervals: np.ndarray,
    coverages: tuple[float, ...],
    sd: float,
    span: float,
    strata: dict[str, np.ndarray] | None = None,
) -> dict[str, Any]:
    """Return the measures by coverage.

    "by" has the rows of each stratum, and how many of their intervals hold y. "width" has the
    intervals of width zero first, then the others in fifths from narrow to wide.
    """
    by_width = coverage_by_width(y, intervals, n_strata=N_FIFTHS)
    held = np.rint(np.nan_to_num(by_width.coverage) * by_width.counts).astype(int)
    width = np.asarray(mean_width_score(intervals))
    columns = {
        "coverage": _rounded(coverage_score(y, intervals)),
        "width": _rounded(width / sd),
        "width_of_range": _rounded(width / span),
        "interval_score": _rounded(np.asarray(interval_score(y, intervals, coverages)) / sd),
    }
    covered = (intervals[:, 0] <= y[:, None]) & (y[:, None] <= intervals[:, 1])
    return {
        f"{coverage:.2f}": {name: values[j] for name, values in columns.items()}
        | {
            "by": {
                "width": {"rows": by_width.counts[:, j].tolist(), "held": held[:, j].tolist()},
                **{
                    name: {"rows": _counts(of_row), "held": _counts(of_row[covered[:, j]])}
                    for name, of_row in (strata or {}).items()
                },
            }
        }
        for j, coverage in enumerate(coverages)
    }


def _counts(strata: np.ndarray) -> list[int]:
    return np.bincount(strata, minlength=N_FIFTHS + 1).tolist()


def _rounded(values: Any) -> list[float]:
    return np.round(np.asarray(values, dtype=float), 6).tolist()
