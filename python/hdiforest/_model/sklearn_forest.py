"""Reads a fitted scikit-learn forest and its bags, and checks that rows are those of its fit."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.ensemble import BaggingRegressor, ExtraTreesRegressor, RandomForestRegressor
from sklearn.ensemble._forest import BaseForest, ForestRegressor
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor
from sklearn.utils.validation import check_is_fitted

from hdicore import Forest, LeafIndex, find_mismatch
from hdicore.monotonic import Bounds, bounds_of_leaves, reached_bounds
from hdiforest._model.training_rows import Bags, Draws, TrainingRows, TreeBlock, Weighting
from hdiforest._utils.checks import alternatives

SampleWeight = NDArray[np.float64] | None  # (n,)
# Of a tree, as its `tree_` and the engine name them; `feature` may be that of another tree.
_TREE_ARRAYS = ("children_left", "children_right", "threshold", "missing_go_to_left")
CRITERIA = ("squared_error", "friedman_mse", "poisson", "absolute_error")


class OtherRowsError(ValueError):
    """Rows are not those that a forest was fitted on."""


class WeightingRule(NamedTuple):
    """What a fit did with counts and sample_weight."""

    counts_are_weighted: bool
    float32: bool = False  # whether their products were rounded to float32


class GrownForest(NamedTuple):
    """What a fitted estimator records of its trees and of its fit."""

    members: list[Any]  # fitted trees
    n_rows: int | None = None  # of the fit; None: a tree, which records only rows with a weight
    draws: Draws | None = None  # None: every tree used each row once
    features: list[NDArray[np.integer]] | None = None  # of each tree; None: all

    def bags(self, n: int) -> Bags | None:
        """Return what each tree drew of n rows; None if always each row once."""
        return None if self.draws is None else Bags.redrawn(n, len(self.members), self.draws)


def _read_tree(estimator: Any) -> GrownForest:
    return GrownForest([estimator])


def _read_trees(estimator: Any) -> GrownForest:
    # Copies, as a later refit of the estimator must not change what is drawn.
    drawn, members = copy.copy(estimator), list(estimator.estimators_)
    is_bagging = isinstance(estimator, BaggingRegressor)
    seeds = list(estimator._seeds) if is_bagging else [m.random_state for m in members]
    drawn.estimators_ = []  # so that it does not keep the trees
    # Forests pickled before scikit-learn 1.9, when rows were drawn uniformly, do not have it.
    vars(drawn).setdefault("_sample_weight", None)

    def draws(first: int, last: int) -> Iterator[NDArray[np.integer]]:
        # To make a generator takes longer than to seed one and to draw some thousand rows.
        one_tree, random = copy.copy(drawn), np.random.RandomState()
        one_tree._seeds, one_tree.estimators_ = [random], [SimpleNamespace(random_state=random)]
        for seed in seeds[first:last]:
            random.seed(seed)
            yield from one_tree.estimators_samples_

    features = estimator.estimators_features_ if is_bagging else None
    has_drawn = is_bagging or estimator.bootstrap
    return GrownForest(members, estimator._n_samples, draws if has_drawn else None, features)


# By type; a subclass is read like its nearest base. A new kind is one more function and line.
_READERS: dict[type, Callable[[Any], GrownForest]] = {
    RandomForestRegressor: _read_trees,
    ExtraTreesRegressor: _read_trees,
    DecisionTreeRegressor: _read_tree,
    ExtraTreeRegressor: _read_tree,
    BaggingRegressor: _read_trees,
}

_UNDERSTOOD = f"a fitted {alternatives(kind.__name__ for kind in _READERS)} of such trees"

_READERS[ForestRegressor] = _read_trees  # of other libraries, like quantile-forest


def import_forest(
    estimator: Any,
    X: NDArray[np.float32],
    y: NDArray[np.float64],
    sample_weight: NDArray[np.float64] | None,
    weights: Weighting,
    n_threads: int = 0,
    *,
    fitted_on: NDArray[np.float64] | None = None,
    blocks: list[TreeBlock] | None = None,
) -> tuple[Forest, TrainingRows, LeafIndex]:
    """Import a fitted forest, check that it was fitted on the given rows, and index them.

    O(n_nodes + n * n_trees). The leaves and draws of all trees are never in memory at once, unless
    a list of `blocks` is given to keep them. `fitted_on` are the targets of its fit if that was
    given a transform of y.

    Raises OtherRowsError if a leaf holds other rows than its own statistics say, and ValueError if
    the estimator is not understood, or the rows cannot be those of its fit or have the `weights`.
    """
    grown = _grown_forest(estimator)
    members = grown.members
    seen = (y if fitted_on is None else fitted_on).reshape(len(y), -1)
    n_outputs = members[0].tree_.n_outputs
    if seen.shape[1] != n_outputs:
        had, has = f"the forest was fitted on {n_outputs}", f"y has {seen.shape[1]} outputs"
        raise ValueError(f"{has}, but {had}")
    _check_number_of_rows(grown, len(X), sample_weight)
    bags = grown.bags(len(X))
    if weights == "oob" and bags is None:
        raise ValueError(
            "weights='oob' needs a forest whose trees leave rows out; every tree of this one was "
            "fitted on all rows"
        )
    if weights == "monotonic":
        _require_constraints(grown, transformed=not np.array_equal(seen.ravel(), y.ravel()))
    forest = _as_forest(grown, estimator.n_features_in_, n_threads)
    trees = list(zip(members, leaf_nodes(forest), strict=True))
    bounds = [leaf_bounds(*tree) for tree in trees] if weights == "monotonic" else None

    refusals = []
    for rule in _weighting_rules(estimator, grown, sample_weight):
        rows = TrainingRows(X, y, sample_weight, bags, rule.counts_are_weighted)
        if blocks is not None:
            blocks.clear()
        check = partial(_check_leaves, trees, rows, seen, rule.float32, blocks, n_threads)
        try:
            options: dict[str, Any] = {"bounds": bounds, "check": check, "n_threads": n_threads}
            return forest, rows, rows.index(forest, None, weights, **options)
        except _Refusal as refusal:
            refusals.append(refusal.args)
    what, tree = max(refusals, key=lambda refusal: list(_DIFFERENCES).index(refusal[0]))
    with_, kind = "without" if sample_weight is None else "with", type(estimator)
    note = "" if kind.__module__.startswith("sklearn.") else _NOTE_ON_SUBCLASS
    difference = f"{_DIFFERENCES[what]}{note}"
    raise OtherRowsError(difference.format(tree=tree, with_=with_, kind=kind.__name__))


def leaf_nodes(forest: Forest) -> list[NDArray[np.int32]]:
    """Return which nodes of each fitted tree of scikit-learn are leaves, from left to right."""
    return np.split(forest.leaf_nodes, np.cumsum(forest.n_leaves)[:-1])


def leaf_bounds(member: Any, nodes: NDArray[np.int32]) -> Bounds:
    """Return the bounds that a fitted tree of scikit-learn respects in its leaves."""
    tree, signs = member.tree_, np.asarray(member.monotonic_cst)
    arrays = tree.children_left, tree.children_right, tree.feature, tree.value[:, 0, 0]
    return bounds_of_leaves(*arrays, signs, nodes)


def why_no_means(estimator: Any) -> str | None:
    """Say why a fitted forest's predictions are not the means of its leaves; None if they are."""
    members = _grown_forest(estimator).members
    if any(_has_constraints(member) for member in members):
        return (
            "has monotonic constraints, which clip its own predictions; those of this model need "
            "not be monotonic, unless it is made with weights='monotonic'"
        )
    if any(member.criterion == "absolute_error" for member in members):
        return (
            "averages the medians of its leaves (criterion='absolute_error'); predict returns the "
            "mean of the training rows in them"
        )
    return None


