"""The two estimators: scikit-learn's forests with quantile-forest's parameters and queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from types import FunctionType
from typing import Any, Literal, TypeVar, cast

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.metrics import r2_score
from sklearn.utils.validation import _num_samples

from hdiforest._estimators.input_rows import concatenated
from hdiforest._utils.checks import check_choice, check_whole_number
from hdiforest._utils.typing import Array, Interpolation, Kind
from hdiforest.adapters.quantile_forest._checks import (
    checked_points,
    interpolation_name,
    quantile_levels,
)
from hdiforest.adapters.quantile_forest._forest import Duplicates, SampledForest
from hdiforest.adapters.quantile_forest._leaf_samples import (
    KINDS,
    RankKind,
    Source,
    mean_over_trees,
    mean_rank_over_trees,
    pairs,
    ranks,
)

Quantiles = float | Sequence[float] | Literal["mean"] | None


Criterion = Literal["squared_error", "absolute_error", "friedman_mse", "poisson"]


class QuantileForest(SampledForest):
    """A forest that answers from the training targets in the leaves of a row.

    Stands before a forest of scikit-learn among the bases of a class.
    """

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        default_quantiles: Quantiles = 0.5,
        max_samples_leaf: float | None = 1,
        criterion: Criterion = "squared_error",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: float | Literal["sqrt", "log2"] | None = 1.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        max_samples: float | None = None,
        bootstrap: bool = True,
        oob_score: bool | Callable[..., float] = False,
        n_jobs: int | None = None,
        random_state: int | RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        monotonic_cst: Sequence[int] | None = None,
    ) -> None:
        super().__init__(
            n_estimators,
            criterion=criterion,
            max_depth=max_depth,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            min_weight_fraction_leaf=min_weight_fraction_leaf,
            max_features=max_features,
            max_leaf_nodes=max_leaf_nodes,
            min_impurity_decrease=min_impurity_decrease,
            ccp_alpha=ccp_alpha,
            max_samples=max_samples,
            bootstrap=bootstrap,
            oob_score=oob_score,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
            warm_start=warm_start,
            monotonic_cst=monotonic_cst,
        )
        self.default_quantiles = default_quantiles
        self.max_samples_leaf = max_samples_leaf

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
        X : (n, n_features) array, table or sparse matrix
            The rows to predict.
        quantiles : float, list of k floats, "mean" or None, default=None
            Levels in [0, 1]; None means the parameter `default_quantiles`.
        interpolation : str, default="linear"
            Any method of `numpy.quantile`: where a level lies between two samples.
        weighted_quantile : bool, default=True
            False leaves `weighted_leaves` aside; else quantiles are the same either way.
        weighted_leaves : bool, default=False
            Whether all leaves of a row weigh alike, whatever their size. By default all samples do.
        aggregate_leaves_first : bool, default=True
            Whether the samples of all leaves are pooled. False gives the mean over trees of what
            each leaf says alone; quantiles of leaves with one sample are pooled all the same.
        oob_score : bool, default=False
            Whether a row is answered only by trees that did not draw it. NaN where all did.
        indices : (n,) int array, optional
            With `oob_score`: which training row each row of X is, or -1 for none. By default X are
            all rows of the fit, in order.
        duplicates : list of lists of int, optional
            With `oob_score`: groups of training rows that are the same. A tree that drew one of
            them answers for none.

        Returns
        -------
        (n,), (n, k), (n, n_outputs) or (n, n_outputs, k) float64
            Without the axis of k for one level or the mean.

        Raises
        ------
        NotFittedError
            If the forest is not fitted.
        ValueError
            If an argument is out of range or of the wrong shape.
        """
        samples = self._require_fitted()
        levels = quantile_levels(self.default_quantiles if quantiles is None else quantiles)
        method = interpolation_name(interpolation)
        n_threads = self._n_threads()
        index = samples.index(
            "leaves" if weighted_leaves and weighted_quantile else "samples", n_threads
        )
        alone = not aggregate_leaves_first and (levels is None or samples.limit != 1)

        def ask(source: Source, rows: NDArray[Any]) -> Array:
            if levels is None:
                return source.mean(rows, n_threads=n_threads)
            wanted = levels if len(levels) > 1 else levels[0]
            return source.quantiles(rows, wanted, method, n_threads=n_threads)

        blocks = self._blocks(X, index, oob_score, indices, duplicates, by_leaf=alone)
        if not alone:
            return concatenated(ask(source, rows) for _, source, rows in blocks)
        by_tree = partial(mean_over_trees, partial(ask, index), n_leaves=index.n_leaves)
        return concatenated(by_tree(leaves) for *_, leaves in blocks)

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
        """Return prediction intervals, the shortest ones by default. Not in quantile-forest.

        Parameters
        ----------
        X : (n, n_features) array, table or sparse matrix
            The rows to predict.
        coverage : float or list of k floats, default=0.9
            Shares in (0, 1] of a row's distribution to hold.
        kind : {"hdi", "equal_tailed", "lower", "upper", "smoothed_hdi"}, default="hdi"
            "hdi" is the shortest interval between two targets; see `HDIForestRegressor` for the
            others.
        weighted_leaves, oob_score, indices, duplicates : optional
            As in `predict`.

        Returns
        -------
        (n, [n_outputs,] 2) or (n, [n_outputs,] 2, k) float64
            Lower and upper ends.

        Raises
        ------
        NotFittedError, ValueError
            As `predict`.

        Notes
        -----
        With the default ``max_samples_leaf=1`` a row has as many samples as there are trees: few
        for an interval. ``max_samples_leaf=None`` uses all.
        """
        samples = self._require_fitted()
        n_threads = self._n_threads()
        index = samples.index("leaves" if weighted_leaves else "samples", n_threads)
        # Refused before any work is done.
        index.intervals(np.empty((0, index.n_trees), dtype=np.int32), coverage, kind)
        blocks = self._blocks(X, index, oob_score, indices, duplicates)
        return concatenated(
            source.intervals(rows, coverage, kind, n_threads=n_threads)
            for _, source, rows in blocks
        )

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
        """Return the share of a row's distribution that lies below a target.

        Parameters
        ----------
        X : (n, n_features) array, table or sparse matrix
            The rows.
        y : (n,) or (n, n_outputs) array
            A target for each row.
        kind : {"rank", "weak", "strict", "mean"}, default="rank"
            What counts of samples equal to the target: "weak" all, "strict" none, "mean" half of
            them, "rank" their mean rank; as in `scipy.stats.percentileofscore`.
        aggregate_leaves_first : bool, default=True
            Whether the samples of all leaves are pooled. False gives the mean over trees of the
            ranks in each leaf.
        oob_score, indices, duplicates : optional
            As in `predict`.

        Returns
        -------
        (n,) or (n, n_outputs) float64
            Between 0 and 1.

        Raises
        ------
        NotFittedError, ValueError
            As `predict`.
        """
        samples = self._require_fitted()
        check_choice("kind", kind, KINDS)
        points = checked_points(y, _num_samples(X), self.n_outputs_)
        n_threads = self._n_threads()
        index = samples.index("samples", n_threads)

        def of_block(part: slice, source: Source, rows: NDArray[Any]) -> Array:
            targets = points[part]
            if aggregate_leaves_first:
                return ranks(source, rows, targets, kind, n_threads)
            ask = partial(ranks, index, y=targets, kind=kind, n_threads=n_threads)
            return mean_rank_over_trees(ask, rows, targets)

        by_leaf = not aggregate_leaves_first
        blocks = self._blocks(X, index, oob_score, indices, duplicates, by_leaf=by_leaf)
        return concatenated(of_block(*block) for block in blocks)

    def proximity_counts(
        self,
        X: Any,
        max_proximities: int | None = None,
        return_sorted: bool = True,
        oob_score: bool = False,
        indices: ArrayLike | None = None,
        duplicates: Duplicates = None,
    ) -> list[list[tuple[int, int]]]:
        """Return which training rows share leaves with a row, and how often.

        The first call makes an index of its own.

        Parameters
        ----------
        X : (n, n_features) array, table or sparse matrix
            The rows.
        max_proximities : int, optional
            How many training rows to return for each row, those of the highest counts; by default
            all.
        return_sorted : bool, default=True
            Whether those of a row stand by count, the highest first; else by their number.
        oob_score, indices, duplicates : optional
            As in `predict`.

        Returns
        -------
        list of n lists of (int, int)
            Number of a training row, and how many samples of it lie in the leaves of the row.

        Raises
        ------
        NotFittedError, ValueError
            As `predict`.
        """
        samples = self._require_fitted()
        if max_proximities is not None:
            check_whole_number("max_proximities", max_proximities)
        n_threads = self._n_threads()
        index = samples.index("rows", n_threads)
        blocks = self._blocks(X, index, oob_score, indices, duplicates)
        counts = (source.proximities(rows, n_threads=n_threads) for _, source, rows in blocks)
        return list(
            chain.from_iterable(pairs(csr, max_proximities, return_sorted) for csr in counts)
        )

    def score(
        self,
        X: Any,
        y: ArrayLike,
        quantiles: Quantiles = 0.5,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the coefficient of determination of a predicted quantile.

        Parameters
        ----------
        X : (n, n_features) array, table or sparse matrix
            The rows.
        y : (n,) or (n, n_outputs) array
            Their targets.
        quantiles : float or "mean", default=0.5
            One level, or a list of one.
        sample_weight : (n,) array, optional
            What rows count.

        Returns
        -------
        float
            At most 1; several outputs count by their variance.

        Raises
        ------
        NotFittedError, ValueError
            As `predict`.
        """
        levels = quantile_levels(quantiles)
        if levels is not None and len(levels) != 1:
            raise ValueError(f"quantiles must be one level for a score, got {quantiles!r}")
        predicted = self.predict(X, "mean" if levels is None else levels)
        score: float = r2_score(
            y, predicted, sample_weight=sample_weight, multioutput="variance_weighted"
        )
        return score


Function = TypeVar("Function")


def with_defaults(function: Function, **defaults: Any) -> Function:
    """Return a copy of a function with other defaults of keyword-only arguments.

    scikit-learn reads the parameters of an estimator from the signature of its constructor.
    """
    old = cast("FunctionType", function)
    new = FunctionType(
        old.__code__, old.__globals__, old.__name__, old.__defaults__, old.__closure__
    )
    new.__kwdefaults__ = {**(old.__kwdefaults__ or {}), **defaults}
    new.__annotations__ = dict(old.__annotations__)
    return cast("Function", new)


class RandomForestQuantileRegressor(QuantileForest, RandomForestRegressor):
    """Random forest that predicts quantiles and shortest intervals.

    The interface is that of ``quantile_forest.RandomForestQuantileRegressor``, with
    `predict_interval` for the shortest intervals. Quantiles are read from the training targets in
    the leaves of a row (Meinshausen, "Quantile Regression Forests", JMLR 7, 2006).

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    default_quantiles : float, list of floats or "mean", default=0.5
        What `predict` returns if it is not told.
    max_samples_leaf : int, float or None, default=1
        How many samples of a leaf are kept, chosen at random: a number, a share of the training
        rows, or None for all. A sample is a draw of a row by a tree.
    criterion, max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf : optional
        As in `sklearn.ensemble.RandomForestRegressor`.
    max_features, max_leaf_nodes, min_impurity_decrease, ccp_alpha, max_samples : optional
        As in `sklearn.ensemble.RandomForestRegressor`.
    bootstrap : bool, default=True
        Whether trees draw their rows. Out-of-bag answers need it.
    oob_score, n_jobs, random_state, verbose, warm_start : optional
        As in `sklearn.ensemble.RandomForestRegressor`. Answers use `n_jobs` threads, and do not
        depend on it.
    monotonic_cst : (n_features,) array of -1, 0 and 1, default=None
        As in `sklearn.ensemble.RandomForestRegressor`; needs ``max_samples_leaf=1``.

    Attributes
    ----------
    sample_weight_ : (n,) ndarray or None
        What `fit` was given.
    estimators_ : list of fitted trees
        These and all others are those of `sklearn.ensemble.RandomForestRegressor`.

    See Also
    --------
    ExtraTreesQuantileRegressor : The same of extremely randomised trees.
    hdiforest.HDIForestRegressor : Calibrated intervals, files, pipelines and other forests.

    Notes
    -----
    The forest grown is scikit-learn's with the same parameters, and quantile-forest's. With
    ``max_samples_leaf=None`` its answers are quantile-forest's too; otherwise other samples of a
    leaf may be kept, as they are drawn by other random numbers. Missing values are accepted where
    scikit-learn's forest accepts them.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest.adapters.quantile_forest import RandomForestQuantileRegressor
    >>> X, y = make_regression(n_samples=500, n_features=4, noise=10, random_state=0)
    >>> forest = RandomForestQuantileRegressor(max_samples_leaf=None, random_state=0).fit(X, y)
    >>> forest.predict(X[:3], quantiles=[0.1, 0.5, 0.9]).shape
    (3, 3)
    >>> lower, upper = forest.predict_interval(X[:3], coverage=0.8).T
    >>> bool((lower <= upper).all())
    True
    """


class ExtraTreesQuantileRegressor(QuantileForest, ExtraTreesRegressor):
    """Extremely randomised trees that predict quantiles and shortest intervals.

    The interface is that of ``quantile_forest.ExtraTreesQuantileRegressor``, with
    `predict_interval` for the shortest intervals. Quantiles are read from the training targets in
    the leaves of a row (Meinshausen, "Quantile Regression Forests", JMLR 7, 2006).

    Parameters
    ----------
    n_estimators, default_quantiles, max_samples_leaf : optional
        As in `RandomForestQuantileRegressor`.
    criterion, max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf : optional
        As in `sklearn.ensemble.ExtraTreesRegressor`.
    max_features, max_leaf_nodes, min_impurity_decrease, ccp_alpha, max_samples : optional
        As in `sklearn.ensemble.ExtraTreesRegressor`.
    bootstrap : bool, default=False
        Whether trees draw their rows. Out-of-bag answers need it.
    oob_score, n_jobs, random_state, verbose, warm_start, monotonic_cst : optional
        As in `RandomForestQuantileRegressor`.

    Attributes
    ----------
    sample_weight_ : (n,) ndarray or None
        What `fit` was given.
    estimators_ : list of fitted trees
        These and all others are those of `sklearn.ensemble.ExtraTreesRegressor`.

    See Also
    --------
    RandomForestQuantileRegressor : The same of a random forest.
    hdiforest.HDIForestRegressor : Calibrated intervals, files, pipelines and other forests.

    Notes
    -----
    As of `RandomForestQuantileRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest.adapters.quantile_forest import ExtraTreesQuantileRegressor
    >>> X, y = make_regression(n_samples=500, n_features=4, noise=10, random_state=0)
    >>> forest = ExtraTreesQuantileRegressor(max_samples_leaf=None, random_state=0).fit(X, y)
    >>> forest.predict(X[:3], quantiles=[0.1, 0.5, 0.9]).shape
    (3, 3)
    >>> lower, upper = forest.predict_interval(X[:3], coverage=0.8).T
    >>> bool((lower <= upper).all())
    True
    """

    __init__ = with_defaults(QuantileForest.__init__, bootstrap=False)
