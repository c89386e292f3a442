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
from hdiforest._model.training_rows import ANY_WEIGHTING, WEIGHTINGS, TreeBlock, Weighting
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
from hdiforest.exceptions import MeansWarning, TrainingRowsWarning
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

    # Of the last fit; not in pickles. Warnings that are given once, until they are: copies of the
    # model as it is now share the list.
    _to_warn: list[type[Warning]]
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
            with self._printing():
                self._fit(X, y, sample_weight, coverages)
        except BaseException:  # a model that is fitted stays as it was
            self.__dict__ = before
            raise
        return self

    def _printing(self) -> AbstractContextManager[None]:
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
        self._fitted = FittedForest(Scorer(forest, index), facts, rows, fit.steps)
        self._to_warn = [TrainingRowsWarning]
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
        return checked_blocks(self, X, self._fitted_forest(), input_rows.check_labels(by, X))

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
        by: Any = None,
        mean: Any = None,
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
            Classes in `hdiforest.calibration`, which say what they guarantee, and have the
            arguments that one method alone takes, such as ``OutOfBag(order="date")``. By default
            "split" if there are X and y, else "oob", the only ones of several outputs. "cv+" and an
            order fit again, for which loaded models have no forest, and unpickled ones with steps
            no table.
        by : str, int, (n_rows,) array or callable, optional
            Groups of the calibration rows, for "oob" and "split": a column of X, one label a row,
            or a function of rows (n, n_features) that returns them. Files keep nothing but a
            column; otherwise `predict_interval` needs the labels.
        mean : "boosting", regressor or FrozenEstimator, optional
            Another model of the mean, on which to centre intervals with the forest's: a ridge and
            boosted trees of its residuals; a regressor that is cloned, and fitted in five folds and
            on all rows, as arrays; or a fitted model that is taken as it is, to which the rows of
            the fit must be new (:doc:`/other_forests`). Needs ``weights="all"``.
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
        forest, how = self._fitted_forest().uncalibrated(), resolve_method(method, X, y)
        coverages, n_outputs = checks.checked_coverages(coverage), forest.n_outputs
        if mean is not None:
            check_mean(mean, forest)
            if (weights := forest.facts.weights) != "all":
                must = "mean must be None"
                raise CallError(f"{{no_mean}} with weights={weights!r}", no_mean=must)
        if by is not None and not how.takes_groups:
            names = alternatives(repr(e.name) for e in METHODS.values() if e.takes_groups)
            raise ValueError(f"by must be None with method={how.name!r}; {names} take groups")
        if n_outputs > 1 and not how.takes_several_outputs:
            names = alternatives(repr(e.name) for e in METHODS.values() if e.takes_several_outputs)
            raise ValueError(
                f"method must be {names} for a model of several targets, this has {n_outputs}"
            )
        request = Request(
            coverages,
            self._n_threads(),
            self._checked_calibration_rows(X, y, forest) if how.needs_rows else None,
            None if by is None else GroupSource.of(by, forest),
            mean,
            seed := checks.checked_seed(random_state),
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
        facts, sizes = fitted.facts, (fitted.n_features, fitted.n_outputs)
        n_trees, about = fitted.scorer.forest.n_trees, (facts.n_training_rows, facts.allow_nan)
        model = cls(StoredForest(n_trees, *sizes, *about), weights=facts.weights, n_jobs=n_jobs)
        model._fitted, model._to_warn = fitted, [TrainingRowsWarning]
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

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        for name in ("_training_table", "_row_labels", "_to_warn"):
            state.pop(name, None)
        if "_fitted" in state:
            state["_fitted"] = to_arrays(self._fitted_forest()).state()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if "_fitted" in state:
            state["_fitted"] = from_arrays(Parts(**state["_fitted"]))
            state["_to_warn"] = [TrainingRowsWarning]
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
