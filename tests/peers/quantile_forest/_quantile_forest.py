"""The two estimators of quantile-forest: scikit-learn's forests, read by hdicore.LeafIndex."""

import warnings
from functools import partial
from itertools import pairwise
from math import ceil
from numbers import Integral, Real

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_array, check_is_fitted

from hdicore import LeafIndex
from quantile_forest._quantile_forest_fast import rank
from quantile_forest._utils import generate_unsampled_indices


class BaseForestQuantileRegressor:
    """What the two have in common; comes before a forest among the bases."""

    def __init__(
        self, n_estimators=100, *, default_quantiles=0.5, max_samples_leaf=1, **of_the_forest
    ):
        super().__init__(n_estimators, **of_the_forest)
        self.default_quantiles = default_quantiles
        self.max_samples_leaf = max_samples_leaf

    @classmethod
    def _get_param_names(cls):
        own = ["default_quantiles", "max_samples_leaf"]
        return sorted(own + RandomForestRegressor._get_param_names())

    def fit(self, X, y, sample_weight=None, sparse_pickle=False):
        """Fit the forest and index its training rows; `sparse_pickle` changes nothing."""
        # hdicore takes missing values; quantile-forest refuses them.
        n = check_array(X, accept_sparse=True, dtype=np.float32).shape[0]
        limit = self._leaf_limit(n)
        if self.monotonic_cst is not None and limit != 1:
            raise ValueError("monotonic_cst needs max_samples_leaf=1")
        super().fit(X, y, sample_weight)
        self.sample_weight_ = sample_weight
        bags = [np.bincount(rows, minlength=n) for rows in self.estimators_samples_]
        self.counts_ = np.stack(bags, axis=1)
        if sample_weight is not None:
            self.counts_ *= (np.asarray(sample_weight) > 0)[:, None]

        index = partial(
            LeafIndex,
            self.apply(X),
            # GAP: max_samples_leaf limits rows, each kept with all its draws. quantile-forest
            # limits draws; a row that counts once at most comes nearest to it.
            counts=self.counts_ if limit is None else np.minimum(self.counts_, 1),
            n_leaves=[tree.tree_.node_count for tree in self.estimators_],
            max_samples_leaf=limit,
            seed=self.estimators_[0].random_state,
        )
        targets = _targets(y)
        # GAP: an index answers about targets or about rows, with pooled leaves or not: three.
        self.rows_ = index(np.arange(n))
        self.shared_ = index(targets)
        constrained = self.monotonic_cst is not None
        self.pooled_ = self._clipped(targets) if constrained else index(targets, pooled=True)
        return self

    def predict(
        self,
        X,
        quantiles=None,
        interpolation="linear",
        weighted_quantile=True,
        weighted_leaves=False,
        aggregate_leaves_first=True,
        oob_score=False,
        indices=None,
        duplicates=None,
    ):
        """Quantiles or, for "mean", means: (n[, n_outputs][, n_quantiles])."""
        leaves = self._leaves(X, oob_score, indices, duplicates)
        quantiles = self.default_quantiles if quantiles is None else quantiles
        levels = quantiles if isinstance(quantiles, list) else [quantiles]
        single = self.max_samples_leaf == 1
        by_leaf = weighted_leaves and weighted_quantile and not single
        index = self.shared_ if by_leaf else self.pooled_
        if levels in ([None], ["mean"]):
            return self._answers(index.mean, leaves, aggregate_leaves_first)
        if isinstance(interpolation, bytes):
            interpolation = interpolation.decode()
        found = self._answers(
            lambda leaves: index.quantiles(leaves, levels, interpolation),
            leaves,
            aggregate_leaves_first or single,
        )
        return found[..., 0] if len(levels) == 1 else found

    def quantile_ranks(
        self,
        X,
        y,
        kind="rank",
        aggregate_leaves_first=True,
        oob_score=False,
        indices=None,
        duplicates=None,
    ):
        """Quantile rank of each target in its row's distribution, shaped as y."""
        leaves = self._leaves(X, oob_score, indices, duplicates)
        y = _targets(y)
        # Else an index of one output takes several columns for several points of each row.
        if y.size != len(y) * self.n_outputs_:
            raise ValueError(f"y must have {self.n_outputs_} outputs, got shape {y.shape}")
        return self._answers(
            lambda leaves: rank(self.pooled_, leaves, y, kind), leaves, aggregate_leaves_first
        )

    def proximity_counts(
        self,
        X,
        max_proximities=None,
        return_sorted=True,
        oob_score=False,
        indices=None,
        duplicates=None,
    ):
        """For each row pairs of a training row and how often it counts in the row's leaves."""
        if max_proximities is not None and not (
            isinstance(max_proximities, Integral) and max_proximities > 0
        ):
            raise ValueError(f"max_proximities must be a positive integer, got {max_proximities}")
        indptr, rows, counts = self.rows_.proximities(
            self._leaves(X, oob_score, indices, duplicates)
        )
        pairs = list(zip(rows.tolist(), counts.tolist(), strict=True))
        found = [pairs[begin:end] for begin, end in pairwise(indptr)]
        largest = [sorted(row, key=lambda pair: -pair[1])[:max_proximities] for row in found]
        return largest if return_sorted else [sorted(row) for row in largest]

    def score(self, X, y, quantiles=0.5, sample_weight=None):
        """Coefficient of determination of predicted quantiles."""
        predicted = self.predict(X, quantiles)
        return r2_score(y, predicted, sample_weight=sample_weight, multioutput="variance_weighted")

    def _leaf_limit(self, n):
        limit = self.max_samples_leaf
        if limit is None or (isinstance(limit, Integral) and limit >= 1):
            return limit
        if isinstance(limit, Real) and 0 < limit <= 1:
            return ceil(limit * n)
        raise ValueError(
            f"max_samples_leaf must be a number from 1, a share in (0, 1] or None, got {limit!r}"
        )

    def _leaves(self, X, oob_score, indices, duplicates):
        """Leaf of each row in each tree; -1, no leaf, in trees that are not to be asked."""
        check_is_fitted(self)
        if not oob_score:
            return self.apply(X)
        if not self.bootstrap:
            raise ValueError("out-of-bag predictions need bootstrap=True")
        leaves, asked = self._oob_samples(X, indices, duplicates)
        if not asked.any(axis=1).all():
            warnings.warn("Some rows are in the bags of all trees; use more.", stacklevel=3)
        return leaves

    def _oob_samples(self, X, indices=None, duplicates=None):
        """Leaves as above and, for each row and tree, whether the row is out of the tree's bag."""
        asked = np.zeros_like(self.counts_, dtype=bool)
        for tree, estimator in enumerate(self.estimators_):
            asked[self._get_unsampled_indices(estimator, duplicates), tree] = True
        leaves = self.apply(X)
        if indices is not None:
            indices = np.asarray(indices, dtype=np.intp)
            asked = asked[indices] | (indices == -1)[:, None]
        if asked.shape != leaves.shape:
            raise ValueError(f"X has {len(leaves)} rows, but {len(asked)} are named or were fitted")
        return np.where(asked, leaves, -1), asked

    def _get_unsampled_indices(self, estimator, duplicates=None):
        if not self.bootstrap:
            warnings.warn("without bootstrap every row is in every bag", stacklevel=2)
        drawn = np.flatnonzero(self.counts_[:, self.estimators_.index(estimator)])
        return generate_unsampled_indices(drawn, len(self.counts_), duplicates or [])

    def _answers(self, query, leaves, aggregate):
        """Answers from all trees at once, or the mean of each tree's own."""
        if aggregate:
            return query(leaves)
        # GAP: the mean over trees of what each tree says alone.
        total, n_answers = 0.0, 0
        for tree in range(leaves.shape[1]):
            alone = np.full_like(leaves, -1)
            alone[:, tree] = leaves[:, tree]
            answer = query(alone)
            total += np.nan_to_num(answer)
            n_answers += ~np.isnan(answer)
        return np.divide(total, n_answers, where=n_answers > 0, out=np.full(total.shape, np.nan))

    def _kept_samples(self):
        """Node and row of each sample that a leaf keeps, and the leaves that ask for each node.

        Nodes are numbered over all trees; `leaves` (n_nodes, n_trees) names one each.
        """
        sizes = self.rows_.n_leaves
        tree = np.repeat(np.arange(len(sizes)), sizes)
        leaves = np.full((len(tree), len(sizes)), -1)
        leaves[np.arange(len(tree)), tree] = np.concatenate([np.arange(size) for size in sizes])
        indptr, rows, counts = self.rows_.proximities(leaves)
        node = np.repeat(np.arange(len(tree)), np.diff(indptr))
        return np.repeat(node, counts), np.repeat(rows, counts), leaves

    def _get_y_train_leaves(self, X, y):
        """For each tree, the rows that each node keeps: counted from 1, 0 for no more."""
        check_is_fitted(self)
        node, rows, leaves = self._kept_samples()
        place = np.arange(len(node)) - np.searchsorted(node, node)
        table = np.zeros((len(leaves), 1, place.max() + 1), dtype=np.intp)
        table[node, 0, place] = rows + 1
        return [table[own] for own in leaves.T >= 0]

    def _clipped(self, y):
        """Index of the targets, moved within the bounds that monotonic_cst sets their leaves."""
        # GAP: a target of its own for a row in each tree. Each sample of a leaf becomes a row.
        node, rows, leaves = self._kept_samples()
        lower, upper = np.hstack(
            [_bounds(tree.tree_, self.monotonic_cst) for tree in self.estimators_]
        )
        values = np.clip(y[rows], lower[node], upper[node])
        own = leaves[node]
        # GAP: a query takes -1 for no leaf, the build does not.
        return LeafIndex(
            np.maximum(own, 0), values, counts=own >= 0, n_leaves=self.rows_.n_leaves, pooled=True
        )


def _targets(y):
    """One output has one dimension."""
    y = np.asarray(y, dtype=np.float64)
    return y.ravel() if y.ndim == 2 and y.shape[1] == 1 else y


def _bounds(tree, monotonic_cst):
    """Lowest and highest target that keep a tree monotonic, for each node, (2, n_nodes)."""
    lower, upper = np.full(tree.node_count, -np.inf), np.full(tree.node_count, np.inf)
    for node in np.flatnonzero(tree.children_left >= 0):  # parents come before their children
        children = tree.children_left[node], tree.children_right[node]
        lower[[*children]], upper[[*children]] = lower[node], upper[node]
        sign = monotonic_cst[tree.feature[node]]
        if sign != 0:
            low, high = children if sign > 0 else children[::-1]
            upper[low] = lower[high] = tree.value[[*children], 0, 0].mean()
    return np.stack([lower, upper])


class RandomForestQuantileRegressor(BaseForestQuantileRegressor, RandomForestRegressor):
    """Random forest that predicts quantiles."""


class ExtraTreesQuantileRegressor(BaseForestQuantileRegressor, ExtraTreesRegressor):
    """Extremely randomised trees that predict quantiles."""
