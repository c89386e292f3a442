"""Exact HDIs against quantile-forest's exact quantiles: same forest settings, one process, in turn.

    python bench/speed/against_quantile_forest.py [--rows 20000] [--leaf 5] [--queries 100000]

Both keep every training row in the leaves. Before anything is timed the answers are checked:
leaf ids equal scikit-learn's, bounds equal the slow reference on a sample. quantile-forest is
timed on a share of the queries (its time per row does not depend on their number), in turns with
the others; ratios are medians over the turns.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from quantile_forest import RandomForestQuantileRegressor
from sklearn.ensemble import RandomForestRegressor

from hdicore import _reference
from hdiforest import HDIForestRegressor

sys.path.insert(0, str(Path(__file__).parents[1]))
from datasets import friedman


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def check(model: HDIForestRegressor, forest: RandomForestRegressor, data: tuple, rows) -> None:
    """Leaf ids equal scikit-learn's; bounds equal the reference."""
    X, y = data
    expected = forest.apply(rows)
    np.testing.assert_array_equal(model.scorer_.forest.apply(rows), expected)
    leaves = forest.apply(X)
    bounds = model.predict_interval(rows, 0.9)
    for i in range(0, len(rows), 10):
        near = (leaves == expected[i]).any(axis=1)  # the others weigh nothing
        atoms = _reference.gather(leaves[near], y[near], expected[i])
        assert tuple(bounds[i]) == _reference.hdi(atoms, 0.9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000, help="training rows")
    parser.add_argument("--leaf", type=int, default=5, help="min_samples_leaf")
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--peer-queries", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()

    X, y = friedman(options.rows, seed=0)
    queries, _ = friedman(options.queries, seed=1)
    peer_queries = queries[: options.peer_queries]
    settings = {"n_estimators": options.trees, "min_samples_leaf": options.leaf}
    settings |= {"n_jobs": -1, "random_state": 0}
    forest = RandomForestRegressor(**settings).fit(X, y)
    peer = RandomForestQuantileRegressor(max_samples_leaf=None, **settings).fit(X, y)
    models: list[HDIForestRegressor] = []
    importing = seconds(
        lambda: models.append(HDIForestRegressor.from_forest(forest, X, y, n_jobs=-1))
    )
    fitting = seconds(lambda: RandomForestRegressor(**settings).fit(X, y))
    model = models[0]
    check(model, forest, (X, y), queries[:50])

    work = {
        "hdicore, exact HDI": (lambda: model.predict_interval(queries, 0.9), len(queries)),
        "hdicore, exact HDI, 5 levels": (
            lambda: model.predict_interval(queries, [0.5, 0.8, 0.9, 0.95, 0.99]),
            len(queries),
        ),
        "scikit-learn, mean": (lambda: forest.predict(queries), len(queries)),
        "quantile-forest, exact, 2 quantiles": (
            lambda: peer.predict(peer_queries, quantiles=[0.05, 0.95]),
            len(peer_queries),
        ),
    }
    times = {name: [] for name in work}
    for _ in range(options.turns):
        for name, (run, n) in work.items():
            times[name].append(seconds(run) / n * 1e6)
    base = np.array(times["hdicore, exact HDI"])
    print(
        f"{options.rows} training rows, {options.trees} trees, min_samples_leaf {options.leaf}, "
        f"{len(queries)} queries ({len(peer_queries)} for quantile-forest), {options.turns} turns"
    )
    print(f"{'':36} {'us/row':>8} {'times hdicore':>14} {'min - max':>14}")
    for name, values in times.items():
        ratio = np.array(values) / base
        spread = f"{ratio.min():.2f} - {ratio.max():.2f}"
        print(f"{name:36} {np.median(values):8.2f} {np.median(ratio):14.2f} {spread:>14}")
    print(f"import {importing:.2f} s, {importing / fitting:.1%} of the forest's fit")
    print(f"index {model.scorer_.index.nbytes / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
