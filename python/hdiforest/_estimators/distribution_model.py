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
    """A regressor whose predictions come from the training rows that share leaves with a row."""

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
        """Number of rows the forest was fitted on, or of an index; None if that is not known."""
        return self._fitted.n_training_rows

    @property
    def calibration_(self) -> Any:
        """What `fit` or `calibrate` chose for each coverage; absent without a calibration."""
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
        """Mean of the conditional distribution.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
            An array, or a table of that library.

        Returns
        -------
        (n,) or (n, n_outputs) float64, or table
            In the unit of y. The scikit-learn forest's own if
            `hdiforest.inspection.predict_matches_forest` says so.

        Notes
        -----
        Tables of pandas have the index of X if that is of pandas. Names of columns: :doc:`/tables`.
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
        """Prediction intervals.

        Parameters
        ----------
        X, coverage : rows as in `predict`, and float or list of k floats, default=0.9
            In (0, 1]. Of "calibrated" intervals, and of one-sided bounds of a calibrated model, the
            share of targets to cover; of the others that of the conditional distribution to hold.
        kind : str, optional
            By default "calibrated" if the model is, else "hdi", the shortest interval (Algorithm 1
            of the paper). "equal_tailed" runs between the (1 - coverage) / 2 and
            (1 + coverage) / 2 quantiles; "lower" and "upper" are bounds, with infinity as the other
            end, which are calibrated as `predict_quantiles` is. All kinds: :doc:`/intervals`.
        by : (n,) array, optional
            The groups of the rows, if the calibration was made by groups that no column of X holds.
            Rows of groups that it had no rows of get a warning.
        joint : bool, default=False
            Whether calibrated intervals of several outputs are sides of boxes that hold all targets
            of a row together with the coverage. One output has the same intervals either way.
        output : str, default="numpy"
            As in `predict`; tables have the mean of each row in front.

        Returns
        -------
        (n, 2) or (n, 2, k) float64, or table
            Lower and upper ends, in the unit of y; (n, n_outputs, 2[, k]) with several outputs. NaN
            if all leaves of the row are empty (``weights="oob"``, `n_leaves` of `from_leaves`).

        Notes
        -----
        All rows of the fit of an `HDIForestRegressor`, in their order, get a `TrainingRowsWarning`,
        one for each model: use ``oob_.interval``. Without a calibration the kind "calibrated" is an
        AttributeError; a coverage that was not calibrated, and one-sided bounds of one by folds,
        are a ValueError. O(entries of the row's leaves + distinct targets / 64) per row, and
        O(support) per level.
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
        X, quantiles : rows as in `predict`, and float or list of k floats
            Levels in [0, 1].
        kind : {"calibrated", "raw"}, optional
            The calibrated distribution, which is the default if the model is calibrated by "oob" or
            "split", and an error if it is not; or the forest's own.
        interpolation : str, optional
            Of kind "raw": any method of `numpy.quantile`, by default "inverted_cdf", the smallest
            target with distribution function >= level. All but it and "averaged_inverted_cdf" count
            observations; rows with one target that share no leaf of the query count as one.
        output : str, default="numpy"
            As in `predict`.

        Returns
        -------
        (n,) or (n, k) float64, or table
            (n, n_outputs[, k]) with several outputs. Calibrated ones at 0 and 1 are the ends of the
            range of the training targets, or infinite without clipping.
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
        """P(Y <= y given x), eq. (14) of the paper, or P(Y < y given x).

        Parameters
        ----------
        X, y : rows as in `predict`, and float, (n,) or (n, k) array
            One or several points per row; (n, n_outputs[, k]) with several outputs; or one point
            for all.
        inclusive : bool, default=True
            Whether y itself counts: False gives P(Y < y given x).
        kind, output : {"calibrated", "raw"}, optional, and str, default="numpy"
            As in `predict_quantiles`.

        Returns
        -------
        array of the shape of y, float64, or table
            Between 0 and 1; (n,) or (n, n_outputs) if y is a number.
        """
        return row_source.cdf(self._source(X), y, inclusive, kind, output)
