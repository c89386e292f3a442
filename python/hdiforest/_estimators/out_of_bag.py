"""Distributions of the training rows, each from the trees that did not see the row."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from hdicore import LeafIndex
from hdiforest._estimators.base import BaseForestModel
from hdiforest._estimators.distributions import bound, ends_of_kind, joined, mean_and_intervals
from hdiforest._model.fitted import FittedForest
from hdiforest._model.predict import AnyKind, calibrated_out_of_bag_intervals
from hdiforest._model.training_rows import IN_BAG, Bags, TrainingRows
from hdiforest._tables.frames import Output
from hdiforest._tables.names import interval_names, quantile_names
from hdiforest._utils.typing import Interpolation
from hdiforest._utils.warnings import callers_level


class OutOfBagDistributions(BaseForestModel):
    """Distributions of the training rows, each from the trees that did not draw the row.

    With ``weights`` "all" and "oob" the row still lies in the leaves of these trees. It is left out
    of them, and the other rows of the leaf share its weight: a row never takes part in its own
    distribution.
    """

    def oob_prediction(self, *, output: Output | None = None) -> Any:
        """Return means for the training rows, each from the trees that did not see it.

        Parameters
        ----------
        output : {"numpy", "pandas", "polars", "pyarrow"}, optional
            An array, or a table of that library; by default what `set_output` says, an array if
            nothing. See `set_output` for the names of the columns.

        Returns
        -------
        (n_training_rows,) or (n_training_rows, n_outputs) float64, or table
            As `predict`. NaN, with a warning, for rows that every tree has seen. With
            ``weights="inbag"`` the other rows equal the forest's own ``oob_prediction_``.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ValueError
            If every tree was fitted on all rows, or the model has no training rows.
        """
        return self._as_output(
            output, "prediction", lambda: self._out_of_bag("prediction", "mean"), None
        )

    def oob_interval(
        self,
        coverage: float | ArrayLike = 0.9,
        *,
        kind: AnyKind | None = None,
        output: Output | None = None,
    ) -> Any:
        """Return intervals for the training rows, each from the trees that did not see it.

        Parameters
        ----------
        coverage : float or list of k floats, default=0.9
            As in `predict_interval`.
        kind : {"calibrated", "hdi", "equal_tailed", "lower", "upper", "smoothed_hdi"}, optional
            As in `predict_interval`: by default "calibrated" after `calibrate`, and "hdi" before.
            "calibrated" needs a calibration by "oob" or "split", without a `mean`.
        output : {"numpy", "pandas", "polars", "pyarrow"}, optional
            An array, or a table of that library; by default what `set_output` says, an array if
            nothing. Tables have the mean of each row
            in front. See `set_output` for the names of the columns.

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
        of its leaves, and the others share its weight. Calibrated intervals have the pads of
        `calibration_`, of which the row decided one part in the number of calibration rows: of
        these `calibration_` gives the audit.
        """
        fitted, wanted = self._require_fitted(), self._wanted(output)
        if kind is None:
            kind = fitted.usual_kind
        if wanted == "numpy":
            if kind == "calibrated":
                return self._calibrated_out_of_bag(coverage)
            return self._out_of_bag("interval", "intervals", coverage, kind)
        names, chosen = interval_names(kind, coverage), kind

        def mean_and_ends() -> NDArray[np.float64]:
            return ends_of_kind(self._oob_mean_and_intervals(coverage, chosen), chosen)

        return self._table(wanted, names, mean_and_ends, None)

    def _oob_mean_and_intervals(
        self, coverage: float | ArrayLike, kind: AnyKind
    ) -> NDArray[np.float64]:
        """Return what `mean_and_intervals` does, for every training row."""
        if kind != "calibrated":
            found: NDArray[np.float64] = self._out_of_bag(
                "interval", mean_and_intervals, coverage, kind
            )
            return found
        ends = self._calibrated_out_of_bag(np.atleast_1d(coverage))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "(?s).*no out-of-bag prediction", UserWarning)
            return joined(self._out_of_bag("prediction", "mean"), ends)

    def _calibrated_out_of_bag(self, coverage: float | ArrayLike) -> NDArray[np.float64]:
        fitted = self._require_fitted()
        self._rows_and_bags("interval")
        found = calibrated_out_of_bag_intervals(fitted, coverage, self._n_threads())
        empty = np.isnan(found).reshape(len(found), -1)
        _warn_of_empty(np.asarray(empty.any(axis=1)), "interval")
        return found

    def oob_quantiles(
        self,
        quantiles: float | ArrayLike,
        *,
        interpolation: Interpolation = "inverted_cdf",
        output: Output | None = None,
    ) -> Any:
        """Return quantiles for the training rows, each from the trees that did not see it.

        Parameters
        ----------
        quantiles : float or list of k floats
            Levels in [0, 1].
        interpolation : str, default="inverted_cdf"
            As in `predict_quantiles`.
        output : {"numpy", "pandas", "polars", "pyarrow"}, optional
            An array, or a table of that library; by default what `set_output` says, an array if
            nothing. See `set_output` for the names of the columns.

        Returns
        -------
        (n_training_rows,) or (n_training_rows, k) float64, or table
            As `predict_quantiles`. NaN, with a warning, for rows that every tree has seen.

        Raises
        ------
        NotFittedError, ValueError
            As `oob_interval`.
        """
        return self._as_output(
            output,
            lambda: quantile_names(quantiles),
            lambda: self._out_of_bag("quantiles", "quantiles", quantiles, interpolation),
            None,
        )

    def oob_cdf(
        self,
        y: ArrayLike | None = None,
        *,
        inclusive: bool = True,
        output: Output | None = None,
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
        output : {"numpy", "pandas", "polars", "pyarrow"}, optional
            An array, or a table of that library; by default what `set_output` says, an array if
            nothing. See `set_output` for the names of the columns.

        Returns
        -------
        array of the shape of y, float64, or table
            NaN, with a warning, for rows that every tree has seen.

        Raises
        ------
        NotFittedError, ValueError
            As `oob_interval`.
        """
        rows = self._require_fitted().require_training_rows()
        points = rows.y if y is None else np.asarray(y, dtype=np.float64)
        if points.shape[: rows.y.ndim] != rows.y.shape:
            raise ValueError(
                f"y must begin with the shape {rows.y.shape} of the training targets, got "
                f"{points.shape}"
            )
        return self._as_output(
            output,
            "cdf",
            lambda: self._out_of_bag("cdf", "cdf", per_row=points, inclusive=inclusive),
            None,
        )

    def oob_weights(self) -> csr_array:
        """Weight of every training row for every other, from the trees that did not see the latter.

        Returns
        -------
        scipy.sparse.csr_array of shape (n_training_rows, n_training_rows), float64
            Row i is the distribution for training row i, and column j the weight of row j in it.
            Rows sum to 1 and the diagonal is 0. A row that every tree has seen is empty, with a
            warning.

        Raises
        ------
        NotFittedError, ValueError
            As `oob_interval`.
        """
        rows = self._require_fitted().require_training_rows()
        n = len(rows.y)
        targets = np.arange(n, dtype=np.float64)
        indptr, indices, data = self._out_of_bag("weights", "weights", targets=targets)
        return csr_array((data, indices, indptr), shape=(n, n))

    def _out_of_bag(
        self,
        result: str,
        method: str | Callable[..., Any],
        *arguments: Any,
        per_row: NDArray[np.float64] | None = None,
        targets: NDArray[np.float64] | None = None,
        **options: Any,
    ) -> Any:
        """Call a method of `LeafIndex` for every training row; `targets` may replace their targets.

        `per_row` is its first argument, with one row for each training row, if it has such an
        argument.
        """
        fitted = self._require_fitted()
        rows, bags = self._rows_and_bags(result)
        forest, index = fitted.scorer.forest, fitted.scorer.index
        points = () if per_row is None else (per_row,)
        if targets is None:
            # A query for no rows refuses wrong arguments before the training rows are indexed.
            no_leaves = np.empty((0, forest.n_trees), dtype=np.int32)
            bound(method, index)(no_leaves, *(p[:0] for p in points), *arguments, **options)

        n_threads = self._n_threads()
        leaves = forest.leaves(rows.X, n_threads=n_threads)
        index, leave_out = _index_and_own_rows(fitted, rows, leaves, targets, n_threads)
        leaves[bags.matrix() > 0] = -1
        options |= {"leave_out": leave_out, "n_threads": n_threads}
        answers = bound(method, index)(leaves, *points, *arguments, **options)
        empty = np.diff(answers[0]) == 0 if method == "weights" else np.isnan(answers)
        of_rows = np.asarray(empty).reshape(len(leaves), -1)
        _warn_of_empty(np.asarray(of_rows.any(axis=1)), result)
        return answers

    def _rows_and_bags(self, result: str) -> tuple[TrainingRows, Bags]:
        """Return the training rows and who drew them, or raise ValueError if there are none."""
        rows = self._require_fitted().require_training_rows()
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
