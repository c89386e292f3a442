"""OutOfBagMixin: the `oob_` methods of HDIForestRegressor."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from hdicore import LeafIndex
from hdiforest._estimators.distribution_model import (
    DistributionModel,
    Query,
    columns_of_kind,
    join_columns,
    query_cdf,
    query_intervals,
    query_mean,
    query_mean_and_intervals,
    query_quantiles,
)
from hdiforest._model.fitted import FittedForest
from hdiforest._model.predict import AnyKind, predict_calibrated_out_of_bag
from hdiforest._model.training_rows import IN_BAG, Bags, TrainingRows
from hdiforest._tables.frames import Output
from hdiforest._tables.names import interval_names, quantile_names
from hdiforest._utils.typing import Array, Interpolation
from hdiforest._utils.warnings import callers_level


class OutOfBagMixin(DistributionModel):
    """The ``oob_`` methods: distributions of training rows, from the trees that did not draw them.

    With ``weights`` "all" and "oob" the row still lies in the leaves of these trees. It is left out
    of them, and the other rows of the leaf share its weight: a row never takes part in its own
    distribution. All raise NotFittedError if the model is not fitted, and ValueError if an argument
    is refused, every tree was fitted on all rows, or the model has no training rows.
    """

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
            See `predict`.

        Returns
        -------
        (n_training_rows,) or (n_training_rows, n_outputs) float64, or table
            As `predict`. NaN, with a warning, for rows that every tree has seen. With
            ``weights="inbag"`` the other rows equal the forest's own ``oob_prediction_``.
        """
        return self._format(
            output, "prediction", lambda: self._query_numbers("prediction", query_mean), None
        )

    def oob_interval(
        self,
        coverage: float | ArrayLike = 0.9,
        *,
        kind: AnyKind | None = None,
        output: Output = "numpy",
    ) -> Any:
        """Return intervals for the training rows, each from the trees that did not see it.

        Parameters
        ----------
        coverage : float or list of k floats, default=0.9
            As in `predict_interval`.
        kind : {"calibrated", "hdi", "equal_tailed", "lower", "upper", "smoothed_hdi"}, optional
            As in `predict_interval`: by default "calibrated" after `calibrate`, and "hdi" before.
            "calibrated" needs a calibration by "oob" or "split", without a `mean`.
        output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
            See `predict_interval`.

        Returns
        -------
        (n_training_rows, 2) or (n_training_rows, 2, k) float64, or table
            As `predict_interval`. NaN, with a warning, for rows that every tree has seen.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        AttributeError
            If kind is "calibrated" and the model is not.
        ValueError
            If an argument is out of range, every tree was fitted on all rows, the model has no
            training rows, or its calibration has no such intervals.

        Notes
        -----
        A row never takes part in its own interval: with ``weights`` "all" and "oob" it is left out
        of its leaves, and the others share its weight. Calibrated intervals have the quantiles of
        `calibration_`, of which the row decided one part in the number of calibration rows: of
        these `calibration_` gives the cross-check.
        """
        resolved = self._kind(kind)
        if output == "numpy":
            return self._oob_intervals(coverage, resolved)
        return self._format(
            output,
            lambda: interval_names(resolved, coverage),
            lambda: self._oob_mean_and_ends(coverage, resolved),
            None,
        )

    def _oob_intervals(self, coverage: ArrayLike, kind: AnyKind) -> Array:
        if kind != "calibrated":
            function = partial(query_intervals, coverage=coverage, kind=kind)
            return self._query_numbers("interval", function)
        fitted = self.fitted_forest()
        _require_bags(fitted, "interval")
        ends = predict_calibrated_out_of_bag(fitted, coverage, self._n_threads())
        _warn_of_nan(ends, "interval")
        return ends

    def _oob_mean_and_ends(self, coverage: ArrayLike, kind: AnyKind) -> Array:
        """Return the columns of `interval_names`."""
        if kind != "calibrated":
            function = partial(query_mean_and_intervals, coverage=coverage, kind=kind)
            return columns_of_kind(self._query_numbers("interval", function), kind)
        ends = self._oob_intervals(np.atleast_1d(coverage), kind)
        # The rows without a mean are those without an interval, of which a warning was given.
        return join_columns(self._query_out_of_bag("prediction", query_mean), ends)

    def oob_quantiles(
        self,
        quantiles: float | ArrayLike,
        *,
        interpolation: Interpolation = "inverted_cdf",
        output: Output = "numpy",
    ) -> Any:
        """Return quantiles for the training rows, each from the trees that did not see it.

        Parameters
        ----------
        quantiles : float or list of k floats
            Levels in [0, 1].
        interpolation : str, default="inverted_cdf"
            As in `predict_quantiles`.
        output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
            See `predict`.

        Returns
        -------
        (n_training_rows,) or (n_training_rows, k) float64, or table
            As `predict_quantiles`. NaN, with a warning, for rows that every tree has seen.
        """
        function = partial(query_quantiles, quantiles=quantiles, interpolation=interpolation)
        return self._format(
            output,
            lambda: quantile_names(quantiles),
            lambda: self._query_numbers("quantiles", function),
            None,
        )

    def oob_cdf(
        self,
        y: ArrayLike | None = None,
        *,
        inclusive: bool = True,
        output: Output = "numpy",
    ) -> Any:
        """P(Y <= y) for the training rows, each from the trees that did not see it.

        Parameters
        ----------
        y : (n_training_rows,) or (n_training_rows, k) array, optional
            One or several points per row; (n_training_rows, n_outputs[, k]) with several outputs.
            By default the rows' own targets: the result is then the probability integral
            transform, which is uniform if the distributions are right.
        inclusive : bool, default=True
            False gives P(Y < y).
        output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
            See `predict`.

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
        function = partial(query_cdf, inclusive=inclusive)
        return self._format(
            output, "cdf", lambda: self._query_numbers("cdf", function, points), None
        )

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

    def _query_numbers(self, result: str, function: Query, *values: Array) -> Array:
        numbers: Array = self._query_out_of_bag(result, function, *values)
        _warn_of_nan(numbers, result)
        return numbers

    def _query_out_of_bag(
        self, result: str, function: Callable[..., Any], *values: Array, of: Array | None = None
    ) -> Any:
        """Call a function of an index and leaves for all training rows; see `query`.

        `of` (n,) are numbers in place of the targets of these rows.
        """
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
