"""The two estimators: scikit-learn's forests with the parameters of quantile-forest."""

from __future__ import annotations

from types import FunctionType
from typing import Any, TypeVar, cast

from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from hdiforest.adapters.quantile_forest._queries import QuantileForest

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
