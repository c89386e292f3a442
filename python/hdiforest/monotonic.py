"""Targets within the bounds that monotonic constraints set the leaves of a tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdicore import Forest, LeafIndex
from hdiforest.fitted import TreeBlock


class Bounds(NamedTuple):
    """Lowest and highest target of each leaf of a tree, (n_leaves,) each."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


def leaf_bounds(
    tree: Any,
    monotonic_cst: Sequence[int],
    leaf_nodes: NDArray[np.int32],
    values: NDArray[np.floating[Any]] | None = None,
) -> Bounds:
    """Return the bounds that a tree of scikit-learn respects in its leaves.

    Where a constrained feature splits a node, the middle of the `values` (n_nodes,) of its two
    children divides what lies below them; by default those that the tree predicts. O(n_nodes).
    """
    lower, upper = np.full(tree.node_count, -np.inf), np.full(tree.node_count, np.inf)
    value, sign = tree.value[:, 0, 0] if values is None else values, np.asarray(monotonic_cst)
    nodes = np.zeros(1, dtype=np.intp)  # of one depth
    while nodes.size:
        nodes = nodes[tree.children_left[nodes] >= 0]
        left, right = tree.children_left[nodes], tree.children_right[nodes]
        for child in (left, right):
            lower[child], upper[child] = lower[nodes], upper[nodes]
        middle = (value[left] + value[right]) / 2
        for direction, low, high in ((1, left, right), (-1, right, left)):
            split = sign[tree.feature[nodes]] == direction
            upper[low[split]] = lower[high[split]] = middle[split]
        nodes = np.concatenate([left, right])
    return Bounds(lower[leaf_nodes], upper[leaf_nodes])


def clipped_index(
    forest: Forest,
    y: NDArray[np.float64],
    kept: Iterable[tuple[TreeBlock, NDArray[np.unsignedinteger]]],
    bounds: Sequence[Bounds],
    n_threads: int,
    *,
    sample_weight: NDArray[np.float64] | None = None,
    pooled: bool = False,
) -> LeafIndex:
    """Return an index of targets (n,) that are moved within the bounds of each leaf.

    `kept` says how often leaves keep rows. A row has other targets in other trees, and an index
    only one: to it the rows of each tree are others. O(n * n_trees**2), 9 bytes for each row and
    tree.

    All targets of a leaf lie on its side of every constrained split. Of two rows that differ in a
    constrained feature alone, the distribution of the upper one is therefore nowhere to the left of
    that of the lower one in any tree, and so in their mean: means, quantiles and ends of
    equal-tailed intervals are monotonic.
    """
    rows_of_trees, leaves, targets = [], [], []  # of the samples of each tree
    for block, counts in kept:
        for k in range(counts.shape[1]):
            rows = np.repeat(np.arange(len(y)), counts[:, k])
            own, leaf = bounds[block.first + k], block.leaves[rows, k]
            rows_of_trees.append(rows)
            leaves.append(leaf)
            targets.append(np.clip(y[rows], own.lower[leaf], own.upper[leaf]))
    ends = np.cumsum([0, *map(len, leaves)])
    if sample_weight is not None:
        sample_weight = sample_weight[np.concatenate(rows_of_trees)]

    def blocks() -> Iterator[tuple[NDArray[np.int32], NDArray[np.uint8]]]:
        for tree, leaf in enumerate(leaves):
            own = slice(ends[tree], ends[tree + 1])
            column = np.zeros((ends[-1], 1), dtype=np.int32)
            count = np.zeros((ends[-1], 1), dtype=np.uint8)
            column[own, 0], count[own, 0] = leaf, 1
            yield column, count

    return LeafIndex.from_blocks(
        blocks,
        np.concatenate(targets),
        forest.n_leaves,
        sample_weight=sample_weight,
        pooled=pooled,
        n_threads=n_threads,
    )
