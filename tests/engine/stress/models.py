"""Forests, indices and tables of any size for the stress runs, made without fitting."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hdicore import Forest, LeafIndex, Scorer

N_FEATURES = 4


def tree_fields(n_trees: int, depth: int, seed: int = 0) -> list[np.ndarray]:
    """Return the arguments of a Forest of complete trees with random splits."""
    rng = np.random.default_rng(seed)
    n_inner, n_nodes = 2**depth - 1, 2 ** (depth + 1) - 1
    node = np.arange(n_nodes)
    inner = node < n_inner
    left = np.tile(np.where(inner, 2 * node + 1, -1), n_trees)
    right = np.where(left >= 0, left + 1, -1)
    size = n_trees * n_nodes
    feature = np.where(left >= 0, rng.integers(0, N_FEATURES, size), -2)
    return [left, right, feature, rng.random(size), rng.integers(0, 2, size)]


def make_forest(n_trees: int, depth: int, n_threads: int = 0) -> Forest:
    offsets = np.arange(n_trees + 1) * (2 ** (depth + 1) - 1)
    return Forest(*tree_fields(n_trees, depth), offsets, N_FEATURES, n_threads=n_threads)


def make_rows(n: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).random((n, N_FEATURES))


def make_scorer(n_trees: int, depth: int, n_rows: int) -> Scorer:
    """Return a scorer whose leaves hold about n_rows / 2**depth training rows each."""
    forest = make_forest(n_trees, depth)
    X = make_rows(n_rows)
    index = LeafIndex(forest.leaves(X), X.sum(axis=1), n_leaves=forest.n_leaves)
    return Scorer(forest, index)


def write_table(path: Path, n: int, *, target: bool) -> None:
    """Write a CSV of random features and, if wanted, their noisy sum as column 'y'."""
    X = make_rows(n)
    names = [f"x{j}" for j in range(N_FEATURES)]
    if target:
        noise = np.random.default_rng(2).normal(size=n)
        X, names = np.column_stack([X, X.sum(axis=1) + noise]), [*names, "y"]
    np.savetxt(path, X, fmt="%.6f", delimiter=",", header=",".join(names), comments="")
