"""Whether settings chosen on the test parts give the paper's figures, where tuned ones do not.

    python bench/paper/in_hindsight.py

Every forest of a wide grid, on the data sets where HDI-Forest tuned on the training part is more
than 5 % wider than the paper prints. Each is read at the level at which its mean PICP on the test
parts is the paper's; the narrowest of them is what nobody could have known beforehand. Each
finished split is a small file in bench/paper/results/in_hindsight and is skipped when present. All
together take about 20 minutes on one core.
"""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor

import store
import tasks
from hdiforest import HDIForestRegressor
from hdiforest.metrics import coverage_score, mean_width_score
from matching import level_reaching
from published import TABLE_2
from systems.interface import LEVELS

RESULTS = store.RESULTS.parent / "in_hindsight"
SPLITS = {"boston": 20, "energy": 20, "forest_fires": 20, "naval": 5}
_FORESTS = [
    {"min_samples_leaf": leaf, "max_features": share}
    for leaf, share in product((1, 2, 3, 5, 10), (1 / 3, 2 / 3, 1.0))
]
_WEIGHTS = ("all", "inbag")
_N_TREES = 300
_ROUNDING = 0.005  # of a printed PICP


def run_split(task: tasks.Task, seed: int) -> list[dict[str, Any]]:
    """Measure every configuration on one split, at every level."""
    train, test = list(tasks.splits(task, seed + 1))[-1]
    X, y = task.X[train], task.y[train]
    found = []
    for settings in _FORESTS:
        forest = RandomForestRegressor(_N_TREES, random_state=seed, **settings).fit(X, y)
        for weights in _WEIGHTS:
            model = HDIForestRegressor.from_forest(forest, X, y, weights=weights)
            intervals = model.predict_interval(task.X[test], LEVELS)
            picp = np.asarray(coverage_score(task.y[test], intervals)).round(6)
            mpiw = (np.asarray(mean_width_score(intervals)) / task.y.std()).round(6)
            curve = {"picp": picp.tolist(), "mpiw": mpiw.tolist()}
            found.append({"settings": {**settings, "weights": weights}, **curve})
    return found


def best(splits: list[list[dict[str, Any]]], target: float) -> tuple[float, dict[str, Any]]:
    """Return the least mean width at which the mean PICP is the target, and its settings."""
    widths = []
    for configuration in zip(*splits, strict=True):
        picp, mpiw = (
            np.mean([one[of] for one in configuration], axis=0) for of in ("picp", "mpiw")
        )
        level = level_reaching(LEVELS, picp, target)
        reached = np.maximum.accumulate(picp)[-1] >= target
        widths.append(np.interp(level, LEVELS, mpiw) if reached else np.inf)
    i = int(np.argmin(widths))
    return float(widths[i]), splits[0][i]["settings"]


def row(name: str, splits: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """One row of the table."""
    paper = TABLE_2[name]
    width, settings = best(splits, paper.picp[0])
    rounded, _ = best(splits, paper.picp[0] - _ROUNDING)
    return {
        "data set": name,
        "splits": len(splits),
        "paper": f"{paper.mpiw[0]:.2f} @ {paper.picp[0]:.2f}",
        "at that PICP": f"{width:.3f} ({width / paper.mpiw[0] - 1:+.0%})",
        "at half a hundredth less": f"{rounded:.3f} ({rounded / paper.mpiw[0] - 1:+.0%})",
        "settings": ", ".join(
            f"{key} {value:.2g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in settings.items()
        ),
    }


def main() -> None:
    rows = []
    for name, n_splits in SPLITS.items():
        task = tasks.load(name)
        splits = []
        for seed in range(n_splits):
            path = RESULTS / f"{name}-{seed}.json"
            if not path.exists():
                store.write(path, run_split(task, seed))
            splits.append(json.loads(path.read_text()))
        rows.append(row(name, splits))
    print(pd.DataFrame(rows).to_markdown(index=False))


if __name__ == "__main__":
    main()
