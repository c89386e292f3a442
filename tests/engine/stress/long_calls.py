"""Make one long call again and again, each until a signal ends it: long_calls.py NAME SECONDS N.

Prints how long the call takes undisturbed, then for each call a line when it begins, and one that
says when the signal was answered and whether it came late, after the call.
"""

from __future__ import annotations

import json
import pickle
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import NoReturn

import numpy as np

from hdicore import Forest, LeafIndex, weighted_hdi
from models import N_FEATURES, make_forest, make_rows, make_scorer, tree_fields

# Of a size (rows, or trees of 2**16 nodes) and a number of threads, a call.
Maker = Callable[[int, int], Callable[[], object]]


def query(name: str, *arguments: object) -> Maker:
    """Ask for distributions with 20,000 atoms."""

    def make(n: int, n_threads: int) -> Callable[[], object]:
        scorer, X = make_scorer(n_trees=50, depth=2, n_rows=20_000), make_rows(n)
        points = [X[:, 0].copy()] if name in ("cdf", "draws") else []
        return partial(getattr(scorer, name), X, *arguments, *points, n_threads=n_threads)

    return make


def given_leaves(n: int, n_threads: int) -> Callable[[], object]:
    scorer = make_scorer(n_trees=50, depth=2, n_rows=20_000)
    leaves = scorer.forest.leaves(make_rows(n))
    return lambda: scorer.index.intervals(leaves, n_threads=n_threads)


def routing(n: int, n_threads: int) -> Callable[[], object]:
    forest, X = make_forest(n_trees=20, depth=15), make_rows(n)
    return lambda: forest.apply(X, n_threads=n_threads)


def forest_building(n: int, n_threads: int) -> Callable[[], object]:
    fields, offsets = tree_fields(n, depth=15), np.arange(n + 1) * (2**16 - 1)
    return lambda: Forest(*fields, offsets, N_FEATURES, n_threads=n_threads)


def forest_checking(n: int, n_threads: int) -> Callable[[], object]:
    arrays = make_forest(n, depth=15).arrays()
    return lambda: Forest.from_arrays(arrays, N_FEATURES)


def forest_pruning(n: int, n_threads: int) -> Callable[[], object]:
    forest = make_forest(n, depth=15)
    sizes = np.ones(forest.n_leaves.sum(), dtype=np.int64)
    return lambda: forest.prune(sizes, 3, n_threads=n_threads)


def index_building(n: int, n_threads: int) -> Callable[[], object]:
    rng = np.random.default_rng(0)
    leaves, y = rng.integers(0, 1000, (n, 100), dtype=np.int32), rng.normal(size=n)
    return lambda: LeafIndex(leaves, y, n_threads=n_threads)


def index_checking(n: int, n_threads: int) -> Callable[[], object]:
    arrays = index_building(n, 0)().arrays()
    return lambda: LeafIndex.from_arrays(arrays, True)


def unpickling(n: int, n_threads: int) -> Callable[[], object]:
    blob = pickle.dumps(index_building(n, 0)())
    return lambda: pickle.loads(blob)


def samples(n: int, n_threads: int) -> Callable[[], object]:
    values = np.random.default_rng(0).normal(size=(n, 20_000))
    return lambda: weighted_hdi(values, n_threads=n_threads)


# A call, the size with which it is timed first, and the largest one that memory allows for.
MAKERS: dict[str, tuple[Maker, int, int]] = {
    "Scorer.mean": (query("mean"), 100, 10**6),
    "Scorer.intervals": (query("intervals", [0.5, 0.9]), 100, 10**6),
    "Scorer.quantiles": (query("quantiles", [0.1, 0.5]), 100, 10**6),
    "Scorer.cdf": (query("cdf"), 100, 10**6),
    "Scorer.draws": (query("draws"), 100, 10**6),
    "Scorer.weights": (query("weights"), 100, 5000),
    "LeafIndex.intervals": (given_leaves, 100, 10**6),
    "Forest.apply": (routing, 20_000, 10**7),
    "Forest": (forest_building, 10, 500),
    "Forest.from_arrays": (forest_checking, 10, 500),
    "Forest.prune": (forest_pruning, 10, 500),
    "LeafIndex": (index_building, 10_000, 10**6),
    "LeafIndex.from_arrays": (index_checking, 10_000, 10**6),
    "pickle.loads": (unpickling, 10_000, 10**6),
    "weighted_hdi": (samples, 50, 10_000),
}
WITHOUT_THREADS = ("Forest.from_arrays", "LeafIndex.from_arrays", "pickle.loads")
CALLS = [
    f"{name}, {n} thread{'s' * (n > 1)}"
    for name in MAKERS
    for n in ((1,) if name in WITHOUT_THREADS else (1, 2))
]


def seconds_of(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main(name: str, seconds: float, times: int) -> None:
    title, _, threads = name.partition(", ")
    make, size, most = MAKERS[title]
    n_threads = int(threads.split()[0])
    call = make(size, n_threads)
    wanted = int(size * seconds / min(seconds_of(call), seconds_of(call)))
    call = make(min(max(size, wanted), most), n_threads)
    print(seconds_of(call), flush=True)
    for _ in range(times):
        returned = False
        print("calling", flush=True)
        try:
            call()
            returned = True
            time.sleep(600)  # until the signal comes
        except KeyboardInterrupt:
            print(json.dumps({"at": time.monotonic(), "late": returned}), flush=True)


def stop(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
