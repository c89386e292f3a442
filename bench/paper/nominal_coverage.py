"""PICP and MPIW of HDI-Forest at nominal levels on the paper's eleven data sets.

    python bench/paper/nominal_coverage.py [--splits 10] [--quick]

For each data set: random 80/20 splits (seeds 0, 1, ...), a forest of 300 trees with at least 5 rows
to a leaf, no tuning. Every test row must have an HDI no wider than its equal-tailed interval at
every level; the script fails if one does not. Each finished split is a line of
bench/paper/results/nominal.jsonl and is skipped when present. The table of all is written to
bench/paper/results/nominal.md. All together take about 15 minutes on 2 cores.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split

from hdiforest import HDIForestRegressor
from hdiforest.metrics import coverage_score, interval_score, mean_width_score

sys.path.insert(0, str(Path(__file__).parents[1]))
import datasets
import study

FOLDER = Path(__file__).parent / "results"
NAMES, N_TREES, N_SPLITS = datasets.NAMES, 300, 10
LEVELS = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99]


def run_split(name: str, seed: int) -> dict[str, object]:
    """Score one split; widths in units of the target's standard deviation."""
    data = datasets.load(name)
    X, X_test, y, y_test = train_test_split(data.X, data.y, test_size=0.2, random_state=seed)
    forest = RandomForestRegressor(N_TREES, min_samples_leaf=5, n_jobs=-1, random_state=seed).fit(
        X, y
    )
    model = HDIForestRegressor.from_forest(forest, X, y, n_jobs=-1)
    found: dict[str, object] = {"levels": LEVELS, "n_test": len(y_test)}
    widths = {}
    for kind in ("hdi", "equal_tailed"):
        intervals = model.predict_interval(X_test, LEVELS, kind=kind)
        widths[kind] = intervals[:, 1] - intervals[:, 0]
        found[kind] = {
            "picp": coverage_score(y_test, intervals).tolist(),
            "mpiw": (mean_width_score(intervals) / data.y.std()).tolist(),
            "interval_score": (interval_score(y_test, intervals, LEVELS) / data.y.std()).tolist(),
        }
    # Widths this close count as equal: targets with few decimals differ by rounding alone.
    rounding = 2.0**-48 * np.abs(y).max()
    if not (widths["hdi"] <= widths["equal_tailed"] + rounding).all():
        raise AssertionError(
            f"{name}, split {seed}: an HDI is wider than its equal-tailed interval"
        )
    return found


def average(splits: list[dict], kind: str, measure: str) -> np.ndarray:
    """Mean over the splits at every level, (n_levels,)."""
    return np.mean([split[kind][measure] for split in splits], axis=0)


def report(name: str, splits: list[dict]) -> str:
    """One row of the table, at the nominal level 0.9."""
    at = LEVELS.index(0.9)
    picp, equal_picp = (average(splits, kind, "picp") for kind in ("hdi", "equal_tailed"))
    mpiw, equal_mpiw = (average(splits, kind, "mpiw") for kind in ("hdi", "equal_tailed"))
    # Width of the equal-tailed intervals at the level where they cover as much as the HDIs do.
    matched = np.interp(picp[at], equal_picp, equal_mpiw)
    return (
        f"| {name} | {picp[at]:.3f} | {equal_picp[at]:.3f} | {mpiw[at]:.3f} | {equal_mpiw[at]:.3f} "
        f"| {mpiw[at] / equal_mpiw[at]:.3f} | {mpiw[at] / matched:.3f} |"
    )


def main() -> None:
    asked = study.parser(__doc__, FOLDER)
    asked.add_argument("--splits", type=int)
    options = study.chosen(asked, globals(), NAMES=("boston", "wine"), N_TREES=20, N_SPLITS=1)
    n_splits = options.splits or N_SPLITS
    path = study.path_of(FOLDER, "nominal")
    lines = ["| data set | PICP HDI | PICP ET | MPIW HDI | MPIW ET | HDI / ET | at equal PICP |"]
    lines.append("|---|---:|---:|---:|---:|---:|---:|")
    for name in NAMES:
        for seed in range(n_splits):
            study.keep(path, (name, seed), partial(run_split, name, seed))
        found = study.read(path)
        lines.append(report(name, [found[name, seed] for seed in range(n_splits)]))
        print(lines[-1])
    made = "Made by `python bench/paper/nominal_coverage.py` from nominal.jsonl."
    path.with_suffix(".md").write_text("\n".join([made, "", *lines, ""]))


if __name__ == "__main__":
    main()
