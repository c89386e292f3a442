"""HDIForestRegressor: a scikit-learn regressor whose predictions are whole distributions."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin, clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, get_tags

from hdicore import Scorer
from hdiforest._model.calibrate import calibrated_by_default
from hdiforest._model.fitted import FittedForest
from hdiforest._model.sklearn_forest import why_no_means
from hdiforest._model.training_hint import TrainingRowsHint, digest_of
from hdiforest._model.training_rows import ANY_WEIGHTING, WEIGHTINGS, Weighting
from hdiforest._utils.meta_estimators import layers, pipelines
from hdiforest._utils.warnings import callers_level
from hdiforest.base import BaseForestModel
from hdiforest.calibrated import CalibratedIntervals
from hdiforest.coded_steps import with_coding
from hdiforest.output import bound
from hdiforest.row_weights import TrainingRowWeights
from hdiforest.rows import Block, checked_blocks, concatenated, is_plain
from hdiforest.serving import _model_file as model_file
from hdiforest.stored import StoredForest
from hdiforest.training import Training, imported, matches_forest, trained


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
        for name in ("_steps", "_training_table"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if training.steps is not None:
            self._steps, self._training_table = training.steps, training.table
        return FittedForest(
            scorer=Scorer(forest, index),
            weights=self.weights,
            matches_forest=matches_forest(training, self.weights, rows),
            n_training_rows=len(rows.y),
            allow_nan=training.allow_nan,
            feature_names=None if self._steps else getattr(self, "feature_names_in_", None),
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
            If safetensors is not installed.
        NotFittedError
            If the model is not fitted.
        OSError
            If the file cannot be written.
        ValueError
            If the model was itself loaded without training rows, or has steps before its forest
            that need code.
        """
        fitted = self._require_fitted()
        if self._steps is not None:
            fitted = with_coding(fitted, self._steps, self._training_table)
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

        Returns
        -------
        HDIForestRegressor
            A fitted model, without its forest.

        Raises
        ------
        OSError
            If the file cannot be read.
        ValueError
            If it is not a model, is damaged, or comes from a newer version.
        """
        fitted = model_file.load(Path(path), verify=verify, mapped=mapped).content
        forest = StoredForest(
            fitted.scorer.forest.n_trees,
            fitted.n_features,
            fitted.n_outputs,
            fitted.n_training_rows,
            fitted.allow_nan,
        )
        model = cls(forest, weights=fitted.weights, n_jobs=n_jobs)
        names = fitted.feature_names
        if fitted.coding is not None:
            names = np.array(fitted.coding.columns, dtype=object)
        model.n_features_in_ = fitted.n_features if names is None else len(names)
        if names is not None:
            model.feature_names_in_ = names
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
