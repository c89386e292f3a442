"""Reads a fitted scikit-learn forest and its bags, and checks that rows are those of its fit."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.ensemble import BaggingRegressor, ExtraTreesRegressor, RandomForestRegressor
from sklearn.ensemble._forest import ForestRegressor
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor
from sklearn.utils.validation import check_is_fitted

from hdicore import Forest
from hdiforest.fitted import TrainingRows
from hdiforest.leaf_records import CRITERIA, TreeRows, disagreement
from hdiforest.text import alternatives

Counts = NDArray[np.unsignedinteger] | None  # (n, n_trees)
SampleWeight = NDArray[np.float64] | None  # (n,)


class OtherRowsError(ValueError):
    """Rows are not those that a forest was fitted on."""


class WeightingRule(NamedTuple):
    """What a fit did with counts and sample_weight."""

    counts_are_weighted: bool
    float32: bool = False  # whether their products were rounded to float32


class GrownForest(NamedTuple):
    """What a fitted estimator records of its trees and of its fit."""

    members: list[Any]  # fitted trees
    n_rows: int | None  # of the fit; None: a tree, which records only rows with a weight
    # Returns the rows each tree drew; None: every tree used each row once.
    read_bags: Callable[[], list[NDArray[np.integer]]] | None
    # From counts and sample_weight to what the fit may have done with them, likeliest first.
    weighting_rules: Callable[[Counts, SampleWeight], list[WeightingRule]]
    features: list[NDArray[np.integer]] | None = None  # of each tree; None: all


def _read_tree(estimator: Any) -> GrownForest:
    return GrownForest(
        members=[estimator],
        n_rows=None,
        read_bags=None,
        weighting_rules=lambda _counts, _weight: [WeightingRule(True)],
    )


def _read_forest(estimator: Any) -> GrownForest:
    read_bags = partial(_bags_of, estimator) if estimator.bootstrap else None

    def weighting_rules(counts: Counts, sample_weight: SampleWeight) -> list[WeightingRule]:
        if counts is None:
            return [WeightingRule(True)]
        return _rules_of_draws(estimator, counts, sample_weight)

    return GrownForest(
        members=list(estimator.estimators_),
        n_rows=estimator._n_samples,
        read_bags=read_bags,
        weighting_rules=weighting_rules,
    )


def _read_bagging(estimator: Any) -> GrownForest:
    return GrownForest(
        members=list(estimator.estimators_),
        n_rows=estimator._n_samples,
        read_bags=partial(_bags_of, estimator),
        weighting_rules=partial(_rules_of_draws, estimator),
        features=estimator.estimators_features_,
    )


# By type; a subclass is read like its nearest base. A new kind is one more function and line.
_READERS: dict[type, Callable[[Any], GrownForest]] = {
    RandomForestRegressor: _read_forest,
    ExtraTreesRegressor: _read_forest,
    DecisionTreeRegressor: _read_tree,
    ExtraTreeRegressor: _read_tree,
    BaggingRegressor: _read_bagging,
}
_UNDERSTOOD = f"a fitted {alternatives(kind.__name__ for kind in _READERS)} of such trees"
_READERS[ForestRegressor] = _read_forest  # of other libraries, like quantile-forest


def import_forest(
    estimator: Any,
    X: NDArray[np.float32],
    y: NDArray[np.float64],
    sample_weight: NDArray[np.float64] | None,
    n_threads: int = 0,
    *,
    fitted_on: NDArray[np.float64] | None = None,
) -> tuple[Forest, TrainingRows, NDArray[np.int32]]:
    """Import a fitted forest and check that it was fitted on the given rows.

    Returns the forest, the rows, and the leaf of each row in each tree. O(n_nodes + n * n_trees).
    `fitted_on` are the targets of its fit if that was given a transform of y.

    Raises
    ------
    ValueError
        If the estimator is not understood or not fitted, the number of rows is not that of its
        fit, or a leaf holds other rows than its own statistics say: other X, y, order of rows or
        sample_weight than those of the fit. See `hdiforest.leaf_records.disagreement` for what
        statistics cannot tell.
    """
    grown = _grown_forest(estimator)
    members = grown.members
    n_features = estimator.n_features_in_
    if X.shape[1] != n_features:
        raise ValueError(f"X has {X.shape[1]} features, but the forest was fitted on {n_features}")
    seen = (y if fitted_on is None else fitted_on).reshape(len(y), -1)
    n_outputs = seen.shape[1]
    if n_outputs != members[0].tree_.n_outputs:
        raise ValueError(
            f"y has {n_outputs} outputs, but the forest was fitted on {members[0].tree_.n_outputs}"
        )
    _check_number_of_rows(grown, len(X), sample_weight)
    forest = _as_forest(grown, n_features, n_threads)
    leaves = forest.leaves(X, n_threads=n_threads)
    counts = _bag_counts(grown, len(X))

    nodes = np.split(forest.leaf_nodes, np.cumsum(forest.n_leaves)[:-1])
    refusals = []
    for rule in grown.weighting_rules(counts, sample_weight):
        rows = TrainingRows(X, y, sample_weight, counts, rule.counts_are_weighted)
        refusal = _refusal(members, nodes, leaves, rows, seen, rule)
        if refusal is None:
            return forest, rows, leaves
        refusals.append(refusal)
    raise OtherRowsError(max(refusals).message + _note_on_subclass(estimator))


def check_kind(estimator: Any) -> Callable[[Any], GrownForest]:
    """Return the function that reads an estimator of its type, which need not be fitted.

    Raises
    ------
    ValueError
        If it is of no type that is understood.
    """
    name = type(estimator).__name__
    if is_classifier(estimator):
        raise ValueError(f"estimator must be {_UNDERSTOOD}, got the classifier {name}")
    readers = [_READERS[kind] for kind in type(estimator).__mro__ if kind in _READERS]
    if not readers:
        raise ValueError(
            f"estimator must be {_UNDERSTOOD}, got {name}; forests of other kinds can be used "
            "through hdiforest.from_leaves if they report the leaves of rows"
        )
    if isinstance(estimator, BaggingRegressor) and isinstance(estimator.estimator, Pipeline):
        raise ValueError(
            "estimator is a BaggingRegressor of pipelines, each with steps of its own, which is "
            "not understood; put the steps before it: make_pipeline(..., BaggingRegressor(tree))"
        )
    return readers[0]


def _grown_forest(estimator: Any) -> GrownForest:
    """Read a fitted estimator by the function that the table has for its type."""
    read, name = check_kind(estimator), type(estimator).__name__
    check_is_fitted(estimator)
    grown = read(estimator)
    for member in grown.members:
        _check_member(member, name)
    return grown


def _note_on_subclass(estimator: Any) -> str:
    kind = type(estimator)
    if kind.__module__.startswith("sklearn."):
        return ""
    return (
        f". {kind.__name__} is not scikit-learn's own, and may fit its trees on other rows or "
        "targets than it is given: hdiforest.from_leaves takes it without this check if its apply "
        "reports the leaves of rows"
    )


def _check_member(member: Any, name: str) -> None:
    """Refuse a tree of an estimator of the given name if it is not understood."""
    if not isinstance(member, DecisionTreeRegressor):
        raise ValueError(
            f"estimator must be {_UNDERSTOOD}, got a {name} of {type(member).__name__}"
        )
    if member.criterion not in CRITERIA:
        raise ValueError(
            f"estimator has the criterion {member.criterion!r}, which is not understood; known "
            f"are {', '.join(CRITERIA)}"
        )
    if getattr(member, "categorical_features", None) is not None:
        raise ValueError(
            "estimator has categorical splits, which are not understood; encode those columns "
            "as numbers and fit it again without categorical_features"
        )


def _check_number_of_rows(grown: GrownForest, n: int, sample_weight: SampleWeight) -> None:
    """Refuse more or fewer rows than the estimator was fitted on.

    The leaves cannot tell: rows that were not drawn may be added or left out without a trace.
    """
    if grown.n_rows is not None:
        if n != grown.n_rows:
            raise ValueError(
                f"X has {n} rows, but the forest was fitted on {grown.n_rows}; pass the "
                "rows of its last fit, without test rows and complete"
            )
        return
    n_weighted = n if sample_weight is None else np.count_nonzero(sample_weight)
    rows = "rows" if sample_weight is None else "rows with a positive sample_weight"
    recorded = grown.members[0].tree_.n_node_samples[0]
    if n_weighted != recorded:
        raise ValueError(
            f"X has {n_weighted} {rows}, but the tree was fitted on {recorded}; pass the rows and "
            "sample_weight of its last fit"
        )


def _as_forest(grown: GrownForest, n_features: int, n_threads: int) -> Forest:
    trees = [member.tree_ for member in grown.members]

    def joined(attribute: str) -> NDArray[Any]:
        return np.concatenate([getattr(tree, attribute) for tree in trees])

    split_on = [tree.feature for tree in trees]
    if grown.features is not None:
        # The feature of a leaf is negative and never read; any valid one can replace it.
        split_on = [
            np.asarray(own)[np.maximum(split, 0)]
            for own, split in zip(grown.features, split_on, strict=True)
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


def _bag_counts(grown: GrownForest, n: int) -> Counts:
    """How often each tree drew each row, in the smallest type that fits; None if always once."""
    if grown.read_bags is None:
        return None
    counts = np.zeros((len(grown.members), n), dtype=np.uint8)
    for t, rows in enumerate(grown.read_bags()):
        drawn = np.bincount(rows, minlength=n)
        needed = np.min_scalar_type(drawn.max())
        if needed.itemsize > counts.itemsize:
            counts = counts.astype(needed)
        counts[t] = drawn
    return None if (counts == 1).all() else counts.T


def _bags_of(estimator: Any) -> list[NDArray[np.integer]]:
    try:
        # A property that draws the rows again at each access.
        return estimator.estimators_samples_  # type: ignore[no-any-return]
    except AttributeError as error:
        if error.name != "_sample_weight":
            raise
        # The forest was pickled before scikit-learn 1.9, when rows were drawn uniformly.
        revived = copy.copy(estimator)
        revived._sample_weight = None
        return revived.estimators_samples_  # type: ignore[no-any-return]


class Refusal(NamedTuple):
    """Why rows are not those of a forest; the reason of the last check is the most exact."""

    check: int
    message: str


def _refusal(
    members: list[Any],
    nodes: list[NDArray[np.int32]],
    leaves: NDArray[np.int32],
    rows: TrainingRows,
    targets: NDArray[np.float64],
    rule: WeightingRule,
) -> Refusal | None:
    """Compare every leaf with the trees' own record of it."""
    for t, member in enumerate(members):
        weights = rows.in_bag_weights(t)
        if rule.float32:
            weights = weights.astype(np.float32).astype(np.float64)
        difference = disagreement(member, nodes[t], TreeRows(leaves[:, t], weights, targets))
        if difference == "weights":
            given = "without sample_weight" if rows.sample_weight is None else "with sample_weight"
            return Refusal(
                1,
                f"X and y (given {given}) are not the rows this forest was fitted on: leaves of "
                f"tree {t} hold other in-bag weights than the forest recorded. Pass X, its order "
                "of rows and sample_weight exactly as they were at the forest's last fit (forests "
                "fitted on missing values by scikit-learn before 1.8 do not agree with their own "
                "record; fit again)",
            )
        if difference == "targets":
            return Refusal(
                2,
                f"y is not the target this forest was fitted on: leaves of tree {t} hold other "
                "targets than the forest recorded. Pass y as it was, and in the same order of "
                "rows, at the forest's last fit",
            )
    return None


def _rules_of_draws(
    estimator: Any, counts: Counts, sample_weight: SampleWeight
) -> list[WeightingRule]:
    """Return whether sample_weight may have multiplied the counts, likeliest first.

    Since scikit-learn 1.9 the weights of a bootstrapped forest decide which rows are drawn and
    leave no trace in the leaves; the forest keeps them, and other weights are refused here.
    """
    if counts is None or not hasattr(estimator, "_sample_weight"):
        rules = [WeightingRule(True), WeightingRule(False)]
        # Before scikit-learn 1.9, weights given as float32 were multiplied as such.
        if sample_weight is not None and np.array_equal(
            sample_weight, sample_weight.astype(np.float32)
        ):
            rules.insert(1, WeightingRule(True, float32=True))
        return rules
    used = estimator._sample_weight
    if used is None and sample_weight is not None:
        raise ValueError("sample_weight was not used at the forest's last fit; leave it out")
    if used is not None and (sample_weight is None or not np.array_equal(used, sample_weight)):
        given = "none was given" if sample_weight is None else "another one was given"
        raise ValueError(
            f"sample_weight decided which rows the forest drew at its last fit, but {given}; pass "
            "the same"
        )
    return [WeightingRule(False)]
