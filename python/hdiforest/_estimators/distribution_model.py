"""DistributionModel: what all estimators predict, as arrays or as tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal

from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from hdiforest._estimators import row_source
from hdiforest._estimators.fitted_model import Fitted, FittedModel
from hdiforest._estimators.row_source import RowSource
from hdiforest._tables.frames import Output
from hdiforest._utils import Interpolation
from hdiforest._utils.checks import known_arguments
from hdiforest.calibration._predict import AnyKind


class DistributionModel(RegressorMixin, FittedModel[Fitted], ABC):
    """A regressor that predicts from the training rows that share leaves with a row."""

    @abstractmethod
    def _source(self, X: Any) -> RowSource:
        """Return rows to predict by the model as it is now, or raise NotFittedError."""

    @known_arguments
    def predict(self, X: ArrayLike, *, output: Output = "numpy") -> Any:
        """Return the mean of the conditional distribution.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
            The type of the result: an array, or a table of the named library.

        Returns
        -------
        (n,) or (n, n_outputs) float64, or table
            Means, in the unit of y. They are the predictions of the scikit-learn forest if
            `hdiforest.inspection.predict_matches_forest` says so.

        Notes
        -----
        A table of pandas has the index of X if X is a table of pandas. Names of columns:
        :doc:`/tables`.
        """
        return row_source.mean(self._source(X), output)

    @known_arguments
    def predict_interval(
        self,
        X: ArrayLike,
        coverage: float | ArrayLike = 0.9,
        *,
        kind: AnyKind | None = None,
        by: ArrayLike | None = None,
        joint: bool = False,
        output: Output = "numpy",
    ) -> Any:
        """Return prediction intervals.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        coverage : float or list of k floats, default=0.9
            The coverage of the intervals, in (0, 1]. For calibrated intervals, and for one-sided
            bounds of a calibrated model, it is the share of targets to cover. For all other kinds
            it is the share of the conditional distribution to hold.
        kind : str, optional
            The kind of interval. The default is "calibrated" if the model is calibrated, and "hdi"
            otherwise. "hdi" is the shortest interval (Algorithm 1 of the paper). "equal_tailed"
            runs between the (1 - coverage) / 2 and (1 + coverage) / 2 quantiles. "lower" and
            "upper" are one-sided bounds with infinity as the other end. They are calibrated if
            `predict_quantiles` is. All kinds: :doc:`/intervals`.
        by : (n,) array, optional
            Groups of the rows, if the calibration was made by groups that no column of X holds. A
            warning is given for rows of groups without calibration rows.
        joint : bool, default=False
            Whether calibrated intervals of several outputs are sides of boxes, each of which holds
            all targets of a row with the given coverage. With one output it changes nothing.
        output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
            The type of the result: an array, or a table of the named library. A table begins with
            the mean of each row.

        Returns
        -------
        (n, 2) or (n, 2, k) float64, or table
            Lower and upper ends, in the unit of y. Several outputs give (n, n_outputs, 2[, k]).
            Ends are NaN if all leaves of the row are empty (``weights="oob"``, `n_leaves` of
            `from_leaves`).

        Raises
        ------
        AttributeError
            If the kind is "calibrated" and the model is not calibrated.
        ValueError
            If a coverage was not calibrated, or one-sided bounds are asked of a calibration by
            folds.

        Notes
        -----
        A `TrainingRowsWarning` is given, once for each model, if X holds all rows of the fit of an
        `HDIForestRegressor` in their order. Use ``oob_.interval`` for the training rows.

        O(entries of the row's leaves + distinct targets / 64) per row, and O(support) per level.
        """
        return row_source.interval(self._source(X), coverage, kind, by, joint, output)

    @known_arguments
    def predict_quantiles(
        self,
        X: ArrayLike,
        quantiles: float | ArrayLike,
        *,
        kind: Literal["calibrated", "raw"] | None = None,
        interpolation: Interpolation | None = None,
        output: Output = "numpy",
    ) -> Any:
        """Return quantiles of the conditional distribution.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        quantiles : float or list of k floats
            Levels, in [0, 1].
        kind : {"calibrated", "raw"}, optional
            The distribution: the calibrated one, or the forest's own. The default is "calibrated"
            if the model is calibrated by "oob" or "split", and "raw" otherwise. Without a
            calibrated distribution "calibrated" is an error.
        interpolation : str, optional
            How quantiles of kind "raw" are read: any method of `numpy.quantile`. The default
            "inverted_cdf" is the smallest target with distribution function >= level. All methods
            but "inverted_cdf" and "averaged_inverted_cdf" count observations. Rows with one target
            that share no leaf of the query count as one observation.
        output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
            The type of the result: an array, or a table of the named library.

        Returns
        -------
        (n,) or (n, k) float64, or table
            Quantiles, in the unit of y. Several outputs give (n, n_outputs[, k]). Calibrated
            quantiles at 0 and 1 are the ends of the range of the training targets, or infinite
            without clipping.
        """
        return row_source.quantiles(self._source(X), quantiles, kind, interpolation, output)

    @known_arguments
    def predict_cdf(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        inclusive: bool = True,
        kind: Literal["calibrated", "raw"] | None = None,
        output: Output = "numpy",
    ) -> Any:
        """Return P(Y <= y given x), eq. (14) of the paper, or P(Y < y given x).

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        y : float, (n,) or (n, k) array
            One or several points for each row, or one point for all rows. Several outputs take (n,
            n_outputs[, k]).
        inclusive : bool, default=True
            Whether y itself counts. False gives P(Y < y given x).
        kind : {"calibrated", "raw"}, optional
            The distribution: the calibrated one, or the forest's own. See `predict_quantiles`.
        output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
            The type of the result: an array, or a table of the named library.

        Returns
        -------
        array of the shape of y, float64, or table
            Probabilities between 0 and 1. A number y gives (n,) or (n, n_outputs).
        """
        return row_source.cdf(self._source(X), y, inclusive, kind, output)
