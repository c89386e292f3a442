"""What is run under ThreadSanitizer: python races.py NAME."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from hdicore import LeafIndex, Scorer, _core, weighted_hdi
from models import make_forest, make_rows, make_scorer

N_CALLERS = 8


def at_once(*calls: Callable[[], object], rounds: int = 24) -> list[object]:
    """Return what the calls gave, made in turns by eight Python threads at once."""
    with ThreadPoolExecutor(N_CALLERS) as pool:
        return list(pool.map(lambda k: calls[k % len(calls)](), range(rounds)))


def queries_of(scorer: Scorer, X: np.ndarray, n_threads: int) -> Sequence[Callable[[], object]]:
    level = np.linspace(0, 0.99, len(X))
    leaves = scorer.forest.leaves(X)
    return (
        lambda: scorer.mean(X, n_threads=n_threads),
        lambda: scorer.intervals(X, [0.5, 0.9], n_threads=n_threads),
        lambda: scorer.quantiles(X, [0.1, 0.5], "linear", n_threads=n_threads),
        lambda: scorer.cdf(X, level, n_threads=n_threads),
        lambda: scorer.draws(X, level, n_threads=n_threads),
        lambda: scorer.weights(X, n_threads=n_threads),
        lambda: scorer.index.intervals(leaves, n_threads=n_threads),
        lambda: scorer.forest.apply(X, n_threads=n_threads),
    )


def parallel_queries() -> None:
    scorer, X = make_scorer(n_trees=20, depth=6, n_rows=2000), make_rows(1500)
    at_once(*queries_of(scorer, X, 1), *queries_of(scorer, X, 2), rounds=48)


def first_queries() -> None:
    """Ask a new scorer for the first time from all threads at once."""
    X = make_rows(1500)
    for n_threads in (1, 2):
        scorer = make_scorer(n_trees=20, depth=5, n_rows=1000)
        at_once(partial(scorer.intervals, X, n_threads=n_threads))


def parallel_builds() -> None:
    forest, X = make_forest(n_trees=20, depth=6), make_rows(2000)
    leaves, samples = forest.leaves(X), make_rows(400)
    at_once(
        lambda: LeafIndex(leaves, X[:, 0], n_leaves=forest.n_leaves, n_threads=2),
        lambda: LeafIndex.from_leaves(leaves, X[:, :2], sample_weight=X[:, 3], n_threads=2),
        lambda: make_forest(n_trees=10, depth=6, n_threads=2),
        lambda: weighted_hdi(samples, n_threads=2),
    )


def pickling_while_scoring() -> None:
    scorer, X = make_scorer(n_trees=20, depth=6, n_rows=2000), make_rows(1500)
    expected = scorer.intervals(X).tobytes()

    def again(protocol: int) -> None:
        assert pickle.loads(pickle.dumps(scorer, protocol)).intervals(X).tobytes() == expected

    at_once(
        lambda: again(4),
        lambda: again(5),
        lambda: LeafIndex.from_arrays(scorer.index.arrays(), True).n_entries,
        lambda: scorer.intervals(X, n_threads=2),
    )


def one_result_for_two_calls() -> None:
    """Do what is not allowed, so that a sanitizer that works must report it."""
    scorer, X = make_scorer(n_trees=20, depth=6, n_rows=2000), make_rows(1500)
    out = np.empty((len(X), 2))
    at_once(lambda: scorer.intervals(X, n_threads=2, out=out))


CONTROL = "control: calls that share one out must be reported"
RACES = {
    "queries of one scorer from 8 threads": parallel_queries,
    "the first queries of a scorer from 8 threads": first_queries,
    "builds in 8 threads": parallel_builds,
    "pickling and unpickling while scoring": pickling_while_scoring,
}

if __name__ == "__main__":
    _core._set_block_rows(100)  # many blocks of few rows
    (RACES | {CONTROL: one_result_for_two_calls})[sys.argv[1]]()
