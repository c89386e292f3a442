"""Fail each allocation of each operation, alone and with all after it: MemoryError or success.

Each case runs in a forked child. Afterwards the same operation must give the right answer there.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import c_table
import numpy as np
from children import NO_MEMORY, RIGHT, WRONG, WRONG_NEXT, Case, row_of_children
from outcome import Row, SkippedError

from hdicore import Forest, LeafIndex, OutOfBagScorer, Scorer, _core, weighted_hdi
from models import N_FEATURES, make_rows, make_scorer, tree_fields

SHIM = Path(__file__).with_name("failing_malloc.c")
Operation = Callable[[], object]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every N-th allocation")


def run(options: argparse.Namespace) -> Iterator[Row]:
    shim = preloaded_shim()
    _core._set_block_rows(500)
    for name, operation in operations().items():
        if options.only in name:
            yield row_of_children(name, allocation_cases(shim, operation, options.every))


def preloaded_shim() -> ctypes.CDLL:
    """Return the shim; a process that was started without it starts once more."""
    shim = ctypes.CDLL(None)
    if not hasattr(shim, "fail_allocation"):
        library = compiled_shim()
        os.execve(sys.executable, sys.orig_argv, os.environ | {"LD_PRELOAD": str(library)})
    shutil.rmtree(Path(os.environ.pop("LD_PRELOAD")).parent)
    shim.fail_allocation.argtypes = (ctypes.c_long, ctypes.c_int)
    shim.fail_allocation.restype = shim.fail_none.restype = None
    shim.seen_allocations.restype = ctypes.c_long
    return shim


def compiled_shim() -> Path:
    compiler = os.environ.get("CC") or shutil.which("cc")
    if not sys.platform.startswith("linux") or compiler is None:
        raise SkippedError("failing allocations needs Linux and a C compiler (cc or $CC).")
    library = Path(tempfile.mkdtemp(prefix="failing-malloc-")) / "failing_malloc.so"
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(SHIM)]
    subprocess.run(command, check=True)
    return library


def operations() -> dict[str, Operation]:
    """Return small operations by name; those with threads give each of them several blocks."""
    scorer = make_scorer(n_trees=6, depth=4, n_rows=300)
    forest, index = scorer.forest, scorer.index
    X, y = make_rows(300), make_rows(300)[:, 0]
    leaves, n_leaves = forest.leaves(X), forest.n_leaves
    asked = make_rows(4000)  # enough that a second thread is worth while
    asked_leaves = forest.leaves(asked)
    fields, offsets = tree_fields(n_trees=6, depth=4), np.arange(7) * 31
    counts = (leaves % 3).astype(np.int32)
    parts = {name: array.copy() for name, array in index.arrays().items()}
    nodes = {name: array.copy() for name, array in forest.arrays().items()}
    samples = np.random.default_rng(0).normal(size=(200, 50))
    of_training = OutOfBagScorer(index, leaves, counts, y)
    found: dict[str, Operation] = {
        "Forest.from_arrays": lambda: Forest.from_arrays(nodes, N_FEATURES),
        "LeafIndex.from_arrays": lambda: LeafIndex.from_arrays(parts, True),
        "arrays": lambda: (forest.arrays(), index.arrays()),
        "C table, weighted_hdi": c_table.weighted_hdi(samples[0]),
    }
    for protocol in (4, 5):
        blob = pickle.dumps(scorer, protocol)
        found[f"pickle.dumps, protocol {protocol}"] = lambda p=protocol: pickle.dumps(scorer, p)
        found[f"pickle.loads, protocol {protocol}"] = lambda b=blob: pickle.loads(b)
    for n in (1, 2):
        threads = f"{n} thread{'s' * (n > 1)}"
        more = {
            "Forest": lambda n=n: Forest(*fields, offsets, N_FEATURES, n_threads=n),
            "LeafIndex": lambda n=n: LeafIndex(leaves, y, n_leaves=n_leaves, n_threads=n),
            "LeafIndex with counts and weights": lambda n=n: LeafIndex(
                leaves, y, counts=counts, sample_weight=y, n_leaves=n_leaves, n_threads=n
            ),
            "LeafIndex.from_leaves": lambda n=n: LeafIndex.from_leaves(leaves, y, n_threads=n),
            "OutOfBagScorer": lambda n=n: (
                OutOfBagScorer(index, leaves, counts, y, n_threads=n).centres
            ),
            "OutOfBagScorer.intervals": lambda n=n: of_training.intervals(
                np.arange(300), n_threads=n
            ),
            "Forest.apply": lambda n=n: forest.apply(asked, n_threads=n),
            "Forest.leaves": lambda n=n: forest.leaves(asked, n_threads=n),
            "weighted_hdi": lambda n=n: weighted_hdi(samples, n_threads=n),
            "C table, index_build": c_table.build(leaves, y, n),
            "C table, index_mean": c_table.mean(index, asked_leaves, n),
            **{f"LeafIndex.{k}": q for k, q in queries(index, asked_leaves, n).items()},
            **{f"Scorer.{k}": q for k, q in queries(scorer, asked, n).items()},
        }
        found |= {f"{name}, {threads}": operation for name, operation in more.items()}
    return found


def queries(asked: Scorer | LeafIndex, rows: np.ndarray, n: int) -> dict[str, Operation]:
    points = np.linspace(0, 1, len(rows), endpoint=False)
    return {
        "mean": lambda: asked.mean(rows, n_threads=n),
        "intervals": lambda: asked.intervals(rows, [0.5, 0.9], n_threads=n),
        "intervals, equal-tailed": lambda: asked.intervals(rows, 0.9, "equal_tailed", n_threads=n),
        "quantiles": lambda: asked.quantiles(rows, [0.1, 0.5], "linear", n_threads=n),
        "cdf": lambda: asked.cdf(rows, points, n_threads=n),
        "draws": lambda: asked.draws(rows, points, n_threads=n),
        "weights": lambda: asked.weights(rows, n_threads=n),
    }


def allocation_cases(shim: ctypes.CDLL, operation: Operation, every: int) -> dict[str, Case]:
    """Return the operation with its first, second, ... allocation failing."""
    expected = pickle.dumps(operation())  # also a call that makes what is made once
    shim.fail_allocation(-1, 0)
    operation()
    shim.fail_none()

    def case(n: int, rest: bool) -> str:
        shim.fail_allocation(n, rest)
        try:
            result = operation()
        except MemoryError:
            result = None
        finally:
            shim.fail_none()
        if result is not None and pickle.dumps(result) != expected:
            return WRONG
        if pickle.dumps(operation()) != expected:
            return WRONG_NEXT
        return NO_MEMORY if result is None else RIGHT

    numbers = range(0, shim.seen_allocations(), every)
    return {
        f"allocation {n}{' and all after' if rest else ''}": lambda n=n, rest=rest: case(n, rest)
        for n in numbers
        for rest in (False, True)
    }
