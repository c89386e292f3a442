"""Read a fitted scikit-learn forest: its trees, its bags, and whether rows are its own."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy
from sklearn.base import is_classifier
from sklearn.ensemble import BaggingRegressor, ExtraTreesRegressor, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.validation import check_is_fitted

from hdicore import Forest, LeafIndex

Weighting = Literal["all", "inbag", "oob"]

_UNDERSTOOD = (
    "a fitted RandomForestRegressor, ExtraTreesRegressor, DecisionTreeRegressor, "
    "ExtraTreeRegressor or BaggingRegressor of such trees"
)
_CRITERIA = ("squared_error", "friedman_mse", "poisson", "absolute_error")


@dataclass(frozen=True)
class TrainingRows:
    """The rows a forest was fitted on, and how often each tree drew them."""

    X: NDArray[np.float32]  # (n, n_features)
    y: NDArray[np.float64]  # (n,) or (n, n_outputs)
    sample_weight: NDArray[np.float64] | None  # (n,)
    counts: NDArray[np.unsignedinteger] | None  # (n, n_trees); None: every tree used each row once
    # Whether sample_weight multiplies the counts inside the trees, or decided how often rows were
    # drawn (bootstrapped forests since scikit-learn 1.9).
    counts_are_weighted: bool

    def in_bag_weights(self, tree: int) -> NDArray[np.float64]:
        """Weight of each row inside a tree, (n,)."""
        drawn = np.ones(len(self.y)) if self.counts is None else self.counts[:, tree].astype(float)
        if self.sample_weight is None or not self.counts_are_weighted:
            return drawn
        return drawn * self.sample_weight

    def index(
        self,
        forest: Forest,
        leaves: NDArray[np.int32],
        weights: Weighting,
        *,
        targets: NDArray[np.float64] | None = None,
        keep_row_weights: bool = False,
        n_threads: int = 0,
    ) -> LeafIndex:
        """Index the rows by their leaves (n, n_trees); `targets` may stand in for y."""
        counts: NDArray[Any] | None = None
        sample_weight = self.sample_weight
        if weights == "inbag":
            counts = self.counts
            sample_weight = sample_weight if self.counts_are_weighted else None
        elif weights == "oob" and self.counts is not None:
            counts = self.counts == 0
        return LeafIndex(
            leaves,
            self.y if targets is None else targets,
            counts=counts,
            sample_weight=sample_weight,
            n_leaves=forest.n_leaves,
            keep_row_weights=keep_row_weights,
            n_threads=n_threads,
        )


def import_forest(
    estimator: Any,
    X: NDArray[np.float32],
    y: NDArray[np.float64],
    sample_weight: NDArray[np.float64] | None,
    n_threads: int = 0,
) -> tuple[Forest, TrainingRows, NDArray[np.int32]]:
    """Import a fitted forest and prove that it was fitted on the given rows.

    Returns the forest, the rows, and the leaf of each row in each tree. O(n_nodes + n * n_trees).

    Raises
    ------
    ValueError
        If the estimator is not understood or not fitted, or a leaf holds other rows than its own
        statistics say: other X, y, order of rows or sample_weight than those of its fit.
    """
    trees, features = _trees_of(estimator)
    n_features = estimator.n_features_in_
    if X.shape[1] != n_features:
        raise ValueError(f"X has {X.shape[1]} features, but the forest was fitted on {n_features}")
    n_outputs = 1 if y.ndim == 1 else y.shape[1]
    if n_outputs != trees[0].n_outputs:
        raise ValueError(
            f"y has {n_outputs} outputs, but the forest was fitted on {trees[0].n_outputs}"
        )
    forest = _as_forest(trees, features, n_features, n_threads)
    leaves = forest.leaves(X, n_threads=n_threads)
    counts = _bag_counts(estimator, len(trees), len(X))

    nodes = np.split(forest.leaf_nodes, np.cumsum(forest.n_leaves)[:-1])
    refusals = []
    for counts_are_weighted in _weighting_rules(estimator, counts, sample_weight):
        rows = TrainingRows(X, y, sample_weight, counts, counts_are_weighted)
        refusal = _refusal(estimator, trees, nodes, leaves, rows)
        if refusal is None:
            return forest, rows, leaves
        refusals.append(refusal)
    raise ValueError(max(refusals).message)


def _trees_of(estimator: Any) -> tuple[list[Any], list[NDArray[np.integer]] | None]:
    """Trees of an estimator and, if they see only some features, which."""
    name = type(estimator).__name__
    if is_classifier(estimator):
        raise ValueError(f"estimator must be {_UNDERSTOOD}, got the classifier {name}")
    kinds = (RandomForestRegressor, ExtraTreesRegressor, DecisionTreeRegressor, BaggingRegressor)
    if not isinstance(estimator, kinds):
        raise ValueError(
            f"estimator must be {_UNDERSTOOD}, got {name}; forests of other kinds can be used "
            "through hdicore.LeafIndex if they report the leaves of rows"
        )
    check_is_fitted(estimator)
    members = [estimator] if isinstance(estimator, DecisionTreeRegressor) else estimator.estimators_
    for member in members:
        if not isinstance(member, DecisionTreeRegressor):
            raise ValueError(
                f"estimator must be {_UNDERSTOOD}, got a {name} of {type(member).__name__}"
            )
        if member.criterion not in _CRITERIA:
            raise ValueError(
                f"estimator has the criterion {member.criterion!r}, which is not understood; known "
                f"are {', '.join(_CRITERIA)}"
            )
        if getattr(member, "categorical_features", None) is not None:
            raise ValueError(
                "estimator has categorical splits, which are not understood; encode those columns "
                "as numbers and fit it again without categorical_features"
            )
    features = getattr(estimator, "estimators_features_", None)
    return [member.tree_ for member in members], features


def _as_forest(
    trees: list[Any],
    features: list[NDArray[np.integer]] | None,
    n_features: int,
    n_threads: int,
) -> Forest:
    def joined(attribute: str) -> NDArray[Any]:
        return np.concatenate([getattr(tree, attribute) for tree in trees])

    split_on = [tree.feature for tree in trees]
    if features is not None:
        # Leaves carry a negative feature, which is never read; any valid one will do.
        split_on = [
            np.asarray(own)[np.maximum(split, 0)]
            for own, split in zip(features, split_on, strict=True)
        ]
    return Forest(
        children_left=joined("children_left"),
        children_right=joined("children_right"),
        feature=np.concatenate(split_on),
        threshold=joined("threshold"),
        missing_go_to_left=joined("missing_go_to_left"),
        tree_offsets=np.cumsum([0, *(tree.node_count for tree in trees)]),
        n_features=n_features,
        n_threads=n_threads,
    )


def _bag_counts(estimator: Any, n_trees: int, n: int) -> NDArray[np.unsignedinteger] | None:
    """How often each tree drew each row, in the smallest type that fits; None if always once."""
    if isinstance(estimator, DecisionTreeRegressor) or not (
        estimator.bootstrap or isinstance(estimator, BaggingRegressor)
    ):
        return None
    counts = np.zeros((n_trees, n), dtype=np.uint8)
    for t, rows in enumerate(_bags_of(estimator)):
        if len(rows) and rows.max() >= n:
            raise ValueError(
                f"X has {n} rows, but the forest was fitted on at least {rows.max() + 1}"
            )
        drawn = np.bincount(rows, minlength=n)
        needed = np.min_scalar_type(drawn.max())
        if needed.itemsize > counts.itemsize:
            counts = counts.astype(needed)
        counts[t] = drawn
    return None if (counts == 1).all() else counts.T


def _bags_of(estimator: Any) -> list[NDArray[np.integer]]:
    try:
        # A property that draws anew at every access.
        return estimator.estimators_samples_  # type: ignore[no-any-return]
    except AttributeError as error:
        if error.name != "_sample_weight":
            raise
        # Pickled before scikit-learn 1.9, which drew rows uniformly: say so on a copy.
        revived = copy.copy(estimator)
        revived._sample_weight = None
        return revived.estimators_samples_  # type: ignore[no-any-return]


class Refusal(NamedTuple):
    """Why rows are not those of a forest; the check that comes last says most."""

    check: int
    message: str


def _refusal(
    estimator: Any,
    trees: list[Any],
    nodes: list[NDArray[np.int32]],
    leaves: NDArray[np.int32],
    rows: TrainingRows,
) -> Refusal | None:
    """Compare the weight and the targets of every leaf with the trees' own record of them."""
    targets = rows.y.reshape(len(rows.y), -1).T
    for t, tree in enumerate(trees):
        weights = rows.in_bag_weights(t)
        found = np.bincount(leaves[:, t], weights=weights, minlength=len(nodes[t]))
        recorded = tree.weighted_n_node_samples[nodes[t]]
        if not np.allclose(found, recorded, rtol=1e-8, atol=1e-8 * recorded.max()):
            given = "without sample_weight" if rows.sample_weight is None else "with sample_weight"
            return Refusal(
                1,
                f"X and y (given {given}) are not the rows this forest was fitted on: leaves of "
                f"tree {t} hold other in-bag weights than the forest recorded. Pass X, its order "
                "of rows and sample_weight exactly as they were at the forest's last fit (forests "
                "fitted on missing values by scikit-learn before 1.8 do not agree with their own "
                "record; fit again)",
            )
        for output, target in enumerate(targets):
            leaf_targets = LeafTargets(nodes[t], leaves[:, t], weights, target)
            if not leaf_targets.agree_with(estimator, tree, output):
                return Refusal(
                    2,
                    f"y is not the target this forest was fitted on: leaves of tree {t} hold other "
                    "targets than the forest recorded. Pass y as it was, and in the same order of "
                    "rows, at the forest's last fit",
                )
    return None


