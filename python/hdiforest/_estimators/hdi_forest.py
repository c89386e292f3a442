"""HDIForestRegressor: a scikit-learn regressor whose predictions are whole distributions."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, _safe_indexing, get_tags
from sklearn.utils.validation import check_is_fitted

from hdicore import Scorer
from hdicore.explain import feature_importances
from hdiforest._estimators import input_rows, row_source, training
from hdiforest._estimators.distribution_model import DistributionModel
from hdiforest._estimators.input_rows import checked_blocks, checked_rows
from hdiforest._estimators.new_rows import NewRows
from hdiforest._estimators.out_of_bag import OutOfBagPredictions
from hdiforest._model.fitted import Calibrated, FitFacts, FittedForest
from hdiforest._model.prune import prune
from hdiforest._model.sklearn_forest import why_no_means
from hdiforest._model.stacking import check_mean
from hdiforest._model.training_rows import WEIGHTINGS, TreeBlock, Weighting
from hdiforest._tables.encoder import TableEncoder
from hdiforest._tables.frames import Output, frame_of
from hdiforest._utils import Array, checks
from hdiforest._utils.checks import CallError, alternatives, known_arguments, thread_count
from hdiforest._utils.hints import digest_of, printing, warn_caller
from hdiforest._utils.meta_estimators import layers, pipelines, seeded_clone
from hdiforest.calibration import OutOfBag
from hdiforest.calibration import _predict as predict
from hdiforest.calibration._candidates import DEFAULT_COVERAGES
from hdiforest.calibration._distribution import Reading
from hdiforest.calibration._groups import GroupSource
from hdiforest.calibration._method import Method, Refit, Request
from hdiforest.calibration._methods import METHODS, resolve_method
from hdiforest.exceptions import MeansWarning
from hdiforest.serving import _model_file as model_file

# What a fit calibrates; see `HDIForestRegressor`.
CalibrationOfFit = Literal["auto"] | bool | float | Sequence[float]


class StoredForest(BaseEstimator):
    """Parameter `estimator` of a loaded model: it says what the forest is, and cannot be fitted."""

    def __init__(
        self, n_trees: int, n_features: int, n_outputs: int, n_training_rows: int, allow_nan: bool
    ) -> None:
        self.n_trees = n_trees
        self.n_features = n_features
        self.n_outputs = n_outputs
        self.n_training_rows = n_training_rows
        self.allow_nan = allow_nan

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.allow_nan
        return tags


class HDIForestRegressor(DistributionModel[FittedForest]):
    """Conditional distributions and shortest prediction intervals from a random forest.

    A training row weighs as much for a new row as the two share leaves (Zhu, Lu, Chen, "HDI-Forest:
    Highest Density Interval Regression Forest", IJCAI 2019, eq. 7 and 12). The weights estimate the
    whole distribution. Intervals at any level are read from it without another fit.

    Parameters
    ----------
    estimator : estimator, default=None
        The forest to fit: RandomForestRegressor, ExtraTreesRegressor and others, alone or in a
        Pipeline, a search or a TransformedTargetRegressor (:doc:`/forests`). A fitted forest in a
        ``FrozenEstimator`` is kept as it is. None means ``ExtraTreesRegressor(300,
        bootstrap=True)``, which has the narrowest calibrated intervals of the forests compared. A
        loaded model has a description of its forest here.
    weights : {"all", "inbag", "oob", "monotonic"}, default="all"
        The training rows of a leaf that count. "all" counts every row (the paper's definition).
        "inbag" counts a row as often as the tree's bootstrap drew it. "oob" counts the rows that
        the tree did not draw. "monotonic" is "inbag" for forests with ``monotonic_cst``, with
        targets moved within the bounds of leaves (:doc:`/forests`).
    calibration : "auto", bool, float or sequence of floats, default="auto"
        Coverages that `fit` calibrates by the method "oob". True means the default coverages of
        `calibrate` for which there are enough rows. "auto" means the same, but gives a warning in
        place of an error where no calibration is possible.
    n_jobs : int, default=None
        Threads for scoring. None means the ``n_jobs`` of the forest, or 1 if it has none. -1 means
        all processors. Results do not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the default forest. An `estimator` has its own seed.
    verbose : int, default=0
        Lines printed by `fit` and `calibrate`: 0 for none, 1 for each stage, 2 also for its steps.

    Attributes
    ----------
    estimator_ : estimator
        The fitted forest. A model that was loaded from a file has none.
    scorer_ : hdicore.Scorer
        The compiled forest and its index of the training rows.
    calibration_ : hdiforest.calibration.Calibration, CrossCalibration or JointCalibration
        The result of the calibration. A model without a calibration has none.
    oob_ : hdiforest.OutOfBagPredictions
        Predictions for the training rows, each by the trees that did not draw the row.
    oob_prediction_ : (n_training_rows,) or (n_training_rows, n_outputs) ndarray of float64
        Out-of-bag means of the training rows.
    feature_importances_ : (n_features,) ndarray of float64
        Share of each feature in what the splits explain of the targets.
    n_features_in_ : int
        Number of columns of X in `fit`.
    n_outputs_ : int
        Number of targets.
    n_training_rows_ : int
        Number of rows of the fit.
    feature_names_in_ : ndarray of str
        Names of the columns of X. A model that was fitted without names has none.

    See Also
    --------
    ForestSearchOOB : Fits several forests and keeps the one with the narrowest intervals.
    from_leaves : Makes a model of any forest that reports the leaves of rows.
    fit_table : Fits a model to a table with strings, dates and missing cells.
    hdiforest.inspection.explain : Says what makes the intervals of a few rows.
    hdiforest.monitoring.recalibrate : Moves a calibration by new rows.

    Notes
    -----
    All methods raise NotFittedError if the model is not fitted, ValueError if an argument is
    refused, ImportError if a library is missing, and OSError if a file cannot be read or written.

    X may be an array, a dict of columns, or a table of pandas, polars, pyarrow or any library with
    the Arrow C interface (which needs pyarrow). Column names must equal the names in the fit, in
    the same order.

    The model shares the forest and copies X, y and sample_weight. A later refit of the forest does
    not change the model.

    A ``clone`` is unfitted. After `from_forest` a clone can only be fitted on the rows of the
    forest's own fit. After `load` it cannot be fitted. A ``sklearn.frozen.FrozenEstimator`` around
    a fitted model survives ``clone``. Copies, pickles and skops: :doc:`/backend`.

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

    # Of the last fit; not in pickles. Warnings that are given once, until they are: copies of the
    # model as it is now share the list.
    _training_table: Any = None  # if there are steps

    @known_arguments
    def __init__(
        self,
        estimator: Any = None,
        *,
        weights: Weighting = "all",
        calibration: CalibrationOfFit = "auto",
        n_jobs: int | None = None,
        random_state: int | RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.weights = weights
        self.calibration = calibration
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def from_forest(
        cls,
        forest: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        weights: Weighting = "all",
        calibration: CalibrationOfFit = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> Self:
        """Use a forest that is already fitted, without fitting anything.

        Parameters
        ----------
        forest : fitted estimator
            The fitted forest, alone or in a Pipeline. See `estimator` of the class.
        X : (n, n_features) array or table
            Rows of the forest's own fit, in the same order. The weight and the mean of every leaf
            are compared with the record of the forest.
        y : (n,) or (n, n_outputs) array
            Targets of the rows.
        sample_weight : (n,) array, optional
            Weights of the forest's own fit. None means equal weights.
        weights : {"all", "inbag", "oob", "monotonic"}, default="all"
            The training rows of a leaf that count. See the class.
        calibration : "auto", bool, float or sequence of floats, default=False
            Coverages to calibrate by the method "oob". See the class. By default nothing is
            calibrated, because the calibration takes longer than the rest.
        n_jobs : int, default=None
            Threads for scoring. See the class.
        verbose : int, default=0
            Lines to print. See the class.

        Returns
        -------
        HDIForestRegressor
            A fitted model. A warning is given if leaves do not hold the means of their rows
            (``monotonic_cst``, ``criterion="absolute_error"``), here and in `fit`.

        Examples
        --------
        >>> from sklearn.datasets import make_regression
        >>> from sklearn.ensemble import ExtraTreesRegressor
        >>> from hdiforest import HDIForestRegressor
        >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
        >>> forest = ExtraTreesRegressor(20, random_state=0).fit(X, y)
        >>> HDIForestRegressor.from_forest(forest, X, y).n_training_rows_
        300
        """
        options: Any = {"weights": weights, "calibration": calibration, "n_jobs": n_jobs}
        model = cls(FrozenEstimator(forest), **options, verbose=verbose)
        return model.fit(X, y, sample_weight=sample_weight)

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the forest (unless it is frozen) and index its training rows by leaf.

        Parameters
        ----------
        X : (n, n_features) array or table
            Training rows.
        y : (n,) or (n, n_outputs) array
            Targets of the rows, finite numbers.
        sample_weight : (n,) array, optional
            Weights of the rows in the forest. With ``weights`` "all" and "oob" the rows have the
            same weights in their leaves. None means equal weights.

        Returns
        -------
        HDIForestRegressor
            The model itself. A refused argument leaves the model as it was.

        Examples
        --------
        >>> from sklearn.datasets import make_regression
        >>> from hdiforest import HDIForestRegressor
        >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
        >>> model = HDIForestRegressor(random_state=0).fit(X, y)
        >>> model.predict_interval(X[:3] + 0.1, coverage=0.9).shape
        (3, 2)
        """
        checks.check_choice("weights", self.weights, WEIGHTINGS)
        coverages = self._coverages_of_fit()
        if isinstance(self.estimator, StoredForest):
            raise ValueError(
                "a model that was loaded from a file cannot be fitted, because the file does not "
                "say how its forest was grown; set its parameter estimator to a forest, or use the "
                "loaded model in a sklearn.frozen.FrozenEstimator"
            )
        before = self.__dict__.copy()
        try:
            with self._printing():
                self._fit(X, y, sample_weight, coverages)
        except BaseException:  # a model that is fitted stays as it was
            self.__dict__ = before
            raise
        return self

    def _printing(self) -> AbstractContextManager[None]:
        return printing(type(self).__name__, self.verbose)

    def _coverages_of_fit(self) -> Sequence[float]:
        given = self.calibration
        if isinstance(given, bool) or (isinstance(given, str) and given == "auto"):
            return DEFAULT_COVERAGES if given else ()
        try:
            return checks.checked_coverages(given)
        except ValueError as error:
            raise ValueError(
                f"calibration must be 'auto', True, False or coverages, got {given!r}: {error}"
            ) from None

    def _fit(self, X: Any, y: Any, sample_weight: Any, coverages: Sequence[float]) -> None:
        if self.estimator is None:
            estimator = self._default_forest()
        else:
            training.check_estimator(self.estimator)
            estimator = clone(self.estimator)
        fit = training.fit_estimator(self, estimator, X, y, sample_weight)
        blocks: list[TreeBlock] | None = [] if coverages else None
        self.estimator_, self._training_table = fit.estimator, fit.table
        self._row_labels = frame_of(X).index
        forest, rows, index = training.import_training_forest(
            fit, self.weights, self._n_threads(), blocks
        )
        facts = FitFacts(
            weights=self.weights,
            n_training_rows=len(rows.y),
            allow_nan=fit.allow_nan,
            matches_forest=training.matches_forest(fit, self.weights, rows),
            training_digest=digest_of([rows.X]),
            feature_range=rows.feature_range,
            feature_names=None if fit.steps else getattr(self, "feature_names_in_", None),
            target_names=frame_of(y, "y").names,
        )
        self._keep(FittedForest(Scorer(forest, index), facts, rows, fit.steps))
        if self.weights != "monotonic" and (reason := why_no_means(fit.forest)) is not None:
            warn_caller(f"the forest {reason}", MeansWarning)
        if blocks is not None:
            self._calibrate_fit(coverages, blocks)

    def _default_forest(self) -> ExtraTreesRegressor:
        # Objects that were made without the constructor have neither.
        options = {name: getattr(self, name, None) for name in ("n_jobs", "random_state")}
        return ExtraTreesRegressor(300, bootstrap=True, **options)

    def _calibrate_fit(self, coverages: Sequence[float], blocks: list[TreeBlock]) -> None:
        request = Request(tuple(coverages), self._n_threads(), blocks=blocks)
        try:
            if isinstance(self.calibration, bool | str):
                calibrated = OutOfBag().fit_finite(self._fitted, request)
            else:
                calibrated = OutOfBag().fit(self._fitted, request)
        except ValueError as error:
            if isinstance(self.calibration, str):
                warn_caller(
                    f"intervals are not calibrated and may cover less than they say: {error}"
                )
                return
            raise ValueError(
                f"calibration must be 'auto' or False instead of {self.calibration!r}, because "
                f"{error}"
            ) from None
        self._attach(calibrated)
        done = calibrated.result
        if left_out := [f"{level:g}" for level in coverages if level not in done.coverages]:
            warn_caller(
                f"coverage {', '.join(left_out)} is not calibrated, because {done.n:,} calibration "
                f"rows are too few; calibration={list(done.coverages)} asks for the others alone"
            )

    def _read_by(self, encoder: TableEncoder | None, labels: Any = None) -> Self:
        """Take the encoder that made the features, and the index of pandas of the training rows."""
        self._fitted = replace(self._fitted_forest(), encoder=encoder)
        self._row_labels = labels
        return self

    def _attach(self, calibrated: Calibrated) -> Self:
        """Take a calibration of the forest in the place of the present one."""
        self._fitted = self._fitted_forest().with_calibration(calibrated)
        return self

    @property
    def scorer_(self) -> Scorer:
        """The compiled forest and its index. It does not check whether its file has changed."""
        return self._fitted.scorer

    @property
    def feature_importances_(self) -> Array:
        """Share of each feature, behind all steps, in what the splits explain of the targets."""
        return feature_importances(self._fitted_forest().scorer)

    def __dir__(self) -> list[str]:
        # scikit-learn reads all attributes for this, and when a notebook shows the model.
        names = set(object.__dir__(self)) - {"feature_importances_", "oob_prediction_"}
        return [name for name in names if hasattr(self, name)]

    def _source(self, X: Any) -> NewRows:
        return NewRows(self, X)

    @property
    def oob_(self) -> OutOfBagPredictions:
        """Predictions for the training rows, each by the trees that did not draw the row."""
        check_is_fitted(self)
        return OutOfBagPredictions(self._at_once())

    @property
    def oob_prediction_(self) -> Any:
        """Means of ``oob_``, as in scikit-learn's forests. Absent without out-of-bag rows."""
        try:
            return self.oob_.prediction()
        except ValueError as error:
            raise AttributeError(str(error)) from None

    def _blocks(self, X: Any, by: ArrayLike | None = None) -> Iterator[input_rows.Block]:
        """Yield rows to score in blocks, with the labels of their groups if `by` gives these."""
        return checked_blocks(self, X, self._fitted_forest(), input_rows.check_labels(by, X))

    def predict_weights(self, X: ArrayLike) -> csr_array:
        """Return the weight of every training row for every row of X, eq. (12) of the paper.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.

        Returns
        -------
        scipy.sparse.csr_array of shape (n, n_training_rows), float64
            Weights, one column for each training row. Each row sums to 1. With ``weights="oob"`` a
            row is empty if no tree has a training row in its leaf. With "monotonic" the weights are
            the ones of "inbag". A model without its training rows raises ValueError.

        Notes
        -----
        The first call makes an index of the training rows, which the model keeps.

        Examples
        --------
        >>> from sklearn.datasets import make_regression
        >>> from hdiforest import HDIForestRegressor
        >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
        >>> model = HDIForestRegressor(calibration=False, random_state=0).fit(X, y)
        >>> model.predict_weights(X[:2]).shape
        (2, 300)
        """
        fitted = self._fitted_forest()
        rows, scorer = checked_rows(self, X, fitted), fitted.row_scorer(self._n_threads)
        indptr, indices, data = scorer.weights(rows, n_threads=self._n_threads(len(rows)))
        return csr_array((data, indices, indptr), shape=(len(rows), fitted.facts.n_training_rows))

    def sample(
        self,
        X: ArrayLike,
        n_samples: int = 1,
        random_state: int | np.random.RandomState | None = None,
        *,
        kind: Literal["calibrated", "raw"] | None = None,
        output: Output = "numpy",
    ) -> Any:
        """Draw from the conditional distribution.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        n_samples : int, default=1
            Draws for each row.
        random_state : int, RandomState or None, default=None
            Seed of the draws. None draws anew in each call.
        kind : {"calibrated", "raw"}, optional
            The distribution to draw from: the calibrated one, or the forest's own. The default is
            "calibrated" if the model has a calibrated distribution. See `predict_quantiles`.
        output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
            The type of the result: an array, or a table of the named library.

        Returns
        -------
        (n, n_samples) float64, or table
            Draws, in the unit of y. Several outputs give (n, n_outputs, n_samples) and are drawn
            jointly: each draw is the target of one training row, and the model needs its training
            rows. Calibrated joint draws have the levels of such targets in the forest's own
            distributions.

        Examples
        --------
        >>> from sklearn.datasets import make_regression
        >>> from hdiforest import HDIForestRegressor
        >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
        >>> model = HDIForestRegressor(random_state=0).fit(X, y)
        >>> model.sample(X[:2], n_samples=5, random_state=0).shape
        (2, 5)
        """
        rows = self._source(X)
        distributions = predict.distributions_of(rows.fitted.calibration, kind)

        def values() -> Array:
            size = checks.check_whole_number("n_samples", n_samples)
            random = checks.checked_random_state(random_state)
            if distributions is None:
                return rows.draw(size, random)
            if len(distributions) > 1:
                readings = [each.draws() for each in distributions]
                return rows.read_bases(readings, rows.joint_levels(size, random))
            levels, read = distributions[0].draws()

            def draws(base: Array) -> Array:
                return read(base, random.random_sample((len(base), size)))

            return rows.read_bases([Reading(levels, draws)])

        return row_source.formatted(rows, output, "sample", values)

    @known_arguments
    def calibrate(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        coverage: float | Sequence[float] = DEFAULT_COVERAGES,
        method: Method | Literal["oob", "split", "cv+", "jackknife+"] | None = None,
        by: Any = None,
        mean: Any = None,
        random_state: int | RandomState | None = None,
    ) -> Self:
        """Select and widen intervals so that they cover the share of targets that they name.

        Parameters
        ----------
        X : (n, n_features) array or table, optional
            Rows that took no part in the fit, for the method "split".
        y : (n,) or (n, n_outputs) array, optional
            Targets of the rows X.
        coverage : float or sequence of floats, default=(0.5, 0.8, 0.9, 0.95, 0.99)
            Shares of targets to cover, above 0 and below 1. Each coverage is calibrated by itself,
            and the intervals are then nested.
        method : OutOfBag, Split, CVPlus, JackknifePlus, or their name, optional
            The method of calibration, a class of `hdiforest.calibration` or its name. Each class
            states its guarantee and has the arguments of that method, such as
            ``OutOfBag(order="date")``. The default is "split" if X and y are given, and "oob"
            otherwise. Only "oob" and "split" work for several outputs. "cv+" and an order fit the
            forest again: a loaded model has no forest for it, and an unpickled model with steps has
            no table for it.
        by : str, int, (n_rows,) array or callable, optional
            Groups of the calibration rows, for "oob" and "split": a column of X, a label for each
            row, or a function of rows (n, n_features) that returns the labels. A file keeps only a
            column. Without a column `predict_interval` needs the labels.
        mean : "boosting", regressor or FrozenEstimator, optional
            Another model of the mean. Intervals are centred on it together with the forest's mean.
            "boosting" is a ridge regression and boosted trees of its residuals. A regressor is
            cloned and fitted, in five folds and on all rows, as arrays. A fitted model in a
            FrozenEstimator is taken as it is, and must not know the rows of the fit
            (:doc:`/forests`). Needs ``weights="all"``.
        random_state : int, RandomState or None, default=None
            Seed of folds, of the choice among too many rows, and of the forests and regressors that
            are fitted for the calibration and have no seed. None means 0, so that a calibration
            repeats.

        Returns
        -------
        HDIForestRegressor
            The model itself. `calibration_` shows the choices and a cross-check of the coverage.

        Notes
        -----
        Every step and the sources: :doc:`/how_calibration_works`. What each method promises:
        :doc:`/guarantees`. A warning is given if intervals are infinite. A warning is also given if
        the coverage of later rows is more than four standard errors below the cross-check.
        O(entries of its leaves + atoms log atoms) for each row.

        Examples
        --------
        >>> from sklearn.datasets import make_regression
        >>> from hdiforest import HDIForestRegressor
        >>> X, y = make_regression(n_samples=400, n_features=4, noise=10, random_state=0)
        >>> model = HDIForestRegressor(calibration=False, random_state=0).fit(X[:300], y[:300])
        >>> model.calibrate(X[300:], y[300:], coverage=0.8).calibration_.coverages
        (0.8,)
        """
        forest, how = self._fitted_forest().uncalibrated(), resolve_method(method, X, y)
        coverages, n_outputs = checks.checked_coverages(coverage), forest.n_outputs
        if mean is not None:
            check_mean(mean, forest)
            if (weights := forest.facts.weights) != "all":
                must = "mean must be None"
                raise CallError(f"{{no_mean}} with weights={weights!r}", no_mean=must)
        names = alternatives(repr(e.name) for e in METHODS.values() if not e.has_forests)
        if by is not None and how.has_forests:
            raise ValueError(f"by must be None with method={how.name!r}; {names} take groups")
        if n_outputs > 1 and how.has_forests:
            raise ValueError(
                f"method must be {names} for a model of several targets, this has {n_outputs}"
            )
        seed = checks.checked_seed(random_state)
        request = Request(
            coverages,
            self._n_threads(),
            self._checked_calibration_rows(X, y, forest) if how.needs_rows else None,
            None if by is None else GroupSource.of(by, forest),
            mean,
            seed,
            lambda what: self._refitting(forest, what, seed),
        )
        with self._printing():
            return self._attach(how.fit(forest, request))

    def _checked_calibration_rows(
        self, X: Any, y: Any, fitted: FittedForest
    ) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Return rows (n, n_features) and as many targets, or raise ValueError."""
        targets = checks.check_targets("y", y, fitted.n_outputs)
        rows = checked_rows(self, X, fitted)
        checks.check_as_many("y", targets, len(rows))
        return rows, targets

    def prune(self, min_samples_leaf: int) -> Self:
        """Return a smaller model of the same trees with larger leaves.

        Parameters
        ----------
        min_samples_leaf : int
            The number of drawn rows that each child of a node must have. A node with a smaller
            child becomes a leaf. Models with ``weights="monotonic"`` cannot be pruned.

        Returns
        -------
        HDIForestRegressor
            Another model, without a calibration. Training rows are routed anew. Trees that split
            off single rows near the root, such as on heavy-tailed targets, may shrink to few
            leaves.

        Examples
        --------
        >>> from sklearn.datasets import make_regression
        >>> from hdiforest import HDIForestRegressor
        >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
        >>> model = HDIForestRegressor(calibration=False, random_state=0).fit(X, y)
        >>> smaller = model.prune(min_samples_leaf=5)
        >>> smaller.scorer_.forest.nbytes < model.scorer_.forest.nbytes
        True
        """
        fitted = self._fitted_forest().uncalibrated()
        model = copy.copy(self)
        model._fitted = prune(fitted, min_samples_leaf, self._n_threads())
        return model

    def _refitting(self, fitted: FittedForest, what: str, seed: int | None) -> Refit:
        """Return what fits the same forest to some of its training rows, or raise ValueError."""
        forest = getattr(self, "estimator_", None)
        if forest is None:
            raise ValueError(
                f"{what} fits the forest again, and a model that was loaded from a file has none "
                "to fit; calibrate before saving"
            )
        rows = fitted.require_training_rows()
        X = rows.X if fitted.steps is None else self._training_table
        if X is None:
            raise ValueError(
                f"{what} fits the steps before the forest again, to the table of the fit, which "
                "pickles do not hold; calibrate before pickling"
            )
        options: Any = {"weights": fitted.facts.weights, "n_jobs": self.n_jobs}
        unfitted = type(self)(seeded_clone(forest, seed), **options, calibration=False)

        def refit(
            part: NDArray[np.intp], others: NDArray[np.intp]
        ) -> tuple[FittedForest, NDArray[Any]]:
            model = clone(unfitted)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MeansWarning)  # the fit on all rows warned of it
                model.fit(_safe_indexing(X, part), rows.y[part], rows.weights_of(part))
            fitted_again = model._fitted_forest()
            return fitted_again, checked_rows(model, _safe_indexing(X, others), fitted_again)

        return refit

    def save(
        self, path: str | os.PathLike[str], *, training_rows: bool = True, diagnostics: bool = False
    ) -> None:
        """Write the model to a file in safetensors format, whole or not at all.

        Needs safetensors. A model with steps before the forest, or with a regressor as `mean`, also
        needs skops.

        Parameters
        ----------
        path : path
            The file to write. An existing file is replaced.
        training_rows : bool, default=True
            Whether to include the training rows, X as float32. `predict_weights`, ``oob_`` and
            joint draws of several outputs need them. The distinct values of y and the range of each
            feature are always kept.
        diagnostics : bool, default=False
            Whether a file without training rows keeps at most 10,000 rows of X, which
            `hdiforest.inspection.diagnose` needs.

        Examples
        --------
        >>> import tempfile
        >>> from sklearn.datasets import make_regression
        >>> from hdiforest import HDIForestRegressor
        >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
        >>> path = tempfile.mkdtemp() + "/model.hdi"
        >>> HDIForestRegressor(random_state=0).fit(X, y).save(path)
        >>> HDIForestRegressor.load(path).n_training_rows_
        300
        """
        checks.check_flag("diagnostics", diagnostics)
        fitted = self._fitted_forest()
        if training_rows and fitted.training_rows is None:
            raise ValueError("this model has no training rows to save; pass training_rows=False")
        if diagnostics and not training_rows:
            fitted = replace(fitted, reference=fitted.require_reference())
        model_file.save(fitted, Path(path), training_rows=training_rows)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        n_jobs: int | None = None,
        verify: bool = False,
        mapped: bool = True,
        trusted: Sequence[Any] = (),
    ) -> Self:
        """Open a model that `save` wrote. It scores without the forest it was made from.

        The file is memory-mapped, and processes that load it share its pages. Everything is checked
        before it is used. If the file is written to in place, reading the model raises OSError. A
        file that is renamed over it changes nothing (:doc:`/deploy`). See `save` for an
        example.

        Parameters
        ----------
        path : path
            The file that `save` wrote.
        n_jobs : int, default=None
            Threads for scoring. None means 1. See the class.
        verify : bool, default=False
            Whether to check everything now, with the checksums of large arrays. The checksums tell
            whether a bit has changed. ``hdiforest inspect`` checks the same.
        mapped : bool, default=True
            Whether to map the file. If not, each process reads and checks a copy of its own, and
            later changes of the file do not matter.
        trusted : sequence of str or type, default=()
            Types of steps to trust, besides the types that skops trusts. They may run code
            (:doc:`/forests`).

        Returns
        -------
        HDIForestRegressor
            A fitted model without its forest. A file that is damaged or holds no model raises
            ValueError.
        """
        loaded = model_file.load(Path(path), verify=verify, mapped=mapped, trusted=trusted)
        fitted = loaded.content
        if fitted.is_censored:
            raise ValueError(
                f"{path} holds a survival model, which HDISurvivalForest.load opens, and of the "
                "command hdiforest score and inspect"
            )
        facts, sizes = fitted.facts, (fitted.n_features, fitted.n_outputs)
        n_trees, about = fitted.scorer.forest.n_trees, (facts.n_training_rows, facts.allow_nan)
        model = cls(StoredForest(n_trees, *sizes, *about), weights=facts.weights, n_jobs=n_jobs)
        model._keep(fitted)
        names: Any = facts.feature_names
        n_features: int | None = fitted.n_features
        if (steps := fitted.steps) is not None:
            names, n_features = steps.table.columns, getattr(steps.pipeline, "n_features_in_", None)
        if n_features is not None:  # there is no number of them for steps that read texts
            model.n_features_in_ = n_features
        if names is not None:
            model.feature_names_in_ = np.array(names, dtype=object)
        return model

    def _n_threads(self, n_rows: int | None = None) -> int:
        # The engine starts no thread below this number of row-trees, and `thread_count` takes a
        # third of the time of scoring one row.
        if n_rows is not None and n_rows * self._fitted.scorer.forest.n_trees < 10_000:
            return 1
        n_jobs, fitted = self.n_jobs, getattr(self, "estimator_", None)
        if n_jobs is None and fitted is not None:
            n_jobs = getattr(layers(fitted, fitted=True)[-1], "n_jobs", None)
        return thread_count(n_jobs)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        estimator = getattr(self, "estimator", None)
        parts = layers(self._default_forest() if estimator is None else estimator, fitted=False)
        # The first steps of pipelines get the rows, or else the forest.
        reader = (pipelines(parts) or parts[-1:])[0]
        tags.input_tags.allow_nan = get_tags(reader).input_tags.allow_nan
        tags.target_tags.multi_output = True
        return tags
