"""HDIForestRegressor: a scikit-learn regressor whose predictions are whole distributions."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, vstack
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, get_tags

from hdicore import Scorer
from hdiforest._estimators.base import BaseForestModel
from hdiforest._estimators.cross_fit import cross_fitted, fold_rows
from hdiforest._estimators.distributions import (
    ConditionalDistributions,
    bound,
    ends_of_kind,
    joined,
    mean_and_intervals,
)
from hdiforest._estimators.fit import Training, imported, matches_forest, trained
from hdiforest._estimators.out_of_bag import OutOfBagDistributions
from hdiforest._estimators.rows import Block, Rows, checked_blocks, concatenated, is_plain
from hdiforest._model.calibrate import (
    DEFAULT_COVERAGES,
    MAX_ROWS,
    Settings,
    calibrated_by_default,
    calibrated_by_jackknife,
    calibrated_by_split,
    calibrated_out_of_bag,
)
from hdiforest._model.fitted import FittedForest
from hdiforest._model.predict import calibrated_intervals
from hdiforest._model.sklearn_forest import why_no_means
from hdiforest._model.stacking import check_mean
from hdiforest._model.table_steps import TableSteps
from hdiforest._model.training_hint import TrainingRowsHint, digest_of
from hdiforest._model.training_rows import ANY_WEIGHTING, WEIGHTINGS, Weighting
from hdiforest._tables.frames import Output
from hdiforest._tables.names import interval_names
from hdiforest._utils.checks import (
    check_choice,
    check_flag,
    check_names,
    check_targets,
    checked_coverages,
    one_share,
)
from hdiforest._utils.meta_estimators import layers, pipelines
from hdiforest._utils.random_state import checked_random_state, checked_seed
from hdiforest._utils.typing import Kind
from hdiforest._utils.warnings import callers_level
from hdiforest.calibration._bases import DEFAULT_KINDS, KINDS, BaseKind
from hdiforest.calibration._result import Calibration, CrossCalibration
from hdiforest.calibration._selection import OBJECTIVES, Objective
from hdiforest.serving import _model_file as model_file


class StoredForest(BaseEstimator):
    """Description of a forest that is known by its compiled trees alone.

    `HDIForestRegressor.load` makes it the parameter `estimator`: so the model says what it is, and
    neither it nor a clone of it fits another forest unasked.

    Parameters
    ----------
    n_trees, n_features, n_outputs, n_training_rows : int
    allow_nan : bool
        Whether rows may hold missing values.
    """

    def __init__(
        self,
        n_trees: int,
        n_features: int,
        n_outputs: int,
        n_training_rows: int,
        allow_nan: bool,
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


class TrainingRowWeights(BaseForestModel):
    """Conditional distributions as weights of the training rows, and draws from them."""

    def predict_weights(self, X: ArrayLike) -> csr_array:
        """Weight of every training row for every row of X, eq. (12) of the paper.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.

        Returns
        -------
        scipy.sparse.csr_array of shape (n, n_training_rows), float64
            Rows sum to 1, or are empty where no tree has a training row in the row's leaf (possible
            with ``weights="oob"``). Columns follow the order of the training rows.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ValueError
            If the rows are refused, or the model has no training rows.

        Notes
        -----
        With ``weights="monotonic"`` these are the weights of "inbag": the rows with their own
        targets, which leaves may have moved.
        The first call indexes the training rows one by one and keeps that index.
        """
        fitted = self._require_fitted()
        found = []
        for block in checked_blocks(self, X, fitted):
            scorer, n_threads = fitted.row_scorer(self._n_threads), self._n_threads(len(block.rows))
            indptr, indices, data = scorer.weights(block.rows, n_threads=n_threads)
            shape = (len(block.rows), fitted.n_training_rows)
            found.append(csr_array((data, indices, indptr), shape=shape))
        return found[0] if len(found) == 1 else vstack(found, format="csr")

    def sample(
        self,
        X: ArrayLike,
        n_samples: int = 1,
        random_state: int | np.random.RandomState | None = None,
        *,
        output: Output | None = None,
    ) -> Any:
        """Draw from the conditional distribution.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        n_samples : int, default=1
            Draws per row.
        random_state : int, RandomState or None, default=None
            Seed of the draws.
        output : {"numpy", "pandas", "polars", "pyarrow"}, optional
            An array, or a table of that library; by default what `set_output` says, an array if
            nothing. See `set_output` for the names of the columns.

        Returns
        -------
        (n, n_samples) float64, or table
            (n, n_outputs, n_samples) with several outputs, which are drawn jointly: each draw is
            the target of one training row.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ValueError
            If an argument is refused, or several outputs are drawn without training rows.
        """
        return self._as_output(output, "sample", lambda: self._draws(X, n_samples, random_state), X)

    def _draws(
        self, X: ArrayLike, n_samples: int, random_state: int | np.random.RandomState | None
    ) -> NDArray[np.float64]:
        fitted = self._require_fitted()
        if not isinstance(n_samples, int | np.integer) or n_samples < 1:
            raise ValueError(f"n_samples must be a whole number from 1 on, got {n_samples!r}")
        random = checked_random_state(random_state)
        scalar = fitted.scorer.index.scalar_output

        def draws(rows: Rows) -> NDArray[np.float64]:
            uniforms = random.random_sample((len(rows), int(n_samples)))
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


METHODS = ("oob", "split", "cv+", "jackknife+")


class CalibratedIntervals(OutOfBagDistributions, ConditionalDistributions):
    """Calibrates the intervals of a fitted forest, and predicts calibrated ones."""

    @property
    def calibration_(self) -> Calibration | CrossCalibration:
        """What `calibrate` chose for each coverage; absent from a model without it."""
        calibration = getattr(getattr(self, "_fitted", None), "calibration", None)
        if calibration is None:
            raise AttributeError("this model has no calibration_; call calibrate first")
        found: Calibration | CrossCalibration = calibration
        return found

    def calibrate(
        self,
        coverage: float | Sequence[float] = DEFAULT_COVERAGES,
        *,
        method: Literal["oob", "split", "cv+", "jackknife+"] = "oob",
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        mean: Any = None,
        kinds: Sequence[BaseKind] | None = None,
        clip: bool = True,
        objective: Objective = "width",
        confidence: float | None = None,
        cv: int = 10,
        max_rows: int = MAX_ROWS,
        random_state: int | RandomState | None = None,
    ) -> Self:
        """Choose and pad intervals so that they cover what they say.

        Parameters
        ----------
        coverage : float or sequence of floats, default=(0.5, 0.8, 0.9, 0.95, 0.99)
            Coverages that the intervals shall have, above 0 and below 1.
        method : {"oob", "split", "cv+", "jackknife+"}, default="oob"
            "oob" needs no new rows: the trees that did not draw a training row predict its
            interval. No guarantee holds for every distribution. "split" pads on rows X, y that
            took no part in the fit; the coverage is then guaranteed on average over such rows.
            "cv+" fits the forest again without each fold of the training rows, and predicts with
            all these forests, their steps and searches included; a coverage of about 2c - 1 is
            guaranteed, and c is usual.
            "jackknife+" has nearly that guarantee without another fit, from 1000 training rows at
            most: each makes a forest of the trees that did not draw it, and for each row to predict
            all these are merged.
        X : (n_calibration, n_features) array or table, optional
            Rows for "split".
        y : (n_calibration,) array, optional
            Their targets.
        groups : (n_training_rows,) array, optional
            For "cv+": rows of one group (person, site) share a fold, so that intervals are those
            for new groups.
        mean : "boosting" or regressor, optional
            Another model of the mean, on which to centre the intervals together with the forest's;
            "boosting" is scikit-learn's HistGradientBoostingRegressor. It is cloned, and fitted
            six times, in five folds and on all training rows, as arrays without names. Needs
            ``weights="all"``.
        kinds : sequence of str, optional
            Kinds of intervals to choose among: by default "hdi" and "equal_tailed", and with
            ``weights="monotonic"`` the latter alone, so that the ends of calibrated intervals are
            monotonic, too. "smoothed_hdi" is the third. With it, intervals of
            the paper's data are 0.3 to 1.5 % narrower at 0.9, with interval scores within 1 %,
            and the calibration takes a sixth longer.
        clip : bool, default=True
            Whether intervals end where the training targets do; never below 200 training rows.
        objective : {"width", "interval_score"}, default="width"
            What the choice among candidates minimises.
        confidence : float, optional
            For "split": the probability, over calibration rows, of at least the coverage.
        cv : int, default=10
            For "cv+": the number of folds. Fitting and scoring take as many times as long.
        max_rows : int, default=20000
            Largest number of training rows to use. The standard error of a coverage is then 0.2 %.
        random_state : int, RandomState or None, default=None
            Seed of the choice of these rows, if there are more, of folds, and of "boosting".

        Returns
        -------
        HDIForestRegressor
            The model itself. `calibration_` shows what was chosen, and the coverage of rows that
            took no part in the choice.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ValueError
            If an argument is out of range, the model has several outputs or no training rows, too
            few trees leave rows out, the rows for "split" are training rows, or a loaded model has
            no forest, or an unpickled one no table, to fit for "cv+".

        Notes
        -----
        Candidates are HDIs and equal-tailed intervals at nine levels, of the targets and, with
        ``weights="all"``, of residuals around the mean of the leaves. Each is padded by one number,
        and the narrowest is kept. Weights of the training rows are weights of their scores: pads
        are weighted quantiles and coverages weighted shares. No training row takes part in its own
        interval, nor in the residuals of the others; but where there is another `mean`, it takes
        part in those of the other folds.
        O(entries of its leaves + atoms log atoms) for each row.
        """
        fitted = self._require_fitted()
        if kinds is None:
            kinds = ("equal_tailed",) if fitted.weights == "monotonic" else DEFAULT_KINDS
        _check_arguments(fitted, method, coverage, kinds, objective, mean, max_rows)
        check_flag("clip", clip)
        seed = checked_seed(random_state)
        _check_rows_and_folds(method, X, y, groups, confidence)
        settings = Settings(
            checked_coverages(coverage), kinds, clip, objective, mean, max_rows, seed
        )
        if method == "oob":
            self._fitted = calibrated_out_of_bag(fitted, settings, self._n_threads())
        elif method == "jackknife+":
            self._fitted = calibrated_by_jackknife(fitted, settings, self._n_threads())
        elif method == "cv+":
            self._fitted = self._cross_fitted(fitted, settings, cv, groups)
        else:
            rows = concatenated(block.rows for block in checked_blocks(self, X, fitted))
            targets = check_targets("y", cast("ArrayLike", y))
            if targets.shape != (len(rows),):
                raise ValueError(f"y must have shape ({len(rows)},), got {targets.shape}")
            self._fitted = calibrated_by_split(
                fitted, settings, rows, targets, confidence, self._n_threads()
            )
        return self

    def predict_interval(
        self,
        X: ArrayLike,
        coverage: float | ArrayLike = 0.9,
        *,
        kind: Kind | Literal["calibrated"] | None = None,
        output: Output | None = None,
    ) -> Any:
        """Prediction intervals.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        coverage : float or list of k floats, default=0.9
            In (0, 1]. Of "calibrated" intervals the share of targets to cover, below 1: one of
            those that `calibrate` was given; or another one if that was out of bag, without a
            `mean`, and the training rows are there (it is then calibrated on them, once, without a
            choice of its own). Of the others the share of the conditional distribution to hold.
        kind : {"calibrated", "hdi", "equal_tailed", "lower", "upper", "smoothed_hdi"}, optional
            By default "calibrated" after `calibrate`, and "hdi" before. "hdi" is the shortest
            interval (Algorithm 1 of the paper); "equal_tailed" runs between the
            (1 - coverage) / 2 and (1 + coverage) / 2 quantiles; "lower" is the largest lower bound,
            with infinity as the upper end; "upper" the smallest upper bound. "smoothed_hdi" is the
            mean of the shortest intervals from each atom that hold the coverage, weighted by
            exp(-5 (width - least) / least): its ends do not jump from row to row as those of "hdi"
            do, and it may hold less.
        output : {"numpy", "pandas", "polars", "pyarrow"}, optional
            An array, or a table of that library; by default what `set_output` says, an array if
            nothing. Tables have the mean of each row in front. See `set_output` for the names of
            the columns.

        Returns
        -------
        (n, 2) or (n, 2, k) float64, or table
            Lower and upper ends, in the unit of y; (n, n_outputs, 2[, k]) with several outputs.
            NaN where all leaves of the row are empty: possible with ``weights="oob"``. Calibrated
            intervals of a higher coverage contain those of a lower one.

        Raises
        ------
        AttributeError
            If kind is "calibrated" and the model is not.
        ValueError
            If an argument is out of range, or a coverage was not calibrated and cannot be.

        Warns
        -----
        UserWarning
            If X holds the rows of the fit, all of them in their order: use `oob_interval`.

        Notes
        -----
        O(entries of the row's leaves + distinct targets / 64) per row, and O(support) per level.
        """
        if kind is None:
            held = getattr(self, "_fitted", None)
            kind = "hdi" if held is None else held.usual_kind
        wanted = self._wanted(output)
        if wanted != "numpy":
            names, chosen = interval_names(kind, coverage), kind
            return self._table(
                wanted, names, lambda: self._mean_and_intervals(X, coverage, chosen), X
            )
        if kind != "calibrated":
            return self._query(X, "intervals", coverage, kind, hint=True)
        fitted = self._require_fitted()
        return concatenated(
            self._calibrated_intervals(
                fitted, block.rows, coverage, of_folds=self._rows_of_folds(block)
            )
            for block in checked_blocks(self, X, fitted, hint=True)
        )

    def _mean_and_intervals(
        self, X: ArrayLike, coverage: ArrayLike, kind: Kind | Literal["calibrated"]
    ) -> NDArray[np.float64]:
        """Return the columns of `interval_names`."""
        if kind != "calibrated":
            found = self._query(X, mean_and_intervals, coverage, kind, hint=True)
            return ends_of_kind(found, kind)
        fitted, levels = self._require_fitted(), np.atleast_1d(coverage)

        def columns(block: Block) -> NDArray[np.float64]:
            mean, of_folds = np.empty(len(block.rows)), self._rows_of_folds(block)
            ends = self._calibrated_intervals(fitted, block.rows, levels, mean, of_folds)
            return joined(mean, ends)

        blocks = checked_blocks(self, X, fitted, hint=True)
        return concatenated(columns(block) for block in blocks)

    def _rows_of_folds(self, block: Block) -> list[Rows]:
        """Return rows as the steps of each fold make them, if folds have steps of their own."""
        codings = [fold.coding for fold in self._fitted.folds]
        return [each.rows(block.given) for each in codings if isinstance(each, TableSteps)]

    def _calibrated_intervals(
        self,
        fitted: FittedForest,
        rows: Rows,
        coverage: ArrayLike,
        mean: NDArray[np.float64] | None = None,
        of_folds: Sequence[Rows] = (),
    ) -> NDArray[np.float64]:
        """Return intervals of checked rows; `mean` (n,) is filled with their means.

        `of_folds` are the same rows for the forest of each fold, if these have steps of their own.
        """
        n_threads = self._n_threads(len(rows))
        return calibrated_intervals(
            fitted,
            rows,
            coverage,
            n_threads,
            mean,
            n_calibrating=self._n_threads,
            of_folds=of_folds,
        )

    def _cross_fitted(
        self, fitted: FittedForest, settings: Settings, cv: int, groups: ArrayLike | None
    ) -> FittedForest:
        forest = getattr(self, "estimator_", None)
        if forest is None:
            raise ValueError(
                "method='cv+' fits the forest again, and a model that was loaded from a file has "
                "none to fit; calibrate before saving"
            )
        rows = fitted.require_training_rows()
        folds = list(fold_rows(rows, cv, groups, settings.random_state))

        def new_model() -> Any:
            kind: Any = type(self)
            return kind(clone(forest), weights=fitted.weights, n_jobs=self.n_jobs)

        X = rows.X if self._steps is None else self._training_table
        if X is None:
            raise ValueError(
                "method='cv+' fits the steps before the forest again, to the table of the fit, "
                "which pickles do not hold; calibrate before pickling"
            )
        calibration, forests = cross_fitted(
            new_model, X, rows, settings, folds, groups is not None, self._n_threads()
        )
        return fitted.uncalibrated(calibration=calibration, folds=forests)


def _check_arguments(
    fitted: FittedForest,
    method: str,
    coverage: float | Sequence[float],
    kinds: Sequence[str],
    objective: str,
    mean: Any,
    max_rows: int,
) -> None:
    check_choice("method", method, METHODS)
    if fitted.n_outputs > 1:
        raise ValueError(f"calibrate needs a model of one target, got {fitted.n_outputs}")
    checked_coverages(coverage)
    check_names("kinds", kinds, KINDS)
    check_choice("objective", objective, OBJECTIVES)
    check_mean(mean, fitted.training_rows)
    if method == "jackknife+" and fitted.weights == "monotonic":
        raise ValueError("method must not be 'jackknife+' with weights='monotonic'; 'cv+' may be")
    if mean is not None and fitted.weights != "all":
        raise ValueError(f"mean must be None with weights={fitted.weights!r}")
    if not isinstance(max_rows, int | np.integer) or max_rows < 1:
        raise ValueError(f"max_rows must be a whole number from 1 on, got {max_rows!r}")


def _check_rows_and_folds(
    method: str,
    X: ArrayLike | None,
    y: ArrayLike | None,
    groups: ArrayLike | None,
    confidence: float | None,
) -> None:
    if method == "split" and (X is None or y is None):
        raise ValueError("X and y must be given with method='split'")
    if method != "split" and (X is not None or y is not None or confidence is not None):
        raise ValueError(f"X, y and confidence must be None with method={method!r}")
    if method != "cv+" and groups is not None:
        raise ValueError(
            f"groups must be None with method={method!r}: rows of one group would be on both "
            "sides; use method='cv+', or 'split' with rows of groups that took no part in the fit"
        )
    if confidence is not None:
        one_share("confidence", confidence)


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
        ExtraTreeRegressor, BaggingRegressor of such trees or another ForestRegressor; also as the
        last step of a Pipeline, and in a search like GridSearchCV or a TransformedTargetRegressor,
        whose leaves then hold the targets in their own unit. None means
        ``ExtraTreesRegressor(300, bootstrap=True)``, and `fit` then calibrates its intervals as
        `calibrate` does without arguments: of the forests that were compared it has the narrowest
        calibrated intervals. A fitted one in a ``FrozenEstimator`` is kept as it is. In a model
        that was loaded from a file, a description of its forest.
    weights : {"all", "inbag", "oob", "monotonic"}, default="all"
        Which training rows of a leaf count: every one (the paper's definition), as often as the
        tree's bootstrap drew it, or only those that the tree did not see. With "inbag" `predict`
        equals the forest's, if that is a mean of targets: not with monotonic constraints, with
        ``criterion="absolute_error"`` or with a transformed target. "monotonic" is for forests
        with ``monotonic_cst``: as "inbag", and each target is moved within the bounds that the
        constraints set its leaf. Means, quantiles and the ends of all intervals but "hdi" and
        "smoothed_hdi" are then monotonic, too.
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
    calibration_ : hdiforest.calibration.Calibration or CrossCalibration
        What `calibrate` chose, or `fit` without an `estimator`; absent before.
    predict_matches_forest_ : bool
        Whether `predict` must give the predictions of the scikit-learn forest, up to rounding: its
        leaves predict means of y, and `weights` count rows as its trees drew them.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if fitted on a table with column names.
    n_outputs_ : int
    n_training_rows_ : int

    See Also
    --------
    ForestSearchOOB : Fits several forests and keeps the one with the narrowest intervals.
    from_leaves : A model of any forest that reports the leaves of rows.
    fit_table : Fits a model to a table with strings, dates and missing cells.

    Notes
    -----
    Intervals of the forest's own kinds are closed and their ends are training targets, so y outside
    the range of its leaves is never covered. The weighted mean may lie outside a highest-density
    interval, and intervals at a higher coverage need not contain those at a lower one. Calibrated
    intervals have other ends, and are nested.

    X may be an array or a table of pandas, polars, pyarrow or any library whose tables offer the
    Arrow C interface (``__arrow_c_stream__``, ``__arrow_c_array__``), which needs pyarrow, or a
    dict of columns. Tables are read by name: other names, or another order, than those of the fit
    are errors. Steps of a Pipeline decide themselves what tables they accept, with text and missing
    cells as they allow.

    The model keeps copies of X (as float32), y and sample_weight, so the caller may reuse these
    arrays. The forest itself is shared: ``estimator_`` is the given one, but nothing is read from
    it after the fit, and a later refit of it does not change the model.

    ``clone`` gives an unfitted model as always in scikit-learn. That of a model made by
    `from_forest` has the same forest, and fits on the rows of the forest's own fit only; that of a
    loaded model refuses to fit, because the file does not say how its forest was grown. Where a
    fitted model must outlive ``clone``, put it in a ``sklearn.frozen.FrozenEstimator``.

    Pickle, joblib, skops and MLflow store the model as plain arrays. skops asks whether the types
    ``hdiforest._estimators.hdi_forest.HDIForestRegressor`` and scikit-learn's own
    ``sklearn.tree._tree.Tree`` are trusted, and for a loaded model
    ``hdiforest._estimators.hdi_forest.StoredForest`` in place of the latter.

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
            The rows the forest was fitted on, in the same order; those of the Pipeline if it is in
            one. Copied, as are y and sample_weight.
        y : (n,) or (n, n_outputs) array
            Their targets.
        sample_weight : (n,) array, optional
            Their weights, if the forest was fitted with weights.
        weights : {"all", "inbag", "oob", "monotonic"}, default="all"
            See the class.
        n_jobs : int, default=None
            See the class.

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
        model = cls(FrozenEstimator(forest), weights=weights, n_jobs=n_jobs)
        return model.fit(X, y, sample_weight=sample_weight)

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the forest (unless it is frozen) and index its training rows by leaf.

        Parameters
        ----------
        X : (n, n_features) array or table
            The training rows.
        y : (n,) or (n, n_outputs) array
            Their targets.
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

        Warns
        -----
        UserWarning
            As `from_forest`.
        """
        if self.weights not in tuple(WEIGHTINGS):
            raise ValueError(f"weights must be {ANY_WEIGHTING}, got {self.weights!r}")
        if isinstance(self.estimator, StoredForest):
            raise ValueError(
                "a model that was loaded from a file cannot be fitted, because the file does not "
                "say how its forest was grown; set its parameter estimator to a forest, or use the "
                "loaded model in a sklearn.frozen.FrozenEstimator"
            )
        estimator = self._default_forest() if self.estimator is None else clone(self.estimator)
        training = trained(self, estimator, X, y, sample_weight)
        self._learn_labels(X, y)
        fitted = self._import(training)
        if self.weights != "monotonic" and (reason := why_no_means(training.forest)) is not None:
            warnings.warn(f"the forest {reason}", UserWarning, stacklevel=callers_level())
        if self.estimator is None:
            fitted = calibrated_by_default(fitted, self._n_threads())
        self._fitted = fitted
        return self

    def _default_forest(self) -> ExtraTreesRegressor:
        options = {name: getattr(self, name, None) for name in ("n_jobs", "random_state")}
        return ExtraTreesRegressor(300, bootstrap=True, **options)

    def _import(self, training: Training) -> FittedForest:
        self.estimator_ = training.estimator
        n_threads = self._n_threads()
        forest, rows, index = imported(training, self.weights, n_threads)
        self._training_table = training.table
        return FittedForest(
            scorer=Scorer(forest, index),
            weights=self.weights,
            matches_forest=matches_forest(training, self.weights, rows),
            n_training_rows=len(rows.y),
            allow_nan=training.allow_nan,
            feature_names=None if training.steps else getattr(self, "feature_names_in_", None),
            coding=training.steps,
            training_rows=rows,
            feature_range=rows.feature_range,
            training_digest=digest_of(rows.X),
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
            smaller and holds no X; it always holds the distinct values of y, and the least and the
            greatest value of each feature.

        Raises
        ------
        ImportError
            If safetensors is not installed; or skops, and the model has steps before its forest.
        NotFittedError
            If the model is not fitted.
        OSError
            If the file cannot be written.
        ValueError
            If the model was itself loaded without training rows, or has steps before its forest
            that skops cannot store.

        Notes
        -----
        Steps of a Pipeline, and a regressor given as `mean` to `calibrate`, are stored as skops
        stores them; everything else is arrays and facts.
        """
        fitted = self._require_fitted()
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
        share them. Opening takes the same time for any number of leaves. Everything in the file is
        checked before it is used: what describes the model now, nodes, leaves and training rows
        when a query reads them. When queries have read about an eighth of the leaves, the rest is
        checked once, and tables that follow from it are made (136 to 264 bytes for each leaf, if
        leaves have 32 rows or more in the mean).

        If the file is written to in place, whatever reads the model afterwards raises OSError. A
        file that is renamed over it changes nothing.

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
            Whether to map the file. If not, a copy of it is read into memory and checked whole, and
            nothing that happens to the file later matters; each process then has a copy of its own.
        trusted : sequence of str or type, default=()
            Types that the steps before the forest may be made of, besides those that skops trusts:
            the transformers of scikit-learn and what numpy has. An error lists those that a file
            has more; steps of a trusted type may run its code.

        Returns
        -------
        HDIForestRegressor
            A fitted model, without its forest.

        Raises
        ------
        ImportError
            If skops is not installed, and the model has steps before its forest.
        OSError
            If the file cannot be read.
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
        if isinstance(fitted.coding, TableSteps):
            names = fitted.coding.names
            n_features = getattr(fitted.coding.pipeline, "n_features_in_", None)
        if n_features is not None:  # there is no number of them for steps that read texts
            model.n_features_in_ = n_features
        if names is not None:
            model.feature_names_in_ = np.array(names, dtype=object)
        model._fitted = fitted
        return model

    def _query(
        self,
        X: ArrayLike,
        method: str | Callable[..., NDArray[np.float64]],
        *arguments: Any,
        per_row: ArrayLike | None = None,
        hint: bool = False,
        **options: Any,
    ) -> NDArray[np.float64]:
        fitted = self._require_fitted()
        ask = bound(method, fitted.scorer)
        if per_row is None and is_plain(X, self, fitted):
            # One row takes a microsecond less than through blocks.
            if hint and len(X) == fitted.n_training_rows:
                seen = TrainingRowsHint(fitted, len(X))
                seen.see(X)
                seen.give()
            return ask(X, *arguments, n_threads=self._n_threads(len(X)), **options)

        def answers(block: Block) -> NDArray[np.float64]:
            n_threads = self._n_threads(len(block.rows))
            found: NDArray[np.float64]
            found = ask(block.rows, *block.per_row, *arguments, n_threads=n_threads, **options)
            return found

        blocks = checked_blocks(self, X, fitted, per_row, hint=hint)
        return concatenated(answers(block) for block in blocks)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        given = getattr(self, "estimator", None)
        parts = layers(self._default_forest() if given is None else given, fitted=False)
        # The first steps of pipelines get the rows, or else the forest.
        reader = (pipelines(parts) or parts[-1:])[0]
        tags.input_tags.allow_nan = get_tags(reader).input_tags.allow_nan
        tags.target_tags.multi_output = True
        return tags
