"""Quantile regression forests with the interface of the library quantile-forest.

``from hdiforest.adapters.quantile_forest import RandomForestQuantileRegressor`` takes the place of
its import; quantile-forest itself need not be installed. Answers come from hdicore.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from inspect import Signature, signature
from itertools import pairwise
from math import ceil
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.ensemble._forest import ForestRegressor
from sklearn.metrics import r2_score
from sklearn.utils.validation import _num_samples, check_is_fitted

from hdicore import Forest, LeafIndex, Scorer
from hdicore.monotonic import Bounds, Counts
from hdiforest._estimators.input_rows import concatenated
from hdiforest._estimators.leaf_model import BLOCK_IDS
from hdiforest._estimators.row_source import Engine, Query, query_of
from hdiforest._model.sklearn_forest import forest_and_bags, leaf_bounds, leaf_nodes
from hdiforest._model.training_rows import TrainingRows, TreeBlock
from hdiforest._tables.frames import frame_of
from hdiforest._utils import Array, Interpolation, Kind, Weights
from hdiforest._utils.checks import check_choice, check_whole_number, thread_count
from hdiforest._utils.hints import warn_caller

__all__ = ["ExtraTreesQuantileRegressor", "RandomForestQuantileRegressor"]

_NUMBERS = (int, float, np.integer, np.floating)

Duplicates = Iterable[Sequence[int]] | None  # rows that are the same, group by group
RankKind = Literal["rank", "weak", "strict", "mean"]

# "samples": all samples of a query weigh alike. "leaves": all leaves of a query do, whatever their
# size. "rows": the targets are positions of training rows.
Weighing = Literal["samples", "leaves", "rows"]

Quantiles = float | Sequence[float] | Literal["mean"] | None


class QuantileForest(ForestRegressor):
    """A forest that predicts from the samples of training targets in its leaves."""

    sample_weight_: Array | None
    _samples: LeafSamples

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: Weights = None,
        sparse_pickle: bool = False,  # noqa: ARG002
    ) -> Self:
        """Fit the forest and index the targets in its leaves.

        Parameters
        ----------
        X : (n, n_features) array or table
            Training rows. They are kept as dense float32.
        y : (n,) or (n, n_outputs) array
            Targets of the rows.
        sample_weight : (n,) array, optional
            Weights of the rows in the forest. Rows without a positive weight are in no leaf. All
            other rows count alike in their leaves.
        sparse_pickle : bool, default=False
            Changes nothing, because pickles hold no padded arrays.

        Returns
        -------
        estimator
            The forest itself.
        """
        quantile_levels(self.default_quantiles, "default_quantiles")
        limit = leaf_limit(self.max_samples_leaf, _num_samples(X))
        if self.monotonic_cst is not None and limit != 1:
            needed = "leaves of one sample, so max_samples_leaf=1"
            raise ValueError(f"monotonic_cst needs {needed}, got {self.max_samples_leaf!r}")
        self.__dict__.pop("_samples", None)  # of an earlier fit
        super().fit(X, y, sample_weight)
        rows = self._validate_X_predict(X)
        rows = rows.toarray() if issparse(rows) else np.array(rows, order="C")
        targets = np.array(y, dtype=np.float64)
        if targets.ndim == 2 and targets.shape[1] == 1:
            targets = targets[:, 0]
        self.sample_weight_ = None
        if sample_weight is not None:
            self.sample_weight_ = np.full(len(rows), np.asarray(sample_weight, dtype=np.float64))
        new = self._compiled(rows, targets, limit)
        new.index_by("samples", self._n_threads)
        self._samples = new
        return self

    @property
    def _n_threads(self) -> int:
        return thread_count(self.n_jobs)

    def _index(self, weighing: Weighing = "samples") -> LeafIndex:
        """Return the index of a fitted forest that weighs samples in a certain way."""
        check_is_fitted(self, "_samples")
        return self._samples.index_by(weighing, self._n_threads)

    def predict(
        self,
        X: Any,
        quantiles: Quantiles = None,
        interpolation: Interpolation = "linear",
        weighted_quantile: bool = True,
        weighted_leaves: bool = False,
        aggregate_leaves_first: bool = True,
        oob_score: bool = False,
        indices: ArrayLike | None = None,
        duplicates: Duplicates = None,
    ) -> Array:
        """Predict quantiles or means.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        quantiles : float, list of k floats, "mean" or None, default=None
            Levels in [0, 1]. None means the parameter `default_quantiles`.
        interpolation : str, default="linear"
            How a quantile between two samples is read: any method of `numpy.quantile`.
        weighted_quantile : bool, default=True
            Whether quantiles are read from weighted samples. See `weighted_leaves`.
        weighted_leaves : bool, default=False
            Whether all leaves of a row weigh alike, if `weighted_quantile` is true, too. Otherwise
            all samples weigh alike.
        aggregate_leaves_first : bool, default=True
            Whether the samples of all leaves are pooled. False gives the mean over trees of the
            results of single leaves. Quantiles of leaves with one sample are always pooled.
        oob_score : bool, default=False
            Whether a row is predicted only by trees that did not draw it. NaN if all trees drew it.
        indices : (n,) int array, optional
            With `oob_score`: the training row that each row of X is, and -1 for none. By default X
            are all training rows in order.
        duplicates : list of lists of int, optional
            With `oob_score`: groups of equal training rows. A tree that drew one of a group
            predicts none of it.

        Returns
        -------
        (n,), (n, k), (n, n_outputs) or (n, n_outputs, k) float64
            Quantiles or means, in the unit of y. One level and the mean have no axis of k.
        """
        levels = quantile_levels(self.default_quantiles if quantiles is None else quantiles)
        method: Any = interpolation.decode() if isinstance(interpolation, bytes) else interpolation
        check_choice("interpolation", method, get_args(Interpolation))
        index = self._index("leaves" if weighted_leaves and weighted_quantile else "samples")
        alone = not aggregate_leaves_first and (levels is None or self._samples.limit != 1)
        ask = query_of("mean")
        if levels is not None:
            ask = query_of("quantiles", levels if len(levels) > 1 else levels[0], method)
        which = oob_score, indices, duplicates
        return concatenated(self._answers(ask, X, index, *which, alone=alone))

    def predict_interval(
        self,
        X: Any,
        coverage: float | ArrayLike = 0.9,
        *,
        kind: Kind = "hdi",
        weighted_leaves: bool = False,
        oob_score: bool = False,
        indices: ArrayLike | None = None,
        duplicates: Duplicates = None,
    ) -> Array:
        """Return prediction intervals, by default the shortest ones. New to quantile-forest.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        coverage : float or list of k floats, default=0.9
            The share of the distribution to hold, in (0, 1].
        kind : str, default="hdi"
            The kind of interval, except "calibrated". See
            `hdiforest.HDIForestRegressor.predict_interval`.
        weighted_leaves : bool, default=False
            Whether all leaves of a row weigh alike. See `predict`.
        oob_score : bool, default=False
            Whether a row is predicted only by trees that did not draw it. See `predict`.
        indices : (n,) int array, optional
            With `oob_score`: the training row that each row of X is. See `predict`.
        duplicates : list of lists of int, optional
            With `oob_score`: groups of equal training rows. See `predict`.

        Returns
        -------
        (n, [n_outputs,] 2) or (n, [n_outputs,] 2, k) float64
            Lower and upper ends, in the unit of y.
        """
        index = self._index("leaves" if weighted_leaves else "samples")
        ask = query_of("intervals", coverage, kind)
        ask(index, np.empty((0, index.n_trees), dtype=np.int32))  # refused before any work is done
        return concatenated(self._answers(ask, X, index, oob_score, indices, duplicates))

    def quantile_ranks(
        self,
        X: Any,
        y: ArrayLike,
        kind: RankKind = "rank",
        aggregate_leaves_first: bool = True,
        oob_score: bool = False,
        indices: ArrayLike | None = None,
        duplicates: Duplicates = None,
    ) -> Array:
        """Return the share of a row's distribution below a target.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        y : (n,) or (n, n_outputs) array
            A target for each row.
        kind : {"rank", "weak", "strict", "mean"}, default="rank"
            How samples equal to the target count. See `scipy.stats.percentileofscore`.
        aggregate_leaves_first : bool, default=True
            Whether the samples of all leaves are pooled. See `predict`.
        oob_score : bool, default=False
            Whether a row is predicted only by trees that did not draw it. See `predict`.
        indices : (n,) int array, optional
            With `oob_score`: the training row that each row of X is. See `predict`.
        duplicates : list of lists of int, optional
            With `oob_score`: groups of equal training rows. See `predict`.

        Returns
        -------
        (n,) or (n, n_outputs) float64
            Shares between 0 and 1.
        """
        index = self._index()
        check_choice("kind", kind, get_args(RankKind))
        points, n = np.asarray(y, dtype=np.float64), _num_samples(X)
        wanted = (n,) if self.n_outputs_ == 1 else (n, self.n_outputs_)
        if points.shape not in (wanted, (n, self.n_outputs_)):
            raise ValueError(f"y must have the shape {wanted}, got {points.shape}")
        which, alone = (oob_score, indices, duplicates), not aggregate_leaves_first
        ask, points = partial(ranks, kind=kind), points.reshape(wanted)
        return concatenated(self._answers(ask, X, index, *which, alone=alone, values=points))

    def proximity_counts(
        self,
        X: Any,
        max_proximities: int | None = None,
        return_sorted: bool = True,
        oob_score: bool = False,
        indices: ArrayLike | None = None,
        duplicates: Duplicates = None,
    ) -> list[list[tuple[int, int]]]:
        """Return the training rows that share leaves with a row. The first call indexes them.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        max_proximities : int, optional
            Largest number of training rows to return, with the highest counts. The default is all.
        return_sorted : bool, default=True
            Whether the training rows are sorted by count, the highest first. Otherwise they are
            sorted by their number.
        oob_score : bool, default=False
            Whether a row is predicted only by trees that did not draw it. See `predict`.
        indices : (n,) int array, optional
            With `oob_score`: the training row that each row of X is. See `predict`.
        duplicates : list of lists of int, optional
            With `oob_score`: groups of equal training rows. See `predict`.

        Returns
        -------
        list of n lists of (int, int)
            Number of a training row, and the count of its samples in the leaves of the row.
        """
        if max_proximities is not None:
            check_whole_number("max_proximities", max_proximities)
        which = oob_score, indices, duplicates
        counts = self._answers(query_of("proximities"), X, self._index("rows"), *which)
        return [row for csr in counts for row in pairs(csr, max_proximities, return_sorted)]

    def score(
        self, X: Any, y: ArrayLike, quantiles: Quantiles = 0.5, sample_weight: Weights = None
    ) -> float:
        """Return the coefficient of determination of a predicted quantile.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        y : (n,) or (n, n_outputs) array
            Targets of the rows.
        quantiles : float or "mean", default=0.5
            The level to predict, or the mean.
        sample_weight : (n,) array, optional
            Weights of the rows. None means equal weights.

        Returns
        -------
        float
            The coefficient, at most 1. Several outputs count by their variance.
        """
        levels = quantile_levels(quantiles)
        if levels is not None and len(levels) != 1:
            raise ValueError(f"quantiles must be one level for a score, got {quantiles!r}")
        predicted = self.predict(X, "mean" if levels is None else levels)
        options = {"sample_weight": sample_weight, "multioutput": "variance_weighted"}
        return float(r2_score(y, predicted, **options))

    def _compiled(self, X: NDArray[np.float32], y: Array, limit: int | None) -> LeafSamples:
        """Compile the forest that was fitted on these rows."""
        forest, bags = forest_and_bags(self, len(X), self._n_threads)
        bounds, rows = None, (X, y, self.sample_weight_, bags, False)
        if self.monotonic_cst is not None:
            bounds = list(map(leaf_bounds, self.estimators_, leaf_nodes(forest)))
        seeds = [tree.random_state for tree in self.estimators_]
        return LeafSamples(*rows, forest, limit, seeds, bounds)

    def _answers(
        self,
        ask: Query,
        X: Any,
        index: LeafIndex,
        oob_score: bool,
        indices: ArrayLike | None,
        duplicates: Duplicates,
        *,
        alone: bool = False,
        values: Array | None = None,
    ) -> Iterator[Any]:
        """Yield answers to some rows and their `values` at a time.

        With `alone` they are means of what each tree answers by itself.
        """
        forest, rows, mask = self._samples.forest, self._validate_X_predict(X), None
        if oob_score:
            mask = tree_mask(self._samples, rows.shape[0], indices, duplicates)
        scorer, n_threads = Scorer(forest, index), self._n_threads
        n_at_once = max(1, BLOCK_IDS // max(forest.n_trees, forest.n_features))
        for part, block in frame_of(rows).blocks(n_at_once):
            dense = block.native.toarray() if issparse(rows) else block.native
            args = () if values is None else (values[part],)
            if mask is None and not alone:
                yield ask(scorer, dense, *args, n_threads=n_threads)
                continue
            leaves = forest.leaves(dense, n_threads=n_threads)
            leaves = leaves if mask is None else np.where(mask[part], leaves, -1)
            trees = np.identity(forest.n_trees, dtype=bool) if alone else [True]
            each = (
                ask(index, np.where(tree, leaves, -1), *args, n_threads=n_threads) for tree in trees
            )
            yield mean_over_trees(each) if alone else next(each)

    def __copy__(self) -> Self:
        # By pickling, which is the default, a copy would get arrays of its own.
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        if "_samples" in state:  # no compiled object: the rows are indexed again by a first query
            samples = self._samples
            state["_samples"] = {"X": samples.X, "y": samples.y, "limit": samples.limit}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_samples" in state:
            self._samples = self._compiled(**state["_samples"])


def quantile_levels(quantiles: Any, name: str = "quantiles") -> list[float] | None:
    """Return levels in [0, 1], None for the mean, or raise ValueError."""
    several = isinstance(quantiles, list | tuple | np.ndarray)
    levels: list[Any] = list(np.atleast_1d(quantiles)) if several else [quantiles]
    if len(levels) == 1 and (levels[0] is None or str(levels[0]) == "mean"):
        return None
    if levels and all(isinstance(level, _NUMBERS) and 0 <= level <= 1 for level in levels):
        return [float(level) for level in levels]
    raise ValueError(f'{name} must be levels in [0, 1] or "mean", got {quantiles!r}')


def constructor(forest: type) -> Callable[..., None]:
    """Return a constructor with the parameters of a forest of scikit-learn, and two more."""

    def __init__(  # noqa: N807
        self: Any,
        n_estimators: int = 100,
        *,
        default_quantiles: Quantiles = 0.5,
        max_samples_leaf: float | None = 1,
        **options: Any,
    ) -> None:
        forest.__init__(self, n_estimators, **options)  # type: ignore[misc]
        self.default_quantiles = default_quantiles
        self.max_samples_leaf = max_samples_leaf

    # Where scikit-learn reads the parameters of an estimator.
    shared = signature(forest.__init__).parameters  # type: ignore[misc]
    parameters = {**signature(__init__).parameters, **shared}
    del parameters["options"]
    __init__.__signature__ = Signature([*parameters.values()])  # type: ignore[attr-defined]
    return __init__


class RandomForestQuantileRegressor(QuantileForest, RandomForestRegressor):
    """Random forest that predicts quantiles and shortest intervals.

    The interface is the one of ``quantile_forest.RandomForestQuantileRegressor``, with
    `predict_interval` added. "Coming from another library" in the documentation tells where results
    differ. The forest is scikit-learn's. Quantiles are read from the training targets in the leaves
    of a row (Meinshausen, "Quantile Regression Forests", JMLR 7, 2006).

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    default_quantiles : float, list of floats or "mean", default=0.5
        The quantiles of `predict` if no quantiles are given.
    max_samples_leaf : int, float or None, default=1
        Samples to keep of a leaf, at random: a number, a share of the training rows, or None for
        all. A sample is a draw of a row by a tree. With 1 an interval rests on few samples, one of
        each tree.
    criterion : str
        Measure of the quality of a split. See `sklearn.ensemble.RandomForestRegressor`, which
        explains all parameters below.
    max_depth : int or None
        Largest depth of a tree.
    min_samples_split : int or float
        Least number, or share, of samples in a node that is split.
    min_samples_leaf : int or float
        Least number, or share, of samples in a leaf.
    min_weight_fraction_leaf : float
        Least share of the total weight in a leaf.
    max_features : int, float, str or None
        Number, or share, of features to look at for a split.
    max_leaf_nodes : int or None
        Largest number of leaves of a tree.
    min_impurity_decrease : float
        Least decrease of impurity by a split.
    bootstrap : bool
        Whether trees draw their rows. Out-of-bag results need True.
    oob_score : bool or callable
        Whether to score the forest by the rows out of bag.
    n_jobs : int or None
        Number of threads. Results do not depend on it.
    random_state : int, RandomState or None
        Seed of the draws of rows and features.
    verbose : int
        Lines to print.
    warm_start : bool
        Whether a fit adds trees to the fit before.
    ccp_alpha : float
        Complexity parameter of pruning.
    max_samples : int, float or None
        Number, or share, of rows that each tree draws.
    monotonic_cst : (n_features,) int array or None
        Monotonicity constraints of the features. Needs ``max_samples_leaf=1``.

    Attributes
    ----------
    sample_weight_ : (n,) ndarray or None
        The weights of the fit. All other attributes are the ones of
        `sklearn.ensemble.RandomForestRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest.adapters.quantile_forest import RandomForestQuantileRegressor
    >>> X, y = make_regression(n_samples=500, n_features=4, noise=10, random_state=0)
    >>> forest = RandomForestQuantileRegressor(max_samples_leaf=None, random_state=0).fit(X, y)
    >>> forest.predict(X[:3], quantiles=[0.1, 0.5, 0.9]).shape
    (3, 3)
    >>> forest.predict_interval(X[:3], coverage=0.8).shape
    (3, 2)
    """

    __init__ = constructor(RandomForestRegressor)


class ExtraTreesQuantileRegressor(QuantileForest, ExtraTreesRegressor):
    """Extremely randomised trees that predict quantiles and shortest intervals.

    See `RandomForestQuantileRegressor`. The forest is `sklearn.ensemble.ExtraTreesRegressor`, so
    that `bootstrap` is False by default.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    default_quantiles : float, list of floats or "mean", default=0.5
        The quantiles of `predict` if no quantiles are given.
    max_samples_leaf : int, float or None, default=1
        Samples to keep of a leaf, at random: a number, a share of the training rows, or None for
        all.
    criterion : str
        Measure of the quality of a split. See `sklearn.ensemble.ExtraTreesRegressor`, which
        explains all parameters below.
    max_depth : int or None
        Largest depth of a tree.
    min_samples_split : int or float
        Least number, or share, of samples in a node that is split.
    min_samples_leaf : int or float
        Least number, or share, of samples in a leaf.
    min_weight_fraction_leaf : float
        Least share of the total weight in a leaf.
    max_features : int, float, str or None
        Number, or share, of features to look at for a split.
    max_leaf_nodes : int or None
        Largest number of leaves of a tree.
    min_impurity_decrease : float
        Least decrease of impurity by a split.
    bootstrap : bool
        Whether trees draw their rows. Out-of-bag results need True.
    oob_score : bool or callable
        Whether to score the forest by the rows out of bag.
    n_jobs : int or None
        Number of threads. Results do not depend on it.
    random_state : int, RandomState or None
        Seed of the draws of rows and features, and of thresholds.
    verbose : int
        Lines to print.
    warm_start : bool
        Whether a fit adds trees to the fit before.
    ccp_alpha : float
        Complexity parameter of pruning.
    max_samples : int, float or None
        Number, or share, of rows that each tree draws.
    monotonic_cst : (n_features,) int array or None
        Monotonicity constraints of the features. Needs ``max_samples_leaf=1``.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest.adapters.quantile_forest import ExtraTreesQuantileRegressor
    >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
    >>> forest = ExtraTreesQuantileRegressor(max_samples_leaf=None, random_state=0).fit(X, y)
    >>> forest.predict(X[:3], quantiles=[0.1, 0.5, 0.9]).shape
    (3, 3)
    """

    __init__ = constructor(ExtraTreesRegressor)


def leaf_limit(max_samples_leaf: Any, n: int) -> int | None:
    """Return the number of samples that a leaf keeps, None for all. n is the number of rows."""
    if max_samples_leaf is None:
        return None
    if isinstance(max_samples_leaf, int | np.integer) and max_samples_leaf >= 1:
        return int(max_samples_leaf)
    if isinstance(max_samples_leaf, _NUMBERS) and 0 < max_samples_leaf <= 1:
        return ceil(float(max_samples_leaf) * n)
    allowed = "an integer from 1, a share in (0, 1] or None"
    raise ValueError(f"max_samples_leaf must be {allowed}, got {max_samples_leaf!r}")


@dataclass(frozen=True, eq=False)
class LeafSamples(TrainingRows):
    """Rows of a fit, their forest, and the samples (draws of a row by a tree) in the leaves."""

    forest: Forest
    limit: int | None  # samples of a leaf; None: all
    seeds: list[int]  # of each tree, for the choice of its samples
    bounds: list[Bounds] | None  # of the targets in the leaves of each tree; None: none
    # Filled by `index_by` when the first query needs one.
    indexes: dict[Weighing, LeafIndex] = field(default_factory=dict)

    def index_by(self, weighing: Weighing, n_threads: int) -> LeafIndex:
        """Return the index with one way of weighing samples. The first call makes it."""
        if weighing == "leaves" and self.limit == 1:
            weighing = "samples"  # the same: no leaf has more than one
        if weighing not in self.indexes:
            options: dict[str, Any] = {"bounds": self.bounds, "pooled": weighing == "samples"}
            if weighing == "rows":
                options = {"targets": np.arange(len(self.y), dtype=np.float64)}
            made = self.index(self.forest, None, "inbag", n_threads=n_threads, **options)
            self.indexes[weighing] = made
        return self.indexes[weighing]

    def blocks(self, *args: Any, **options: Any) -> Iterator[TreeBlock]:
        """Yield some trees at a time, and how often their leaves keep each row, (n, k)."""
        for block in super().blocks(*args, **options):
            counts = self.drawn(block)
            if self.limit is not None:
                trees = zip(block.leaves.T, counts.T, self.seeds[block.first :], strict=False)
                counts = np.stack([_limited(*tree, self.limit) for tree in trees], axis=1)
            yield block._replace(counts=counts)


def _limited(leaves: NDArray[np.int32], counts: Counts, seed: int, limit: int) -> Counts:
    """Choose at random which samples of each leaf of a tree are kept, within the limit, (n,)."""
    samples = np.repeat(np.arange(len(counts)), counts)
    np.random.default_rng(seed).shuffle(samples)
    order = np.argsort(leaves[samples], kind="stable")
    leaf = leaves[samples[order]]
    place = np.arange(len(leaf)) - np.searchsorted(leaf, leaf)  # within its leaf
    kept = np.bincount(samples[order[place < limit]], minlength=len(counts))
    return kept.astype(counts.dtype)


def ranks(engine: Engine, rows: NDArray[Any], y: Array, kind: RankKind, n_threads: int) -> Array:
    """Quantile ranks as `scipy.stats.percentileofscore`, by rows, or by leaves of an index."""
    if kind in ("weak", "strict"):
        return engine.cdf(rows, y, inclusive=kind == "weak", n_threads=n_threads)
    weak, strict = (engine.cdf(rows, y, inclusive=i, n_threads=n_threads) for i in (True, False))
    mean = (weak + strict) / 2
    if kind == "mean":
        return mean
    # The mean rank of tied values, counted from 1, lies half an observation higher.
    half = 0.5 / np.maximum(engine.n_samples(rows, n_threads=n_threads), 1)
    return np.asarray(mean + ((weak > strict).T * half).T)


def mean_over_trees(answers: Iterable[Array]) -> Array:
    """Return the mean of the results of single trees. NaN is no result, and does not count."""
    total, count = np.zeros(()), np.zeros(())
    for answer in answers:
        count = count + ~np.isnan(answer)
        total = total + np.nan_to_num(answer)
    mean: Array = np.full(np.shape(total), np.nan)
    return np.divide(total, count, where=count > 0, out=mean)


def pairs(
    csr: tuple[NDArray[Any], ...], most: int | None, by_count: bool
) -> list[list[tuple[int, int]]]:
    """Return (column, count) of each row of a CSR matrix, at `most` those of highest counts."""
    indptr, columns, counts = csr
    entries = list(zip(columns.tolist(), counts.tolist(), strict=True))
    rows = (entries[begin:end] for begin, end in pairwise(indptr.tolist()))
    by_counts = (sorted(row, key=lambda pair: (-pair[1], pair[0]))[:most] for row in rows)
    return list(by_counts if by_count else map(sorted, by_counts))


def out_of_bag_mask(rows: TrainingRows, duplicates: Duplicates) -> NDArray[np.bool_]:
    """Say which trees saw neither a training row nor its `duplicates`, (n, n_trees)."""
    mask = rows.counted_in("oob")
    if mask is None:
        raise ValueError(
            "oob_score=True needs trees that leave rows out; every tree of this forest saw all, "
            "so fit it with bootstrap=True"
        )
    mask[~rows.has_weight] = True
    for group in duplicates or ():
        alike = _positions(group, "duplicates", 0, len(mask))
        mask[alike] = mask[alike].all(axis=0)
    return mask


def tree_mask(
    rows: TrainingRows, n: int, indices: ArrayLike | None, duplicates: Duplicates
) -> NDArray[np.bool_]:
    """Say which trees may be asked about n rows, (n, n_trees); see `QuantileForest.predict`."""
    mask = out_of_bag_mask(rows, duplicates)
    if indices is not None:
        position = _positions(indices, "indices", -1, len(mask))
        if position.shape != (n,):
            rows_of_x = f"each of the {n} rows of X, got shape {position.shape}"
            raise ValueError(f"indices must name a training row for {rows_of_x}")
        mask = mask[position] | (position == -1)[:, None]
    elif n != len(mask):
        unless = "if oob_score=True comes without indices"
        raise ValueError(f"X must have the {len(mask)} rows of the fit {unless}, got {n} rows")
    if not mask.any(axis=1).all():
        empty = "so their out-of-bag answers are empty; use more trees."
        warn_caller(f"Some rows were seen by every tree, {empty}")
    return mask


def _positions(rows: ArrayLike, name: str, lowest: int, n: int) -> NDArray[np.intp]:
    """Return row numbers, which may be whole numbers of any type, after checking them."""
    numbers = np.asarray(rows)
    if numbers.size and (numbers.dtype.kind not in "iuf" or (numbers != np.trunc(numbers)).any()):
        raise ValueError(f"{name} must hold whole numbers, got {rows!r}")
    outside = numbers[(numbers < lowest) | (numbers >= n)]
    if outside.size:
        raise ValueError(f"{name} must hold numbers from {lowest} to {n - 1}, got {outside[0]}")
    return numbers.astype(np.intp)
