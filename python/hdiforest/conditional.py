"""Predictions from conditional distributions, for forests of scikit-learn and of others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Kind = Literal["hdi", "equal_tailed", "lower", "upper", "smoothed_hdi"]
Interpolation = Literal[
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "linear",
    "median_unbiased",
    "normal_unbiased",
    "lower",
    "higher",
    "midpoint",
    "nearest",
]


class ConditionalDistributions(ABC):
    """Predictions from the training rows that share leaves with a row.

    All raise NotFittedError if the model is not fitted, and ValueError if an argument is refused.
    """

    @abstractmethod
    def _query(
        self,
        X: ArrayLike,
        method: str,
        *arguments: Any,
        per_row: ArrayLike | None = None,
        **options: Any,
    ) -> NDArray[np.float64]:
        """Call a method that `hdicore.LeafIndex` and `Scorer` have for the rows of X.

        `per_row` is its first argument, with one row for each row of X, if it has such an argument.
        """

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Mean of the conditional distribution.

        Parameters
        ----------
        X : (n, n_features) array or table

        Returns
        -------
        (n,) or (n, n_outputs) float64

        Notes
        -----
        Equal to the prediction of a scikit-learn forest only with ``weights="inbag"`` and a
        criterion whose leaves predict means.
        """
        return self._query(X, "mean")

    def predict_interval(
        self, X: ArrayLike, coverage: float | ArrayLike = 0.9, *, kind: Kind = "hdi"
    ) -> NDArray[np.float64]:
        """Prediction intervals.

        Parameters
        ----------
        X : (n, n_features) array or table
        coverage : float or list of k floats, default=0.9
            Shares in (0, 1] of the conditional distribution to hold.
        kind : {"hdi", "equal_tailed", "lower", "upper", "smoothed_hdi"}, default="hdi"
            "hdi" is the shortest interval (Algorithm 1 of the paper); "equal_tailed" runs between
            the (1 - coverage) / 2 and (1 + coverage) / 2 quantiles; "lower" is the largest lower
            bound, with infinity as the upper end; "upper" the smallest upper bound. "smoothed_hdi"
            is the mean of the shortest intervals from each atom that hold the coverage, weighted by
            exp(-5 (width - least) / least): its ends do not jump from row to row as those of "hdi"
            do, and it may hold less.

        Returns
        -------
        (n, 2) or (n, 2, k) float64
            Lower and upper ends, in the unit of y; (n, n_outputs, 2[, k]) with several outputs.
            NaN where all leaves of the row are empty: possible with ``weights="oob"``, and with
            `n_leaves` of `from_leaves`.

        Notes
        -----
        O(entries of the row's leaves + distinct targets / 64) per row, and O(support) per level.
        """
        return self._query(X, "intervals", coverage, kind)

    def predict_quantiles(
        self,
        X: ArrayLike,
        quantiles: float | ArrayLike,
        *,
        interpolation: Interpolation = "inverted_cdf",
    ) -> NDArray[np.float64]:
        """Quantiles of the conditional distribution.

        Parameters
        ----------
        X : (n, n_features) array or table
        quantiles : float or list of k floats
            Levels in [0, 1].
        interpolation : str, default="inverted_cdf"
            The name of any method of `numpy.quantile`. "inverted_cdf" is the smallest target with
            distribution function >= level; it and "averaged_inverted_cdf" need weights alone. The
            others count observations, the weight of one being known from the leaves: where all
            rows weigh alike these are numpy's quantiles, ties included. Rows with one target that
            share no leaf of the query count as one observation.

        Returns
        -------
        (n,) or (n, k) float64
            (n, n_outputs[, k]) with several outputs.
        """
        return self._query(X, "quantiles", quantiles, interpolation)

    def predict_cdf(
        self, X: ArrayLike, y: ArrayLike, *, inclusive: bool = True
    ) -> NDArray[np.float64]:
        """P(Y <= y given x), eq. (14) of the paper, or P(Y < y given x).

        Parameters
        ----------
        X : (n, n_features) array or table
        y : (n,) or (n, k) array
            One or several points per row; (n, n_outputs[, k]) with several outputs.
        inclusive : bool, default=True
            Whether y itself counts: False gives P(Y < y given x).

        Returns
        -------
        array of the shape of y, float64
        """
        return self._query(X, "cdf", per_row=y, inclusive=inclusive)
