"""Validates that X and y are those of a fitted tree, by the tree's record of each leaf."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from hdiforest._model.training_rows import leaf_bounds

Floats = NDArray[np.floating[Any]]


CRITERIA = ("squared_error", "friedman_mse", "poisson", "absolute_error")

# Largest relative error of one operation in float64, and largest error near 0.
_UNIT, _LEAST = 2.0**-53, 2.0**-1074


@dataclass(frozen=True)
class TreeRows:
    """Rows, and their weights in one tree."""

    leaf: NDArray[np.int32]  # (n,)
    weights: Floats  # (n,) in-bag
    targets: Floats  # (n, n_outputs)

    def sums(self, values: Floats, n_leaves: int) -> Floats:
        """Sum of values (n,) over each leaf."""
        sums = np.bincount(self.leaf, weights=values, minlength=n_leaves)
        return sums.astype(np.float64, copy=False)


def find_mismatch(
    member: Any,
    leaf_nodes: NDArray[np.int32],
    rows: TreeRows,
    below_parents: Callable[[Floats], Floats],
) -> Literal["weights", "targets"] | None:
    """Return what of a tree's leaves differs from its record of the fit; None if nothing does.

    Compared are the weight of each leaf, its value (mean or median) and its impurity, for the rows
    in the tree's bag, up to bounds of the rounding of scikit-learn's sums. O(n + n_nodes); medians
    are O(n log n). Three changes are not seen: of rows that no tree drew; of the order of rows, if
    each leaf keeps its weighted targets, which changes no interval; and below the rounding (a
    spread of less than about 1e-13 of the targets).

    `leaf_nodes` (n_leaves,) are the nodes of a DecisionTreeRegressor's leaves. `below_parents` sums
    numbers of leaves, (k, n_leaves), over those below each leaf's parent.
    """
    with np.errstate(all="ignore"):  # sums that overflow prove nothing
        weight = rows.sums(rows.weights, len(leaf_nodes))
        recorded = member.tree_.weighted_n_node_samples[leaf_nodes]
        n = member.tree_.n_node_samples[leaf_nodes]
        if (np.abs(weight - recorded) > _error(2, n, recorded)).any():
            return "weights"
        tree = _Tree(member.tree_, leaf_nodes, weight, recorded, n, below_parents)
        kind = _Medians if member.criterion == "absolute_error" else _Means
        outputs = [
            kind(tree, member, TreeRows(rows.leaf, rows.weights, target))
            for target in rows.targets.T
        ]
        values = member.tree_.value[leaf_nodes, :, 0].T
        impurities = [leaves.impurities() for leaves in outputs]
        mean_impurity = Bounds(*(np.mean(ends, axis=0) for ends in zip(*impurities, strict=True)))
        agree = mean_impurity.hold(member.tree_.impurity[leaf_nodes]) and all(
            leaves.values().hold(value) for leaves, value in zip(outputs, values, strict=True)
        )
        return None if agree else "targets"


class Bounds(NamedTuple):
    """Least and largest number that scikit-learn may have recorded for each leaf."""

    low: Floats
    high: Floats

    def hold(self, recorded: Floats) -> bool:
        """Whether no finite record lies outside."""
        outside = (recorded < self.low) | (recorded > self.high)
        return not (outside & np.isfinite(recorded)).any()


def _error(
    factor: float, n: NDArray[np.int64] | Floats, size: Floats, weight: Floats | float = np.inf
) -> Floats:
    """Bound the error of `factor` sums of n products, or of such sums divided by `weight`.

    `size` is the result if all terms are taken as positive. A sum in any order errs by at most
    (n - 1) u of it and the products by u (Higham, Accuracy and Stability of Numerical Algorithms,
    2nd ed., section 4.2), and by the least number each if they underflow.
    """
    return factor * (n + 4.0) * (_UNIT * size + _LEAST * (1 + 1 / weight))


def _split_error(
    parent_n: Floats, parent_weight: Floats, weight: Floats, total: Floats, size: Floats
) -> Floats:
    """Bound the error of means of nodes that were computed when their parents were split.

    scikit-learn then has the sums of one child as differences of two sums over the parent and over
    part of it, which err by at most three times what a sum over the parent does; the weights by
    twice. Squares of means, their differences and quotients make it at most ten. `total` is the
    parent's sum, divided by the weight of the node, and `size` the node's mean, both of terms taken
    as positive. See `_error`.
    """
    share = parent_weight / weight
    error = _error(10, parent_n, total + share * size, weight)
    # If the difference of two weights is mostly rounding, nothing is proved.
    return np.where(_error(10, parent_n, share) < 0.01, error, np.inf)


@dataclass(frozen=True, eq=False)
class _Tree:
    """The record of one tree, and sums over its nodes; O(n_nodes)."""

    record: Any  # the `tree_` of scikit-learn
    leaf_nodes: NDArray[np.int32]  # (n_leaves,), as the others of the leaves
    weight: Floats
    recorded_weight: Floats
    n: NDArray[np.int64]
    below_parents: Callable[[Floats], Floats]

    @cached_property
    def parent(self) -> NDArray[np.intp]:
        """Parent of each node; the root is its own."""
        left, right = self.record.children_left, self.record.children_right
        inner = np.flatnonzero(left >= 0)
        parent = np.arange(self.record.node_count)
        parent[left[inner]] = parent[right[inner]] = inner
        return parent

    @cached_property
    def levels(self) -> list[NDArray[np.intp]]:
        """Inner nodes of each depth."""
        left, right = self.record.children_left, self.record.children_right
        levels, nodes = [], np.zeros(1, dtype=np.intp)
        while len(inner := nodes[left[nodes] >= 0]):
            levels.append(inner)
            nodes = np.concatenate([left[inner], right[inner]])
        return levels

    def split_error_of_leaves(self, sums: Floats, size: Floats) -> Floats:
        """Return `_split_error` of the leaves, of which `sums` are positive terms."""
        stacked = np.stack([self.n, self.recorded_weight, sums])
        n, weight, total = self.below_parents(stacked)
        return _split_error(n, weight, self.recorded_weight, total / self.weight, size)

    def sums(self, of_leaves: Floats) -> Floats:
        """Sum over the leaves below each node, (n_nodes,)."""
        sums = np.zeros(self.record.node_count)
        sums[self.leaf_nodes] = of_leaves
        for inner in reversed(self.levels):
            children = self.record.children_left[inner], self.record.children_right[inner]
            sums[inner] = sums[children[0]] + sums[children[1]]
        return sums


class _Leaves:
    """Leaves of a tree, and their rows."""

    def __init__(self, tree: _Tree, member: Any, rows: TreeRows) -> None:
        self.tree, self.member, self.rows = tree, member, rows

    def _mean(self, values: Floats) -> Floats:
        sums = self.rows.sums(self.rows.weights * values, len(self.tree.leaf_nodes))
        return sums / self.tree.weight


class _Means(_Leaves):
    """Leaves that predict means."""

    def __init__(self, tree: _Tree, member: Any, rows: TreeRows) -> None:
        super().__init__(tree, member, rows)
        self.mean = self._mean(rows.targets)
        self.variance = self._mean((rows.targets - self.mean[rows.leaf]) ** 2)

    def values(self) -> Bounds:
        """Bounds of the values of leaves."""
        tree = self.tree
        size = self._mean(np.abs(self.rows.targets))
        error = _error(4, tree.n, size, tree.weight)
        low, high = self.mean - error, self.mean + error
        if self.member.monotonic_cst is None:
            return Bounds(low, high)
        return Bounds(self._clipped(low, size, -1), self._clipped(high, size, 1))

    def _clipped(self, values: Floats, size: Floats, side: int) -> Floats:
        """Clip values of leaves as constraints do, at ends moved to a side by their rounding."""
        tree, record = self.tree, self.tree.record
        weight = tree.sums(tree.weight)
        mean = tree.sums(tree.weight * self.mean) / weight
        total = tree.sums(tree.weight * size)[tree.parent] / weight
        of_nodes = record.weighted_n_node_samples
        error = _split_error(
            record.n_node_samples[tree.parent], of_nodes[tree.parent], of_nodes, total, np.abs(mean)
        )
        moved = mean + side * error
        bounds = leaf_bounds(record, self.member.monotonic_cst, tree.leaf_nodes, moved)
        clipped: Floats = np.clip(values, *bounds)
        return clipped

    def impurities(self) -> Bounds:
        """Bounds of the variance or half Poisson deviance of each leaf.

        scikit-learn computes variances as mean squares less squared means.
        """
        tree = self.tree
        if self.member.criterion == "poisson":
            target = self.rows.targets
            impurity = self._mean(xlogy(target, target / self.mean[self.rows.leaf]))
            terms, size = self.mean, self.mean + impurity
        else:
            impurity = self.variance
            terms = size = self.variance + self.mean**2
        error = tree.split_error_of_leaves(tree.weight * terms, size)
        return Bounds(impurity - error, impurity + error)


class _Medians(_Leaves):
    """Leaves that predict medians."""

    def __init__(self, tree: _Tree, member: Any, rows: TreeRows) -> None:
        super().__init__(tree, member, rows)
        order = np.lexsort((rows.targets, rows.leaf))
        order = order[rows.weights[order] > 0]
        weights = rows.weights[order]
        self.weights_differ = bool((weights != weights[0]).any())
        upto = np.cumsum(weights)
        first = np.flatnonzero(np.diff(rows.leaf[order], prepend=-1))
        before = np.append(0.0, upto)[first]
        half = (before + np.append(before[1:], upto[-1])) / 2
        # Rounding of the sums of weights, here and in scikit-learn, may decide between neighbours.
        self.slack = 1e-9 * tree.weight + 4 * len(order) * _UNIT * upto[-1]
        low = np.searchsorted(upto, half - self.slack)
        high = np.searchsorted(upto, half + self.slack, side="right")
        last = np.append(first[1:], len(order)) - 1
        self.low = rows.targets[order[np.maximum(low, first)]]
        self.high = rows.targets[order[np.minimum(high, last)]]

    def values(self) -> Bounds:
        """Bounds of the values of leaves, which constraints move anywhere."""
        if self.member.monotonic_cst is None:
            return Bounds(self.low, self.high)
        unbounded = np.full(len(self.low), np.inf)
        return Bounds(-unbounded, unbounded)

    def impurities(self) -> Bounds:
        """Bounds of the mean absolute deviation of each leaf from its median.

        Before scikit-learn 1.8 some were recorded about another point if weights differ. They can
        only be larger.
        """
        tree = self.tree
        deviation = self._mean(np.abs(self.rows.targets - self.low[self.rows.leaf]))
        size = self._mean(np.abs(self.rows.targets))
        error = tree.split_error_of_leaves(2 * tree.weight * size, deviation)
        error += 4 * self.slack / tree.weight * (self.high - self.low)
        high = np.full(len(error), np.inf) if self.weights_differ else deviation + error
        return Bounds(deviation - error, high)
