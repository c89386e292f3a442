"""Measures `HDIForestRegressor.fit` whole, its steps, and calibrated against raw scoring."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from cases import Case, load
from hdiforest import HDIForestRegressor
from hdiforest._estimators import training

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
# Functions that `fit` calls, one after the other, and where it looks them up.
STEPS = {
    "forest": (training, "fit_estimator"),
    "import": (training, "import_training_forest"),
    "calibration": (HDIForestRegressor, "_calibrate_fit"),
}

Seconds = dict[str, list[float]]


def measure_default_fit(case: Case, n_threads: int, turns: int) -> dict[str, object]:
    """Seconds and processor seconds of each step of each turn, and of scoring, ready for JSON."""
    X, y, queries = load(case)
    wall: Seconds = {name: [] for name in ("whole", *STEPS)}
    processor: Seconds = {name: [] for name in ("whole", *STEPS)}
    scoring: Seconds = {f"{kind}_{k}": [] for kind in ("calibrated", "hdi") for k in (1, 5)}
    for turn in range(turns):
        # The forest takes as many threads as its calibration.
        options = {"bootstrap": True, "random_state": turn, "n_jobs": n_threads}
        forest = ExtraTreesRegressor(case.trees, **options)
        model = HDIForestRegressor(forest, n_jobs=n_threads, random_state=0)
        with _timed_steps(wall, processor):
            _timed(lambda model=model: model.fit(X, y), "whole", wall, processor)
        for name, seconds in scoring.items():
            kind, k = name.split("_")
            coverage: Any = 0.9 if k == "1" else list(LEVELS)
            start = time.perf_counter()
            model.predict_interval(queries, coverage, kind=kind)
            seconds.append(time.perf_counter() - start)
    return {
        "kind": "fit",
        "case": asdict(case),
        "threads": n_threads,
        "seconds": wall,
        "processor_seconds": processor,
        "scoring_seconds": scoring,
        "bases": [str(base) for base in model.calibration_.bases],
    }


def times_forest(result: dict[str, Any], clock: str) -> np.ndarray:
    """How many times as long the whole takes as its forest alone, turn by turn."""
    times = result[clock]
    return np.array(times["whole"]) / np.array(times["forest"])


def _timed(work: Callable[[], Any], name: str, wall: Seconds, processor: Seconds) -> Any:
    start, start_of_processor = time.perf_counter(), time.process_time()
    result = work()
    wall[name].append(time.perf_counter() - start)
    processor[name].append(time.process_time() - start_of_processor)
    return result


@contextmanager
def _timed_steps(wall: Seconds, processor: Seconds) -> Iterator[None]:
    """Time the steps while `fit` runs."""
    before = {name: getattr(*where) for name, where in STEPS.items()}

    def timing(name: str) -> Callable[..., Any]:
        def step(*arguments: Any, **options: Any) -> Any:
            return _timed(lambda: before[name](*arguments, **options), name, wall, processor)

        return step

    for name, where in STEPS.items():
        setattr(*where, timing(name))
    try:
        yield
    finally:
        for name, where in STEPS.items():
            setattr(*where, before[name])
