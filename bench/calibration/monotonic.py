"""Forests with monotonic constraints: what of their distributions is monotonic, and at what width.

    python bench/calibration/monotonic.py [--quick]

Prints a table of docs/coverage_and_width.md, in a minute or two on two cores: means of three
splits with 2,000 training rows at most, random forests of 200 trees with one row and with five rows
in a leaf.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor

from hdicore import LeafIndex
from hdiforest import HDIForestRegressor
from hdiforest.metrics import coverage_score, mean_width_score

sys.path.insert(0, str(Path(__file__).parents[1]))
import datasets
import study

Array = NDArray[np.float64]
Predict = Callable[[Array], Array]
COVERAGE = 0.9
LEVELS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.86, 0.9, 0.94)  # of bases, as `calibrate` tries them
N_SPLITS, N_TREES, N_STEPS = 3, 200, 199
# The sign of the constraint of each feature that has one.
SIGNS = {
    "simulated": {0: 1},
    "power_plant": {0: -1, 1: -1},  # temperature, vacuum
    "concrete": {0: 1, 7: 1},  # cement, age
}


class Split(NamedTuple):
    """Rows to fit on and to measure on."""

    X: Array
    y: Array
    X_new: Array
    y_new: Array


def split_of(name: str, seed: int) -> Split:
    rng = np.random.default_rng(seed)
    if name == "simulated":
        X = rng.uniform(-2, 2, (3000, 3))
        noise = (0.5 + 0.4 * (X[:, 2] + 2)) * rng.normal(size=len(X))
        y = 1.2 * X[:, 0] + 1.5 * np.sin(2 * X[:, 1]) + noise
    else:
        data = datasets.load(name)
        X, y = data.X.astype(float), data.y
    rows = rng.permutation(len(y))
    n = min(2000, 4 * len(y) // 5)
    fit, new = rows[:n], rows[n : n + 1000]
    return Split(X[fit], y[fit], X[new], y[new])


def wrong_steps(predict: Predict, X: Array, signs: dict[int, int]) -> Array:
    """Mean number of steps against the constraints, of `N_STEPS`, for each output."""
    counts = []
    for feature, sign in signs.items():
        lines = np.repeat(X[:60], N_STEPS + 1, axis=0)
        values = np.linspace(X[:, feature].min(), X[:, feature].max(), N_STEPS + 1)
        lines[:, feature] = np.tile(values, 60)
        answers = predict(lines).reshape(60, N_STEPS + 1, -1)
        against = sign * np.diff(answers, axis=1) < -1e-9 * np.ptp(answers)
        counts.append(against.sum(axis=1).mean(axis=0))
    return np.mean(counts, axis=0)


def rank_of(scores: Array) -> float:
    """Return the conformal quantile of scores."""
    return float(np.sort(scores)[int(np.ceil(COVERAGE * (len(scores) + 1))) - 1])


def around_own_mean(forest: RandomForestRegressor, split: Split) -> tuple[Predict, Predict]:
    """Intervals of residuals around the forest's own mean, and this mean with one number each side.

    Both are calibrated out of bag; of the first the narrowest level is taken.
    """
    X, y = split.X.astype(np.float32), split.y
    leaves = forest.apply(X)
    drawn = np.stack([np.bincount(own, minlength=len(y)) for own in forest.estimators_samples_], 1)
    values = np.stack([tree.predict(X) for tree in forest.estimators_], axis=1)
    residuals = y - np.where(drawn == 0, values, 0).sum(axis=1) / (drawn == 0).sum(axis=1)
    index = LeafIndex.from_leaves(leaves, residuals, keep_row_weights=True)
    unseen = np.where(drawn > 0, -1, leaves)
    ends = index.intervals(unseen, LEVELS, "hdi", leave_out=np.arange(len(y)))
    outside = np.maximum(ends[:, 0] - residuals[:, None], residuals[:, None] - ends[:, 1])
    pads = [rank_of(scores) for scores in outside.T]
    widths = (ends[:, 1] - ends[:, 0]).mean(axis=0) + 2 * np.array(pads)
    best = int(widths.argmin())
    one_number = rank_of(np.abs(residuals))

    def centred(rows: Array) -> Array:
        mean = forest.predict(rows)
        found = index.intervals(forest.apply(rows.astype(np.float32)), LEVELS[best], "hdi")
        pad = pads[best]
        return np.column_stack([mean, mean + found[:, 0] - pad, mean + found[:, 1] + pad])

    def constant(rows: Array) -> Array:
        mean = forest.predict(rows)
        return np.column_stack([mean, mean - one_number, mean + one_number])

    return centred, constant


def systems(split: Split, signs: dict[int, int], leaf: int, seed: int) -> dict[str, Predict]:
    """Functions from rows to mean, lower and upper end, (n, 3)."""
    options = {"min_samples_leaf": leaf, "max_features": 1 / 3, "random_state": seed, "n_jobs": -1}
    constraints = [signs.get(j, 0) for j in range(split.X.shape[1])]
    free = RandomForestRegressor(N_TREES, **options).fit(split.X, split.y)
    forest = RandomForestRegressor(N_TREES, monotonic_cst=constraints, **options).fit(
        split.X, split.y
    )

    def of_model(model: HDIForestRegressor, kind: str) -> Predict:
        return lambda rows: np.column_stack(
            [model.predict(rows), model.predict_interval(rows, COVERAGE, kind=kind)]
        )

    def model_of(of: RandomForestRegressor, weights: str) -> HDIForestRegressor:
        return HDIForestRegressor.from_forest(of, split.X, split.y, weights=weights, n_jobs=-1)

    everything, monotonic = model_of(forest, "all"), model_of(forest, "monotonic")
    centred, constant = around_own_mean(forest, split)
    return {
        "without constraints, calibrated": of_model(
            model_of(free, "all").calibrate(coverage=COVERAGE), "calibrated"
        ),
        'constraints, `weights="all"`, HDI': of_model(everything, "hdi"),
        'constraints, `weights="all"`, calibrated': of_model(
            model_of(forest, "all").calibrate(coverage=COVERAGE), "calibrated"
        ),
        "residuals around the forest's own mean, calibrated": centred,
        "the forest's own mean, and one number each side": constant,
        '`weights="monotonic"`, HDI': of_model(monotonic, "hdi"),
        '`weights="monotonic"`, calibrated': of_model(
            monotonic.calibrate(coverage=COVERAGE), "calibrated"
        ),
    }


def main() -> None:
    quick = {"SIGNS": {"simulated": {0: 1}}, "N_SPLITS": 1, "N_TREES": 80, "N_STEPS": 9}
    study.chosen(study.parser(__doc__), globals(), **quick)
    warnings.filterwarnings("ignore", "the forest has monotonic")
    print("| data, rows in a leaf | | coverage | width | mean | lower | upper |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for name, signs in SIGNS.items():
        for leaf in (1, 5):
            measured: dict[str, list[list[float]]] = {}
            for seed in range(N_SPLITS):
                split = split_of(name, seed)
                for system, predict in systems(split, signs, leaf, seed).items():
                    ends = predict(split.X_new)[:, 1:]
                    steps = wrong_steps(predict, split.X_new, signs)
                    figures = [coverage_score(split.y_new, ends), mean_width_score(ends), *steps]
                    measured.setdefault(system, []).append(figures)
            means = {system: np.mean(each, axis=0) for system, each in measured.items()}
            width = next(iter(means.values()))[1]
            for k, (system, found) in enumerate(means.items()):
                which = f"{name.replace('_', ' ')}, {leaf}" if k == 0 else ""
                steps = " | ".join(f"{each:.1f}" for each in found[2:])
                print(f"| {which} | {system} | {found[0]:.3f} | {found[1] / width:.2f} | {steps} |")


if __name__ == "__main__":
    main()
