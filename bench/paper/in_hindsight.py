"""Whether settings chosen on the test parts give the paper's figures, where tuned ones do not.

    python bench/paper/in_hindsight.py [--quick]

Every forest of a wide grid, on the data sets where HDI-Forest tuned on the training part is more
than 5 % wider than the paper prints. Each is read at the level at which its mean PICP on the test
parts is the paper's, or just rounds to it, and the narrowest is taken: what nobody could have known
beforehand. How much depends on which splits were drawn is seen from halves of them. Each finished
split is a line of bench/paper/results/in_hindsight.jsonl and is skipped when present. All together
take about 20 minutes on one core.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor

import tasks
from hdiforest import HDIForestRegressor
from hdiforest.metrics import coverage_score, mean_width_score
from matching import level_reaching
from published import TABLE_2
from systems.interface import LEVELS
from tasks import RESULTS, study

FOLDER = RESULTS
SPLITS = {"boston": 20, "energy": 20, "forest_fires": 20, "naval": 5}
_FORESTS = [
    {"min_samples_leaf": leaf, "max_features": share}
    for leaf, share in product((1, 2, 3, 5, 10), (1 / 3, 2 / 3, 1.0))
]
_WEIGHTS = ("all", "inbag")
_N_TREES = 300
_ROUNDING = 0.005  # of a printed PICP
_HALVES = 200


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


def widths_at(splits: list[list[dict[str, Any]]], target: float) -> np.ndarray:
    """Return the mean width of each configuration where its mean PICP is the target.

    inf where none of its levels covers so much.
    """
    widths = []
    for configuration in zip(*splits, strict=True):
        picp = np.mean([one["picp"] for one in configuration], axis=0)
        mpiw = np.mean([one["mpiw"] for one in configuration], axis=0)
        level = level_reaching(LEVELS, picp, target)
        widths.append(np.interp(level, LEVELS, mpiw) if picp.max() >= target else np.inf)
    return np.array(widths)


def row(name: str, splits: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """One row of the table."""
    picp, mpiw = TABLE_2[name].picp[0], TABLE_2[name].mpiw[0]
    least = picp - _ROUNDING
    best = widths_at(splits, picp)
    rng = np.random.default_rng(0)
    halves = [rng.choice(len(splits), len(splits) // 2, replace=False) for _ in range(_HALVES)]
    of_halves = [widths_at([splits[i] for i in half], least).min() for half in halves]
    anew = np.mean([widths_at([split], least).min() for split in splits])
    low, high = np.quantile(of_halves, [0.05, 0.95])

    def shown(width: float) -> str:
        return f"{width:.3f} ({width / mpiw - 1:+.0%})"

    settings = splits[0][int(np.argmin(best))]["settings"]
    return {
        "data set": name,
        "splits": len(splits),
        "paper": f"{mpiw:.2f} @ {picp:.2f}",
        "best forest at that PICP": shown(best.min()),
        "at 0.005 less": shown(widths_at(splits, least).min()),
        "of half of the splits, 5 to 95 %": f"{shown(low)} to {shown(high)}",
        "forest and level chosen anew on each test part": shown(anew),
        "settings of the best": ", ".join(
            f"{key} {value:.2g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in settings.items()
        ),
    }


def main() -> None:
    asked = study.parser(__doc__, FOLDER)
    study.chosen(asked, globals(), SPLITS={"boston": 2}, _N_TREES=5)
    path, rows = study.path_of(FOLDER, "in_hindsight"), []
    for name, n_splits in SPLITS.items():
        task = tasks.load(name)
        for seed in range(n_splits):
            study.keep(path, (name, seed), partial(run_split, task, seed))
        found = study.read(path)
        rows.append(row(name, [found[name, seed] for seed in range(n_splits)]))
    print(study.markdown(rows))


if __name__ == "__main__":
    main()
