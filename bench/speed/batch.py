"""Time and memory of intervals at prices, batches and regions, beside highest-density intervals.

    python bench/speed/batch.py [--rows 3000000] [--quick]

20,000 training rows of ten features, 100 trees with leaves of 5 rows. One price and 32 prices are
timed in turns with an HDI of each row, a batch in memory, and regions of two pieces. Then a stream
of as many rows as asked, made block by block, is scored at one price in some passes: its total
width beside that of the same rows in memory, and the peak memory of the process before and after
the stream. Some minutes for 3,000,000 rows.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from hdicore import Scorer
from hdicore.batch import Reading, Sums, find_rule, predict_batch
from hdiforest import HDIForestRegressor

sys.path.insert(0, str(Path(__file__).parents[1]))
import datasets
import study

TURNS, N_ROWS, N_TREES = 7, 20_000, 100
N_STREAMED = 10**12  # rows at most
BLOCK = 100_000
COVERAGE, FLOOR = 0.9, 0.5
GRID = (-50.0, 80.0, 100, 2.0)  # low, high, bins, bandwidth


def main() -> None:
    parser = study.parser(__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    few = {"TURNS": 1, "BLOCK": 200, "N_ROWS": 300, "N_TREES": 5, "N_STREAMED": 500}
    options = study.chosen(parser, globals(), **few)
    n_rows = min(options.rows, N_STREAMED)
    forest = ExtraTreesRegressor(
        N_TREES, bootstrap=True, min_samples_leaf=5, n_jobs=-1, random_state=0
    )
    model = HDIForestRegressor(forest, calibration=False).fit(*_rows(N_ROWS, 0))
    print(study.markdown(ratios(model.scorer_), ".3g"))
    print(f"\natoms of a row: {n_atoms(model.scorer_):.0f} on average\n")
    for line in stream(model.scorer_, n_rows):
        print(line)


def ratios(scorer: Scorer) -> list[dict[str, object]]:
    """Return medians of the times of one thread over that of an HDI of each row, in turns."""
    X = _rows(N_ROWS, 1)[0]
    work: dict[str, Callable[[], object]] = {
        "HDI": lambda: scorer.intervals(X, COVERAGE, n_threads=1),
        "one price": lambda: scorer.priced_intervals(X, 5.0, FLOOR, n_threads=1),
        "32 prices": lambda: scorer.priced_intervals(
            X, np.geomspace(1, 30, 32), FLOOR, n_threads=1
        ),
        "batch": lambda: predict_batch(scorer, X, COVERAGE, FLOOR, n_threads=1),
        "region of atoms": lambda: scorer.regions(X, COVERAGE, 2, 1.0, n_threads=1),
        "region of 100 bins": lambda: scorer.regions(X, COVERAGE, 2, 1.0, grid=GRID, n_threads=1),
    }
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(TURNS):
        for name, each in work.items():
            start = time.perf_counter()
            each()
            seconds[name].append(time.perf_counter() - start)
    yardstick = np.array(seconds.pop("HDI"))
    return [
        {"what": name, "over an HDI": np.median(np.array(own) / yardstick)}
        for name, own in seconds.items()
    ]


def n_atoms(scorer: Scorer) -> float:
    """Return the mean number of training targets that a row's distribution has."""
    indptr, _, _ = scorer.index.weights(scorer.forest.leaves(_rows(1000, 1)[0]))
    return float(np.diff(indptr).mean())


def stream(scorer: Scorer, n_rows: int) -> Iterator[str]:
    """Yield what a stream of rows costs, and its total width beside that of a batch in memory."""
    before = _peak()
    start = time.perf_counter()
    n_passes = 0

    def ask(prices: np.ndarray) -> list[Sums]:
        nonlocal n_passes
        n_passes += 1
        parts = [Sums.read(scorer, X, prices, FLOOR) for X in _blocks(n_rows)]
        return [Sums.of(parts)]

    rule = find_rule(ask, scorer, COVERAGE, FLOOR)
    missing, total, mass = rule.missing[0], 0.0, 0.0
    for X in _blocks(n_rows):
        for reading in Reading.parts(scorer, X, rule.prices, FLOOR):
            ends, shares, missing = rule.choose(reading, missing)
            total += float((ends[:, 1] - ends[:, 0]).sum())
            mass += float(shares.sum())
    seconds = time.perf_counter() - start
    yield f"stream of {n_rows:,} rows: {n_passes} passes and one more, {seconds:.0f} s"
    yield f"peak memory before and after: {before:.0f}, {_peak():.0f} MB"
    yield f"total width {total:.3f}, mean mass {mass / n_rows:.9f}, bound {rule.bound:.3f}"
    found = predict_batch(scorer, np.concatenate(list(_blocks(n_rows))), COVERAGE, FLOOR)
    widest = np.diff(found.interval).max()
    yield f"in memory {found.total_width:.3f}, bound {found.bound:.3f}; widest row {widest:.3f}"


def _rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of Friedman's function whose noise differs by factors."""
    X, y = datasets.friedman(n, seed)
    noise = y - datasets.friedman_mean(X)
    return X, y + noise * (np.exp(3 * X[:, 5]) - 1)


def _blocks(n_rows: int) -> Iterator[np.ndarray]:
    for seed, begin in enumerate(range(0, n_rows, BLOCK), 2):
        yield datasets.friedman(min(BLOCK, n_rows - begin), seed)[0]


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
