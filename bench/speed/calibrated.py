"""What calibration adds to the time of an answer, beside another commit in turns.

    python bench/speed/calibrated.py [--compare REV] [--turns N] [--quick]

One thread, 100 extra trees on 20,000 rows of ten features. Calibrated answers are timed in turns
with the forest's own: one row, 20,000 rows at five coverages and at one, three quantiles, one row
of three outputs, and intervals by CV+ of three folds. Shown are medians over turns. Another commit
has a process of its own, with a model of the same rows, and is compiled once, into build/revisions.
Functions are calls of functions of hdiforest within one call. A minute for each commit, and one to
fit the folds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))
import datasets
import revisions
import study

N_ROWS, N_TREES = 20_000, 100
N_TURNS = 1000  # at most
FIVE = [0.5, 0.8, 0.9, 0.95, 0.99]
THREE = [0.1, 0.5, 0.9]
# What is asked, how often in a turn, and whether of three outputs.
WORKS: dict[str, tuple[int, bool]] = {
    "one row": (300, False),
    "20,000 rows, five coverages": (1, False),
    "20,000 rows, one coverage": (1, False),
    "20,000 rows, three quantiles": (1, False),
    "one row, three outputs": (300, True),
    "one row, CV+": (100, False),
    "20,000 rows, CV+": (1, False),
}


def works_of(n_rows: int, n_trees: int) -> dict[str, Callable[[str], object]]:
    """Return each work, called with the kind of answer: "calibrated", or "raw"."""
    from sklearn.ensemble import ExtraTreesRegressor

    from hdiforest import HDIForestRegressor
    from hdiforest.calibration import CVPlus

    X, y = datasets.friedman(n_rows, 0)
    models = [
        HDIForestRegressor(
            ExtraTreesRegressor(n_trees, bootstrap=True, random_state=0, n_jobs=1), n_jobs=1
        ).fit(X, targets)
        for targets in (y, np.stack([y, y**2, -y], axis=1))
    ]
    rows = datasets.friedman(n_rows, 1)[0]

    def interval(model: Any, rows: np.ndarray, coverage: Any) -> Callable[[str], object]:
        return lambda kind: model.predict_interval(
            rows, coverage, kind="hdi" if kind == "raw" else kind
        )

    one, several = models
    cross = HDIForestRegressor(one.estimator, calibration=False, n_jobs=1).fit(X, y)
    cross.calibrate(coverage=FIVE, method=CVPlus(3), random_state=0)
    return dict(
        zip(
            WORKS,
            [
                interval(one, rows[:1], 0.9),
                interval(one, rows, FIVE),
                interval(one, rows, 0.9),
                lambda kind: one.predict_quantiles(rows, THREE, kind=kind),
                interval(several, rows[:1], 0.9),
                interval(cross, rows[:1], 0.9),
                interval(cross, rows, 0.9),
            ],
            strict=True,
        )
    )


def functions_entered(work: Callable[[str], object], kind: str) -> int:
    """Return how many calls of functions of hdiforest a call of a work makes."""
    n = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal n
        n += event == "call" and "/hdiforest/" in frame.f_code.co_filename

    sys.setprofile(count)
    try:
        work(kind)
    finally:
        sys.setprofile(None)
    return n


def serve(n_rows: int, n_trees: int) -> None:
    """Answer each line "work, kind" of standard input with seconds a call, and functions."""
    works = works_of(n_rows, n_trees)
    print("ready", flush=True)
    for line in sys.stdin:
        name, kind = line.rstrip("\n").split("\t")
        works[name](kind)
        times = WORKS[name][0]
        start = time.perf_counter()
        for _ in range(times):
            works[name](kind)
        seconds = (time.perf_counter() - start) / times
        print(seconds, functions_entered(works[name], kind), flush=True)


def main() -> None:
    parser = study.parser(__doc__)
    parser.add_argument("--compare", metavar="REV")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = study.chosen(parser, globals(), N_ROWS=300, N_TREES=60, N_TURNS=1)
    if options.serve:
        serve(N_ROWS, N_TREES)
        return
    names = [*filter(None, [options.compare]), revisions.WORKTREE]
    size = ["--quick"] if options.quick else []
    running = {
        name: revisions.start(
            revisions.built_tree(name), __file__, "--serve", *size, OMP_NUM_THREADS="1"
        )
        for name in names
    }
    found: dict[tuple[str, str, str], list[tuple[float, int]]] = {}
    for process in running.values():
        assert process.stdout is not None
        process.stdout.readline()
    for _ in range(min(options.turns, N_TURNS)):
        for work in WORKS:
            for kind in ("raw", "calibrated"):
                for name, process in running.items():
                    assert process.stdin is not None
                    assert process.stdout is not None
                    process.stdin.write(f"{work}\t{kind}\n")
                    process.stdin.flush()
                    seconds, entered = process.stdout.readline().split()
                    found.setdefault((work, kind, name), []).append((float(seconds), int(entered)))
    for process in running.values():
        process.communicate()
    print(table(found, names).to_markdown(index=False, floatfmt=".3g"))


def table(found: dict[tuple[str, str, str], list[tuple[float, int]]], names: list[str]) -> Any:
    """Return times, ratios and functions entered of each work and commit."""
    rows = []
    for work in WORKS:
        for name in names:
            raw, calibrated = ([s for s, _ in found[work, k, name]] for k in ("raw", "calibrated"))
            ratios = [b / a for a, b in zip(raw, calibrated, strict=True)]
            rows.append(
                {
                    "work": work,
                    "commit": "these files" if name == revisions.WORKTREE else name,
                    "raw, us": 1e6 * statistics.median(raw),
                    "calibrated, us": 1e6 * statistics.median(calibrated),
                    "calibrated over raw": statistics.median(ratios),
                    "functions": found[work, "calibrated", name][-1][1],
                }
            )
    return pd.DataFrame(rows)


if __name__ == "__main__":
    main()
