"""HDIForestRegressor: a scikit-learn regressor whose predictions are whole distributions."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from hdicore import Scorer
from hdicore.explain import feature_importances
from hdiforest._estimators import folds, input_rows, row_source, training
from hdiforest._estimators.distribution_model import DistributionModel
from hdiforest._estimators.input_rows import checked_blocks, checked_rows
from hdiforest._estimators.new_rows import NewRows
from hdiforest._estimators.out_of_bag import OutOfBagPredictions
from hdiforest._model import calibrate as calibrating
from hdiforest._model import predict
from hdiforest._model.fitted import AnyCalibration, FittedForest
from hdiforest._model.prune import prune
from hdiforest._model.sklearn_forest import why_no_means
from hdiforest._model.training_rows import ANY_WEIGHTING, WEIGHTINGS, TreeBlock, Weighting
from hdiforest._tables.encoder import TableEncoder
from hdiforest._tables.frames import Output, frame_of
from hdiforest._utils import Array, checks
from hdiforest._utils.checks import known_arguments, thread_count
from hdiforest._utils.hints import digest_of, printing, warn_caller
from hdiforest._utils.meta_estimators import layers, pipelines, seeded_clone
from hdiforest.calibration import Calibration, CVPlus, JackknifePlus, OutOfBag, Split
from hdiforest.calibration._bases import DEFAULT_COVERAGES
from hdiforest.calibration._calibrate import CrossFit
from hdiforest.calibration._distribution import Reading
from hdiforest.calibration._methods import Method, resolve_method
from hdiforest.calibration._selection import Objective
from hdiforest.exceptions import MeansWarning
from hdiforest.serving import _model_file as model_file
from hdiforest.serving._parts import Parts
from hdiforest.serving._serialization import from_arrays, to_arrays

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

    For a new row, each training row weighs as often as the two share a leaf (Zhu, Lu, Chen,
    "HDI-Forest: Highest Density Interval Regression Forest", IJCAI 2019, eq. 7 and 12). From these
    weights, an estimate of the whole distribution, intervals at any level are read without a fit.

    Parameters
    ----------
    estimator : estimator, default=None
        The forest to fit, or in a ``FrozenEstimator`` a fitted one to keep: RandomForestRegressor,
        ExtraTreesRegressor and others, alone or in a Pipeline, a search or a
        TransformedTargetRegressor (:doc:`/forests`). None means
        ``ExtraTreesRegressor(300, bootstrap=True)``, which has the narrowest calibrated intervals
        of those compared. Of a loaded model, a description of its forest.
    weights : {"all", "inbag", "oob", "monotonic"}, default="all"
        Which training rows of a leaf count: all (the paper's definition), as often as the tree's
        bootstrap drew them, or those that the tree did not see. "monotonic" is "inbag" for forests
        with ``monotonic_cst``, with targets moved within bounds of leaves (:doc:`/monotonic`).
    calibration : "auto", bool, float or sequence of floats, default="auto"
        Coverages that `fit` calibrates by "oob"; True means the default ones of `calibrate` that
        there are rows enough for, and "auto" the same, but a warning in place of an error where it
        cannot be done.
    n_jobs : int, default=None
        Threads used for scoring: None means as many as the forest itself uses (its ``n_jobs``), or
        1 if it does not say; -1 means all processors. Results do not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the default forest; an `estimator` has its own.
    verbose : int, default=0
        Whether `fit` and `calibrate` print a line for each stage (1), or also for steps of it (2).

    Attributes
    ----------
    estimator_ : estimator
        The fitted forest; absent from a model that was loaded from a file.
    scorer_ : hdicore.Scorer
    calibration_ : hdiforest.calibration.Calibration, CrossCalibration or JointCalibration
    oob_ : hdiforest.OutOfBagPredictions
        What is predicted for the training rows, each by trees that did not draw it.
    feature_importances_, oob_prediction_ : ndarrays
    n_features_in_, n_outputs_, n_training_rows_ : int
    feature_names_in_ : ndarray of str
        Only if fitted on a table with column names.

    See Also
    --------
    ForestSearchOOB : Fits several forests and keeps the one with the narrowest intervals.
    from_leaves : A model of any forest that reports the leaves of rows.
    fit_table : Fits a model to a table with strings, dates and missing cells.
    hdiforest.inspection.explain : Says what makes the intervals of a few rows.
    hdiforest.monitoring.recalibrate : Moves a calibration by new rows.

    Notes
    -----
    All methods raise NotFittedError if the model is not fitted, ValueError if an argument is
    refused, ImportError if a library is missing, and OSError if a file cannot be read or written.

    X may be an array, a dict of columns, or a table of pandas, polars, pyarrow or any library with
    the Arrow C interface (which needs pyarrow). Column names must be those of the fit, in order.

    The forest is shared, X, y and sample_weight are copied, and a later refit of the forest does
    not change the model. A ``clone`` is unfitted: after `from_forest` it fits on the rows of the
    forest's own fit only, after `load` not at all. A ``sklearn.frozen.FrozenEstimator`` around a
    fitted model outlives ``clone``. Copies, pickles and skops: :doc:`/backend`.

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

    # Of the last fit; not in pickles.
    _training_table: Any = None  # if there are steps
    _row_labels: Any = None  # index of pandas

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
            See the class.
        X, y, sample_weight : table and arrays as in `fit`
            Those the forest, or the Pipeline it is in, was fitted on, in the same order. Every
            leaf's weight and mean is compared with the forest's own record.
        weights, calibration, n_jobs, verbose : optional
            See the class. By default nothing is calibrated, as that takes longer than the rest.

        Returns
        -------
        HDIForestRegressor
            A fitted model. As from `fit`, leaves that do not hold the means of their rows get a
            warning (``monotonic_cst``, ``criterion="absolute_error"``).
        """
        options: Any = {"weights": weights, "calibration": calibration, "n_jobs": n_jobs}
        model = cls(FrozenEstimator(forest), **options, verbose=verbose)
        return model.fit(X, y, sample_weight=sample_weight)

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the forest (unless it is frozen) and index its training rows by leaf.

        Parameters
        ----------
        X, y, sample_weight : (n, n_features) array or table, (n,) or (n, n_outputs) array, and (n,)
            Training rows, their targets, and weights for the forest; with ``weights`` "all" and
            "oob" rows also weigh so much in their leaves.

        Returns
        -------
        HDIForestRegressor
            The model itself. It is as it was before if anything is refused.
        """
        if self.weights not in tuple(WEIGHTINGS):
            raise ValueError(f"weights must be {ANY_WEIGHTING}, got {self.weights!r}")
        coverages = self._coverages_of_fit()
        if isinstance(self.estimator, StoredForest):
            raise ValueError(
                "a model that was loaded from a file cannot be fitted, because the file does not "
                "say how its forest was grown; set its parameter estimator to a forest, or use the "
                "loaded model in a sklearn.frozen.FrozenEstimator"
            )
        before = self.__dict__.copy()
        try:
            with self._told():
                self._fit(X, y, sample_weight, coverages)
        except BaseException:  # a model that is fitted stays as it was
            self.__dict__ = before
            raise
        return self

    def _told(self) -> AbstractContextManager[None]:
        return printing(type(self).__name__, getattr(self, "verbose", 0))

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
        self._fitted = FittedForest(
            scorer=Scorer(forest, index),
            weights=self.weights,
            matches_forest=training.matches_forest(fit, self.weights, rows),
            n_training_rows=len(rows.y),
            allow_nan=fit.allow_nan,
            feature_names=None if fit.steps else getattr(self, "feature_names_in_", None),
            target_names=frame_of(y, "y").names,
            encoder=fit.steps,
            training_rows=rows,
            feature_range=rows.feature_range,
            training_digest=digest_of([rows.X]),
        )
        if self.weights != "monotonic" and (reason := why_no_means(fit.forest)) is not None:
            warn_caller(f"the forest {reason}", MeansWarning)
        if blocks is not None:
            self._fitted = self._calibrate_fit(self._fitted, coverages, blocks)

    def _default_forest(self) -> ExtraTreesRegressor:
        # Objects that were made without the constructor have neither.
        options = {name: getattr(self, name, None) for name in ("n_jobs", "random_state")}
        return ExtraTreesRegressor(300, bootstrap=True, **options)

    def _calibrate_fit(
        self, fitted: FittedForest, coverages: Sequence[float], blocks: list[TreeBlock]
    ) -> FittedForest:
        settings = calibrating.Settings(tuple(coverages))
        calibrate = calibrating.calibrate_out_of_bag
        if isinstance(self.calibration, bool | str):
            calibrate = calibrating.calibrate_finite_coverages
        try:
            calibrating.check_calibration(fitted, settings)
            result = calibrate(fitted, settings, self._n_threads(), blocks)
        except ValueError as error:
            if isinstance(self.calibration, str):
                warn_caller(
                    f"intervals are not calibrated and may cover less than they say: {error}"
                )
                return fitted
            raise ValueError(
                f"calibration must be 'auto' or False instead of {self.calibration!r}, because "
                f"{error}"
            ) from None
        done = cast("AnyCalibration", result.calibration)
        if left_out := [f"{level:g}" for level in coverages if level not in done.coverages]:
            warn_caller(
                f"coverage {', '.join(left_out)} is not calibrated, because {done.n:,} calibration "
                f"rows are too few; calibration={list(done.coverages)} asks for the others alone"
            )
        return result

    @property
    def scorer_(self) -> Scorer:
        """The compiled model, which does not look whether its file has changed."""
        return self._fitted.scorer

    @property
    def feature_importances_(self) -> Array:
        """Share of each feature, behind all steps, in what splits explain of the targets."""
        return feature_importances(self._fitted_forest().scorer)

    def __dir__(self) -> list[str]:
        # scikit-learn reads all attributes for this, and when a notebook shows the model.
        names = set(object.__dir__(self)) - {"feature_importances_", "oob_prediction_"}
        return [name for name in names if hasattr(self, name)]

    def _source(self, X: Any) -> NewRows:
        return NewRows(self, X)

    @property
    def oob_(self) -> OutOfBagPredictions:
        """Predictions for the training rows by trees that did not see them, as of now."""
        check_is_fitted(self)
        return OutOfBagPredictions(self._at_once())

    @property
    def oob_prediction_(self) -> Any:
        """Means of ``oob_``, as scikit-learn's forests have them; absent if there are none."""
        try:
            return self.oob_.prediction()
        except ValueError as error:
            raise AttributeError(str(error)) from None

    def _blocks(self, X: Any, by: ArrayLike | None = None) -> Iterator[input_rows.Block]:
        """Yield rows to score in blocks, with the labels of their groups if `by` gives these."""
        return checked_blocks(self, X, self._fitted_forest(), folds.check_labels(by, X))

    def predict_weights(self, X: ArrayLike) -> csr_array:
        """Weight of every training row for every row of X, eq. (12) of the paper.

        Parameters
        ----------
        X : (n, n_features) array or table
            As in `predict`.

        Returns
        -------
        scipy.sparse.csr_array of shape (n, n_training_rows), float64
            Rows sum to 1, or with ``weights="oob"`` may be empty, where no tree has a training row
            in the row's leaf. Columns are the training rows, without which this is a ValueError.
            Those of "monotonic" are as of "inbag". The first call makes an index, which is kept.
        """
        fitted = self._fitted_forest()
        rows, scorer = checked_rows(self, X, fitted), fitted.row_scorer(self._n_threads)
        indptr, indices, data = scorer.weights(rows, n_threads=self._n_threads(len(rows)))
        return csr_array((data, indices, indptr), shape=(len(rows), fitted.n_training_rows))

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
        X, n_samples, random_state : rows as in `predict`, int, and int, RandomState or None
            Draws per row, and their seed.
        kind, output : {"calibrated", "raw"}, optional, and str, default="numpy"
            As in `predict_quantiles`.

        Returns
        -------
        (n, n_samples) float64, or table
            (n, n_outputs, n_samples) with several outputs, which are drawn jointly: each draw is
            the target of a training row, which the model must have. Calibrated ones have the levels
            of such targets in the forest's own distributions.
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
        mean: Any = None,
        objective: Objective = "balanced",
        by: Any = None,
        order: Any = None,
        random_state: int | RandomState | None = None,
    ) -> Self:
        """Select and widen intervals so that they cover what they say.

        Parameters
        ----------
        X, y : (n, n_features) array or table and (n,) or (n, n_outputs) array, optional
            Rows that took no part in the fit, and their targets, for "split".
        coverage : float or sequence of floats, default=(0.5, 0.8, 0.9, 0.95, 0.99)
            Above 0 and below 1. Coverages do not depend on each other, but for the nesting of their
            intervals.
        method : OutOfBag, Split, CVPlus, JackknifePlus, or their name, optional
            Classes in `hdiforest.calibration`, which say what they guarantee. By default "split" if
            there are X and y, else "oob", the only ones of several outputs. "cv+" and `order` fit
            again, for which loaded models have no forest, and unpickled ones with steps no table.
        mean : "boosting", regressor or FrozenEstimator, optional
            Another model of the mean, on which to centre intervals with the forest's: a ridge and
            boosted trees of its residuals; a regressor that is cloned, and fitted in five folds and
            on all rows, as arrays; or a fitted model that is taken as it is, to which the rows of
            the fit must be new (:doc:`/other_forests`). Needs ``weights="all"``.
        objective : {"balanced", "width", "interval_score"}, default="balanced"
            Which of eleven levels is widened, from 500 calibration rows on: that of the least mean
            width W at equal coverage, mean interval score S, or log W + 1.5 log S.
        by : str, int, (n_rows,) array or callable, optional
            Groups of the calibration rows, for "oob" and "split": a column of X, one label a row,
            or a function of rows (n, n_features) that returns them. Files keep nothing but a
            column; otherwise `predict_interval` needs the labels.
        order : str, int or (n_training_rows,) array, optional
            What training rows are ordered by, such as their time, for "oob": a column, or numbers
            or dates, perhaps as text. `calibration_` shows how a forest of the first 3/4 covers
            later rows.
        random_state : int, RandomState or None, default=None
            Seed of folds, of the choice among too many rows, and of forests and regressors that are
            fitted for the calibration and have none. None is 0, so that a calibration repeats.

        Returns
        -------
        HDIForestRegressor
            The model itself. `calibration_` shows what was chosen, and a cross-check of coverage.

        Notes
        -----
        Every step, the guarantees and the sources: :doc:`/calibration`. Infinite intervals get a
        warning, and later rows that are covered by more than four standard errors less than the
        cross-check says. O(entries of its leaves + atoms log atoms) for each row.
        """
        fitted, how = self._fitted_forest().before_calibration(), resolve_method(method, X, y)
        settings = calibrating.Settings(
            checks.checked_coverages(coverage),
            objective,
            mean,
            how.max_rows if isinstance(how, OutOfBag | JackknifePlus) else OutOfBag.max_rows,
            checks.checked_seed(random_state),
            None if by is None else folds.group_source(fitted, by, how),
        )
        calibrating.check_calibration(fitted, settings)
        if fitted.n_outputs > 1 and (order is not None or not isinstance(how, OutOfBag | Split)):
            what = "order must be None" if order is not None else "method must be 'oob' or 'split'"
            raise ValueError(f"{what} for a model of several targets, this has {fitted.n_outputs}")
        if order is not None:
            rank = folds.order_of_rows(fitted, order, how)
            refit = self._refit(fitted, "order", settings.random_state)
        n_threads = self._n_threads()
        with self._told():
            if isinstance(how, CVPlus):
                refit = self._refit(fitted, "method='cv+'", settings.random_state)
                calibration, forests = folds.fit_folds(*refit, settings, how, n_threads)
                self._fitted = fitted.uncalibrated(calibration=calibration, folds=forests)
            elif isinstance(how, Split):
                rows = self._checked_calibration_rows(X, y, fitted)
                if settings.by is not None:
                    settings.by.labels(rows[0])  # raises before any work is done
                args = rows, how.confidence, n_threads
                self._fitted = calibrating.calibrate_by_split(fitted, settings, *args)
            elif isinstance(how, JackknifePlus):
                self._fitted = calibrating.calibrate_by_jackknife(fitted, settings, n_threads)
            else:
                self._fitted = calibrating.calibrate_out_of_bag(fitted, settings, n_threads)
                if order is not None:
                    later = folds.check_later_rows(*refit, settings, rank, n_threads)
                    replace_levels(self, "later", later)
                    folds.warn_of_later_rows(cast("Calibration", self.calibration_))
        return self

    def _replace_calibration(self, fitted: FittedForest, calibration: AnyCalibration) -> None:
        """Give the model, which is as `fitted` until now, another calibration."""
        self._fitted = replace(fitted, calibration=calibration)

    def _checked_calibration_rows(
        self, X: Any, y: Any, fitted: FittedForest
    ) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Return rows (n, n_features) and as many targets, or raise ValueError."""
        targets = checks.check_targets("y", y, fitted.n_outputs)
        rows = checked_rows(self, X, fitted)
        checks.check_as_many("y", targets, len(rows))
        return rows, targets

    def prune(self, min_samples_leaf: int) -> Self:
        """Return a smaller model, of the same trees with larger leaves.

        Parameters
        ----------
        min_samples_leaf : int
            Nodes with a child of fewer drawn rows become leaves. Not of ``weights="monotonic"``.

        Returns
        -------
        HDIForestRegressor
            Another model, without a calibration. Trees that split off single rows near the root,
            as on heavy-tailed targets, may shrink to few leaves. Training rows are routed anew.
        """
        fitted = self._fitted_forest().before_calibration()
        model = copy.copy(self)
        model._fitted = prune(fitted, min_samples_leaf, self._n_threads())
        return model

    def _refit(self, fitted: FittedForest, what: str, seed: int | None) -> tuple[Any, Any, Any]:
        """Return an unfitted model of the same forest, and the table and rows to fit it on."""
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
        options: Any = {"weights": fitted.weights, "calibration": False, "n_jobs": self.n_jobs}
        return type(self)(seeded_clone(forest, seed), **options), X, rows

    def save(
        self, path: str | os.PathLike[str], *, training_rows: bool = True, diagnostics: bool = False
    ) -> None:
        """Write the model to a file in safetensors format, whole or not at all.

        Needs safetensors, and skops for steps before the forest, or a regressor as `mean`.

        Parameters
        ----------
        path, training_rows : path, and bool, default=True
            A file, replaced if it exists, and whether to include the training rows (X as float32),
            which `predict_weights`, ``oob_`` and joint draws of several outputs need.
            The distinct values of y and the range of each feature are always kept.
        diagnostics : bool, default=False
            Whether a file without training rows keeps at most 10,000 (X), which
            `hdiforest.inspection.diagnose` needs.
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
        before it is used. If the file is written to in place, reading the model raises OSError; a
        file that is renamed over it changes nothing (:doc:`/production`).

        Parameters
        ----------
        path, n_jobs : path, and int, default=None
            Of a file that `save` wrote; and see the class, None means 1.
        verify : bool, default=False
            Whether to check everything now, with the checksums of large arrays, which tell whether
            a bit has changed. ``hdiforest inspect`` does so, too.
        mapped : bool, default=True
            If not, each process reads and checks a copy of its own; later the file does not matter.
        trusted : sequence of str or type, default=()
            Types of steps, besides those that skops trusts. They may run code (:doc:`/forests`).

        Returns
        -------
        HDIForestRegressor
            A fitted model, without its forest. A file that is damaged or no model is a ValueError.
        """
        loaded = model_file.load(Path(path), verify=verify, mapped=mapped, trusted=trusted)
        fitted = loaded.content
        sizes = fitted.n_features, fitted.n_outputs, fitted.n_training_rows
        forest = StoredForest(fitted.scorer.forest.n_trees, *sizes, fitted.allow_nan)
        model = cls(forest, weights=fitted.weights, n_jobs=n_jobs)
        model._fitted = fitted
        names: Any = fitted.feature_names
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

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        for name in ("_training_table", "_row_labels"):
            state.pop(name, None)
        if "_fitted" in state:
            state["_fitted"] = to_arrays(self._fitted_forest()).state()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if "_fitted" in state:
            state["_fitted"] = from_arrays(Parts(**state["_fitted"]))
        super().__setstate__(state)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        estimator = getattr(self, "estimator", None)
        parts = layers(self._default_forest() if estimator is None else estimator, fitted=False)
        # The first steps of pipelines get the rows, or else the forest.
        reader = (pipelines(parts) or parts[-1:])[0]
        tags.input_tags.allow_nan = get_tags(reader).input_tags.allow_nan
        tags.target_tags.multi_output = True
        return tags


def calibrate_as_far(model: HDIForestRegressor, **options: Any) -> int:
    """Calibrate at those coverages that the rows allow, with options; return their number."""
    with calibrating.ignore_infinite_intervals():
        model.calibrate(**options)
    n_rows: int = model.calibration_.n
    if isinstance(model.calibration_, Calibration):
        model._fitted = model._fitted_forest().with_finite_coverages()
    return n_rows


def calibrate_with_cross_fit(
    model: HDIForestRegressor, coverage: float, objective: Objective, seed: int
) -> tuple[NDArray[np.intp], CrossFit]:
    """Calibrate a model out of bag; return the rows of its cross-fit, and the cross-fit."""
    fitted = model._fitted_forest()
    settings = calibrating.Settings((coverage,), objective=objective, random_state=seed)
    calibrating.check_calibration(fitted, settings)
    model._fitted, rows, fit = calibrating.calibrate_and_cross_fit(
        fitted, settings, model._n_threads()
    )
    return rows, fit


def replace_levels(model: HDIForestRegressor, field: str, of_levels: Sequence[Any]) -> None:
    """Replace `cross_check` or `later` of the levels of a calibration."""
    fitted = model._fitted_forest()
    calibration = cast("Calibration", fitted.calibration)
    pairs = zip(calibration.levels, of_levels, strict=True)
    levels = tuple(replace(level, **{field: check}) for level, check in pairs)
    model._replace_calibration(fitted, replace(calibration, levels=levels))


def attach_encoder(
    model: HDIForestRegressor, encoder: TableEncoder | None, labels: Any = None
) -> None:
    """Attach the encoder that made the features, and the index of pandas of the training rows."""
    model._fitted = replace(model._fitted_forest(), encoder=encoder)
    model._row_labels = labels
