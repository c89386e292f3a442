"""HDIForestRegressor: a scikit-learn regressor whose predictions are whole distributions."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, vstack
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from hdicore import Scorer
from hdiforest._estimators.distribution_model import DistributionModel, Query, Readings, query_of
from hdiforest._estimators.folds import (
    check_labels,
    check_later_rows,
    fit_folds,
    group_source,
    order_of_rows,
    split_folds,
    warn_of_later_rows,
)
from hdiforest._estimators.input_rows import (
    Block,
    Rows,
    checked_blocks,
    checked_rows,
    concatenated,
    is_plain,
)
from hdiforest._estimators.oob_methods import OutOfBagMixin
from hdiforest._estimators.training import (
    Training,
    check_estimator,
    fit_estimator,
    import_training_forest,
    matches_forest,
)
from hdiforest._model.calibrate import (
    LEAF_SIZES,
    Settings,
    calibrate_and_cross_fit,
    calibrate_by_jackknife,
    calibrate_by_split,
    calibrate_finite_coverages,
    calibrate_out_of_bag,
    check_calibration,
    default_kinds,
    ignore_infinite_intervals,
)
from hdiforest._model.fitted import AnyCalibration, FittedForest
from hdiforest._model.predict import (
    distributions_of,
    of_outputs,
    predict_calibrated,
    read_distributions,
)
from hdiforest._model.prune import prune
from hdiforest._model.sklearn_forest import why_no_means
from hdiforest._model.table_steps import TableSteps
from hdiforest._model.training_rows import ANY_WEIGHTING, WEIGHTINGS, TreeBlock, Weighting
from hdiforest._tables.encoder import TableEncoder
from hdiforest._tables.frames import Output
from hdiforest._utils import Array
from hdiforest._utils.checks import (
    check_targets,
    check_whole_number,
    checked_coverages,
    checked_random_state,
    checked_seed,
)
from hdiforest._utils.hints import callers_level, digest_of
from hdiforest._utils.meta_estimators import forest_of, layers, pipelines
from hdiforest._utils.threads import thread_count
from hdiforest.calibration import (
    Calibration,
    CrossCheck,
    CVPlus,
    JackknifePlus,
    OutOfBag,
    Split,
)
from hdiforest.calibration._bases import DEFAULT_COVERAGES, BaseKind
from hdiforest.calibration._calibrate import CrossFit
from hdiforest.calibration._distribution import Reading
from hdiforest.calibration._methods import Method, resolve_method
from hdiforest.calibration._selection import Objective
from hdiforest.serving import _model_file as model_file
from hdiforest.serving._serialization import Parts, from_arrays, to_arrays

# What a fit calibrates; see `HDIForestRegressor`.
CalibrationOfFit = Literal["auto"] | bool | float | Sequence[float]


class StoredForest(BaseEstimator):
    """Description of a forest that is known by its compiled trees alone.

    `HDIForestRegressor.load` makes it the parameter `estimator`: so the model says what it is, and
    neither it nor a clone of it fits another forest unasked. Its parameters say how large it is,
    and whether rows may hold missing values.
    """

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


class HDIForestRegressor(OutOfBagMixin, DistributionModel):
    """Conditional distributions and shortest prediction intervals from a random forest.

    For a new row, each training row weighs as often as the two share a leaf (Zhu, Lu, Chen,
    "HDI-Forest: Highest Density Interval Regression Forest", IJCAI 2019, eq. 7 and 12). These
    weights are an estimate of the whole distribution of the target, from which intervals at any
    level are read without fitting anything again.

    Parameters
    ----------
    estimator : estimator, default=None
        The forest to fit: RandomForestRegressor, ExtraTreesRegressor, DecisionTreeRegressor,
        ExtraTreeRegressor, BaggingRegressor of such trees or another ForestRegressor; also as the
        last step of a Pipeline, and in a search like GridSearchCV or a TransformedTargetRegressor,
        whose leaves then hold the targets in their own unit. None means
        ``ExtraTreesRegressor(300, bootstrap=True)``, which has the narrowest calibrated intervals
        of those compared. A fitted one in a ``FrozenEstimator`` is kept as it is. In a model that
        was loaded from a file, a description of its forest.
    weights : {"all", "inbag", "oob", "monotonic"}, default="all"
        Which training rows of a leaf count: every one (the paper's definition), as often as the
        tree's bootstrap drew it, or only those that the tree did not see. With "inbag" `predict`
        equals the forest's where `predict_matches_forest_`. "monotonic" is for forests with
        ``monotonic_cst``: as "inbag", and each target is moved within the bounds that the
        constraints set its leaf. Means, quantiles and the ends of all intervals but "hdi" and
        "smoothed_hdi" are then monotonic, too.
    calibration : "auto", bool, float or sequence of floats, default="auto"
        What `fit` calibrates, as `calibrate` does by "oob": the coverages that are named, or with
        True those of its default ones that there are rows enough for. It is an error where it
        cannot be done. "auto" then leaves it out, and else is as True: that needs trees enough that
        leave rows out, and rows enough for a coverage of 0.9.
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
    preprocessing_ : Pipeline
        The fitted steps before the forest, which all methods apply to X; only if there are some.
    calibration_ : hdiforest.calibration.Calibration, CrossCalibration or JointCalibration
        What `fit` or `calibrate` chose for each coverage; absent without a calibration. The last is
        of several outputs.
    predict_matches_forest_ : bool
        Whether `predict` must give the predictions of the scikit-learn forest, up to rounding: its
        leaves predict means of y, and `weights` count rows as its trees drew them.
    n_features_in_, n_outputs_, n_training_rows_ : int
    feature_names_in_ : ndarray of str
        Only if fitted on a table with column names.

    See Also
    --------
    ForestSearchOOB : Fits several forests and keeps the one with the narrowest intervals.
    from_leaves : A model of any forest that reports the leaves of rows.
    fit_table : Fits a model to a table with strings, dates and missing cells.

    Notes
    -----
    All methods raise NotFittedError if the model is not fitted, and ValueError if an argument is
    refused; their own sections name what else they raise.

    Intervals of the forest's own kinds are closed and end at training targets. The mean may lie
    outside an HDI, and intervals at a higher coverage need not contain those at a lower one.
    Calibrated intervals have other ends, and are nested.

    X may be an array or a table of pandas, polars, pyarrow or any library whose tables offer the
    Arrow C interface (``__arrow_c_stream__``, ``__arrow_c_array__``), which needs pyarrow, or a
    dict of columns. Tables are read by name: other names, or another order, than those of the fit
    are errors. Steps of a Pipeline decide themselves what tables they accept.

    The model keeps copies of X (as float32), y and sample_weight, so the caller may reuse these
    arrays. The forest itself is shared: ``estimator_`` is the given one, but nothing is read from
    it after the fit, and a later refit of it does not change the model.

    ``clone`` gives an unfitted model. That of a model made by `from_forest` has the same forest,
    and fits on the rows of the forest's own fit only; that of a loaded model refuses to fit,
    because the file does not say how its forest was grown. Where a fitted model must outlive
    ``clone``, put it in a ``sklearn.frozen.FrozenEstimator``.

    Pickle, joblib, skops and MLflow store the model as plain arrays. skops asks whether the type
    ``hdiforest._estimators.hdi_forest.HDIForestRegressor`` is trusted, and scikit-learn's
    ``sklearn.tree._tree.Tree``, or for a loaded model ``StoredForest`` beside the former.

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

    _fitted: FittedForest
    _training_table: Any = None  # of the fit, if there are steps; not in pickles

    def __init__(
        self,
        estimator: Any = None,
        *,
        weights: Weighting = "all",
        calibration: CalibrationOfFit = "auto",
        n_jobs: int | None = None,
        random_state: int | RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.weights = weights
        self.calibration = calibration
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
        calibration: CalibrationOfFit = False,
        n_jobs: int | None = None,
    ) -> Self:
        """Use a forest that is already fitted, without fitting anything.

        Parameters
        ----------
        forest : fitted estimator
            See the class.
        X, y, sample_weight : table and arrays as in `fit`
            Those the forest was fitted on, in the same order; those of the Pipeline if it is in
            one. They are copied.
        weights, calibration, n_jobs : optional
            See the class. By default nothing is calibrated, as that takes longer than the rest.

        Returns
        -------
        HDIForestRegressor
            A fitted model.

        Raises
        ------
        ValueError
            If the forest is not understood or not fitted, or X, y and sample_weight are not those
            of its fit: every leaf's weight and mean is compared with the forest's own record.

        Warns
        -----
        UserWarning
            If the leaves of the forest do not hold the means of their rows: with
            ``monotonic_cst`` and with ``criterion="absolute_error"``.
        """
        frozen = FrozenEstimator(forest)
        model = cls(frozen, weights=weights, calibration=calibration, n_jobs=n_jobs)
        return model.fit(X, y, sample_weight=sample_weight)

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the forest (unless it is frozen) and index its training rows by leaf.

        Parameters
        ----------
        X, y : (n, n_features) array or table, and (n,) or (n, n_outputs) array
            The training rows and their targets.
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
            If a frozen forest was fitted on other rows, the model shall be calibrated and cannot
            be, or it was loaded from a file and has no forest to fit.

        Warns
        -----
        UserWarning
            As `from_forest`.
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
            self._fit(X, y, sample_weight, coverages)
        except BaseException:  # a model that is fitted stays as it was
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _coverages_of_fit(self) -> Sequence[float]:
        """Return those that `fit` calibrates, if it can."""
        if isinstance(self.calibration, bool):
            return DEFAULT_COVERAGES if self.calibration else ()
        if isinstance(self.calibration, str) and self.calibration == "auto":
            return DEFAULT_COVERAGES
        try:
            return checked_coverages(self.calibration)
        except ValueError as error:
            raise ValueError(
                f"calibration must be 'auto', True, False or coverages, got {self.calibration!r}: "
                f"{error}"
            ) from None

    def _fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        coverages: Sequence[float],
    ) -> None:
        if self.estimator is None:
            estimator = self._default_forest()
        else:
            check_estimator(self.estimator)
            estimator = clone(self.estimator)
        training = fit_estimator(self, estimator, X, y, sample_weight)
        self._learn_labels(X, y)
        blocks: list[TreeBlock] | None = [] if coverages else None
        fitted = self._index(training, blocks)
        if self.weights != "monotonic" and (reason := why_no_means(training.forest)) is not None:
            warnings.warn(f"the forest {reason}", UserWarning, stacklevel=callers_level())
        self._fitted = fitted
        if blocks is not None:
            self._fitted = self._calibrate_fit(fitted, coverages, blocks)

    def _default_forest(self) -> ExtraTreesRegressor:
        # Objects that were made without the constructor have neither.
        options = {name: getattr(self, name, None) for name in ("n_jobs", "random_state")}
        return ExtraTreesRegressor(300, bootstrap=True, **options)

    def _calibrate_fit(
        self, fitted: FittedForest, coverages: Sequence[float], blocks: list[TreeBlock]
    ) -> FittedForest:
        settings = Settings(tuple(coverages), default_kinds(fitted))
        calibrate = calibrate_out_of_bag
        if isinstance(self.calibration, bool | str):
            calibrate = calibrate_finite_coverages
        try:
            check_calibration(fitted, settings)
            return calibrate(fitted, settings, self._n_threads(), blocks)
        except ValueError as error:
            if isinstance(self.calibration, str):
                return fitted
            raise ValueError(
                f"calibration must be 'auto' or False instead of {self.calibration!r}, because "
                f"{error}"
            ) from None

    def _index(self, training: Training, blocks: list[TreeBlock] | None = None) -> FittedForest:
        self.estimator_ = training.estimator
        n_threads = self._n_threads()
        forest, rows, index = import_training_forest(training, self.weights, n_threads, blocks)
        self._training_table = training.table
        return FittedForest(
            scorer=Scorer(forest, index),
            weights=self.weights,
            matches_forest=matches_forest(training, self.weights, rows),
            n_training_rows=len(rows.y),
            allow_nan=training.allow_nan,
            feature_names=None if training.steps else getattr(self, "feature_names_in_", None),
            target_names=self._target_names,
            encoder=training.steps,
            training_rows=rows,
            feature_range=rows.feature_range,
            training_digest=digest_of(rows.X),
        )

    @property
    def calibration_(self) -> AnyCalibration:
        """What was chosen for each coverage; absent from a model without a calibration."""
        fitted: FittedForest | None = getattr(self, "_fitted", None)
        if fitted is None or fitted.calibration is None:
            raise AttributeError("this model has no calibration_; call calibrate first")
        return fitted.calibration

    def fitted_forest(self) -> FittedForest:
        """Return what the model holds, which functions of this package take, once a call.

        Returns
        -------
        FittedForest
            The compiled forest, the index of its training rows, and its calibration.

        Raises
        ------
        OSError
            If it maps a file that was written to.
        """
        try:
            fitted = self._fitted
        except AttributeError:
            check_is_fitted(self)
            raise
        if fitted.check_file is not None:
            fitted.check_file()
        return fitted

    @property
    def scorer_(self) -> Scorer:
        """The compiled model, which does not look whether its file has changed."""
        return self._fitted.scorer

    @property
    def weights_(self) -> Weighting:
        """The `weights` the model was made with."""
        return self._fitted.weights

    @property
    def n_outputs_(self) -> int:
        """Number of targets."""
        return self._fitted.n_outputs

    @property
    def n_training_rows_(self) -> int:
        """Number of rows the forest was fitted on."""
        return self._fitted.n_training_rows

    @property
    def predict_matches_forest_(self) -> bool:
        """Whether `predict` must give the forest's own predictions, up to rounding."""
        return self._fitted.matches_forest

    @property
    def preprocessing_(self) -> Pipeline:
        """The fitted steps before the forest; absent if there are none."""
        steps = self._steps
        if steps is None:
            raise AttributeError("this model has no preprocessing_: its forest has no steps")
        return steps.pipeline

    @property
    def _steps(self) -> TableSteps | None:
        """The steps before the forest."""
        encoder = self._fitted.encoder
        return encoder if isinstance(encoder, TableSteps) else None

    def _query(
        self, X: Any, function: Query, values: ArrayLike | None = None, *, hint: bool = False
    ) -> Array:
        fitted = self.fitted_forest()
        if values is None and is_plain(X, self, fitted) and len(X) != fitted.n_training_rows:
            # One row takes a microsecond less than through blocks.
            return function(fitted.scorer, X, n_threads=self._n_threads(len(X)))

        def answer(block: Block) -> Array:
            n_threads = self._n_threads(len(block.rows))
            return function(fitted.scorer, block.rows, *block.per_row, n_threads=n_threads)

        return concatenated(map(answer, checked_blocks(self, X, fitted, values, hint=hint)))

    def _predict_calibrated(
        self, X: Any, coverage: ArrayLike, *, with_mean: bool, by: Any = None, joint: bool = False
    ) -> tuple[Array, Array]:
        fitted = self.fitted_forest()
        labels, n_before, n_new = check_labels(by, X), 0, 0
        steps_of_folds = [f.encoder for f in fitted.folds if isinstance(f.encoder, TableSteps)]
        means, ends = [], []
        for block in checked_blocks(self, X, fitted, hint=True):
            n_threads = self._n_threads(len(block.rows))
            shape = (len(block.rows), fitted.n_outputs)[: 1 + bool(fitted.outputs)]
            means.append(np.empty(shape if with_mean else 0))
            mean = means[-1] if with_mean else None
            of_folds = [steps.rows(block.given) for steps in steps_of_folds]
            own = None if labels is None else labels[n_before : n_before + len(block.rows)]
            codes = fitted.group_codes(block.rows, own)
            ends.append(
                predict_calibrated(
                    fitted, block.rows, coverage, n_threads, mean, of_folds, codes, joint
                )
            )
            n_before += len(block.rows)
            n_new += 0 if codes is None else int(np.count_nonzero(codes < 0))
        if n_new:
            warnings.warn(
                f"{n_new:,} of {n_before:,} rows are of groups that the calibration had no rows "
                "of: they take the conformal quantile of all rows, so nothing is promised of these "
                "groups",
                UserWarning,
                stacklevel=callers_level(),
            )
        return concatenated(means), concatenated(ends)

    def _read_distributions(
        self, X: Any, readings: Readings, values: Array | None = None, *, hint: bool = False
    ) -> Array:
        fitted = self.fitted_forest()

        def answer(block: Block) -> Array:
            n_threads = self._n_threads(len(block.rows))
            if any(len(each) != len(block.rows) for each in block.per_row):
                raise ValueError(f"y must have {len(block.rows)} rows, as many as X")

            def of_output(part: FittedForest, output: int, *own: Array) -> Array:
                return read_distributions(part, block.rows, readings[output], n_threads, own)

            return of_outputs(fitted, of_output, *block.per_row)

        return concatenated(map(answer, checked_blocks(self, X, fitted, values, hint=hint)))

    def predict_weights(self, X: ArrayLike) -> csr_array:
        """Weight of every training row for every row of X, eq. (12) of the paper.

        Parameters
        ----------
        X : (n, n_features) array or table
            As in `predict`.

        Returns
        -------
        scipy.sparse.csr_array of shape (n, n_training_rows), float64
            Rows sum to 1, or are empty where no tree has a training row in the row's leaf (possible
            with ``weights="oob"``). Columns follow the order of the training rows.

        Notes
        -----
        With ``weights="monotonic"`` these are the weights of "inbag": the rows with their own
        targets, which leaves may have moved. The first call indexes the training rows one by one
        and keeps that index. Without training rows it is a ValueError.
        """
        fitted = self.fitted_forest()
        blocks = []
        for block in checked_blocks(self, X, fitted):
            scorer, n_threads = fitted.row_scorer(self._n_threads), self._n_threads(len(block.rows))
            indptr, indices, data = scorer.weights(block.rows, n_threads=n_threads)
            shape = (len(block.rows), fitted.n_training_rows)
            blocks.append(csr_array((data, indices, indptr), shape=shape))
        return blocks[0] if len(blocks) == 1 else vstack(blocks, format="csr")

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
            As in `predict`.
        n_samples, random_state : int, default=1, and int, RandomState or None, default=None
            Draws per row, and their seed.
        kind : {"calibrated", "raw"}, optional
            As in `predict_quantiles`.
        output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
            As in `predict`.

        Returns
        -------
        (n, n_samples) float64, or table
            (n, n_outputs, n_samples) with several outputs, which are drawn jointly: each draw is
            the target of one training row, so that a model without these refuses. Calibrated ones
            have the levels of such targets in the forest's own distributions.
        """
        distributions = distributions_of(self.fitted_forest().calibration, kind)

        def values() -> NDArray[np.float64]:
            size = check_whole_number("n_samples", n_samples)
            random = checked_random_state(random_state)
            if distributions is None:
                return self._draw(X, size, random)
            if len(distributions) > 1:
                readings = [each.draws() for each in distributions]
                return self._read_distributions(X, readings, self._joint_levels(X, size, random))
            levels, read = distributions[0].draws()

            def draws(base: NDArray[np.float64]) -> NDArray[np.float64]:
                return read(base, random.random_sample((len(base), size)))

            return self._read_distributions(X, [Reading(levels, draws)])

        return self._format(output, "sample", values, X)

    def _draw(self, X: ArrayLike, n_samples: int, random: RandomState) -> NDArray[np.float64]:
        fitted = self.fitted_forest()
        scalar = fitted.scorer.index.scalar_output

        def draws(rows: Rows) -> NDArray[np.float64]:
            uniforms = random.random_sample((len(rows), n_samples))
            scorer = fitted.scorer if scalar else fitted.row_scorer(self._n_threads)
            n_threads = self._n_threads(len(rows))
            return scorer.draws(rows, uniforms, n_threads=n_threads, out=uniforms)

        drawn = concatenated(draws(block.rows) for block in checked_blocks(self, X, fitted))
        if scalar:
            return drawn
        empty = np.isnan(drawn)
        targets = fitted.require_training_rows().y[np.where(empty, 0, drawn).astype(np.intp)]
        targets[empty] = np.nan
        return np.moveaxis(targets, 2, 1)

    def _joint_levels(self, X: Any, n_samples: int, random: RandomState) -> NDArray[np.float64]:
        """Return uniform numbers (n, n_outputs, n_samples) that depend on each other as targets do.

        They are how much of the forest's own distributions is above its draws.
        """
        drawn = np.nan_to_num(self._draw(X, n_samples, random))
        at, below = (self._query(X, query_of("cdf", inclusive=up), drawn) for up in (True, False))
        above = 1 - (below + random.random_sample(at.shape) * (at - below))
        return np.nan_to_num(above).clip(0, 1)

    def calibrate(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        coverage: float | Sequence[float] = DEFAULT_COVERAGES,
        method: Method | Literal["oob", "split", "cv+", "jackknife+"] | None = None,
        kinds: Sequence[BaseKind] | None = None,
        mean: Any = None,
        objective: Objective = "balanced",
        adaptive: bool = True,
        min_samples_leaf: Sequence[int] = LEAF_SIZES,
        clip: bool = True,
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
            Coverages that the intervals shall have, above 0 and below 1. Each is calibrated as the
            hull with the one before, so that its intervals may depend on the lower ones.
        method : OutOfBag, Split, CVPlus, JackknifePlus, or their name, optional
            "oob", "split", "cv+" or "jackknife+" with its default arguments, or an object of one of
            the classes of `hdiforest.calibration`, which say what each does and guarantees. By
            default "split" if there are X and y, else "oob".
        kinds : sequence of str, optional
            Kinds of intervals to choose among: by default "hdi", "equal_tailed" and "averaged",
            with ends midway between those of the first two. With ``weights="monotonic"``
            "equal_tailed" alone, so that the ends of calibrated intervals are monotonic, too.
            "smoothed_hdi" is the fourth.
        mean : "local_linear", "boosting" or regressor, optional
            Another model of the mean, on which to centre the intervals together with the forest's.
            "local_linear" is a ridge regression around each row on the five features that explain
            most, kept only where it is better. "boosting" is scikit-learn's
            HistGradientBoostingRegressor. A regressor is cloned, and fitted in five folds and on
            all training rows, as arrays without names. Needs ``weights="all"``.
        objective : {"balanced", "width", "interval_score"}, default="balanced"
            What is least among candidates, out of bag: the mean width W at equal coverage; the
            mean interval score S, which also counts how far targets lie outside; or
            log W + 1.5 log S.
        adaptive : bool, default=True
            Whether conformal quantiles may grow with the width of a row's interval, where that is
            better.
        min_samples_leaf : sequence of int, default=(1, 5, 15)
            Leaf sizes to choose among: trees are pruned as by `prune`, and the model then is the
            pruned one. 1 leaves the trees as they grew. Below 500 rows the least is taken. Not of
            ``weights="monotonic"``, nor of "jackknife+".
        clip : bool, default=True
            Whether intervals end where the training targets do; never below 200 training rows.
        by : str, int, (n_rows,) array or callable, optional
            The groups of the calibration rows, for "oob" and "split": the name or number of a
            column of X, one label a row, or a function of rows (n, n_features) that returns them.
            Each group with enough rows for a coverage, 1 / (1 - coverage) - 1, has a conformal
            quantile of its own; other rows take the common one. Missing labels are a group.
            Files keep nothing but a column; otherwise `predict_interval` needs the labels.
        order : str, int or (n_training_rows,) array, optional
            What the training rows are ordered by, such as their time, for "oob": numbers, dates or
            texts, or the name or number of a column. A forest is fitted on the first three quarters
            of the rows, and `calibration_` shows the coverage of the others, the later ones.
        random_state : int, RandomState or None, default=None
            Seed of the choice of training rows, if there are more than the method takes, of folds,
            and of "boosting".

        Returns
        -------
        HDIForestRegressor
            The model itself. `calibration_` shows what was chosen, and the coverage of rows that
            took no part in the choice.

        Raises
        ------
        ValueError
            If the model has no training rows, or several outputs and method or `order` is for one,
            too few trees leave rows out, the rows for "split" are training rows, or a loaded model
            has no forest, or an unpickled one no table, to fit for "cv+" or `order`.

        Warns
        -----
        UserWarning
            If later rows are covered by more than four standard errors less than the cross-check
            says; and of infinite intervals.

        Notes
        -----
        Candidates are intervals at nine levels, of the targets and, with ``weights="all"``, of
        residuals around the mean of the leaves. Each is widened by the conformal quantile of its
        scores, and the best is kept. From 4,000 calibration rows on they are compared on 2,000, and
        the best is widened by the others; below 500 rows nothing is compared, and the base is
        equal-tailed at 0.8. Weights of the training rows are weights of their scores. No training
        row takes part in its own interval, nor in the residuals of the others, unless another
        regressor is the `mean`. Local linear means: Friedberg, Tibshirani, Athey and Wager, "Local
        linear forests", JCGS 30, 2021. O(entries of its leaves + atoms log atoms) for each row.
        """
        fitted, how = self.fitted_forest().before_calibration(), resolve_method(method, X, y)
        settings = Settings(
            checked_coverages(coverage),
            default_kinds(fitted) if kinds is None else kinds,
            clip,
            objective,
            adaptive,
            tuple(np.ravel(min_samples_leaf).tolist()),
            mean,
            how.max_rows if isinstance(how, OutOfBag | JackknifePlus) else OutOfBag.max_rows,
            checked_seed(random_state),
            None if by is None else group_source(fitted, by, how),
        )
        check_calibration(fitted, settings)
        if fitted.n_outputs > 1 and (order is not None or not isinstance(how, OutOfBag | Split)):
            what = "order must be None" if order is not None else "method must be 'oob' or 'split'"
            raise ValueError(f"{what} for a model of several targets, this has {fitted.n_outputs}")
        if order is not None:
            rank = order_of_rows(fitted, order, how)
            refit = self._refit(fitted, "order")
        if isinstance(how, CVPlus):
            self._fitted = self._calibrate_by_folds(fitted, settings, how)
            return self
        n_threads = self._n_threads()
        if isinstance(how, Split):
            rows = checked_rows(self, X, fitted)
            targets = check_targets("y", cast("ArrayLike", y), fitted.n_outputs)
            if len(targets) != len(rows):
                shape = len(rows), *targets.shape[1:]
                raise ValueError(f"y must have shape {shape}, got {targets.shape}")
            if settings.by is not None:
                settings.by.labels(rows)  # raises before any work is done
            self._fitted = calibrate_by_split(
                fitted, settings, rows, targets, how.confidence, n_threads
            )
        elif isinstance(how, JackknifePlus):
            self._fitted = calibrate_by_jackknife(fitted, settings, n_threads)
        else:
            self._fitted = calibrate_out_of_bag(fitted, settings, n_threads)
            if order is not None:
                new_model, table = refit
                training = fitted.require_training_rows()
                checks = check_later_rows(new_model(), table, training, settings, rank, n_threads)
                replace_levels(self, later=checks)
                warn_of_later_rows(cast("Calibration", self.calibration_))
        return self

    def prune(self, min_samples_leaf: int) -> Self:
        """Return a smaller model, of the same trees with larger leaves.

        Parameters
        ----------
        min_samples_leaf : int
            A node becomes a leaf if one of its children holds fewer rows that its tree drew.

        Returns
        -------
        HDIForestRegressor
            Another model, without a calibration. It answers as one of the pruned trees:
            `predict` gives means of the larger leaves, and `predict_matches_forest_` is False if
            anything was pruned.

        Raises
        ------
        NotFittedError, ValueError
            If the model is not fitted; if the number is no whole one from 1 on, or the model has no
            training rows or ``weights="monotonic"``.

        Notes
        -----
        Nothing is fitted or routed again: O(nodes + entries of the leaves). Trees that split off
        single rows near the root, as on heavy-tailed targets, may shrink to few leaves.
        """
        fitted = self.fitted_forest().before_calibration()
        model = copy.copy(self)
        model._fitted = prune(fitted, min_samples_leaf, self._n_threads())
        return model

    def _calibrate_by_folds(
        self, fitted: FittedForest, settings: Settings, how: CVPlus
    ) -> FittedForest:
        new_model, X = self._refit(fitted, "method='cv+'")
        rows = fitted.require_training_rows()
        folds = list(split_folds(rows, how, settings.random_state))
        calibration, forests = fit_folds(
            new_model, X, rows, settings, folds, how.groups is not None, self._n_threads()
        )
        return fitted.uncalibrated(calibration=calibration, folds=forests)

    def _refit(self, fitted: FittedForest, what: str) -> tuple[Callable[[], Any], Any]:
        """Return what makes an unfitted model of the same forest, and the table to fit it on."""
        forest = getattr(self, "estimator_", None)
        if forest is None:
            raise ValueError(
                f"{what} fits the forest again, and a model that was loaded from a file has none "
                "to fit; calibrate before saving"
            )

        def new_model() -> Any:
            kind: Any = type(self)
            options = {"weights": fitted.weights, "calibration": False, "n_jobs": self.n_jobs}
            return kind(clone(forest), **options)

        X = fitted.require_training_rows().X if self._steps is None else self._training_table
        if X is None:
            raise ValueError(
                f"{what} fits the steps before the forest again, to the table of the fit, which "
                "pickles do not hold; calibrate before pickling"
            )
        return new_model, X

    def save(self, path: str | os.PathLike[str], *, training_rows: bool = True) -> None:
        """Write the model to a file in safetensors format, whole or not at all.

        Parameters
        ----------
        path : path
            Replaced if it exists.
        training_rows : bool, default=True
            Whether to include the training rows (X as float32), which `predict_weights`, the
            ``oob_`` methods and joint draws of several outputs need. The file always holds the
            distinct values of y, and the range of each feature.

        Raises
        ------
        ImportError, OSError
            If safetensors is not installed; or skops, and the model has steps before its forest; if
            the file cannot be written.
        ValueError
            If the model was itself loaded without training rows, or has steps before its forest
            that skops cannot store.

        Notes
        -----
        Steps of a Pipeline, and a regressor given as `mean` to `calibrate`, are stored as skops
        stores them; everything else is arrays and facts.
        """
        fitted = self.fitted_forest()
        if training_rows and fitted.training_rows is None:
            raise ValueError("this model has no training rows to save; pass training_rows=False")
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

        The file is memory-mapped: its arrays are not copied, and processes that load the same file
        share them. Everything is checked before it is used: what describes the model now, nodes,
        leaves and training rows when a query reads them, and the rest once an eighth of the leaves
        was read. If the file is written to in place, whatever reads the model afterwards raises
        OSError; a file that is renamed over it changes nothing.

        Parameters
        ----------
        path : path
            Of a file that `save` wrote.
        n_jobs : int, default=None
            See the class; None means 1.
        verify : bool, default=False
            Whether to check everything now, and the checksums of large arrays, which tell whether
            a bit of the file has changed. ``hdiforest inspect`` does so, too.
        mapped : bool, default=True
            Whether to map the file. If not, each process reads a copy of its own and checks it
            whole, and nothing that happens to the file later matters.
        trusted : sequence of str or type, default=()
            Types that the steps before the forest may be made of, besides those that skops trusts:
            most of scikit-learn's, but not its trees. An error lists those that a file has more;
            steps of a trusted type may run its code.

        Returns
        -------
        HDIForestRegressor
            A fitted model, without its forest.

        Raises
        ------
        ImportError, OSError
            If skops is not installed, and the model has steps before its forest; if the file cannot
            be read.
        ValueError
            If it is not a model, is damaged, comes from a newer version, or has steps of types that
            are not trusted.
        """
        loaded = model_file.load(Path(path), verify=verify, mapped=mapped, trusted=trusted)
        fitted = loaded.content
        forest = StoredForest(
            fitted.scorer.forest.n_trees,
            fitted.n_features,
            fitted.n_outputs,
            fitted.n_training_rows,
            fitted.allow_nan,
        )
        model = cls(forest, weights=fitted.weights, n_jobs=n_jobs)
        names: Any = fitted.feature_names
        n_features: int | None = fitted.n_features
        if isinstance(fitted.encoder, TableSteps):
            names = fitted.encoder.names
            n_features = getattr(fitted.encoder.pipeline, "n_features_in_", None)
        if n_features is not None:  # there is no number of them for steps that read texts
            model.n_features_in_ = n_features
        if names is not None:
            model.feature_names_in_ = np.array(names, dtype=object)
        model._target_names = fitted.target_names
        model._fitted = fitted
        return model

    def _n_threads(self, n_rows: int | None = None) -> int:
        # The engine starts no thread below this number of row-trees, and `thread_count` takes a
        # third of the time of scoring one row.
        if n_rows is not None and n_rows * self._fitted.scorer.forest.n_trees < 10_000:
            return 1
        n_jobs = self.n_jobs
        if n_jobs is None:
            fitted = getattr(self, "estimator_", None)
            n_jobs = None if fitted is None else getattr(forest_of(fitted), "n_jobs", None)
        return thread_count(n_jobs)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        for name in ("_training_table", "_row_labels"):
            state.pop(name, None)
        if "_fitted" in state:
            state["_fitted"] = to_arrays(self.fitted_forest()).state()
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
    """Calibrate a model at those coverages that its rows allow; return the number of these rows.

    The options are those of `calibrate`.
    """
    with ignore_infinite_intervals():
        model.calibrate(**options)
    n_rows = model.calibration_.n
    model._fitted = model.fitted_forest().with_finite_coverages()
    return n_rows


def calibrate_with_cross_fit(
    model: HDIForestRegressor, coverage: float, objective: Objective, seed: int
) -> tuple[NDArray[np.intp], CrossFit]:
    """Calibrate a model out of bag; return the rows of its cross-fit, and the cross-fit."""
    fitted = model.fitted_forest()
    settings = Settings((coverage,), default_kinds(fitted), objective=objective, random_state=seed)
    check_calibration(fitted, settings)
    model._fitted, rows, fit = calibrate_and_cross_fit(fitted, settings, model._n_threads())
    return rows, fit


def replace_levels(model: HDIForestRegressor, **checks: Sequence[CrossCheck | None]) -> None:
    """Replace `cross_check` or `later` of the levels of a calibration."""
    fitted = model.fitted_forest()
    calibration = cast("Calibration", fitted.calibration)
    rows = zip(*checks.values(), strict=True)
    levels = tuple(
        replace(level, **dict(zip(checks, of_level, strict=True)))
        for level, of_level in zip(calibration.levels, rows, strict=True)
    )
    model._fitted = replace(fitted, calibration=replace(calibration, levels=levels))


def attach_encoder(
    model: HDIForestRegressor, encoder: TableEncoder | None, table: Any = None
) -> None:
    """Attach the encoder of tables that the features of a model came from.

    Results out of bag have the index of the table, if there is one and it is of pandas.
    """
    model._fitted = replace(model.fitted_forest(), encoder=encoder)
    if table is not None:
        model._learn_labels(table, None)