def _has_constraints(member: Any) -> bool:
    return member.monotonic_cst is not None and bool(np.any(member.monotonic_cst))


def _require_constraints(grown: GrownForest, *, transformed: bool) -> None:
    """Refuse a forest whose leaves have no bounds in the unit of y, or not those of one order."""
    needed = "weights='monotonic' needs a forest with "
    if not any(_has_constraints(member) for member in grown.members):
        raise ValueError(f"{needed}monotonic_cst; this one was fitted without")
    in_order = range(len(grown.members[0].monotonic_cst))
    if not all(np.array_equal(features, in_order) for features in grown.features or ()):
        raise ValueError(f"{needed}trees that see all features in one order; bagged ones do not")
    if transformed:
        raise ValueError(f"{needed}leaves in the unit of y; this one was fitted on a transform")


def forest_and_bags(estimator: Any, n: int, n_threads: int = 0) -> tuple[Forest, Bags | None]:
    """Compile a fitted forest; also return what its trees drew of n rows, None if each row once."""
    grown = _grown_forest(estimator)
    return _as_forest(grown, estimator.n_features_in_, n_threads), grown.bags(n)


def survival_forest_and_bags(
    estimator: Any, n: int, n_threads: int = 0
) -> tuple[Forest, list[Any], Bags | None]:
    """Compile a fitted forest of survival trees, or of any trees of scikit-learn's shape.

    Also return its trees, and what they drew of n rows; None if each row once.
    """
    check_is_fitted(estimator)
    is_forest = isinstance(estimator, BaseForest)
    if not is_forest and not hasattr(estimator, "tree_"):
        raise ValueError(
            "forest must be one of survival trees, or a forest of scikit-learn, got "
            f"{type(estimator).__name__}; from_leaves(..., event=event) takes others"
        )
    grown = (_read_trees if is_forest else _read_tree)(estimator)
    if grown.n_rows is not None:
        _check_number_of_rows(grown, n, None)
    return _as_forest(grown, estimator.n_features_in_, n_threads), grown.members, grown.bags(n)


