"""HDIForestRegressor: a scikit-learn regressor whose predictions are whole distributions."""

from __future__ import annotations

import os
import warnings
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import DataConversionWarning
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from hdicore import Scorer
from hdiforest import model_file
from hdiforest.distributions import ConditionalDistributions, Kind
from hdiforest.importing import TrainingRows, Weighting, import_forest
from hdiforest.threads import thread_count


class HDIForestRegressor(ConditionalDistributions, RegressorMixin, BaseEstimator):
    """Conditional distributions and shortest prediction intervals from a random forest.

    For a new row, each training row weighs as often as the two share a leaf (Zhu, Lu, Chen,
    "HDI-Forest: Highest Density Interval Regression Forest", IJCAI 2019, eq. 7 and 12). These
    weights are an estimate of the whole distribution of the target, from which intervals at any
    level are read without fitting anything again.

    Parameters
    ----------
    estimator : estimator, default=None
        The forest to fit: RandomForestRegressor, ExtraTreesRegressor, DecisionTreeRegressor,
        ExtraTreeRegressor or BaggingRegressor of such trees. None means
        ``RandomForestRegressor()``. A fitted one in a ``FrozenEstimator`` is kept as it is.
    weights : {"all", "inbag", "oob"}, default="all"
        Which training rows of a leaf count: every one (the paper's definition), as often as the
        tree's bootstrap drew it (then `predict` equals the forest's), or only those that the tree
        did not see.
    n_jobs : int, default=None
        Threads used for scoring: None means as many as the forest itself uses (its ``n_jobs``), or
        1 if it does not say; -1 means all processors. Results do not depend on it.

    Attributes
    ----------
    estimator_ : estimator
        The fitted forest; absent from a model that was loaded from a file.
    scorer_ : hdicore.Scorer
        The compiled model.
    weights_ : str
        The `weights` it was made with.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if fitted on a table with column names.
    n_outputs_ : int
    n_training_rows_ : int

    Notes
    -----
    Intervals are closed and their ends are training targets, so y outside the range of its leaves
    is never covered. The weighted mean may lie outside a highest-density interval, and intervals
    at a higher coverage need not contain those at a lower one.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> from hdiforest import HDIForestRegressor
    >>> X, y = make_regression(n_samples=500, n_features=4, noise=10, random_state=0)
    >>> forest = RandomForestRegressor(min_samples_leaf=5, random_state=0).fit(X, y)
    >>> model = HDIForestRegressor.from_forest(forest, X, y)
    >>> lower, upper = model.predict_interval(X[:3], coverage=0.9).T
    >>> bool((lower <= upper).all())
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        weights: Weighting = "all",
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.weights = weights
        self.n_jobs = n_jobs

    @classmethod
    def from_forest(
        cls,
        forest: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        weights: Weighting = "all",
        n_jobs: int | None = None,
    ) -> Self:
        """Use a forest that is already fitted, without fitting anything.

        Parameters
        ----------
        forest : fitted estimator
            See the class.
        X : (n, n_features) array or table
            The rows the forest was fitted on, in the same order.
        y : (n,) or (n, n_outputs) array
            Their targets.
        sample_weight : (n,) array, optional
            Their weights, if the forest was fitted with weights.
        weights, n_jobs
            See the class.

        Raises
        ------
        ValueError
            If the forest is not understood or not fitted, or X, y and sample_weight are not those
            of its fit: every leaf's weight and mean is compared with the forest's own record.
        """
        model = cls(FrozenEstimator(forest), weights=weights, n_jobs=n_jobs)
        return model.fit(X, y, sample_weight=sample_weight)

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the forest (unless it is frozen) and index its training rows by leaf.

        Parameters
        ----------
        X : (n, n_features) array or table
        y : (n,) or (n, n_outputs) array
        sample_weight : (n,) array, optional
            Passed to the forest. With ``weights`` "all" and "oob" rows also weigh so much in
            their leaves; "inbag" uses what the trees themselves used.

        Raises
        ------
        ValueError
            If an argument is out of range, or a frozen forest was fitted on other rows.
        """
        if self.weights not in ("all", "inbag", "oob"):
            raise ValueError(f"weights must be 'all', 'inbag' or 'oob', got {self.weights!r}")
        estimator = RandomForestRegressor() if self.estimator is None else clone(self.estimator)
        frozen = isinstance(estimator, FrozenEstimator)
        while isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        if frozen:
            check_is_fitted(estimator)
            validate_data(estimator, X, reset=False, skip_check_array=True)
        self._allow_nan = get_tags(self).input_tags.allow_nan
        rows, targets = validate_data(
            self, X, y, multi_output=True, y_numeric=True, **self._row_format()
        )
        if targets.ndim == 2 and targets.shape[1] == 1:
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected. Please change the "
                "shape of y to (n_samples,), for example using ravel().",
                DataConversionWarning,
                stacklevel=2,
            )
            targets = targets.ravel()
        targets = np.asarray(targets, dtype=np.float64)
        row_weights = _checked_sample_weight(sample_weight, len(rows))
        if not frozen:
            options = {} if row_weights is None else {"sample_weight": row_weights}
            estimator.fit(X, targets, **options)
        self._import(estimator, rows, targets, row_weights)
        return self

    def _import(
        self,
        estimator: Any,
        X: NDArray[np.float32],
        y: NDArray[np.float64],
        sample_weight: NDArray[np.float64] | None,
    ) -> None:
        self.estimator_ = estimator
        n_threads = self._n_threads()
        forest, rows, leaves = import_forest(estimator, X, y, sample_weight, n_threads)
        if self.weights == "oob" and rows.counts is None:
            raise ValueError(
                "weights='oob' needs a forest whose trees leave rows out; every tree of this one "
                "was fitted on all rows"
            )
        index = rows.index(forest, leaves, self.weights, n_threads=n_threads)
        self.weights_ = self.weights
        self.scorer_ = Scorer(forest, index)
        self.n_outputs_ = index.n_outputs
        self.n_training_rows_ = len(X)
        self._training_rows: TrainingRows | None = rows
        self.__dict__.pop("_row_scorer", None)

    def predict_weights(self, X: ArrayLike) -> csr_array:
        """Weight of every training row for every row of X, eq. (12) of the paper.

        Returns
        -------
        scipy.sparse.csr_array of shape (n, n_training_rows), float64
            Rows sum to 1. Columns follow the order of the training rows.

        Notes
        -----
        The first call indexes the training rows one by one and keeps that index.
        """
        rows = self._checked_rows(X)
        indptr, indices, data = self._row_scorer.weights(rows, n_threads=self._n_threads(len(rows)))
        shape = (len(rows), self.n_training_rows_)
        return csr_array((data, indices, indptr), shape=shape)

    def sample(
        self,
        X: ArrayLike,
        n_samples: int = 1,
        random_state: int | np.random.RandomState | None = None,
    ) -> NDArray[np.float64]:
        """Draw from the conditional distribution.

        Parameters
        ----------
        X : (n, n_features) array or table
        n_samples : int, default=1
            Draws per row.
        random_state : int, RandomState or None, default=None

        Returns
        -------
        (n, n_samples) float64
            (n, n_outputs, n_samples) with several outputs, which are drawn jointly: each draw is
            the target of one training row.
        """
        rows = self._checked_rows(X)
        if not isinstance(n_samples, int | np.integer) or n_samples < 1:
            raise ValueError(f"n_samples must be a whole number from 1 on, got {n_samples!r}")
        uniforms = check_random_state(random_state).random_sample((len(rows), int(n_samples)))
        n_threads = self._n_threads(len(rows))
        if self.scorer_.index.scalar_output:
            return self.scorer_.draws(rows, uniforms, n_threads=n_threads, out=uniforms)
        drawn = self._row_scorer.draws(rows, uniforms, n_threads=n_threads, out=uniforms)
        silent = np.isnan(drawn)
        targets = self._require_training_rows().y[np.where(silent, 0, drawn).astype(np.intp)]
        targets[silent] = np.nan
        return np.moveaxis(targets, 2, 1)

    def oob_interval(
        self, coverage: float | ArrayLike = 0.9, *, kind: Kind = "hdi"
    ) -> NDArray[np.float64]:
        """Intervals for the training rows, each from the trees that did not see it.

        Parameters
        ----------
        coverage, kind
            As in `predict_interval`.

        Returns
        -------
        (n_training_rows, 2) or (n_training_rows, 2, k) float64
            As `predict_interval`. NaN, with a warning, for rows that every tree has seen.

        Raises
        ------
        ValueError
            If every tree was fitted on all rows.

        Notes
        -----
        A row never takes part in its own interval: with ``weights`` "all" and "oob" it is left out
        of its leaves, and the others share its weight.
        """
        rows = self._require_training_rows()
        if rows.counts is None:
            raise ValueError(
                "oob_interval needs a forest whose trees leave rows out; every tree of this one "
                "was fitted on all rows"
            )
        n_threads = self._n_threads()
        forest = self.scorer_.forest
        leaves = forest.leaves(rows.X, n_threads=n_threads)
        index = self.scorer_.index
        leave_out = None
        if self.weights_ != "inbag":
            index = rows.index(
                forest, leaves, self.weights_, keep_row_weights=True, n_threads=n_threads
            )
            leave_out = np.arange(len(leaves))
        leaves[rows.counts > 0] = -1
        intervals = index.intervals(
            leaves, coverage, kind, leave_out=leave_out, n_threads=n_threads
        )
        n_silent = int(np.isnan(intervals).reshape(len(leaves), -1).any(axis=1).sum())
        if n_silent > 0:
            warnings.warn(
                f"{n_silent} of {len(leaves)} training rows have no out-of-bag interval, because "
                "no tree that did not see them has another row to show; use more trees",
                UserWarning,
                stacklevel=2,
            )
        return intervals

    def save(self, path: str | os.PathLike[str], *, training_rows: bool = True) -> None:
        """Write the model to a file in safetensors format, whole or not at all.

        Parameters
        ----------
        path : path
            Replaced if it exists.
        training_rows : bool, default=True
            Whether to include the training rows (X as float32), which `predict_weights`,
            `oob_interval` and joint draws of several outputs need. Without them the file is
            smaller and holds no X; it always holds the distinct values of y.

        Raises
        ------
        ImportError
            If safetensors is not installed.
        OSError
            If the file cannot be written.
        ValueError
            If the model was itself loaded without training rows.
        """
        check_is_fitted(self)
        if training_rows and self._training_rows is None:
            raise ValueError("this model has no training rows to save; pass training_rows=False")
        model_file.save(self, Path(path), training_rows=training_rows)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, n_jobs: int | None = None) -> Self:
        """Open a model that `save` wrote. It scores without the forest it was made from.

        The file is memory-mapped: its arrays are not copied, and processes that load the same file
        share them; tables that follow from them are made anew (136 to 264 bytes for each leaf, if
        leaves have 32 rows or more in the mean). Everything in it is checked before it is used.

        Parameters
        ----------
        path : path
        n_jobs : int, default=None
            See the class; None means 1.

        Raises
        ------
        ImportError
            If safetensors is not installed.
        OSError
            If the file cannot be read.
        ValueError
            If it is not a model, is damaged, or comes from a newer version.
        """
        model = cls(n_jobs=n_jobs)
        model_file.load_into(model, Path(path))
        return model

    @cached_property
    def _row_scorer(self) -> Scorer:
        """Scorer in which every training row is an atom of its own, numbered by its position."""
        rows = self._require_training_rows()
        forest = self.scorer_.forest
        n_threads = self._n_threads()
        leaves = forest.leaves(rows.X, n_threads=n_threads)
        numbers = np.arange(len(leaves), dtype=np.float64)
        return Scorer(
            forest,
            rows.index(forest, leaves, self.weights_, targets=numbers, n_threads=n_threads),
        )

    def _require_training_rows(self) -> TrainingRows:
        check_is_fitted(self)
        if self._training_rows is None:
            raise ValueError(
                "this model was saved without its training rows; save it with training_rows=True"
            )
        return self._training_rows

    def _given(self, X: ArrayLike) -> tuple[Scorer, NDArray[np.floating[Any]], int]:
        rows = self._checked_rows(X)
        return self.scorer_, rows, self._n_threads(len(rows))

    def _row_format(self) -> dict[str, Any]:
        finite: bool | str = "allow-nan" if self._allow_nan else True
        return {"dtype": np.float32, "order": "C", "ensure_all_finite": finite}

    def _checked_rows(self, X: ArrayLike) -> NDArray[np.floating[Any]]:
        if self._is_plain(X):
            return X
        check_is_fitted(self)
        return validate_data(  # type: ignore[no-any-return]
            self, X, reset=False, ensure_min_samples=0, **self._row_format()
        )

    def _is_plain(self, X: object) -> TypeGuard[NDArray[np.floating[Any]]]:
        """Whether X is what validation would make of it, but for the engine's own cast and checks.

        Validation takes several times as long as the intervals of a single row, and copies float64.
        """
        return (
            type(X) is np.ndarray
            and X.dtype in (np.float32, np.float64)
            and X.flags.c_contiguous
            and hasattr(self, "scorer_")
            and not hasattr(self, "feature_names_in_")
            and X.ndim == 2
            and X.shape[1] == self.n_features_in_
            and (self._allow_nan or bool(np.isfinite(X).all()))
        )

    def _n_threads(self, n_rows: int | None = None) -> int:
        # Finding out takes as long as scoring a row, for which no thread would be started.
        if n_rows is not None and n_rows * self.scorer_.forest.n_trees < 10_000:
            return 1
        n_jobs = self.n_jobs
        if n_jobs is None:
            n_jobs = getattr(getattr(self, "estimator_", None), "n_jobs", None)
        return thread_count(n_jobs)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "scorer_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = RandomForestRegressor() if self.estimator is None else self.estimator
        tags.input_tags.allow_nan = get_tags(inner).input_tags.allow_nan
        tags.target_tags.multi_output = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_row_scorer", None)
        return state


def _checked_sample_weight(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64] | None:
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got {weights.shape}")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and (weights > 0).any()):
        raise ValueError("sample_weight must be finite, not negative, and not all zero")
    return weights
