"""HDIForestRegressor: a scikit-learn regressor whose predictions are whole distributions."""

from __future__ import annotations

import os
import warnings
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.base import RegressorMixin, clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import DataConversionWarning
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from hdicore import Scorer
from hdiforest import model_file
from hdiforest.arrow import as_table
from hdiforest.distributions import ConditionalDistributions
from hdiforest.importing import TrainingRows, Weighting, import_forest
from hdiforest.out_of_bag import OutOfBagDistributions
from hdiforest.rows import checked_rows, checked_sample_weight, checked_training_rows
from hdiforest.state import StoredAsArrays
from hdiforest.stored import StoredForest
from hdiforest.threads import thread_count


class HDIForestRegressor(
    ConditionalDistributions, OutOfBagDistributions, RegressorMixin, StoredAsArrays
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
        ``RandomForestRegressor()``. A fitted one in a ``FrozenEstimator`` is kept as it is. In a
        model that was loaded from a file, a description of its forest.
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
        if self.weights not in ("all", "inbag", "oob"):
            raise ValueError(f"weights must be 'all', 'inbag' or 'oob', got {self.weights!r}")
        if isinstance(self.estimator, StoredForest):
            raise ValueError(
                "a model that was loaded from a file cannot be fitted, because the file does not "
                "say how its forest was grown; set its parameter estimator to a forest, or use the "
                "loaded model in a sklearn.frozen.FrozenEstimator"
            )
        X = as_table(X)
        estimator = RandomForestRegressor() if self.estimator is None else clone(self.estimator)
        frozen = isinstance(estimator, FrozenEstimator)
        while isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        if frozen:
            check_is_fitted(estimator)
            validate_data(estimator, X, reset=False, skip_check_array=True)
        self._allow_nan = get_tags(self).input_tags.allow_nan
        rows, targets = checked_training_rows(self, X, y)
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

        Parameters
        ----------
        X : (n, n_features) array or table

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
        The first call indexes the training rows one by one and keeps that index.
        """
        rows = checked_rows(self, X)
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

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ValueError
            If an argument is refused, or several outputs are drawn without training rows.
        """
        rows = checked_rows(self, X)
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
        model.estimator = StoredForest(
            model.scorer_.forest.n_trees,
            model.n_features_in_,
            model.n_outputs_,
            model.n_training_rows_,
            model._allow_nan,
        )
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

    def _ask(
        self,
        X: ArrayLike,
        query: str,
        *arguments: Any,
        per_row: ArrayLike | None = None,
        **options: Any,
    ) -> NDArray[np.float64]:
        rows = checked_rows(self, X)
        points = () if per_row is None else (per_row,)
        options["n_threads"] = self._n_threads(len(rows))
        found: NDArray[np.float64]
        found = getattr(self.scorer_, query)(rows, *points, *arguments, **options)
        return found

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
        given = getattr(self, "estimator", None)
        inner = RandomForestRegressor() if given is None else given
        tags.input_tags.allow_nan = get_tags(inner).input_tags.allow_nan
        tags.target_tags.multi_output = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        state.pop("_row_scorer", None)
        return state