def check_kind(estimator: Any) -> Callable[[Any], GrownForest]:
    """Return the function that reads an estimator of its type, or raise ValueError for others."""
    name = type(estimator).__name__
    if is_classifier(estimator):
        raise ValueError(f"estimator must be {_UNDERSTOOD}, got the classifier {name}")
    readers = [_READERS[kind] for kind in type(estimator).__mro__ if kind in _READERS]
    if type(estimator).__module__.startswith("sksurv."):
        raise ValueError(f"estimator is a survival forest, {name}; use HDISurvivalForest")
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
    read = check_kind(estimator)
    check_is_fitted(estimator)
    grown = read(estimator)
    for member in grown.members:
        _check_member(member, type(estimator).__name__)
    return grown


def _check_member(member: Any, name: str) -> None:
    """Refuse a tree of an estimator of the given name if it is not understood."""
    if not isinstance(member, DecisionTreeRegressor):
        got = f"a {name} of {type(member).__name__}"
        raise ValueError(f"estimator must be {_UNDERSTOOD}, got {got}")
    if member.criterion not in CRITERIA:
        raise ValueError(
            f"estimator has the criterion {member.criterion!r}, which is not understood; known "
            f"are {', '.join(CRITERIA)}"
        )
    if _has_categories(member):
        raise ValueError(
            "estimator has categorical splits, which are not understood; encode those columns "
            "as numbers and fit it again without categorical_features"
        )


def _has_categories(member: Any) -> bool:
    """Whether a tree splits on categories, or may; coming versions of scikit-learn have a mask."""
    categorical = getattr(member, "is_categorical_", getattr(member, "categorical_features", None))
    mask = np.asarray(categorical)
    return categorical is not None and (mask.dtype != bool or bool(mask.any()))


def _check_number_of_rows(grown: GrownForest, n: int, sample_weight: SampleWeight) -> None:
    """Refuse other numbers of rows, as leaves keep no trace of rows that were not drawn."""
    rows, fitted_on = "rows", grown.n_rows
    if fitted_on is None:
        fitted_on = grown.members[0].tree_.n_node_samples[0]
        if sample_weight is not None:
            n, rows = int(np.count_nonzero(sample_weight)), "rows with a positive sample_weight"
    if n != fitted_on:
        raise ValueError(
            f"X has {n} {rows}, but the forest was fitted on {fitted_on}; pass the rows and "
            "sample_weight of its last fit, without test rows and complete"
        )


