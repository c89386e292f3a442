"""Distributions of the training rows, each from the trees that did not see the row."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from hdicore import LeafIndex
from hdiforest.base import BaseForestModel
from hdiforest.conditional import Interpolation, Kind
from hdiforest.fitted import FittedForest, TrainingRows


class OutOfBagDistributions(BaseForestModel):
    """Distributions of the training rows, each from the trees that did not draw the row.

    With ``weights`` "all" and "oob" the row still lies in the leaves of these trees. It is left out
    of them, and the other rows of the leaf share its weight: a row never takes part in its own
    distribution.
    """

    def oob_prediction(self) -> NDArray[np.float64]:
        """Means for the training rows, each from the trees that did not see it.

        Returns
        -------
        (n_training_rows,) or (n_training_rows, n_outputs) float64
            As `predict`. NaN, with a warning, for rows that every tree has seen. With
            ``weights="inbag"`` the other rows equal the forest's own ``oob_prediction_``.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ValueError
            If every tree was fitted on all rows, or the model has no training rows.
        """
        answers: NDArray[np.float64] = self._out_of_bag("prediction", "mean")
        return answers

    def oob_interval(
        self, coverage: float | ArrayLike = 0.9, *, kind: Kind = "hdi"
    ) -> NDArray[np.float64]:
        """Intervals for the training rows, each from the trees that did not see it.

        Parameters
        ----------
        coverage : float or list of k floats, default=0.9
            Shares in (0, 1] of the conditional distribution to hold.
        kind : {"hdi", "equal_tailed", "lower", "upper", "smoothed_hdi"}, default="hdi"
            As in `predict_interval`; out of bag there is no "calibrated".

        Returns
        -------
        (n_training_rows, 2) or (n_training_rows, 2, k) float64
            As `predict_interval`. NaN, with a warning, for rows that every tree has seen.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ValueError
            If an argument is out of range, every tree was fitted on all rows, or the model has no
            training rows.

        Notes
        -----
        A row never takes part in its own interval: with ``weights`` "all" and "oob" it is left out
        of its leaves, and the others share its weight.
        """
        answers: NDArray[np.float64] = self._out_of_bag("interval", "intervals", coverage, kind)
        return answers

    def oob_quantiles(
        self, quantiles: float | ArrayLike, *, interpolation: Interpolation = "inverted_cdf"
    ) -> NDArray[np.float64]:
        """Quantiles for the training rows, each from the trees that did not see it.

        Parameters
        ----------
        quantiles, interpolation
            As in `predict_quantiles`.

        Returns
        -------
        (n_training_rows,) or (n_training_rows, k) float64
            As `predict_quantiles`. NaN, with a warning, for rows that every tree has seen.

        Raises
        ------
        NotFittedError, ValueError
            As `oob_interval`.
        """
        answers: NDArray[np.float64] = self._out_of_bag(
            "quantiles", "quantiles", quantiles, interpolation
        )
        return answers

    def oob_cdf(self, y: ArrayLike | None = None, *, inclusive: bool = True) -> NDArray[np.float64]:
        """P(Y <= y) for the training rows, each from the trees that did not see it.

        Parameters
        ----------
        y : (n_training_rows,) or (n_training_rows, k) array, optional
            One or several points per row; (n_training_rows, n_outputs[, k]) with several outputs.
            By default the rows' own targets: the result is then the probability integral
            transform, which is uniform if the distributions are right.
        inclusive : bool, default=True
            False gives P(Y < y).

        Returns
        -------
        array of the shape of y, float64
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
        answers: NDArray[np.float64] = self._out_of_bag(
            "cdf", "cdf", per_row=points, inclusive=inclusive
        )
        return answers

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
        method: str,
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
        rows = fitted.require_training_rows()
        if rows.counts is None:
            raise ValueError(
                f"oob_{result} needs a forest whose trees leave rows out; every tree of this one "
                "was fitted on all rows"
            )
        forest, index = fitted.scorer.forest, fitted.scorer.index
        points = () if per_row is None else (per_row,)
        if targets is None:
            # A query for no rows refuses wrong arguments before the training rows are indexed.
            no_leaves = np.empty((0, forest.n_trees), dtype=np.int32)
            getattr(index, method)(no_leaves, *(p[:0] for p in points), *arguments, **options)

        n_threads = self._n_threads()
        leaves = forest.leaves(rows.X, n_threads=n_threads)
        index, leave_out = _index_and_own_rows(fitted, rows, leaves, targets, n_threads)
        leaves[rows.counts > 0] = -1
        options |= {"leave_out": leave_out, "n_threads": n_threads}
        answers = getattr(index, method)(leaves, *points, *arguments, **options)
        empty = np.diff(answers[0]) == 0 if method == "weights" else np.isnan(answers)
        _warn_of_empty(empty.reshape(len(leaves), -1).any(axis=1), result)
        return answers


def _index_and_own_rows(
    fitted: FittedForest,
    rows: TrainingRows,
    leaves: NDArray[np.int32],
    targets: NDArray[np.float64] | None,
    n_threads: int,
) -> tuple[LeafIndex, NDArray[np.intp] | None]:
    """Return the index to read, and which of its rows each training row must leave out.

    With ``weights="inbag"`` no leaf of a tree that did not draw a row counts the row.
    """
    leave_out = None if fitted.weights == "inbag" else np.arange(len(leaves))
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
            stacklevel=4,
        )
