"""OutOfBagMixin: the `oob_` methods of HDIForestRegressor."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from hdicore import LeafIndex
from hdiforest._estimators.distribution_model import DistributionModel, Query, Readings, query_of
from hdiforest._model.fitted import FittedForest
from hdiforest._model.predict import (
    AnyKind,
    of_outputs,
    predict_calibrated_out_of_bag,
    read_distributions_out_of_bag,
)
from hdiforest._model.training_rows import IN_BAG, Bags, TrainingRows
from hdiforest._tables.frames import Output
from hdiforest._tables.names import quantile_names
from hdiforest._utils import Array, Interpolation
from hdiforest._utils.hints import callers_level


class OutOfBagMixin(DistributionModel):
    """The ``oob_`` methods: distributions of training rows, by trees that did not draw them."""

    @abstractmethod
    def fitted_forest(self) -> FittedForest:
        """Return what the model holds."""

    @abstractmethod
    def _n_threads(self, n_rows: int | None = None) -> int:
        """Return how many threads score so many rows."""

    def oob_prediction(self, *, output: Output = "numpy") -> Any:
        """Return means for the training rows, each from the trees that did not see it.

        Parameters
        ----------
        output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
            As in `predict`.

        Returns
        -------
        (n_training_rows,) or (n_training_rows, n_outputs) float64, or table
            As of `predict`. NaN, with a warning, for rows that every tree has seen. With
            ``weights="inbag"`` the other rows equal the forest's own ``oob_prediction_``.

        Raises
        ------
        NotFittedError
            If the model is not fitted, as from all ``oob_`` methods.
        ValueError
            If every tree was fitted on all rows, the model has no training rows, or an argument is
            refused, as from all ``oob_`` methods.

        Notes
        -----
        A row never takes part in its own distribution: with ``weights`` "all" and "oob" it still
        lies in the leaves of these trees, is left out of them, and the others share its weight.
        """
        values = partial(self._query_numbers, "prediction", query_of("mean"))
        return self._format(output, "prediction", values, None)

    def oob_interval(
        self,
        coverage: ArrayLike = 0.9,
        *,
        kind: AnyKind | None = None,
        by: ArrayLike | None = None,
        joint: bool = False,
        output: Output = "numpy",
    ) -> Any:
        """Return intervals for the training rows, each from the trees that did not see it.

        Parameters
        ----------
        coverage, kind, by, joint, output : optional
            As in `predict_interval`; `by` is needed of a loaded model alone. The kind "calibrated",
            and one-sided bounds of a calibrated model, need a calibration by "oob" or "split",
            without a regressor as `mean`.

        Returns
        -------
        (n_training_rows, 2) or (n_training_rows, 2, k) float64, or table
            As of `predict_interval`. NaN, with a warning, for rows that every tree has seen.

        Raises
        ------
        AttributeError
            If kind is "calibrated" and the model is not.
        NotFittedError, ValueError
            As `oob_prediction`, or if the calibration has no such intervals.

        Notes
        -----
        Calibrated intervals have the quantiles of `calibration_`, of which the row decided one part
        in the number of calibration rows: of these `calibration_` gives the cross-check.
        """
        self._check_calibrated(kind, by, joint)
        ask = partial(self._query_numbers, "interval")
        calibrated = partial(self._oob_calibrated, by=by, joint=joint)
        read = partial(self._read_out_of_bag, "interval")
        return self._format_intervals(None, coverage, kind, output, ask, calibrated, read)

    def _oob_calibrated(
        self, coverage: ArrayLike, *, with_mean: bool, by: ArrayLike | None, joint: bool
    ) -> tuple[Array, Array]:
        fitted = self.fitted_forest()
        _require_bags(fitted, "interval")
        args = coverage, self._n_threads(), by
        ends = of_outputs(fitted, lambda e, _: predict_calibrated_out_of_bag(e, *args), joint=joint)
        _warn_of_nan(ends, "interval")
        # The rows without a mean are those without an interval, of which a warning was given.
        mean = np.empty(0)
        if with_mean:
            mean = self._query_out_of_bag("prediction", query_of("mean"))
        return mean, ends

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
            As of `predict_quantiles`. NaN, with a warning, for rows that every tree has seen.
        """
        ask = partial(self._query_numbers, "quantiles")
        read = partial(self._read_out_of_bag, "quantiles")
        values = self._quantiles_by(quantiles, self._oob_kind(kind), interpolation, ask, read)
        return self._format(output, partial(quantile_names, quantiles), values, None)

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
        y : (n_training_rows,) or (n_training_rows, k) array, optional
            One or several points per row; (n_training_rows, n_outputs[, k]) with several outputs.
            By default the rows' own targets: the result is then the probability integral
            transform, which is uniform if the distributions are right.
        inclusive, kind, output : optional
            As in `predict_cdf` and `oob_quantiles`.

        Returns
        -------
        array of the shape of y, float64, or table
            NaN, with a warning, for rows that every tree has seen.
        """
        targets = self.fitted_forest().require_training_rows().y
        points = targets if y is None else np.asarray(y, dtype=np.float64)
        if points.shape[: targets.ndim] != targets.shape:
            raise ValueError(
                f"y must begin with the shape {targets.shape} of the training targets, got "
                f"{points.shape}"
            )
        ask, read = partial(self._query_numbers, "cdf"), partial(self._read_out_of_bag, "cdf")
        values = self._cdf_by(points, inclusive, self._oob_kind(kind), ask, read)
        return self._format(output, "cdf", values, None)

    def oob_weights(self) -> csr_array:
        """Weight of every training row for every other, from the trees that did not see the latter.

        Returns
        -------
        scipy.sparse.csr_array of shape (n_training_rows, n_training_rows), float64
            Row i is the distribution for training row i, and column j the weight of row j in it.
            Rows sum to 1 and the diagonal is 0. A row that every tree has seen is empty, with a
            warning.
        """
        n = len(self.fitted_forest().require_training_rows().y)
        positions = np.arange(n, dtype=np.float64)
        indptr, indices, data = self._query_out_of_bag("weights", LeafIndex.weights, of=positions)
        _warn_of_empty(np.diff(indptr) == 0, "weights")
        return csr_array((data, indices, indptr), shape=(n, n))

    def _oob_kind(self, kind: str | None) -> str | None:
        """Return the kind of distributions that is meant: not all are calibrated out of bag."""
        has_none = kind is None and self.fitted_forest().why_not_out_of_bag() is not None
        return "raw" if has_none else kind

    def _read_out_of_bag(self, result: str, readings: Readings, *values: Array) -> Array:
        fitted = self.fitted_forest()
        _require_bags(fitted, result)

        def answer(part: FittedForest, output: int, *own: Array) -> Array:
            return read_distributions_out_of_bag(part, readings[output], self._n_threads(), own)

        numbers = of_outputs(fitted, answer, *values)
        _warn_of_nan(numbers, result)
        return numbers

    def _query_numbers(self, result: str, function: Query, *values: Array) -> Array:
        numbers: Array = self._query_out_of_bag(result, function, *values)
        _warn_of_nan(numbers, result)
        return numbers

    def _query_out_of_bag(
        self, result: str, function: Callable[..., Any], *values: Array, of: Array | None = None
    ) -> Any:
        """Call a function of leaves and of an index of the targets, or of numbers `of` rows."""
        fitted = self.fitted_forest()
        rows, bags = _require_bags(fitted, result)
        forest = fitted.scorer.forest
        if of is None:
            # A query for no rows refuses wrong arguments before the training rows are indexed.
            no_leaves = np.empty((0, forest.n_trees), dtype=np.int32)
            function(fitted.scorer.index, no_leaves, *(each[:0] for each in values))
        n_threads = self._n_threads()
        leaves = forest.leaves(rows.X, n_threads=n_threads)
        index, leave_out = _index_and_own_rows(fitted, rows, leaves, of, n_threads)
        leaves[bags.matrix() > 0] = -1
        return function(index, leaves, *values, leave_out=leave_out, n_threads=n_threads)


def _require_bags(fitted: FittedForest, result: str) -> tuple[TrainingRows, Bags]:
    """Return the training rows and who drew them, or raise ValueError if there are none."""
    rows = fitted.require_training_rows()
    if rows.bags is None:
        raise ValueError(
            f"oob_{result} needs a forest whose trees leave rows out; every tree of this one "
            "was fitted on all rows"
        )
    return rows, rows.bags


def _index_and_own_rows(
    fitted: FittedForest,
    rows: TrainingRows,
    leaves: NDArray[np.int32],
    targets: NDArray[np.float64] | None,
    n_threads: int,
) -> tuple[LeafIndex, NDArray[np.intp] | None]:
    """Return the index to read, and which of its rows each training row must leave out.

    If leaves count drawn rows only, none of a tree that did not draw a row counts the row.
    """
    leave_out = None if fitted.weights in IN_BAG else np.arange(len(leaves))
    if leave_out is None and targets is None:
        return fitted.scorer.index, None
    index = rows.index(
        fitted.scorer.forest,
        leaves,
        fitted.weights,
        targets=targets,
        keep_row_weights=leave_out is not None,
        n_threads=n_threads,
    )
    return index, leave_out


def _warn_of_nan(numbers: Array, result: str) -> None:
    """Warn if training rows, along the first axis, have no numbers."""
    of_rows = np.isnan(numbers).reshape(len(numbers), -1)
    _warn_of_empty(np.asarray(of_rows.any(axis=1)), result)


def _warn_of_empty(empty: NDArray[np.bool_], result: str) -> None:
    """Warn if training rows have no result; `empty` (n,) says which."""
    n_empty = int(empty.sum())
    if n_empty > 0:
        warnings.warn(
            f"{n_empty} of {len(empty)} training rows have no out-of-bag {result}, because "
            "no tree that did not see them has another row to show; use more trees",
            UserWarning,
            stacklevel=callers_level(),
        )
