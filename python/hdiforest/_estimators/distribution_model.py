"""DistributionModel: what all estimators predict, as arrays or as tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from html import escape
from typing import Any, Generic, Literal, Self, TypeVar

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from hdiforest._estimators import row_source
from hdiforest._estimators.row_source import RowSource
from hdiforest._model.fitted import FittedForest
from hdiforest._tables.frames import Output
from hdiforest._utils import Interpolation
from hdiforest._utils.checks import known_arguments
from hdiforest.calibration._predict import AnyKind
from hdiforest.serving._serialization import IndexedLeaves

# What a model holds: a forest, or training rows by leaf.
Fitted = TypeVar("Fitted", FittedForest, IndexedLeaves)


class DistributionModel(RegressorMixin, BaseEstimator, ABC, Generic[Fitted]):
    """A regressor that predicts from the training rows that share leaves with a row."""

    _fitted: Fitted

    def _fitted_forest(self) -> Fitted:
        """Return what the model holds, which functions of this package take, once a call."""
        if not hasattr(self, "_fitted"):
            check_is_fitted(self)
        fitted = self._fitted
        if fitted.check_file is not None:
            fitted.check_file()
        return fitted

    @property
    def n_outputs_(self) -> int:
        """Number of targets."""
        return self._fitted.n_outputs

    @property
    def n_training_rows_(self) -> Any:
        """Number of rows of the fit or of the index. None if it is not known."""
        return self._fitted.n_training_rows

    @property
    def calibration_(self) -> Any:
        """The result of the calibration. A model without a calibration has none."""
        calibration = getattr(getattr(self, "_fitted", None), "calibration", None)
        if calibration is None:
            raise AttributeError("this model has no calibration_; call calibrate first")
        return calibration

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    def _at_once(self) -> Self:
        """Return the model as it is now, which another calibration of it does not change."""
        now = object.__new__(type(self))
        now.__dict__ = self.__dict__.copy()
        return now

    def _summary(self) -> str:
        """Say in numbers what a fitted model holds; empty if it is not fitted."""
        fitted = getattr(self, "_fitted", None)
        if fitted is None:
            return ""
        index = fitted.index if isinstance(fitted, IndexedLeaves) else fitted.scorer.index
        counts = {"tree": index.n_trees, "training row": fitted.n_training_rows}
        counts["output"] = index.n_outputs
        parts = [f"{n:,} {noun}{'s' * (n != 1)}" for noun, n in counts.items() if n is not None]
        if (calibration := fitted.calibration) is not None:
            parts.append(f"calibrated at {', '.join(f'{c:g}' for c in calibration.coverages)}")
        return ", ".join(parts)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return ": ".join(filter(None, [super().__repr__(N_CHAR_MAX), self._summary()]))

    def _repr_html_inner(self) -> str:
        """Return the diagram of scikit-learn, and what the model holds, with its calibration."""
        calibration = getattr(self, "calibration_", None)
        table = "" if calibration is None else calibration._repr_html_()
        details = f"<details><summary>{escape(self._summary())}</summary>{table}</details>"
        return f"{super()._repr_html_inner()}{details if self._summary() else ''}"

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle = super()._repr_mimebundle_(**options)
        return bundle | {"text/html": self._repr_html_inner()} if "text/html" in bundle else bundle

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
