"""One unit of work: a system fitted to the training rows of a split, measured on its test rows."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hdiforest.metrics import coverage_by_width, coverage_score, interval_score, mean_width_score
from systems.interface import System, Training

sys.path.insert(0, str(Path(__file__).parents[1]))
import datasets

N_FIFTHS = 5


class Scale(NamedTuple):
    """How large a run is; each has a folder of results."""

    name: str
    max_training: int
    max_test: int
    n_splits: int
    n_trees: int
    sets: tuple[str, ...]


EVALUATION = Scale("evaluation", 2000, 2000, 5, 200, datasets.NAMES)
# The sets of which the evaluation leaves training rows out.
LARGER = ("parkinsons", "naval", "power_plant", "protein", "online_news")
FULL_SIZE = Scale("full_size", 10_000, 2000, 2, 200, LARGER)
# With fewer trees too few leave a row out to calibrate.
QUICK = Scale("quick", 240, 100, 1, 80, datasets.NAMES)


def measure(system: System, name: str, seed: int, scale: Scale) -> dict[str, Any]:
    """Fit a system and measure it at each of its coverages; widths in sds of the target."""
    data = datasets.load(name)
    train, test = split(len(data.y), seed, scale)
    training = Training(data.X[train], data.y[train], system.coverages, seed, scale.n_trees)
    start = time.process_time()
    intervals_of = system.fit(training)
    fitted = time.process_time()
    intervals = intervals_of(data.X[test])
    predicted = time.process_time()
    return {
        "n_train": len(train),
        "n_test": len(test),
        "fit_seconds": round(fitted - start, 3),
        "predict_seconds": round(predicted - fitted, 3),
        "at": scores(data.y[test], intervals, system.coverages, data.y.std(), np.ptp(data.y)),
    }


def split(n: int, seed: int, scale: Scale) -> tuple[np.ndarray, np.ndarray]:
    """Return training and test rows: random, at most so many, a fifth at least for the test."""
    order = np.random.default_rng(seed).permutation(n)
    n_train = min(scale.max_training, round(0.8 * n))
    return order[:n_train], order[n_train : n_train + scale.max_test]


def scores(
    y: np.ndarray, intervals: np.ndarray, coverages: tuple[float, ...], sd: float, span: float
) -> dict[str, Any]:
    """Return the measures by coverage.

    "by_width" has the intervals of width zero first, then the others in fifths from narrow to wide:
    rows, and how many of their intervals hold y.
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
    return {
        f"{coverage:.2f}": {name: values[j] for name, values in columns.items()}
        | {"by_width": {"rows": by_width.counts[:, j].tolist(), "held": held[:, j].tolist()}}
        for j, coverage in enumerate(coverages)
    }


def _rounded(values: Any) -> list[float]:
    return np.round(np.asarray(values, dtype=float), 6).tolist()
