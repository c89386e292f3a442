"""Boxes of two targets: joint ones, and of separate intervals with and without Bonferroni's bound.

    python bench/calibration/joint.py             # what is missing
    python bench/calibration/joint.py --tables    # the table again
    python bench/calibration/joint.py --quick

Of each set and split 2,000 rows or four fifths train a forest of 100 trees. The width of a box is
the geometric mean of its sides, in standard deviations of the targets; the table has the mean over
rows and splits. Each finished split of a data set is written at once and skipped when present.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from hdiforest import HDIForestRegressor
from protocol import RESULTS, Scale, datasets, split, study

# The second targets are features of the other benchmarks.
SECOND = {"parkinsons": "motor_UPDRS", "storms": "pressure", "txhousing": "sales"}
SCALE = Scale("joint", 2000, 2000, 3, 100, tuple(SECOND))
COVERAGE = 0.9
EACH = 1 - (1 - COVERAGE) / 2  # of either target, by Bonferroni's bound
SYSTEMS = {
    "separate, each at 0.90": {"coverage": COVERAGE},
    "Bonferroni, each at 0.95": {"coverage": EACH},
    "joint at 0.90": {"coverage": COVERAGE, "joint": True},
}


def measure(name: str, seed: int) -> dict[study.Key, dict]:
    """Return what the boxes of one split cover, by either method and each system."""
    data = datasets.load(name)
    at = data.features.index(SECOND[name])
    Y = np.column_stack([data.y, data.X[:, at]])
    X, Y = (np.delete(part, np.flatnonzero(np.isnan(Y).any(axis=1)), 0) for part in (data.X, Y))
    X = np.delete(X, at, axis=1)
    train, test = split(len(Y), seed, SCALE)
    sd, found = Y.std(axis=0), {}
    fit, held_out = train[: 3 * len(train) // 4], train[3 * len(train) // 4 :]
    for method, rows, further in (("oob", train, ()), ("split", fit, (X[held_out], Y[held_out]))):
        forest = ExtraTreesRegressor(SCALE.n_trees, bootstrap=True, random_state=seed)
        model = HDIForestRegressor(forest, calibration=False).fit(X[rows], Y[rows])
        model.calibrate(*further, coverage=[COVERAGE, EACH], random_state=seed)
        for system, how in SYSTEMS.items():
            sides = model.predict_interval(X[test], **how)
            held = (sides[..., 0] <= Y[test]) & (Y[test] <= sides[..., 1])
            widths = (sides[..., 1] - sides[..., 0]) / sd
            found[f"{method}: {system}", seed] = {
                "coverage": float(held.all(axis=1).mean()),
                "of_each": held.mean(axis=0).tolist(),
                "width": float(np.sqrt(widths.prod(axis=1)).mean()),
                "n_test": len(test),
            }
    return found


def table(folder: Path) -> str:
    rows = []
    for name, second in SECOND.items():
        known = study.read(study.path_of(folder, name))
        for method in ("oob", "split"):
            for system in SYSTEMS:
                own = [r for (key, _), r in known.items() if key == f"{method}: {system}"]
                if not own:
                    continue
                first, other = np.mean([each["of_each"] for each in own], axis=0)
                rows.append(
                    {
                        "data set": f"{name}, {second}",
                        "method": method,
                        "boxes": system,
                        "coverage of both": f"{np.mean([each['coverage'] for each in own]):.3f}",
                        "of each": f"{first:.3f}, {other:.3f}",
                        "width": f"{np.mean([each['width'] for each in own]):.3f}",
                        "splits": len(own),
                    }
                )
    table = study.markdown(rows)
    return f"## Boxes of two targets at 0.90\n\n{table}\n"


if __name__ == "__main__":
    study.by_split(
        globals(),
        RESULTS / SCALE.name,
        measure,
        table,
        SCALE._replace(sets=("parkinsons",), max_training=400, n_splits=1),
    )
