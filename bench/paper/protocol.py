"""One unit of work: a family of systems tuned and measured on one split of one data set."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from hdiforest.metrics import coverage_by_width, coverage_score, interval_score, mean_width_score
from matching import level_reaching
from published import SYSTEMS, TABLE_2
from systems.interface import LEVELS, Candidate, Effort, Family, Fitted, Part
from tasks import VARIANTS, Task

# A second reading of the first system's forests by the other: what the rule alone changes.
SAME_FOREST = "QRF, same forest"
_READS_SAME = {SAME_FOREST: ("QRF", "HDI-Forest")}
CANONICAL = (0.90, 0.95)


class Choice(NamedTuple):
    """The candidate that is narrowest at the level where it covers the target."""

    candidate: int
    level: float
    picp: float  # on the training part
    mpiw: float


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


def choose(candidates: list[Candidate], y: np.ndarray, target: float) -> Choice:
    """Find the level of each candidate that covers the target, and the narrowest of them.

    Where no candidate covers it, the one that covers most.
    """
    found = []
    for i, candidate in enumerate(candidates):
        picp = np.asarray(coverage_score(y, candidate.intervals))
        mpiw = np.asarray(mean_width_score(candidate.intervals))
        level = level_reaching(candidate.levels, picp, target)
        at = [float(np.interp(level, candidate.levels, values)) for values in (picp, mpiw)]
        found.append((max(0.0, target - picp.max()), at[1], Choice(i, level, at[0], at[1])))
    return min(found, key=lambda entry: entry[:2])[2]


def measure(
    family: Family, task: Task, split: tuple[np.ndarray, np.ndarray], seed: int, effort: Effort
) -> dict[str, dict[str, Any]]:
    """Tune on the training part, fit, and measure on the test part; widths in target sds."""
    train, test = split
    whole = Part(task.X, task.y, task.categorical, task.groups, seed, effort, task.name)
    part = whole.take(train)
    start = time.perf_counter()
    tuned = family.tune(part)
    tuning_seconds = time.perf_counter() - start
    found: dict[str, dict[str, Any]] = {}
    chosen: dict[str, dict[float, Choice]] = {}
    for system, candidates in tuned.items():
        chosen[system] = {
            target: choose(candidates, part.y, target) for target in targets_of(task.name, system)
        }
    for system, (read, by) in _READS_SAME.items():
        if by in tuned:
            tuned[system] = tuned[read]
            chosen[system] = {}
            for target, choice in chosen[by].items():
                only = choose([tuned[read][choice.candidate]], part.y, target)
                chosen[system][target] = only._replace(candidate=choice.candidate)
    for system, choices in chosen.items():
        found[system] = {
            "n_train": len(train),
            "n_test": len(test),
            "tuning_seconds": round(tuning_seconds, 3),
            **_measured(
                tuned[system],
                choices,
                whole.take(test),
                task.y.std(),
                with_curve=seed < family.n_curves,
            ),
        }
    return found


def _measured(
    candidates: list[Candidate],
    choices: dict[float, Choice],
    test: Part,
    unit: float,
    *,
    with_curve: bool,
) -> dict[str, Any]:
    """Fit what was chosen for each target and measure it on the test part."""
    targets: dict[str, Any] = {}
    curve: dict[str, Any] = {}
    # Targets that share a candidate are measured one after the other, so that it is fitted once.
    order = sorted(choices, key=lambda target: choices[target].candidate)
    models: dict[int, Fitted] = {}
    for target in order:
        choice = choices[target]
        candidate = candidates[choice.candidate]
        if choice.candidate not in models:
            models = {choice.candidate: candidate.fit()}
        model, fit_seconds = models[choice.candidate]
        start = time.perf_counter()
        interval = model(test.X, np.array([choice.level]))
        seconds = time.perf_counter() - start
        targets[f"{target:.2f}"] = {
            "settings": candidate.settings,
            "level": round(choice.level, 6),
            "training": _rounded({"picp": choice.picp, "mpiw": choice.mpiw / unit}),
            "fit_seconds": round(fit_seconds, 4),
            "predict_seconds": round(seconds, 5),
            **_scores(test.y, interval, target, unit),
        }
        if with_curve and target == CANONICAL[0]:
            intervals = model(test.X, LEVELS)
            curve = {
                "picp": _rounded(coverage_score(test.y, intervals)),
                "mpiw": _rounded(np.asarray(mean_width_score(intervals)) / unit),
                "interval_score": _rounded(
                    np.asarray(interval_score(test.y, intervals[..., :-1], LEVELS[:-1])) / unit
                ),
            }
    return {"targets": dict(sorted(targets.items())), "curve": curve}


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