def _as_forest(grown: GrownForest, n_features: int, n_threads: int) -> Forest:
    trees: list[Any] = []
    for k, member in enumerate(grown.members):
        tree, feature = member.tree_, member.tree_.feature
        if grown.features is not None:
            # The feature of a leaf is negative and never read; any valid one can replace it.
            feature = np.asarray(grown.features[k])[np.maximum(feature, 0)]
        trees.append({name: getattr(tree, name) for name in _TREE_ARRAYS} | {"feature": feature})
    return Forest.from_trees(trees, n_features, n_threads=n_threads)


# What of the leaves may differ, less exact reasons first.
_DIFFERENCES = {
    "weights": "X and y (given {with_} sample_weight) are not the rows this forest was fitted on: "
    "leaves of tree {tree} hold other in-bag weights than the forest recorded. Pass X, its order "
    "of rows and sample_weight exactly as they were at the forest's last fit (forests fitted on "
    "missing values by scikit-learn before 1.8 do not agree with their own record; fit again)",
    "targets": "y is not the target this forest was fitted on: leaves of tree {tree} hold other "
    "targets than the forest recorded. Pass y as it was, and in the same order of rows, at the "
    "forest's last fit",
}

_NOTE_ON_SUBCLASS = (
    ". {kind} is not scikit-learn's own, and may fit its trees on other rows or targets than it is "
    "given: hdiforest.from_leaves takes it without this check if its apply reports the leaves of "
    "rows"
)


class _Refusal(Exception):  # noqa: N818
    """What differs, one of `_DIFFERENCES`, and in which tree."""


def _check_leaves(
    trees: list[tuple[Any, NDArray[np.int32]]],
    rows: TrainingRows,
    targets: NDArray[np.float64],
    in_float32: bool,
    kept: list[TreeBlock] | None,
    n_threads: int,
    block: TreeBlock,
) -> None:
    """Compare every leaf of some trees with their own record, and keep the block."""
    records = [_record(*tree) for tree in trees[block.first :][: block.leaves.shape[1]]]
    options: dict[str, Any] = {"in_float32": in_float32, "n_threads": n_threads}
    options["counts"] = None if block.counts is None else block.counts.T
    options["sample_weight"] = rows.draw_weight
    difference = find_mismatch(records, block.leaves.T, targets.T, **options)
    if difference is not None:
        tree, what = difference
        raise _Refusal(what, block.first + tree)
    if kept is not None:
        kept.append(block)


def _record(member: Any, nodes: NDArray[np.int32]) -> Any:
    """Return what a fitted tree says of its leaves, as the engine takes it."""
    tree, signs = member.tree_, np.asarray(member.monotonic_cst)
    return {
        "weight": tree.weighted_n_node_samples[nodes],
        "value": tree.value[nodes, :, 0],
        "bounds": reached_bounds(tree, signs, nodes) if _has_constraints(member) else None,
        "medians": member.criterion == "absolute_error",
    }


def _weighting_rules(
    estimator: Any, grown: GrownForest, sample_weight: SampleWeight
) -> list[WeightingRule]:
    """Return what the fit may have done with counts and sample_weight, likeliest first.

    Since scikit-learn 1.9 the weights of a bootstrapped forest decide which rows are drawn and
    leave no trace in the leaves; the forest keeps them, and other weights are refused here.
    """
    if grown.draws is None:
        return [WeightingRule(True)]
    if not hasattr(estimator, "_sample_weight"):
        rules, given = [WeightingRule(True), WeightingRule(False)], sample_weight
        # Before scikit-learn 1.9, weights given as float32 were multiplied as such.
        if given is not None and np.array_equal(given, given.astype(np.float32)):
            rules.insert(1, WeightingRule(True, float32=True))
        return rules
    used = estimator._sample_weight
    if used is None and sample_weight is not None:
        raise ValueError("sample_weight was not used at the forest's last fit; leave it out")
    if used is not None and (sample_weight is None or not np.array_equal(used, sample_weight)):
        which = "none" if sample_weight is None else "another one"
        raise ValueError(
            f"sample_weight decided which rows the forest drew at its last fit, but {which} was "
            "given; pass the same"
        )
    return [WeightingRule(False)]
