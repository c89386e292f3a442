"""Shared by the tests: forests as arrays, hand-built trees, exact shares, interpreters, scripts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from itertools import product
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from hdicore import Forest, LeafIndex, instructions

ROOT = Path(__file__).resolve().parent.parent
SKLEARN = tuple(map(int, version("scikit-learn").split(".")[:2]))
# Before, what `apply` says of rows with missing values is not what the forest was fitted with.
SKLEARN_ROUTES_NAN_AS_IT_TRAINED = SKLEARN >= (1, 8)
TREE_FIELDS = ("children_left", "children_right", "feature", "threshold", "missing_go_to_left")


def as_forest(estimator):
    """A fitted scikit-learn tree or forest as a Forest, by the public attributes of its trees."""
    trees = [member.tree_ for member in getattr(estimator, "estimators_", [estimator])]
    fields = [np.concatenate([getattr(tree, name) for tree in trees]) for name in TREE_FIELDS]
    offsets = np.cumsum([0, *(tree.node_count for tree in trees)])
    return Forest(*fields, offsets, estimator.n_features_in_)


def bag_counts(estimator, n):
    """How often each tree of a bootstrapped forest drew each row, (n, n_trees)."""
    return np.stack([np.bincount(rows, minlength=n) for rows in estimator.estimators_samples_], 1)


def tree_of_nested(nested):
    """Arrays of one tree from (feature, threshold, missing_left, left, right); None is a leaf."""
    rows = []

    def add(node):
        at = len(rows)
        rows.append([-1, -1, -2, -2.0, 0])
        if node is not None:
            feature, threshold, missing_left, left, right = node
            rows[at][2:] = [feature, threshold, missing_left]
            rows[at][0] = add(left)
            rows[at][1] = add(right)
        return at

    add(nested)
    return renumbered(rows, range(len(rows)))


def renumbered(rows, new_ids):
    """Columns of a table of nodes after node k has become node new_ids[k]."""
    ids = np.asarray([*new_ids, -1])  # -1, a leaf's child, stays
    table = [None] * len(rows)
    for at, (left, right, *rest) in enumerate(rows):
        table[ids[at]] = (ids[left], ids[right], *rest)
    return [np.array(column) for column in zip(*table, strict=True)]


def random_tree(rng, n_inner, n_features, thresholds):
    """Arrays of a random tree whose nodes, but for the root, are numbered at random."""
    rows = [[-1, -1, -2, -2.0, 0]]
    leaves = [0]
    for _ in range(n_inner):
        at = leaves.pop(rng.integers(len(leaves)))
        rows[at] = [len(rows), len(rows) + 1, rng.integers(n_features), rng.choice(thresholds)]
        rows[at].append(rng.integers(2))
        leaves += [len(rows), len(rows) + 1]
        rows += [[-1, -1, -2, -2.0, 0], [-1, -1, -2, -2.0, 0]]
    return renumbered(rows, [0, *(1 + rng.permutation(len(rows) - 1))])


def one_leaf_index(y, **options):
    """An index of one tree that has one leaf: the sample y itself."""
    return LeafIndex(np.zeros((len(y), 1), dtype=np.int32), y, **options)


def training_cases(targets):
    """Leaves and targets of few training rows, and ways to build an index of them."""
    rng = np.random.default_rng(0)
    for n, m, weighted, pooled in product((1, 12, 30), (1, 3), (False, True), (False, True)):
        y = rng.normal(size=n)
        y = {
            "spread": y,
            "modes": np.where(rng.random(n) < 0.5, y / 4, 5 + y / 4),
            "integers": np.rint(2 * y),
            "decimals": rng.integers(0, 30, n) / 10,
            "huge": np.sign(y) * 10.0 ** rng.integers(300, 308, n),
            "tiny": y * 1e-310,
        }[targets]
        weights = rng.integers(0, 3, n).astype(float)
        weights[0] = 1
        options = {"pooled": pooled, "sample_weight": weights if weighted else None}
        yield rng.integers(0, 2, (n, m)), y, options


def damaged(rng, arrays):
    """A copy of a dict of arrays with one small or large damage."""
    copies = {name: array.copy() for name, array in arrays.items()}
    name = rng.choice(list(copies))
    array = copies[name]
    flat = array.reshape(-1)
    at = rng.integers(flat.size)
    kind = rng.integers(6)
    if kind == 0:
        flat.view(np.uint8)[rng.integers(flat.nbytes)] ^= 1 << rng.integers(8)
    elif kind == 1:
        extremes = [-1, 0, 1, 2**31 - 1, 2**32 - 1, -(2**31), 2**63 - 1, -(2**63), 2**40]
        flat[at] = np.array(rng.choice(extremes)).astype(array.dtype)
    elif kind == 2:
        flat[at : at + 1] += rng.choice([-1, 1]).astype(array.dtype)  # an array may wrap around
    elif kind == 3:
        other = rng.integers(flat.size)
        flat[[at, other]] = flat[[other, at]]
    elif kind == 4:
        copies[name] = array[: rng.integers(len(array))].copy()
    else:
        copies[name] = np.concatenate([array, array[-1 - rng.integers(len(array)) :]])
    return copies


def tool(name):
    """The path of a command, beside this Python or anywhere; skips the test without it."""
    found = shutil.which(name, path=Path(sys.executable).parent) or shutil.which(name)
    return found or pytest.skip(f"needs {name}")


def run(*command, **options):
    """Run a command; what it prints. Fails with all that it said."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_python(code, *arguments, timeout=120, **options):
    """Run code in a fresh interpreter; what it prints. Fails with what it said on stderr.

    Under an emulator HDICORE_EMULATOR is the command that runs a program.
    """
    emulator = os.environ.get("HDICORE_EMULATOR", "").split()
    command = [*emulator, sys.executable, "-P", "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def answers_by_instructions(code):
    """Run code under each set of instructions of this processor; what differs of its output."""
    return {
        run_python(code, env=os.environ | {"HDICORE_INSTRUCTIONS": name})
        for name in instructions()["available"]
    }


@contextmanager
def scripts_of(*folders: str) -> Iterator[None]:
    """Let the scripts in folders of bench import each other; forget them at the end.

    Scripts of different folders have the same names.
    """
    with pytest.MonkeyPatch.context() as patch:
        for folder in folders:
            patch.syspath_prepend(ROOT / "bench" / folder)
        yield
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(ROOT / "bench")):
            del sys.modules[name]


