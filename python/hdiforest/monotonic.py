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

    `kept` says how often leaves keep rows. To the index, rows that a leaf moves to one of its
    bounds are one row more: a row has other targets in other trees, and an index only one.
    O(rows of the index * n_trees).

    All targets of a leaf lie on its side of every constrained split. Of two rows that differ in a
    constrained feature alone, the distribution of the upper one is therefore nowhere to the left of
    that of the lower one in any tree, and so in their mean: means, quantiles and ends of
    equal-tailed intervals are monotonic.
    """
    given = np.ones(len(y)) if sample_weight is None else sample_weight
    targets, weights, trees, n = [y], [given], [], len(y)
    for block, counts in kept:
        for k in range(counts.shape[1]):
            (rows,) = np.nonzero(counts[:, k])
            leaf, count = block.leaves[rows, k], counts[rows, k].astype(np.uint32)
            ends = np.stack(bounds[block.first + k], axis=1)  # (n_leaves, 2)
            low, high = ends[leaf].T
            stay = (low <= y[rows]) & (y[rows] <= high)
            bound, group = np.unique(2 * leaf[~stay] + (y[rows] > high)[~stay], return_inverse=True)
            moved = np.bincount(group, count[~stay]).astype(np.uint32)
            weight = np.bincount(group, (count * given[rows])[~stay]) / moved
            targets.append(ends.ravel()[bound])
            weights.append(weight)
            trees.append(
                (
                    np.concatenate([rows[stay], np.arange(n, n + len(bound))]),
                    np.concatenate([leaf[stay], bound // 2]).astype(np.int32),
                    np.concatenate([count[stay], moved]),
                )
            )
            n += len(bound)
    values = np.concatenate(targets)
    # The index reads rows in the order of their targets, which is fastest if they lie in it.
    order = np.argsort(values)
    place = np.empty(n, dtype=np.intp)
    place[order] = np.arange(n)

    def blocks() -> Iterator[tuple[NDArray[np.int32], NDArray[np.uint32]]]:
        for rows, leaf, count in trees:
            leaves = np.zeros((n, 1), dtype=np.int32)
            times = np.zeros((n, 1), dtype=np.uint32)
            leaves[place[rows], 0], times[place[rows], 0] = leaf, count
            yield leaves, times

    return LeafIndex.from_blocks(
        blocks,
        values[order],
        forest.n_leaves,
        sample_weight=None if sample_weight is None else np.concatenate(weights)[order],
        pooled=pooled,
        n_threads=n_threads,
    )
