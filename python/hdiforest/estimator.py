"""HDIForestRegressor: a scikit-learn regressor whose predictions are whole distributions."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin, clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.exceptions import DataConversionWarning
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from hdicore import Scorer
from hdiforest import model_file
from hdiforest.arrow import as_table
from hdiforest.base import BaseForestModel
from hdiforest.calibrated import CalibratedIntervals
from hdiforest.calibrating import calibrated_by_default
from hdiforest.fitted import ANY_WEIGHTING, WEIGHTINGS, FittedForest, Weighting
from hdiforest.row_weights import TrainingRowWeights
from hdiforest.rows import checked_rows, checked_sample_weight, checked_training_rows
from hdiforest.sklearn_forest import import_forest
from hdiforest.stored import StoredForest


class HDIForestRegressor(
    CalibratedIntervals,
    TrainingRowWeights,
    RegressorMixin,
    BaseForestModel,
):
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
        ``ExtraTreesRegressor(300, bootstrap=True)``, and `fit` then calibrates its intervals as
        `calibrate` does without arguments: of the forests that were compared it has the narrowest
        calibrated intervals. A fitted one in a ``FrozenEstimator`` is kept as it is. In a model
        that was loaded from a file, a description of its forest.
    weights : {"all", "inbag", "oob"}, default="all"
        Which training rows of a leaf count: every one (the paper's definition), as often as the
        tree's bootstrap drew it (then `predict` equals the forest's), or only those that the tree
        did not see.
    n_jobs : int, default=None
        Threads used for scoring: None means as many as the forest itself uses (its ``n_jobs``), or
        1 if it does not say; -1 means all processors. Results do not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the default forest; an `estimator` has its own.

    Attributes
    ----------
    estimator_ : estimator
        The fitted forest; absent from a model that was loaded from a file.
    scorer_ : hdicore.Scorer
        The compiled model.
    weights_ : str
        The `weights` it was made with.
    calibration_ : hdiforest.calibration.Calibration or CrossCalibration
        What `calibrate` chose, or `fit` without an `estimator`; absent before.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if fitted on a table with column names.
    n_outputs_ : int
    n_training_rows_ : int

    Notes
    -----
    Intervals of the forest's own kinds are closed and their ends are training targets, so y outside
    the range of its leaves is never covered. The weighted mean may lie outside a highest-density
    interval, and intervals at a higher coverage need not contain those at a lower one. Calibrated
    intervals have other ends, and are nested.

    X may be an array or a table of pandas, polars, pyarrow or any library whose tables offer the
    Arrow C interface (``__arrow_c_stream__``, ``__arrow_c_array__``), which needs pyarrow, or a
    dict of columns. Tables are read by name: other names, or another order, than those of the fit
    are errors.

    The model keeps copies of X (as float32), y and sample_weight, so the caller may reuse these
    arrays. The forest itself is shared: ``estimator_`` is the given one, but nothing is read from
    it after the fit, and a later refit of it does not change the model.

    ``clone`` gives an unfitted model as always in scikit-learn. That of a model made by
    `from_forest` has the same forest, and fits on the rows of the forest's own fit only; that of a
    loaded model refuses to fit, because the file does not say how its forest was grown. Where a
    fitted model must outlive ``clone``, put it in a ``sklearn.frozen.FrozenEstimator``.

    Pickle, joblib, skops and MLflow store the model as plain arrays. skops asks whether the types
    ``hdiforest.estimator.HDIForestRegressor`` and scikit-learn's own ``sklearn.tree._tree.Tree``
    are trusted, and for a loaded model ``hdiforest.stored.StoredForest`` in place of the latter.

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
        random_state: int | RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.weights = weights
        self.n_jobs = n_jobs
        self.random_state = random_state

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
            The rows the forest was fitted on, in the same order. Copied, as are y and
            sample_weight.
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

        Returns
        -------
        HDIForestRegressor
            The model itself.

        Raises
        ------
        ImportError
            If X is Arrow data or a dict of columns, and pyarrow is not installed.
        ValueError
            If an argument is out of range, a frozen forest was fitted on other rows, or the model
            was loaded from a file and has no forest to fit.
        """
        if self.weights not in tuple(WEIGHTINGS):
            raise ValueError(f"weights must be {ANY_WEIGHTING}, got {self.weights!r}")
        if isinstance(self.estimator, StoredForest):
            raise ValueError(
                "a model that was loaded from a file cannot be fitted, because the file does not "
                "say how its forest was grown; set its parameter estimator to a forest, or use the "
                "loaded model in a sklearn.frozen.FrozenEstimator"
            )
        X = as_table(X)
        estimator = self._default_forest() if self.estimator is None else clone(self.estimator)
        frozen = isinstance(estimator, FrozenEstimator)
        while isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        if frozen:
            check_is_fitted(estimator)
            validate_data(estimator, X, reset=False, skip_check_array=True)
        allow_nan = get_tags(self).input_tags.allow_nan
        rows, targets = checked_training_rows(self, X, y, allow_nan=allow_nan)
        if targets.ndim == 2 and targets.shape[1] == 1:
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected. Please change the "
                "shape of y to (n_samples,), for example using ravel().",
                DataConversionWarning,
                stacklevel=2,
            )
            targets = targets.ravel()
        row_weights = checked_sample_weight(sample_weight, len(rows))
        if not frozen:
            options = {} if row_weights is None else {"sample_weight": row_weights}
            estimator.fit(X, targets, **options)
        self.estimator_ = estimator
        fitted = self._import(rows, targets, row_weights, allow_nan)
        if self.estimator is None:
            fitted = calibrated_by_default(fitted, self._n_threads())
        self._fitted = fitted
        return self

    def _default_forest(self) -> ExtraTreesRegressor:
        options = {name: getattr(self, name, None) for name in ("n_jobs", "random_state")}
        return ExtraTreesRegressor(300, bootstrap=True, **options)

    def _import(
        self,
        X: NDArray[np.float32],
        y: NDArray[np.float64],
        sample_weight: NDArray[np.float64] | None,
        allow_nan: bool,
    ) -> FittedForest:
        n_threads = self._n_threads()
        forest, rows, index = import_forest(
            self.estimator_, X, y, sample_weight, self.weights, n_threads
        )
        return FittedForest(
            scorer=Scorer(forest, index),
            weights=self.weights,
            n_training_rows=len(X),
            allow_nan=allow_nan,
            feature_names=getattr(self, "feature_names_in_", None),
            training_rows=rows,
        )

    def save(self, path: str | os.PathLike[str], *, training_rows: bool = True) -> None:
        """Write the model to a file in safetensors format, whole or not at all.

        Parameters
        ----------
        path : path
            Replaced if it exists.
        training_rows : bool, default=True
            Whether to include the training rows (X as float32), which `predict_weights`, the
            ``oob_`` methods and joint draws of several outputs need. Without them the file is
            smaller and holds no X; it always holds the distinct values of y.

        Raises
        ------
        ImportError
            If safetensors is not installed.
        NotFittedError
            If the model is not fitted.
        OSError
            If the file cannot be written.
        ValueError
            If the model was itself loaded without training rows.
        """
        fitted = self._require_fitted()
        if training_rows and fitted.training_rows is None:
            raise ValueError("this model has no training rows to save; pass training_rows=False")
        model_file.save(fitted, Path(path), training_rows=training_rows)

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
        fitted = model_file.load(Path(path))
        forest = StoredForest(
            fitted.scorer.forest.n_trees,
            fitted.n_features,
            fitted.n_outputs,
            fitted.n_training_rows,
            fitted.allow_nan,
        )
        model = cls(forest, weights=fitted.weights, n_jobs=n_jobs)
        model.n_features_in_ = fitted.n_features
        if fitted.feature_names is not None:
            model.feature_names_in_ = fitted.feature_names
        model._fitted = fitted
        return model

    def _query(
        self,
        X: ArrayLike,
        method: str,
        *arguments: Any,
        per_row: ArrayLike | None = None,
        **options: Any,
    ) -> NDArray[np.float64]:
        fitted = self._require_fitted()
        rows = checked_rows(self, X, fitted)
        points = () if per_row is None else (per_row,)
        options["n_threads"] = self._n_threads(len(rows))
        answers: NDArray[np.float64]
        answers = getattr(fitted.scorer, method)(rows, *points, *arguments, **options)
        return answers

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        given = getattr(self, "estimator", None)
        inner = self._default_forest() if given is None else given
        tags.input_tags.allow_nan = get_tags(inner).input_tags.allow_nan
        tags.target_tags.multi_output = True
        return tags
