"""Run a benchmark on each split that has no result yet, one thread each, and write its table."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path

from threadpoolctl import threadpool_limits

import store
from protocol import Scale


def run(
    about: str,
    scale: Scale,
    measure: Callable[[str, int], dict[store.Key, dict]],
    table: Callable[[Path], str],
    n_splits: int | None = None,
) -> None:
    """Measure the splits that the command line asks for, by default the first `n_splits`."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=scale.sets, default=scale.sets)
    parser.add_argument("--splits", type=int, default=n_splits or scale.n_splits)
    parser.add_argument("--tables", action="store_true", help="measure nothing")
    parser.add_argument("--results", type=Path, default=store.RESULTS / scale.name)
    options = parser.parse_args()
    for seed in range(0 if options.tables else options.splits):
        for name in options.sets:
            path = store.path_of(options.results, name)
            if not any(seed == done for _, done in store.read(path)):
                with threadpool_limits(1), warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of coverages that few rows do not allow
                    store.add(path, measure(name, seed))
                print(name, seed, flush=True)
    report = options.results / "tables.md"
    report.write_text(table(options.results), encoding="utf-8", newline="\n")
    print(f"tables: {report}")