def restored(model, arrays=(), without=None):
    """A copy of a model as from a pickle, with other arrays, and without a group."""
    state = model.__getstate__()
    parts = state["_fitted"]
    kept = {
        name: each
        for name, each in parts["arrays"].items()
        if without is None or not name.startswith(f"{without}.")
    }
    changed = parts | {"arrays": kept | dict(arrays)}
    made = type(model).__new__(type(model))
    made.__setstate__(state | {"_fitted": changed})
    return made


def leaf_sizes(*sizes):
    """A context in which calibrations compare trees with these leaves."""
    return patch("hdiforest.calibration._out_of_bag.LEAF_SIZES", sizes)


@contextmanager
def not_installed(package):
    """A context in which a package cannot be imported."""
    known = [name for name in sys.modules if name.partition(".")[0] == package]
    with patch.dict(sys.modules, dict.fromkeys([package, *known])):
        yield


@contextmanager
def blocks_of(n):
    """A context in which rows are read and scored in blocks of n cells, leaf ids, ends or bytes."""
    with ExitStack() as patches:
        for name in (
            "_estimators.input_rows.BLOCK_CELLS",
            "_estimators.leaf_model.BLOCK_IDS",
            "calibration._cv_plus.FoldIntervals.max_ends",
            "_model.training_rows._BLOCK_BYTES",
            "_tables.row_counts._BLOCK_CELLS",
            "metrics._crps._BLOCK_ENTRIES",
            "serving._batch_scorer.BLOCK_CELLS",
        ):
            patches.enter_context(patch(f"hdiforest.{name}", n))
        yield


def families(*families):
    """A context in which calibrations compare these distributions."""
    return patch("hdiforest._model.out_of_bag.OutOfBagIntervals.families", families)
