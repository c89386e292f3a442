"""Forests of LightGBM, XGBoost and CatBoost in our interface, by the leaves of their trees."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._estimators.leaf_model import LeafModel
from hdiforest._tables.frames import frame_of
from hdiforest._utils import Weights
from hdiforest._utils.checks import thread_count
from hdiforest._utils.hints import warn_caller
from hdiforest._utils.optional import need

# Beside the functions, which are names of `hdiforest`.
__all__ = ["CatBoostLeaves", "LightGBMLeaves", "XGBoostLeaves"]


class LightGBMLeaves:
    """The function from rows to leaf ids of a fitted LightGBM model. It can be pickled.

    Categories that the fit did not have are missing, and `unseen` counts them. Tables are refused
    if their columns have other names than in the fit, another order, or categories of another type.
    Arrays in place of categories are refused, too. LightGBM alone would read them by position, or
    as codes.

    Parameters
    ----------
    booster : lightgbm.Booster or fitted lightgbm.LGBMModel
        The fitted model. If it was stopped early, its trees up to the best iteration are used.

    Examples
    --------
    >>> import lightgbm
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest.adapters.boosters import LightGBMLeaves
    >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
    >>> booster = lightgbm.LGBMRegressor(n_estimators=20, verbose=-1).fit(X, y)
    >>> LightGBMLeaves(booster)(X).shape
    (300, 20)
    """

    def __init__(self, booster: Any) -> None:
        lightgbm = need("lightgbm", "hdiforest.from_lightgbm", extra=None)
        self.options: dict[str, int] = {}
        if isinstance(booster, lightgbm.LGBMModel):
            if booster.n_jobs is not None:
                self.options["num_threads"] = thread_count(booster.n_jobs)
            booster = _fitted(booster, "booster_")
        if not isinstance(booster, lightgbm.Booster):
            raise ValueError(f"booster must be a lightgbm.Booster or LGBMModel, got {booster!r}")
        self.booster: Any = booster

    def __call__(self, X: Any) -> NDArray[Any]:
        """Return leaf ids, (n, n_trees)."""
        X, _ = self._with_categories(X)
        columns = getattr(X, "column_names", getattr(X, "columns", None))
        expected = self.booster.feature_name()
        of_arrays = [f"Column_{j}" for j in range(len(expected))]
        # LightGBM puts underscores in place of white space in the names that it is given.
        names = None if columns is None else [str(name).replace(" ", "_") for name in columns]
        if names is not None and expected not in (names, of_arrays):
            raise ValueError(
                f"X must have the columns of LightGBM's fit in their order, {expected}, got {names}"
            )
        return np.asarray(self.booster.predict(X, pred_leaf=True, **self.options))

    def unseen(self, X: Any) -> dict[str, int]:
        """Count the cells of categories that the fit did not have.

        Parameters
        ----------
        X : table
            Rows to predict.

        Returns
        -------
        dict of str to int
            The number of cells, by the name of the column.
        """
        _, columns = self._with_categories(X)
        return {
            str(cells.name): int((cells.notna() & ~cells.isin(categories)).sum())
            for cells, categories in columns
        }

    def _with_categories(self, X: Any) -> tuple[Any, list[tuple[Any, list[Any]]]]:
        """Return the rows, and their columns of categories with those of the fit.

        Raise ValueError if the fit had other columns of categories, or categories of other types.
        """
        categories = self.booster.pandas_categorical or ()
        if categories:
            X = frame_of(X).in_library("pandas")
        table = X.select_dtypes("category") if hasattr(X, "select_dtypes") else {}
        columns = [table[name] for name in table]
        if len(columns) != len(categories):
            raise ValueError(
                f"X must be a table with {len(categories)} columns of categories, as many as "
                f"LightGBM's fit had, got {type(X).__name__} with {len(columns)}"
            )
        pairs = list(zip(columns, categories, strict=True))
        for cells, of_fit in pairs:
            given = cells.cat.categories.tolist()
            if of_fit and given and _kind(of_fit) != _kind(given):
                raise ValueError(
                    f"column {str(cells.name)!r} must hold categories such as {of_fit[0]!r}, as "
                    f"LightGBM's fit had, got categories such as {given[0]!r}"
                )
        return X, pairs

    def __repr__(self) -> str:
        return f"LightGBMLeaves({self.booster.num_trees()} trees)"


class XGBoostLeaves:
    """The function from rows to leaf ids of a fitted XGBoost model. It can be pickled.

    Columns of categories need XGBoost 3.1 or later. A category that the fit did not have is an
    error. Rows with another number of columns are refused, and so are numbers in place of
    categories.

    Parameters
    ----------
    booster : xgboost.Booster or fitted xgboost.XGBModel
        The fitted model. The trees that its own ``predict`` uses are used: all trees of a Booster,
        and the trees up to the best iteration of an XGBModel that was stopped early.
    missing : float, default=nan
        The number that stands for a missing value. An XGBModel has its own.

    Examples
    --------
    >>> import xgboost
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest.adapters.boosters import XGBoostLeaves
    >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
    >>> booster = xgboost.XGBRFRegressor(n_estimators=20, random_state=0).fit(X, y)
    >>> XGBoostLeaves(booster)(X).shape
    (300, 20)
    """

    def __init__(self, booster: Any, *, missing: float = np.nan) -> None:
        xgboost = need("xgboost", "hdiforest.from_xgboost", extra=None)
        self.n_threads, self.missing, best = None, missing, None
        if isinstance(booster, xgboost.XGBModel):
            self.n_threads, self.missing = booster.n_jobs, booster.missing
            model, booster = booster, _fitted(booster, "get_booster")()
            best = getattr(model, "best_iteration", None)
        if not isinstance(booster, xgboost.Booster):
            raise ValueError(f"booster must be an xgboost.Booster or XGBModel, got {booster!r}")
        self.booster: Any = booster
        facts = json.loads(booster.save_config())["learner"]
        if facts["gradient_booster"]["name"] == "gblinear":
            raise ValueError("booster must have trees, got one of booster='gblinear'")
        self.n_iterations = booster.num_boosted_rounds() if best is None else best + 1

    def __call__(self, X: Any) -> NDArray[np.int32]:
        """Return leaf ids, (n, n_trees)."""
        import xgboost

        if not isinstance(X, xgboost.DMatrix):
            has_names, types = hasattr(X, "columns"), self.booster.feature_types
            if has_names and "c" in (types or ()) and not hasattr(self.booster, "get_categories"):
                raise ValueError(
                    "columns of categories need xgboost 3.1 or later, which compares them with "
                    "those of the fit"
                )
            options: dict[str, Any] = {"missing": self.missing, "nthread": self.n_threads}
            options["feature_types"] = None if has_names else types
            X = xgboost.DMatrix(X, enable_categorical=True, **options)
        _check_width("XGBoost", X.num_col(), self.booster.num_features())
        of_fit, given = _category_columns(self.booster), _category_columns(X)
        if of_fit != given:
            raise ValueError(
                f"X must have categories in the columns {of_fit}, as XGBoost's fit had, got "
                f"categories in {given}"
            )
        trees: dict[str, Any] = {"pred_leaf": True, "iteration_range": (0, self.n_iterations)}
        leaves: NDArray[np.float32] = self.booster.predict(X, **trees)
        if leaves.size > 0 and leaves.max() >= 2**24:
            raise ValueError(
                "XGBoost reports leaf ids as float32, which are exact below 2**24; this model has "
                f"the leaf {leaves.max():.0f}"
            )
        return leaves.reshape(X.num_row(), -1).astype(np.int32)

    def __repr__(self) -> str:
        return f"XGBoostLeaves({self.n_iterations} iterations)"


class CatBoostLeaves:
    """The function from rows to leaf ids of a fitted CatBoost model. It can be pickled.

    Columns are found by name. Rows without names must have as many columns as the fit.

    Parameters
    ----------
    booster : fitted catboost.CatBoost
        The fitted model. If it was stopped early it holds the trees up to its best iteration,
        unless it was told ``use_best_model=False``.

    Examples
    --------
    >>> import catboost
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest.adapters.boosters import CatBoostLeaves
    >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
    >>> options = {"verbose": False, "allow_writing_files": False}
    >>> booster = catboost.CatBoostRegressor(iterations=20, **options).fit(X, y)
    >>> CatBoostLeaves(booster)(X).shape
    (300, 20)
    """

    _learned: dict[str, set[str]] | None = None  # categories by column, if `learn` was called

    def __init__(self, booster: Any) -> None:
        catboost = need("catboost", "hdiforest.from_catboost", extra=None)
        if not isinstance(booster, catboost.CatBoost):
            raise ValueError(f"booster must be a catboost.CatBoost, got {booster!r}")
        if not booster.is_fitted():
            raise ValueError("booster must be fitted, got a CatBoost model that is not")
        self.booster: Any = booster

    @property
    def n_leaves(self) -> NDArray[np.int64]:
        """Number of leaves of each tree, (n_trees,). Leaves may hold no training row."""
        return np.asarray(self.booster.get_tree_leaf_counts(), dtype=np.int64)

    def __call__(self, X: Any) -> NDArray[np.int32]:
        """Return leaf ids, (n, n_trees)."""
        of_fit, names = self.booster.feature_names_, frame_of(X).names
        if names is None or not set(of_fit) <= set(names):
            _check_width("CatBoost", np.shape(X)[-1], len(of_fit))
        threads = self.booster.get_param("thread_count")
        leaves = self.booster.calc_leaf_indexes(X, thread_count=-1 if threads is None else threads)
        return np.asarray(leaves, dtype=np.int32)

    def learn(self, X: Any) -> None:
        """Keep the categories of the rows of the fit. CatBoost keeps only their hashes.

        Parameters
        ----------
        X : table
            Rows of the fit.
        """
        self._learned = {name: set(cells) for name, cells in self._categories(X).items()}

    def unseen(self, X: Any) -> dict[str, int]:
        """Count the cells of categories that `learn` did not see.

        Parameters
        ----------
        X : table
            Rows to predict.

        Returns
        -------
        dict of str to int
            The number of cells, by the name of the column.
        """
        given = self._categories(X)
        return {
            name: sum(cell not in categories for cell in given.get(name, ()))
            for name, categories in (self._learned or {}).items()
        }

    def _categories(self, X: Any) -> dict[str, list[str]]:
        """Return the cells of the columns of categories as CatBoost compares them; {} of a Pool."""
        frame, of_fit = frame_of(X), self.booster.feature_names_
        if frame.n_rows is None:
            return {}
        index = {name: j for j, name in enumerate(frame.names or ())}
        columns = {of_fit[j]: j for j in self.booster.get_cat_feature_indices()}
        return {name: [*map(str, frame.column(index.get(name, j)))] for name, j in columns.items()}

    def __repr__(self) -> str:
        return f"CatBoostLeaves({self.booster.tree_count_} trees)"


def from_lightgbm(
    booster: Any, X: Any, y: ArrayLike, *, sample_weight: Weights = None, n_jobs: int | None = None
) -> LeafModel:
    """Use a fitted LightGBM model, without fitting anything.

    Parameters
    ----------
    booster : lightgbm.Booster or fitted lightgbm.LGBMModel
        The fitted model, a forest (``boosting_type="rf"``). Boosted trees get a warning
        (:doc:`/forests`). If it was stopped early, its trees up to the best iteration are
        used.
    X : rows as LightGBM predicts them
        Training rows. Columns of categories are read in the way of the library.
    y : (n,) or (n, n_outputs) array
        Targets of the rows, finite numbers.
    sample_weight : (n,) array, optional
        Weights of the rows. None means equal weights.
    n_jobs : int, default=None
        Threads for the intervals. See `LeafModel`.

    Returns
    -------
    LeafModel
        A fitted model. Its `apply` is a `hdiforest.adapters.boosters.LightGBMLeaves`, with which
        `LeafModel.load` opens a file that `save` wrote.

    Examples
    --------
    >>> import lightgbm
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest import from_lightgbm
    >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
    >>> options = {"boosting_type": "rf", "subsample": 0.6, "subsample_freq": 1, "verbose": -1}
    >>> booster = lightgbm.LGBMRegressor(n_estimators=20, **options).fit(X, y)
    >>> from_lightgbm(booster, X, y).predict_interval(X[:3], coverage=0.9).shape
    (3, 2)
    """
    apply = LightGBMLeaves(booster)
    is_forest = apply.booster.dump_model(num_iteration=1)["average_output"]
    _warn_if_boosted(1 if is_forest else apply.booster.current_iteration())
    return LeafModel(apply, n_jobs=n_jobs).fit(X, y, sample_weight)


def from_xgboost(
    booster: Any,
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: Weights = None,
    n_jobs: int | None = None,
    missing: float = np.nan,
) -> LeafModel:
    """Use a fitted XGBoost model, without fitting anything.

    Parameters
    ----------
    booster : xgboost.Booster or fitted xgboost.XGBModel
        The fitted model, a forest (XGBRFRegressor). Boosted trees get a warning
        (:doc:`/forests`). Leaf ids must be below 2**24.
    X : rows as xgboost.DMatrix takes them, or a DMatrix
        Training rows.
    y : (n,) or (n, n_outputs) array
        Targets of the rows, finite numbers.
    sample_weight : (n,) array, optional
        Weights of the rows. None means equal weights.
    n_jobs : int, default=None
        Threads for the intervals. See `LeafModel`.
    missing : float, default=nan
        The number that stands for a missing value. An XGBModel has its own.

    Returns
    -------
    LeafModel
        A fitted model. Its `apply` is a `hdiforest.adapters.boosters.XGBoostLeaves`.

    Examples
    --------
    >>> import xgboost
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest import from_xgboost
    >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
    >>> booster = xgboost.XGBRFRegressor(n_estimators=20, random_state=0).fit(X, y)
    >>> from_xgboost(booster, X, y).predict_interval(X[:3], coverage=0.9).shape
    (3, 2)
    """
    apply = XGBoostLeaves(booster, missing=missing)
    _warn_if_boosted(apply.n_iterations)
    return LeafModel(apply, n_jobs=n_jobs).fit(X, y, sample_weight)


def from_catboost(
    booster: Any, X: Any, y: ArrayLike, *, sample_weight: Weights = None, n_jobs: int | None = None
) -> LeafModel:
    """Use a fitted CatBoost model, without fitting anything. See `from_lightgbm` for an example.

    Parameters
    ----------
    booster : fitted catboost.CatBoost
        The fitted model. CatBoost makes boosted trees, which get a warning (:doc:`/forests`).
        Leaves of symmetric trees without a row of X say nothing about new rows.
    X : rows as CatBoost predicts them, or a catboost.Pool
        Training rows.
    y : (n,) or (n, n_outputs) array
        Targets of the rows, finite numbers.
    sample_weight : (n,) array, optional
        Weights of the rows. None means equal weights.
    n_jobs : int, default=None
        Threads for the intervals. See `LeafModel`.

    Returns
    -------
    LeafModel
        A fitted model. Its `apply` is a `hdiforest.adapters.boosters.CatBoostLeaves`.
    """
    apply = CatBoostLeaves(booster)
    apply.learn(X)
    _warn_if_boosted(booster.tree_count_)
    return LeafModel(apply, n_leaves=apply.n_leaves, n_jobs=n_jobs).fit(X, y, sample_weight)


def _fitted(model: Any, part: str) -> Any:
    """Return what a fitted scikit-learn estimator of a library holds, or raise ValueError."""
    if not model.__sklearn_is_fitted__():
        raise ValueError(f"booster must be fitted, got {type(model).__name__}, which is not")
    return getattr(model, part)


def _warn_if_boosted(n_rounds: int) -> None:
    """Warn of the width of intervals from trees of more than one round."""
    if n_rounds > 1:
        warn_caller(
            "intervals from the leaves of boosted trees are often more than twice as wide as need "
            "be, also after calibrate; HDIForestRegressor().fit(X, y).calibrate(mean=booster) has "
            "narrower ones"
        )


def _kind(categories: list[Any]) -> str:
    """Return the kind of the type that numpy gives some categories; all numbers are of one."""
    return np.asarray(categories).dtype.kind.replace("i", "f").replace("u", "f")


def _category_columns(data: Any) -> list[str]:
    """Return the columns of a Booster or DMatrix that have a list of categories."""
    if not hasattr(data, "get_categories") or data.get_categories().empty():
        return []
    named = zip(data.feature_names, data.feature_types, strict=True)
    return [name for name, kind in named if kind == "c"]


def _check_width(library: str, n_columns: int, expected: int) -> None:
    """Raise ValueError unless there are as many columns as in the fit."""
    if n_columns != expected:
        raise ValueError(f"X must have {expected} columns, as {library}'s fit had, got {n_columns}")
