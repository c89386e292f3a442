"""Predictions from conditional distributions, for forests of scikit-learn and of others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._tables.frames import Output
from hdiforest._tables.names import quantile_names
from hdiforest._utils.typing import Interpolation
from hdiforest.output import TablesOut


class ConditionalDistributions(TablesOut, ABC):
    """Predictions from the training rows that share leaves with a row.

    All raise NotFittedError if the model is not fitted, and ValueError if an argument is refused.
    """

    @abstractmethod
    def _query(
        self,
        X: ArrayLike,
        method: str | Callable[..., NDArray[np.float64]],
        *arguments: Any,
        per_row: ArrayLike | None = None,
        **options: Any,
    ) -> NDArray[np.float64]:
        """Call a method that `hdicore.LeafIndex` and `Scorer` have for the rows of X.

        Or a function whose first argument is one of these.

        `per_row` is its first argument, with one row for each row of X, if it has such an argument.
        """

    def predict(self, X: ArrayLike, *, output: Output | None = None) -> Any:
        """Mean of the conditional distribution.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
            An array, or a table of that library with the column ``prediction``.

        Returns
        -------
        (n,) or (n, n_outputs) float64, or table
            In the unit of y.

        Notes
        -----
        Equal to the prediction of a scikit-learn forest only with ``weights="inbag"``, and not with
        ``monotonic_cst``, ``criterion="absolute_error"`` or a transformed target: see the attribute
        ``predict_matches_forest_``.
        """
        return self._as_output(output or "numpy", "prediction", lambda: self._query(X, "mean"), X)

    def predict_quantiles(
        self,
        X: ArrayLike,
        quantiles: float | ArrayLike,
        *,
        interpolation: Interpolation = "inverted_cdf",
        output: Output | None = None,
    ) -> Any:
        """Return quantiles of the conditional distribution.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        quantiles : float or list of k floats
            Levels in [0, 1].
        interpolation : str, default="inverted_cdf"
            The name of any method of `numpy.quantile`. "inverted_cdf" is the smallest target with
            distribution function >= level; it and "averaged_inverted_cdf" need weights alone. The
            others count observations, the weight of one being known from the leaves: where all
            rows weigh alike these are numpy's quantiles, ties included. Rows with one target that
            share no leaf of the query count as one observation.
        output : {"numpy", "pandas", "polars", "pyarrow"}, optional
            An array, or a table of that library; by default what `set_output` says, an array if
            nothing. See `set_output` for the names of the columns.

        Returns
        -------
        (n,) or (n, k) float64, or table
            (n, n_outputs[, k]) with several outputs.
        """
        return self._as_output(
            output,
            lambda: quantile_names(quantiles),
            lambda: self._query(X, "quantiles", quantiles, interpolation),
            X,
        )

    def predict_cdf(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        inclusive: bool = True,
        output: Output | None = None,
    ) -> Any:
        """P(Y <= y given x), eq. (14) of the paper, or P(Y < y given x).

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        y : (n,) or (n, k) array
            One or several points per row; (n, n_outputs[, k]) with several outputs.
        inclusive : bool, default=True
            Whether y itself counts: False gives P(Y < y given x).
        output : {"numpy", "pandas", "polars", "pyarrow"}, optional
            An array, or a table of that library; by default what `set_output` says, an array if
            nothing. See `set_output` for the names of the columns.

        Returns
        -------
        array of the shape of y, float64, or table
            Between 0 and 1.
        """
        return self._as_output(
            output, "cdf", lambda: self._query(X, "cdf", per_row=y, inclusive=inclusive), X
        )