def _weighting_rules(
    estimator: Any,
    counts: NDArray[np.unsignedinteger] | None,
    sample_weight: NDArray[np.float64] | None,
) -> list[bool]:
    """Whether sample_weight may have multiplied the counts, likeliest first.

    Since scikit-learn 1.9 the weights of a bootstrapped forest decide which rows are drawn and
    leave no trace in the leaves; the forest keeps them, and other weights are refused here.
    """
    if counts is None and not isinstance(estimator, BaggingRegressor):
        return [True]
    if counts is None or not hasattr(estimator, "_sample_weight"):
        return [True, False]
    used = estimator._sample_weight
    if used is None and sample_weight is not None:
        raise ValueError("sample_weight was not used at the forest's last fit; leave it out")
    if used is not None and (sample_weight is None or not np.array_equal(used, sample_weight)):
        given = "none was given" if sample_weight is None else "another one was given"
        raise ValueError(
            f"sample_weight decided which rows the forest drew at its last fit, but {given}; pass "
            "the same"
        )
    return [False]


@dataclass(frozen=True)
class LeafTargets:
    """One target of the training rows as one tree saw it."""

    nodes: NDArray[np.int32]  # (n_leaves,) node id of each leaf
    leaf: NDArray[np.int32]  # (n,)
    weights: NDArray[np.float64]  # (n,) in-bag weight
    target: NDArray[np.float64]  # (n,)

    def agree_with(self, estimator: Any, tree: Any, output: int) -> bool:
        """Whether the leaves have the means, medians or variances that the tree recorded."""
        members = getattr(estimator, "estimators_", [estimator])
        criterion = members[0].criterion
        # Sums of like-signed targets err by less than this, however many there are.
        tolerance = 1e-9 * np.abs(self.target).max()
        recorded = tree.value[self.nodes, output, 0]
        if members[0].monotonic_cst is not None:
            # Constraints move the values of leaves, but not their impurities.
            error = np.abs(self._impurity(criterion) - tree.impurity[self.nodes])
            return bool((error <= tolerance * max(1.0, np.abs(self.target).max())).all())
        if criterion == "absolute_error":
            low, high = self._medians()
            return bool(((low - tolerance <= recorded) & (recorded <= high + tolerance)).all())
        return bool((np.abs(self._mean(self.target) - recorded) <= tolerance).all())

    def _impurity(self, criterion: str) -> NDArray[np.float64]:
        """Impurity of each leaf, as scikit-learn defines it for the criterion."""
        if criterion == "absolute_error":
            return self._mean(np.abs(self.target - self._medians()[0][self.leaf]))
        mean = self._mean(self.target)[self.leaf]
        if criterion == "poisson":
            with np.errstate(invalid="ignore", divide="ignore"):  # no leaf of its own has mean 0
                return self._mean(xlogy(self.target, self.target / mean))
        return self._mean((self.target - mean) ** 2)

    def _sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        sums = np.bincount(self.leaf, weights=values, minlength=len(self.nodes))
        return sums.astype(np.float64, copy=False)

    def _mean(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._sums(self.weights * values) / self._sums(self.weights)

    def _medians(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper weighted median of each leaf."""
        order = np.lexsort((self.target, self.leaf))
        order = order[self.weights[order] > 0]
        upto = np.cumsum(self.weights[order])
        before = np.append(0.0, upto)[np.flatnonzero(np.diff(self.leaf[order], prepend=-1))]
        half = (before + np.append(before[1:], upto[-1])) / 2
        slack = 1e-9 * upto[-1]
        low = np.searchsorted(upto, half - slack)
        high = np.minimum(np.searchsorted(upto, half + slack, side="right"), len(order) - 1)
        return self.target[order[low]], self.target[order[high]]
