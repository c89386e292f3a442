"""Measures one case: fits, imports, checks the answers, then times all kinds of work in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from quantile_forest import RandomForestQuantileRegressor
from sklearn.ensemble import RandomForestRegressor

from boosting import boosted_means
from cases import Case, load
from checks import LEVELS, QUANTILES, check_answers
from hdiforest import HDIForestRegressor
from onnx_mean import onnx_means
from peers import peers_of

COMMAND_LEVELS = [0.8, 0.9, 0.95]  # with the mean: what `hdiforest score` asks for
IMPORTS = 3
LOADS = 5
ONE_ROW_CALLS = 500
ONE_ROW_FOREST_CALLS = 50  # milliseconds each


class Work(NamedTuple):
    """One kind of work and the rows it is timed on."""

    run: Callable[[np.ndarray], object]
    rows: np.ndarray


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(case: Case, threads: Sequence[int], turns: int) -> dict[str, object]:
    """Everything the tables need about one case, ready for JSON.

    Raises
    ------
    AssertionError
        If an answer is wrong; then nothing is timed.
    """
    X, y, queries = load(case)
    most = max(threads)
    forest = RandomForestRegressor(
        case.trees, min_samples_leaf=case.leaf, n_jobs=most, random_state=0
    )
    fit_seconds = seconds(lambda: forest.fit(X, y))
    model = HDIForestRegressor.from_forest(forest, X, y, n_jobs=most)
    check_answers(model, forest, X, y, queries)
    import_seconds = [
        seconds(lambda: HDIForestRegressor.from_forest(forest, X, y, n_jobs=most))
        for _ in range(IMPORTS)
    ]
    peers, left_out = peers_of(forest, X, y)
    onnx, reason = onnx_means(forest, queries, tuple(threads))
    if reason is not None:
        left_out["onnx"] = reason
    works = {n: _works(model, forest, queries, n) for n in threads}
    boosted, reasons = boosted_means(X, y, tuple(threads))
    left_out |= reasons
    for (name, n), run in boosted.items():
        works[n][name] = Work(run, queries)
    for n, run in onnx.items():
        works[n]["onnx"] = Work(run, queries[: case.peer_queries])
    for name, peer in peers.items():  # with all threads only
        works[most][name] = Work(_quantiles_of(peer), queries[: case.peer_queries])
    return {
        "kind": "speed",
        "case": asdict(case) | {"rows": len(X)},
        "n_features": X.shape[1],
        "us_per_row": _turns(model, forest, works, turns),
        "one_row_us": _one_row(model, forest, onnx.get(1), queries),
        "fit_seconds": fit_seconds,
        "import_seconds": import_seconds,
        "load_seconds": _load_seconds(model),
        "bytes": _bytes(model, forest, peers),
        "left_out": left_out,
    }


def _turns(
    model: HDIForestRegressor,
    forest: RandomForestRegressor,
    works: dict[int, dict[str, Work]],
    turns: int,
) -> dict[str, dict[str, list[float]]]:
    """Time per row in us, by number of threads, kind of work and turn.

    A turn does each kind of work once; the next one begins with the next kind.
    """
    times = {str(n): {name: [] for name in kinds} for n, kinds in works.items()}
    for turn in range(-1, turns):  # turn -1 warms up
        for n, by_name in works.items():
            model.n_jobs = forest.n_jobs = n
            kinds = list(by_name.items())
            begin = turn % len(kinds)
            for name, (run, rows) in kinds[begin:] + kinds[:begin]:
                if turn < 0:
                    run(rows[:1000])
                else:
                    took = seconds(lambda run=run, rows=rows: run(rows))
                    times[str(n)][name].append(took / len(rows) * 1e6)
    return times


def _works(
    model: HDIForestRegressor, forest: RandomForestRegressor, queries: np.ndarray, n_threads: int
) -> dict[str, Work]:
    scorer = model.scorer_
    trees = scorer.forest
    wide = queries.astype(np.float64)

    def command(rows: np.ndarray) -> np.ndarray:
        shape = (len(rows),) if scorer.index.scalar_output else (len(rows), forest.n_outputs_)
        mean = np.empty(shape)
        return scorer.intervals(rows, COMMAND_LEVELS, mean=mean, n_threads=n_threads)

    return {
        "hdi": Work(lambda rows: model.predict_interval(rows, 0.9), queries),
        "hdi_half": Work(lambda rows: model.predict_interval(rows, 0.5), queries),
        "hdi_5": Work(lambda rows: model.predict_interval(rows, LEVELS), queries),
        "quantiles": Work(lambda rows: model.predict_quantiles(rows, QUANTILES), queries),
        "mean": Work(model.predict, queries),
        "command": Work(command, queries),
        "routing": Work(lambda rows: trees.leaves(rows, n_threads=n_threads), queries),
        "routing_float64": Work(lambda rows: trees.leaves(rows, n_threads=n_threads), wide),
        "forest": Work(forest.predict, queries),
    }


def _quantiles_of(peer: RandomForestQuantileRegressor) -> Callable[[np.ndarray], object]:
    return lambda rows: peer.predict(rows, quantiles=QUANTILES)


def _one_row(
    model: HDIForestRegressor,
    forest: RandomForestRegressor,
    onnx: Callable[[np.ndarray], np.ndarray] | None,
    queries: np.ndarray,
) -> dict[str, dict[str, float]]:
    """Time of a call with a single row in us, on one thread: median and outer tenths."""
    model.n_jobs = forest.n_jobs = 1
    scorer = model.scorer_
    calls = {
        "estimator": (lambda row: model.predict_interval(row, 0.9), ONE_ROW_CALLS),
        "scorer": (lambda row: scorer.intervals(row, 0.9, n_threads=1), ONE_ROW_CALLS),
        "forest": (forest.predict, ONE_ROW_FOREST_CALLS),
    }
    if onnx is not None:
        calls["onnx"] = (onnx, ONE_ROW_CALLS)
    found = {}
    for name, (run, n_calls) in calls.items():
        rows = [queries[k % len(queries)][None] for k in range(n_calls)]
        run(rows[0])
        took = [seconds(lambda run=run, row=row: run(row)) * 1e6 for row in rows]
        low, median, high = np.percentile(took, [10, 50, 90])
        found[name] = {"median": median, "p10": low, "p90": high}
    return found


def _load_seconds(model: HDIForestRegressor) -> list[float]:
    """Time to open a model file, in the page cache, up to the first query."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "model")
        model.save(path, training_rows=False)
        return [seconds(lambda: HDIForestRegressor.load(path)) for _ in range(LOADS)]


def _bytes(
    model: HDIForestRegressor,
    forest: RandomForestRegressor,
    peers: dict[str, RandomForestQuantileRegressor],
) -> dict[str, int | None]:
    # What scikit-learn keeps per tree: the nodes (children, feature, threshold, impurity, weights)
    # and the value of every node. Its Python objects are not counted.
    states = [member.tree_.__getstate__() for member in forest.estimators_]
    exact = peers.get("peer_exact")
    return {
        "index": model.scorer_.index.nbytes,
        "nodes": model.scorer_.forest.nbytes,
        "forest": sum(state["nodes"].nbytes + state["values"].nbytes for state in states),
        "peer_exact": None if exact is None else np.asarray(exact.forest_.y_train_leaves).nbytes,
    }
