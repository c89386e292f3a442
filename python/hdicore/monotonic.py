"""Bounds of the leaves of monotonic trees, and an index of targets moved within them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdicore._core import LeafIndex

__all__ = ["bounds_of_leaves", "clipped_index", "reached_bounds"]

Array = NDArray[np.float64]

Counts = NDArray[np.unsignedinteger[Any]]  # (n, k): how often each of k trees counts each row
Bounds = tuple[Array, Array]  # lowest and highest target of each leaf of a tree, (n_leaves,) each


def bounds_of_leaves(
    children_left: NDArray[np.integer[Any]],
    children_right: NDArray[np.integer[Any]],
    feature: NDArray[np.integer[Any]],
    value: Array,
    signs: NDArray[np.integer[Any]],
    leaf_nodes: NDArray[np.integer[Any]],
) -> Bounds:
    """Return the bounds that a monotonic tree respects in its leaves.

    Where a constrained feature splits a node, the middle of the values that the tree predicts for
    its two children divides what lies below them.

    Parameters
    ----------
    children_left, children_right : (n_nodes,) int
        Children of each node; -1 marks a leaf.
    feature : (n_nodes,) int
        Feature that each inner node splits on.
    value : (n_nodes,) float64
        What the tree predicts in each node.
    signs : (n_features,) int
        1 where predictions must not fall, -1 where they must not rise, and 0 elsewhere.
    leaf_nodes : (n_leaves,) int
        Node of each leaf.

    Returns
    -------
    two (n_leaves,) float64
        Lower and upper bounds; infinite where nothing bounds a leaf.

    Notes
    -----
    O(n_nodes).
    """
    n = len(children_left)
    lower, upper = np.full(n, -np.inf), np.full(n, np.inf)
    nodes = np.zeros(1, dtype=np.intp)  # of one depth
    while nodes.size:
        nodes = nodes[children_left[nodes] >= 0]
        left, right = children_left[nodes], children_right[nodes]
        for child in (left, right):
            lower[child], upper[child] = lower[nodes], upper[nodes]
        middle = (value[left] + value[right]) / 2
        for direction, low, high in ((1, left, right), (-1, right, left)):
            split = signs[feature[nodes]] == direction
            upper[low[split]] = lower[high[split]] = middle[split]
        nodes = np.concatenate([left, right])
    return lower[leaf_nodes], upper[leaf_nodes]


def reached_bounds(
    tree: Any, signs: NDArray[np.integer[Any]], leaf_nodes: NDArray[np.integer[Any]]
) -> Bounds:
    """Return the bounds to which constraints may have moved values of leaves.

    A fit takes the middle of two means that differ from those it records by the rounding of sums
    over their parent, of which the impurity tells the size. NaN proves nothing.

    Parameters
    ----------
    tree : object
        With the arrays ``children_left``, ``children_right``, ``feature``, ``value`` (n_nodes, 1,
        1), ``impurity``, ``n_node_samples`` and ``weighted_n_node_samples``.
    signs : (n_features,) int
        As in `bounds_of_leaves`.
    leaf_nodes : (n_leaves,) int
        Node of each leaf.

    Returns
    -------
    two (n_leaves,) float64
        Lower and upper bounds; infinite where the value of a leaf is not at its bound.
    """
    left, right, value = tree.children_left, tree.children_right, tree.value[:, 0, 0]
    n, weight = tree.n_node_samples, tree.weighted_n_node_samples
    with np.errstate(all="ignore"):
        size = weight * (np.abs(value) + np.sqrt(np.abs(tree.impurity)))
        error, splits = np.zeros(len(left)), np.flatnonzero(left >= 0)
        error[left[splits]] = error[right[splits]] = (16 * 2.0**-53 * (n + 4) * size)[splits]
        bounds = bounds_of_leaves(left, right, tree.feature, value, signs, leaf_nodes)
        errors = bounds_of_leaves(left, right, tree.feature, error, signs, leaf_nodes)
        sides = zip(bounds, errors, (-np.inf, np.inf), strict=True)
        of_leaves = value[leaf_nodes], weight[leaf_nodes]
        low, high = (
            np.where(np.abs(of_leaves[0] - end) * of_leaves[1] > np.abs(slack), nowhere, end)
            for end, slack, nowhere in sides
        )
    return low, high


def clipped_index(
    n_leaves: NDArray[np.integer[Any]],
    y: Array,
    blocks: Iterable[tuple[NDArray[np.int32], Counts]],
    bounds: Iterable[Bounds],
    sample_weight: Array | None,
    **options: Any,
) -> LeafIndex:
    """Return an index of targets that are moved within the bounds of each leaf.

    Parameters
    ----------
    n_leaves : (n_trees,) int
        Leaves of each tree.
    y : (n,) float64
        Targets.
    blocks : iterable of pairs
        Of some trees after the others: the leaves of the rows, (n, k) int32, and how often these
        count the rows, (n, k).
    bounds : iterable of pairs
        Of each tree the lowest and the highest target of its leaves, (n_leaves,) each.
    sample_weight : (n,) float64, optional
        Weight of each row, times its counts.
    **options : dict
        Of `hdicore.LeafIndex.from_blocks`.

    Returns
    -------
    LeafIndex
        To it, rows that a leaf moves to one of its bounds are one row more: a row has other targets
        in other trees, and an index only one.

    Notes
    -----
    All targets of a leaf lie on its side of every constrained split. In each tree, and so in their
    mean, the distribution of a row is therefore nowhere to the left of that of a row that is lower
    in a constrained feature alone: means, quantiles and equal-tailed ends are monotonic.
    O(rows of the index * n_trees).
    """
    row_weights = np.ones(len(y)) if sample_weight is None else sample_weight
    targets, weights, trees, n = [y], [row_weights], [], len(y)
    bounds_of_trees = iter(bounds)
    for leaves, counts in blocks:
        for k in range(counts.shape[1]):
            (rows,) = np.nonzero(counts[:, k])
            leaf, count = leaves[rows, k], counts[rows, k].astype(np.uint32)
            ends = np.stack(next(bounds_of_trees), axis=1)  # (n_leaves, 2)
            low, high = ends[leaf].T
            stay = (low <= y[rows]) & (y[rows] <= high)
            bound, group = np.unique(2 * leaf[~stay] + (y[rows] > high)[~stay], return_inverse=True)
            moved = np.bincount(group, count[~stay]).astype(np.uint32)
            weight = np.bincount(group, (count * row_weights[rows])[~stay]) / moved
            targets.append(ends.ravel()[bound])
            weights.append(weight)
            rows = np.concatenate([rows[stay], np.arange(n, n + len(bound))])
            leaf = np.concatenate([leaf[stay], bound // 2]).astype(np.int32)
            trees.append((rows, leaf, np.concatenate([count[stay], moved])))
            n += len(bound)
    values = np.concatenate(targets)
    # The index reads rows in the order of their targets, which is fastest if they lie in it.
    order = np.argsort(values)
    place = np.empty(n, dtype=np.intp)
    place[order] = np.arange(n)

    def index_blocks() -> Iterator[tuple[NDArray[np.int32], NDArray[np.uint32]]]:
        for rows, leaf, count in trees:
            of_tree = np.zeros((n, 1), dtype=np.int32)
            times = np.zeros((n, 1), dtype=np.uint32)
            of_tree[place[rows], 0], times[place[rows], 0] = leaf, count
            yield of_tree, times

    return LeafIndex.from_blocks(
        index_blocks,
        values[order],
        n_leaves,
        sample_weight=None if sample_weight is None else np.concatenate(weights)[order],
        **options,
    )
