"""OutOfBagMixin: the `oob_` methods of HDIForestRegressor."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from hdicore import LeafIndex
from hdiforest._estimators import distribution_model as models
from hdiforest._estimators.distribution_model import DistributionModel
from hdiforest._model import predict
from hdiforest._model.fitted import FittedForest
from hdiforest._model.training_rows import IN_BAG, Bags, TrainingRows
from hdiforest._tables.frames import Output
from hdiforest._utils import Array, Interpolation
from hdiforest._utils.hints import warn_caller
from hdiforest.exceptions import OutOfBagWarning

ALL: Any = None  # training rows, in place of X


class OutOfBagDistributions(DistributionModel):
    """What a model predicts for its training rows, each by trees that did not draw it.

    `result` is what is asked for, in warnings and errors.
    """

    def __init__(self, model: OutOfBagMixin, result: str) -> None:
        self.model = model
        self.result = result
        self._fitted = model.fitted_forest()
        self._target_names, self._row_labels = model._target_names, model._row_labels
        self.n_outputs_ = self._fitted.n_outputs
        if self._fitted.calibration is not None:
            self.calibration_ = self._fitted.calibration

    def _query(self, _X: Any, function: models.Query, values: ArrayLike | None = None) -> Array:
        return self._warned_of_nan(self.answer(function, values))

    def _predict_calibrated(
        self, _X: Any, coverage: ArrayLike, *, with_mean: bool, by: Any, joint: bool
    ) -> Array:
        _require_bags(self._fitted, self.result)
        n_threads = self.model._n_threads()

        def answer(part: FittedForest, _: int) -> Array:
            return predict.predict_calibrated_out_of_bag(part, coverage, n_threads, by)

        ends = self._warned_of_nan(predict.of_outputs(self._fitted, answer, joint=joint))
        if not with_mean:
            return ends
        # Rows without a mean are those without an interval, of which a warning was given.
        return models.join_columns(self.answer(models.query_of("mean")), ends)

    def _read_distributions(
        self, _X: Any, readings: models.Readings, values: Array | None = None
    ) -> Array:
        _require_bags(self._fitted, self.result)
        n_threads, targets = self.model._n_threads(), () if values is None else (values,)

        def answer(part: FittedForest, output: int, *own: Array) -> Array:
            return predict.read_distributions_out_of_bag(part, readings[output], n_threads, own)

        return self._warned_of_nan(predict.of_outputs(self._fitted, answer, *targets))

    def _warned_of_nan(self, numbers: Array) -> Array:
        _warn_of_empty(np.isnan(numbers), self.result)
        return numbers

    def answer(
        self, function: Callable[..., Any], values: ArrayLike | None = None, of: Array | None = None
    ) -> Any:
        """Call a function of leaves and of an index of the targets, or of numbers `of` rows."""
        fitted = self._fitted
        rows, bags = _require_bags(fitted, self.result)
        forest = fitted.scorer.forest
        per_row = () if values is None else (np.asarray(values),)
        if of is None:
            # A query for no rows refuses wrong arguments before the training rows are indexed.
            no_leaves = np.empty((0, forest.n_trees), dtype=np.int32)
            function(fitted.scorer.index, no_leaves, *(each[:0] for each in per_row))
        n_threads = self.model._n_threads()
        leaves = forest.leaves(rows.X, n_threads=n_threads)
        # Where leaves count drawn rows only, none of a tree that did not draw a row counts it.
        leave_out = None if fitted.weights in IN_BAG else np.arange(len(leaves))
        index = fitted.scorer.index
        if leave_out is not None or of is not None:
            options: Any = {"targets": of, "keep_row_weights": leave_out is not None}
            index = rows.index(forest, leaves, fitted.weights, **options, n_threads=n_threads)
        leaves[bags.matrix() > 0] = -1
        return function(index, leaves, *per_row, leave_out=leave_out, n_threads=n_threads)


class OutOfBagMixin(DistributionModel):
    """The ``oob_`` methods: distributions of training rows, by trees that did not draw them."""

    @abstractmethod
    def fitted_forest(self) -> FittedForest:
        """Return what the model holds."""

    @abstractmethod
    def _n_threads(self, n_rows: int | None = None) -> int:
        """Return how many threads score so many rows."""

    @models.reads_once
    def oob_prediction(self, *, output: Output = "numpy") -> Any:
        """Return means for the training rows, each from the trees that did not see it.

        Parameters
        ----------
        output : str, default="numpy"
            As in `predict`.

        Returns
        -------
        (n_training_rows,) or (n_training_rows, n_outputs) float64, or table
            As of `predict`. With ``weights="inbag"`` equal to the forest's own ``oob_prediction_``.

        Notes
        -----
        All ``oob_`` methods give NaN, with a warning, for rows that every tree has seen, and raise
        ValueError if every tree was fitted on all rows, or the model has no training rows. A row
        never takes part in its own distribution: with ``weights`` "all" and "oob" it is left out of
        the leaves of these trees, and the others share its weight.
        """
        return OutOfBagDistributions(self, "prediction").predict(ALL, output=output)

    @property
    def oob_prediction_(self) -> Any:
        """What `oob_prediction` returns, as scikit-learn's forests have it; absent without it."""
        try:
            return self.oob_prediction()
        except ValueError as error:
            raise AttributeError(str(error)) from None

    @models.reads_once
    def oob_interval(
        self,
        coverage: ArrayLike = 0.9,
        *,
        kind: predict.AnyKind | None = None,
        by: ArrayLike | None = None,
        joint: bool = False,
        output: Output = "numpy",
    ) -> Any:
        """Return intervals for the training rows, each from the trees that did not see it.

        Parameters
        ----------
        coverage, kind, by, joint, output : optional
            As in `predict_interval`; `by` is needed of a loaded model alone. Calibrated ones and
            their one-sided bounds need the method "oob" or "split" without a regressor as `mean`.

        Returns
        -------
        (n_training_rows, 2) or (n_training_rows, 2, k) float64, or table
            As of `predict_interval`. The row decided one part in the number of calibration rows of
            its own quantile: `calibration_` has a cross-check.
        """
        options: Any = {"kind": self._kind(kind), "by": by, "joint": joint, "output": output}
        return OutOfBagDistributions(self, "interval").predict_interval(ALL, coverage, **options)

    @models.reads_once
    def oob_quantiles(
        self,
        quantiles: float | ArrayLike,
        *,
        kind: Literal["calibrated", "raw"] | None = None,
        interpolation: Interpolation | None = None,
        output: Output = "numpy",
    ) -> Any:
        """Return quantiles for the training rows, each from the trees that did not see it.

        Parameters
        ----------
        quantiles, kind, interpolation, output : levels and options
            As in `predict_quantiles`. The kind "calibrated" needs a calibration by "oob" or
            "split", without a regressor as `mean`; with one the kind is "raw" by default.

        Returns
        -------
        (n_training_rows,) or (n_training_rows, k) float64, or table
            As of `predict_quantiles`.
        """
        options: Any = {"kind": self._oob_kind(kind), "interpolation": interpolation}
        source = OutOfBagDistributions(self, "quantiles")
        return source.predict_quantiles(ALL, quantiles, **options, output=output)

    @models.reads_once
    def oob_cdf(
        self,
        y: ArrayLike | None = None,
        *,
        inclusive: bool = True,
        kind: Literal["calibrated", "raw"] | None = None,
        output: Output = "numpy",
    ) -> Any:
        """P(Y <= y) for the training rows, each from the trees that did not see it.

        Parameters
        ----------
        y : float, (n_training_rows,) or (n_training_rows, k) array, optional
            As in `predict_cdf`. By default the rows' own targets: the result is then the
            probability integral transform, which is uniform if the distributions are right.
        inclusive, kind, output : optional
            As in `predict_cdf` and `oob_quantiles`.

        Returns
        -------
        array of the shape of y, float64, or table
            As of `predict_cdf`.
        """
        targets = self.fitted_forest().require_training_rows().y
        points = targets if y is None else np.asarray(y, dtype=np.float64)
        points = np.full(targets.shape, points) if points.ndim == 0 else points
        if points.shape[: targets.ndim] != targets.shape:
            must = f"y must begin with the shape {targets.shape} of the training targets"
            raise ValueError(f"{must}, got {points.shape}")
        options: Any = {"inclusive": inclusive, "kind": self._oob_kind(kind), "output": output}
        return OutOfBagDistributions(self, "cdf").predict_cdf(ALL, points, **options)

    @models.reads_once
    def oob_weights(self) -> csr_array:
        """Weight of every training row for every other, from the trees that did not see the latter.

        Returns
        -------
        scipy.sparse.csr_array of shape (n_training_rows, n_training_rows), float64
            Row i holds the weights for training row i: they sum to 1, and its own is 0. A row that
            every tree has seen is empty, with a warning.
        """
        n = len(self.fitted_forest().require_training_rows().y)
        positions = np.arange(n, dtype=np.float64)
        source = OutOfBagDistributions(self, "weights")
        indptr, indices, data = source.answer(LeafIndex.weights, of=positions)
        _warn_of_empty(np.diff(indptr) == 0, "weights")
        return csr_array((data, indices, indptr), shape=(n, n))

    def _oob_kind(self, kind: str | None) -> str | None:
        """Return the kind of distributions that is meant: not all are calibrated out of bag."""
        has_none = kind is None and self.fitted_forest().why_not_out_of_bag() is not None
        return "raw" if has_none else kind


def _require_bags(fitted: FittedForest, result: str) -> tuple[TrainingRows, Bags]:
    """Return the training rows and who drew them, or raise ValueError if there are none."""
    rows = fitted.require_training_rows()
    if rows.bags is None:
        raise ValueError(
            f"oob_{result} needs a forest whose trees leave rows out; every tree of this one "
            "was fitted on all rows"
        )
    return rows, rows.bags


def _warn_of_empty(empty: NDArray[np.bool_], result: str) -> None:
    """Warn if training rows have no result; `empty` (n, ...) says which."""
    n_empty = np.count_nonzero(empty.reshape(len(empty), -1).any(axis=1))
    if n_empty > 0:
        warn_caller(
            f"{n_empty} of {len(empty)} training rows have no out-of-bag {result}, because "
            "no tree that did not see them has another row to show; use more trees",
            OutOfBagWarning,
        )
