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

    A constrained feature that splits a node gives a bound for the leaves below the node: the middle
    of the values that the tree predicts for the two children.

    Parameters
    ----------
    children_left : (n_nodes,) int
        Left child of each node. -1 marks a leaf.
    children_right : (n_nodes,) int
        Right child of each node. -1 marks a leaf.
    feature : (n_nodes,) int
        Feature that each inner node splits on.
    value : (n_nodes,) float64
        Prediction of the tree in each node.
    signs : (n_features,) int
        Constraint of each feature: 1 if predictions must not fall, -1 if they must not rise, and 0
        without a constraint.
    leaf_nodes : (n_leaves,) int
        Node of each leaf.

    Returns
    -------
    two (n_leaves,) float64
        Lower and upper bounds. They are infinite if nothing bounds a leaf.

    Notes
    -----
    O(n_nodes).

    Examples
    --------
    >>> import numpy as np
    >>> from hdicore.monotonic import bounds_of_leaves
    >>> left, right, feature = np.array([[1, -1, -1], [2, -1, -1], [0, -2, -2]])
    >>> value, signs, leaves = np.array([2.0, 1.0, 3.0]), np.array([1]), np.array([1, 2])
    >>> lower, upper = bounds_of_leaves(left, right, feature, value, signs, leaves)
    >>> lower.tolist(), upper.tolist()
    ([-inf, 2.0], [2.0, inf])
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

    A fit takes the middle of two means. They differ from the recorded means by the rounding of sums
    over their parent, and the impurity tells the size of the rounding. NaN proves nothing.

    Parameters
    ----------
    tree : object
        A tree with the arrays ``children_left``, ``children_right``, ``feature``, ``value``
        (n_nodes, 1, 1), ``impurity``, ``n_node_samples`` and ``weighted_n_node_samples``.
    signs : (n_features,) int
        Constraint of each feature: 1, -1 or 0. See `bounds_of_leaves`.
    leaf_nodes : (n_leaves,) int
        Node of each leaf.

    Returns
    -------
    two (n_leaves,) float64
        Lower and upper bounds. They are infinite if the value of a leaf is not at its bound.
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
        Number of leaves of each tree.
    y : (n,) float64
        Targets.
    blocks : iterable of pairs
        The trees, some at a time: the leaves of the rows, (n, k) int32, and how often they count
        the rows, (n, k).
    bounds : iterable of pairs
        The lowest and the highest target of the leaves of each tree, (n_leaves,) each.
    sample_weight : (n,) float64, optional
        Weight of each row, times its counts.
    **options : dict
        Options of `hdicore.LeafIndex.from_blocks`.

    Returns
    -------
    LeafIndex
        An index in which all rows that a leaf moves to one of its bounds are one more row. A row
        has different targets in different trees, and an index takes only one.

    Notes
    -----
    All targets of a leaf lie on its side of every constrained split. The distribution of a row is
    therefore nowhere to the left of the distribution of a row that is lower only in a constrained
    feature, in each tree and in the mean of the trees. Means, quantiles and equal-tailed ends are
    monotonic. O(rows of the index * n_trees).
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
