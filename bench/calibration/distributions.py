"""Compare whole distributions, before and after calibration, with those of crepes.

    python bench/calibration/distributions.py             # what is missing
    python bench/calibration/distributions.py --tables    # the tables again
    python bench/calibration/distributions.py --quick

For each data set and split there are, of the forest's own distributions ("raw"), of the calibrated
ones and of the conformal predictive system of crepes: the CRPS in standard deviations of the
target, the greatest distance of the PIT values from uniform, and the coverage of one-sided bounds.
Each finished split of a data set is written at once and skipped when present.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from crepes import ConformalPredictiveSystem

from hdiforest import HDIForestRegressor
from hdiforest.metrics import crps_score, pit_values
from protocol import GROUPS, RESULTS, SETS, Scale, datasets, split, study
from systems.by_crepes import fitted, limits_of
from systems.interface import Training

SCALE = Scale("distributions", 1000, 2000, 5, 200, SETS)
COVERAGES = (0.8, 0.9, 0.95, 0.99)
LEVELS = (np.arange(200) + 0.5) / 200
SYSTEMS = ("raw", "calibrated", "crepes CPS")

# From rows and levels to quantiles, and from rows, coverage and kind to one-sided bounds.
Quantiles = Callable[[np.ndarray, np.ndarray], np.ndarray]
Bounds = Callable[[np.ndarray, float, str], np.ndarray]


def measure(name: str, seed: int) -> dict[study.Key, dict]:
    """Return the result of each system on one split of a data set."""
    data = datasets.load(name)
    train, test = split(len(data.y), seed, SCALE)
    training = Training(data.X[train], data.y[train], COVERAGES, seed, SCALE.n_trees)
    model = HDIForestRegressor(random_state=seed, n_jobs=1).fit(training.X, training.y)
    systems = dict(zip(SYSTEMS, (*_ours(model), _crepes(training)), strict=True))
    X, y, sd = data.X[test], data.y[test], float(data.y.std())
    return {(system, seed): _scores(*systems[system], X, y, sd) for system in SYSTEMS}


def _ours(model: HDIForestRegressor) -> Iterable[tuple[Quantiles, Bounds]]:
    def raw_bounds(X: np.ndarray, coverage: float, kind: str) -> np.ndarray:
        return model.scorer_.intervals(X, coverage, kind)[:, int(kind == "upper")]

    def bounds(X: np.ndarray, coverage: float, kind: str) -> np.ndarray:
        return model.predict_interval(X, coverage, kind=kind)[:, int(kind == "upper")]

    yield lambda X, levels: model.predict_quantiles(X, levels, kind="raw"), raw_bounds
    yield lambda X, levels: model.predict_quantiles(X, levels), bounds


def _crepes(training: Training) -> tuple[Quantiles, Bounds]:
    model, mean_and_difficulty = fitted(training, ConformalPredictiveSystem)
    limits = limits_of(training)

    def quantiles(X: np.ndarray, levels: np.ndarray) -> np.ndarray:
        rows = mean_and_difficulty(X)
        return model.predict_percentiles(
            *rows, higher_percentiles=(100 * levels).tolist(), **limits
        )

    def bounds(X: np.ndarray, coverage: float, kind: str) -> np.ndarray:
        rows = mean_and_difficulty(X)
        if kind == "upper":
            ends = model.predict_percentiles(*rows, higher_percentiles=100 * coverage, **limits)
        else:
            ends = model.predict_percentiles(
                *rows, lower_percentiles=100 - 100 * coverage, **limits
            )
        return np.ravel(ends)

    return quantiles, bounds


def _scores(quantiles: Quantiles, bounds: Bounds, X: np.ndarray, y: np.ndarray, sd: float) -> dict:
    values = quantiles(X, LEVELS)
    at, below = (values <= y[:, None]).mean(axis=1), (values < y[:, None]).mean(axis=1)
    between = 0.5 / len(LEVELS)  # the level of a target between two quantiles is not known better
    pit = np.sort(pit_values(np.minimum(at + between, 1), np.maximum(below - between, 0)))
    expected = np.arange(len(y) + 1) / len(y)
    covered = {
        "lower": [float((y >= bounds(X, c, "lower")).mean()) for c in COVERAGES],
        "upper": [float((y <= bounds(X, c, "upper")).mean()) for c in COVERAGES],
    }
    return {
        "crps": round(crps_score(y, values) / sd, 6),
        "pit": round(float(max((pit - expected[:-1]).max(), (expected[1:] - pit).max())), 4),
        "n_test": len(y),
        **{kind: np.round(shares, 4).tolist() for kind, shares in covered.items()},
    }


def tables(folder: Path) -> str:
    """Return means over groups of data sets, and each set's coverage of bounds at 0.9."""
    return "\n".join(_lines(folder)) + "\n"


def _lines(folder: Path) -> Iterable[str]:
    yield "# Distributions before and after calibration"
    yield ""
    yield "## Distributions by groups of data sets"
    yield ""
    found = {name: study.read(study.path_of(folder, name)) for name in SETS}
    found = {name: results for name, results in found.items() if results}
    yield (
        "| sets | distributions | CRPS, ratio to raw | PIT distance | "
        + " | ".join(f"{kind} {c:g}" for kind in ("lower", "upper") for c in COVERAGES)
        + " |"
    )
    yield "|---|---|" + "---:|" * (2 + 2 * len(COVERAGES))
    for group, names in {"all": tuple(found), **GROUPS}.items():
        results = [found[name] for name in names if name in found]
        for system in SYSTEMS if results else ():
            seeds = [
                (of_set, seed) for of_set in results for name, seed in of_set if name == system
            ]
            rows = [(of_set[system, seed], of_set["raw", seed]) for of_set, seed in seeds]
            ratio = np.exp(np.mean([np.log(own["crps"] / raw["crps"]) for own, raw in rows]))
            pit = np.mean([own["pit"] for own, _ in rows])
            shares = np.mean([own["lower"] + own["upper"] for own, _ in rows], axis=0)
            cells = " | ".join(f"{share:.3f}" for share in shares)
            yield f"| {group} ({len(results)}) | {system} | {ratio:.3f} | {pit:.3f} | {cells} |"
    yield ""
    yield "## Coverage of one-sided bounds at 0.90, set by set"
    yield ""
    yield (
        "| set | "
        + " | ".join(f"{kind} 0.9, {s}" for kind in ("lower", "upper") for s in SYSTEMS)
        + " |"
    )
    yield "|---|" + "---:|" * (2 * len(SYSTEMS))
    for name, results in found.items():
        seeds = sorted({seed for _, seed in results})
        cells = [
            f"{np.mean([results[system, seed][kind][COVERAGES.index(0.9)] for seed in seeds]):.3f}"
            for kind in ("lower", "upper")
            for system in SYSTEMS
        ]
        yield f"| {name} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    few = SCALE._replace(sets=("concrete",), max_training=240, n_trees=80)
    study.by_split(globals(), RESULTS / SCALE.name, measure, tables, few, n_splits=1)
