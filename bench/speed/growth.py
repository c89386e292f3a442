"""How the time of an exact HDI grows with training rows, trees and leaf sizes.

    python bench/speed/growth.py [--only NAME ...] [--turns N] [--quick]

Fits extremely randomised trees with bootstrap on Friedman's function and scores 20,000 other rows
on one thread, by processor time. An exponent is that of a point and the one before. Points are kept
in results/growth.jsonl. 10,000,000 rows and 4 trees take 6 GB; all points take about an hour.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

sys.path.insert(0, str(Path(__file__).parents[1]))
import datasets
import study
from hdiforest import HDIForestRegressor

FOLDER = Path(__file__).parent / "results"
N_QUERIES = 20_000
Point = tuple[int, int, int]  # training rows, trees, least rows in a leaf
SERIES: dict[str, list[Point]] = {
    "rows, leaf 5": [(n, 20, 5) for n in (1_000, 10_000, 100_000, 1_000_000)],
    "rows, leaf 50": [(n, 20, 50) for n in (1_000, 10_000, 100_000, 1_000_000)],
    "rows, 4 trees": [(n, 4, 5) for n in (100_000, 1_000_000, 10_000_000)],
    "trees": [(2_000, n, 5) for n in (10, 100, 500, 2_000)],
    "least rows in a leaf": [(20_000, 100, n) for n in (1, 5, 20, 50, 200, 1_000, 5_000)],
}
VARIED = {"rows": 0, "trees": 1, "least": 2}  # by the first word of a series


def measured(point: Point, turns: int) -> dict[str, float]:
    """Microseconds a row of routing, HDI and mean (medians), and megabytes of the index."""
    n_rows, n_trees, leaf = point
    X, y = datasets.friedman(n_rows, seed=0)
    queries, _ = datasets.friedman(N_QUERIES, seed=1)
    forest = ExtraTreesRegressor(n_trees, min_samples_leaf=leaf, bootstrap=True, n_jobs=-1)
    model = HDIForestRegressor.from_forest(forest.set_params(random_state=0).fit(X, y), X, y)
    model.n_jobs = 1
    scorer = model.scorer_
    works = {
        "routing": lambda: scorer.forest.leaves(queries, n_threads=1),
        "HDI": lambda: model.predict_interval(queries, 0.9),
        "mean": lambda: model.predict(queries),
    }
    times: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(-1, turns):
        for name, work in works.items():
            start = time.process_time()
            work()
            if turn >= 0:
                times[name].append((time.process_time() - start) / N_QUERIES * 1e6)
    found = {name: float(np.median(each)) for name, each in times.items()}
    return found | {"index, MB": scorer.index.nbytes / 1e6}


def table(title: str, points: list[Point], results: dict[str, dict[str, float]]) -> list[str]:
    """Lines of a table of one series, with exponents between neighbours."""
    varied = VARIED[title.split(",")[0].split(" ")[0]]
    lines = [f"**{title}**", "", "| | routing, us | HDI, us | exponent | mean, us | index, MB |"]
    lines.append("|---:|---:|---:|---:|---:|---:|")
    before: tuple[int, float] | None = None
    for point in points:
        figures = results.get(str(point))
        if figures is None:
            continue
        size, took = point[varied], figures["HDI"]
        exponent = (
            "" if before is None else f"{np.log(took / before[1]) / np.log(size / before[0]):.2f}"
        )
        cells = [f"{figures['routing']:.3g}", f"{took:.3g}", exponent]
        cells += [f"{figures['mean']:.3g}", f"{figures['index, MB']:.3g}"]
        lines.append(f"| {size:,} | {' | '.join(cells)} |")
        before = size, took
    return lines


def main() -> None:
    parser = study.parser(__doc__, FOLDER)
    parser.add_argument("--only", nargs="+", choices=SERIES, metavar="NAME")
    parser.add_argument("--turns", type=int, default=5)
    few = {"rows, leaf 5": [(200, 3, 5), (400, 3, 5)], "trees": [(200, 3, 5)]}
    options = study.chosen(parser, globals(), SERIES=few, N_QUERIES=50)
    path = study.path_of(FOLDER, "growth")
    for series in options.only or SERIES:
        for point in SERIES[series]:
            study.keep(path, (str(point), 0), partial(measured, point, options.turns))
    results = {name: figures for (name, _), figures in study.read(path).items()}
    parts = [table(title, points, results) for title, points in SERIES.items()]
    text = "\n\n".join("\n".join(lines) for lines in parts)
    path.with_suffix(".md").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
