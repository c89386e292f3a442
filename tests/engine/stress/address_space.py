"""Give each large operation little more address space than the process has: MemoryError or success.

Each case runs in a forked child.
"""

from __future__ import annotations

import argparse
import pickle
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

from children import NO_MEMORY, RIGHT, Case, row_of_children
from outcome import Row, SkippedError

from hdicore import LeafIndex
from models import make_forest, make_rows, make_scorer

STATM = Path("/proc/self/statm")
Operation = Callable[[], object]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--step", type=int, default=10, metavar="MB", help="from 1 step to 200 MB")


def run(options: argparse.Namespace) -> Iterator[Row]:
    if not STATM.exists():
        raise SkippedError("the address space in use is read from Linux' /proc.")
    megabytes = range(options.step, 201, options.step)
    for name, operation in operations().items():
        if options.only in name:
            yield row_of_children(name, cases_of(operation, megabytes))


def operations() -> dict[str, Operation]:
    """Return operations that need tens of megabytes, by name."""
    scorer = make_scorer(n_trees=60, depth=9, n_rows=200_000)
    X = make_rows(200_000)
    leaves, n_leaves = scorer.forest.leaves(X), scorer.forest.n_leaves
    writeable = {name: array.copy() for name, array in scorer.index.arrays().items()}
    blobs = {protocol: pickle.dumps(scorer, protocol) for protocol in (4, 5)}
    return {
        "LeafIndex": lambda: LeafIndex(leaves, X[:, 0], n_leaves=n_leaves, n_threads=2),
        "Forest": lambda: make_forest(n_trees=20, depth=15, n_threads=2),
        "LeafIndex.from_arrays": lambda: LeafIndex.from_arrays(writeable, True),
        "pickle.loads, protocol 4": lambda: pickle.loads(blobs[4]),
        "pickle.loads, protocol 5": lambda: pickle.loads(blobs[5]),
        "Forest.leaves": lambda: scorer.forest.leaves(X, n_threads=2),
        "Scorer.intervals": lambda: scorer.intervals(X, n_threads=2),
        "Scorer.weights": lambda: scorer.weights(X[:200], n_threads=2),
    }


def cases_of(operation: Operation, megabytes: range) -> dict[str, Case]:
    def case(extra: int) -> str:
        limit = int(STATM.read_text().split()[0]) * resource.getpagesize() + (extra << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        try:
            operation()
        except MemoryError:
            return NO_MEMORY
        return RIGHT

    return {f"{extra} MB more": lambda extra=extra: case(extra) for extra in megabytes}
