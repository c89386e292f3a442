"""One unit of work: a family of systems tuned and measured on one split of one data set."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from hdiforest.metrics import coverage_by_width, coverage_score, interval_score, mean_width_score
from published import SYSTEMS, TABLE_2
from systems.interface import LEVELS, Candidate, Choice, Effort, Family, Part
from tasks import VARIANTS, Task

# A second reading of the first system's forests by the other: what the rule alone changes.
SAME_FOREST = "QRF, same forest"
_READS_SAME = {SAME_FOREST: ("QRF", "HDI-Forest")}
CANONICAL = (0.90, 0.95)


def matched_target(name: str) -> float:
    """Return the PICP of HDI-Forest in the paper's table, at which all systems are compared."""
    return TABLE_2[VARIANTS.get(name, name)].picp[0]


def targets_of(name: str, system: str) -> list[float]:
    """Return the PICPs a system is tuned for on a data set: matched, its own, canonical."""
    wanted = {matched_target(name), *CANONICAL}
    if system in SYSTEMS:
        wanted.add(TABLE_2[VARIANTS.get(name, name)].picp[SYSTEMS.index(system)])
    return sorted(wanted)


def results_of(family: Family) -> list[str]:
    """Return the names under which the family's results are stored."""
    return [*family.systems, *(n for n, (read, _) in _READS_SAME.items() if read in family.systems)]


class Chosen(NamedTuple):
    """The candidate that is narrowest at the level where it covers a target."""

    candidate: int
    at: Choice


def choose(candidates: list[Candidate], target: float) -> Chosen:
    """Let each candidate cover the target, and take the narrowest.

    Where none covers it, the one that covers most.
    """
    reached = [Chosen(i, candidate.reach(target)) for i, candidate in enumerate(candidates)]

    def order(chosen: Chosen) -> tuple[float, float]:
        # Interpolated between levels, the target is reached up to rounding.
        return max(0.0, target - chosen.at.picp - 1e-9), chosen.at.mpiw

    return min(reached, key=order)


def measure(
    family: Family, task: Task, split: tuple[np.ndarray, np.ndarray], seed: int, effort: Effort
) -> dict[str, dict[str, Any]]:
    """Tune on the training part, fit, and measure on the test part; widths in target sds."""
    train, test = split
    whole = Part(task.X, task.y, task.categorical, task.groups, seed, effort, task.name)
    start = time.process_time()
    tuned = family.tune(whole.take(train))
    tuning_seconds = time.process_time() - start
    chosen = {
        system: {target: choose(candidates, target) for target in targets_of(task.name, system)}
        for system, candidates in tuned.items()
    }
    for system, (read, by) in _READS_SAME.items():
        if by in tuned:
            tuned[system] = tuned[read]
            chosen[system] = {
                target: Chosen(i, tuned[read][i].reach(target))
                for target, (i, _) in chosen[by].items()
            }
    with_curve = seed < family.n_curves
    return {
        system: {
            "n_train": len(train),
            "n_test": len(test),
            "tuning_seconds": round(tuning_seconds, 3),
            **_measured(tuned[system], choices, whole.take(test), task.y.std(), with_curve),
        }
        for system, choices in chosen.items()
    }


def _measured(
    candidates: list[Candidate],
    choices: dict[float, Chosen],
    test: Part,
    unit: float,
    with_curve: bool,
) -> dict[str, Any]:
    """Fit what was chosen for each target and measure it on the test part."""
    targets: dict[str, Any] = {}
    curve: dict[str, Any] = {}
    for target, (i, at) in choices.items():
        fitted = candidates[i].fit(np.array([at.level]))
        start = time.process_time()
        interval = fitted.intervals(test.X)
        seconds = time.process_time() - start
        targets[f"{target:.2f}"] = {
            "settings": candidates[i].settings,
            "level": round(at.level, 6),
            "training": _rounded({"picp": at.picp, "mpiw": at.mpiw / unit}),
            "fit_seconds": round(fitted.seconds, 4),
            "predict_seconds": round(seconds, 5),
            **_scores(test.y, interval, target, unit),
        }
        if with_curve and target == CANONICAL[0]:
            intervals = candidates[i].fit(LEVELS).intervals(test.X)
            curve = {
                "picp": _rounded(coverage_score(test.y, intervals)),
                "mpiw": _rounded(np.asarray(mean_width_score(intervals)) / unit),
            }
    return {"targets": targets, "curve": curve}


def _scores(y: np.ndarray, interval: np.ndarray, target: float, unit: float) -> dict[str, Any]:
    strata = coverage_by_width(y, interval[..., 0])
    return {
        "picp": _rounded(coverage_score(y, interval)[0]),
        "mpiw": _rounded(mean_width_score(interval)[0] / unit),
        "interval_score": _rounded(interval_score(y, interval, [target])[0] / unit),
        "strata": {
            "rows": strata.counts.tolist(),
            "picp": _rounded(strata.coverage),
            "mpiw": _rounded(strata.mean_width / unit),
        },
    }


def _rounded(values: Any) -> Any:
    """Six decimals are more than any table shows; None where there is no number."""
    if isinstance(values, dict):
        return {key: _rounded(value) for key, value in values.items()}
    numbers = np.round(np.asarray(values, dtype=float), 6)
    listed = np.where(np.isfinite(numbers), numbers, None)
    return listed.tolist()
