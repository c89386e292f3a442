"""Calibrated intervals of a forest of which only leaves are known: pads on rows of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from hdicore import LeafIndex
from hdiforest._model.calibrate import DEFAULT_COVERAGES
from hdiforest._tables.frames import Output
from hdiforest._tables.names import interval_names
from hdiforest._utils.blocks import n_rows_of
from hdiforest._utils.checks import check_flag
from hdiforest._utils.typing import Kind
from hdiforest.calibration import Base, Calibration, calibrate_split
from hdiforest.calibration._bases import BaseKind, check_base, checked_targets
from hdiforest.calibration._scores import checked_coverages
from hdiforest.conditional import ConditionalDistributions
from hdiforest.output import ends_of_kind, joined, mean_and_intervals


class CalibratedLeaves(ConditionalDistributions):
    """Calibrates the intervals of an index of leaves, and predicts calibrated ones."""

    _index: LeafIndex
    # Of a mapped file: raises OSError if it was written to since it was opened.
    _check_file: Callable[[], None] | None = None
    n_outputs_: int
    calibration_: Calibration

    @property
    def index_(self) -> LeafIndex:
        """The training rows by leaf; it does not look whether its file has changed."""
        return self._index

    def _require_index(self) -> LeafIndex:
        """Return the index, or raise OSError if its file was written to."""
        index = self.index_
        if self._check_file is not None:
            self._check_file()
        return index

    def calibrate(
        self,
        X: Any,
        y: ArrayLike,
        coverage: float | Sequence[float] = DEFAULT_COVERAGES,
        *,
        base: tuple[BaseKind, float] = ("equal_tailed", 0.8),
        clip: bool = True,
        confidence: float | None = None,
    ) -> Self:
        """Pad intervals so that they cover what they say, on rows that took no part in the fit.

        Parameters
        ----------
        X : rows, as `apply` takes them
            Rows that took no part in the fit.
        y : (n,) array
            Their targets.
        coverage : float or sequence of floats, default=(0.5, 0.8, 0.9, 0.95, 0.99)
            Coverages that the intervals shall have, above 0 and below 1.
        base : (kind, level), default=("equal_tailed", 0.8)
            Intervals to pad: "hdi", "equal_tailed" or "smoothed_hdi", and the share of the
            distribution that they hold. It must not be chosen by these rows.
        clip : bool, default=True
            Whether intervals end where the training targets do; never below 200 distinct ones.
        confidence : float, optional
            The probability, over calibration rows, of at least the coverage.

        Returns
        -------
        LeafModel
            The model itself. `calibration_` shows the pads and what is guaranteed.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ValueError
            If an argument is out of range, the model has several outputs, or a row has no interval.

        Notes
        -----
        Split conformal prediction; see `HDIForestRegressor.calibrate`. The index knows no counts of
        targets, so intervals are not snapped to a lattice. Whether the rows took part
        in the fit of the forest cannot be seen here.
        """
        check_is_fitted(self)
        if self.n_outputs_ > 1:
            raise ValueError(f"calibrate needs a model of one target, got {self.n_outputs_}")
        check_flag("clip", clip)
        shares, targets = checked_coverages(coverage), checked_targets("y", y)
        if not (isinstance(base, tuple | list) and len(base) == 2):
            raise ValueError(f"base must be a kind and a level, got {base!r}")
        chosen = Base("raw", *base)
        check_base(chosen)
        n = n_rows_of(X)
        if n is not None and n != len(targets):
            raise ValueError(f"y must have shape ({n},), got {targets.shape}")
        ends = self._query(X, "intervals", [chosen.level], chosen.kind)
        n_empty = int(np.isnan(ends).any(axis=(1, 2)).sum())
        if n_empty > 0:
            raise ValueError(f"{n_empty} of the {len(ends)} rows of X have no interval")
        self.calibration_ = calibrate_split(
            np.repeat(ends, len(shares), axis=2),
            targets,
            self._require_index().atoms(0),
            shares,
            bases=[chosen] * len(shares),
            confidence=confidence,
            clip=clip,
        )
        return self

    def predict_interval(
        self,
        X: Any,
        coverage: float | ArrayLike = 0.9,
        *,
        kind: Kind | Literal["calibrated"] | None = None,
        output: Output | None = None,
    ) -> Any:
        """Prediction intervals.

        Parameters
        ----------
        X : rows, as `apply` takes them
            The rows to predict.
        coverage : float or list of k floats, default=0.9
            Of "calibrated" intervals one of those that `calibrate` was given; of the others the
            share in (0, 1] of the conditional distribution to hold.
        kind : {"calibrated", "hdi", "equal_tailed", "lower", "upper", "smoothed_hdi"}, optional
            By default "calibrated" after `calibrate`, and "hdi" before. See
            `HDIForestRegressor.predict_interval`.
        output : {"numpy", "pandas", "polars", "pyarrow"}, optional
            An array, or a table of that library; by default what `set_output` says, an array if
            nothing. Tables have the mean of each row
            in front. See `set_output` for the names of the columns.

        Returns
        -------
        (n, 2) or (n, 2, k) float64, or table
            Lower and upper ends, in the unit of y; (n, n_outputs, 2[, k]) with several outputs.
            NaN where all leaves of the row are empty: possible with `n_leaves` of `from_leaves`.

        Raises
        ------
        AttributeError
            If kind is "calibrated" and the model is not.
        ValueError
            If an argument is out of range, or a coverage was not calibrated.
        """
        check_is_fitted(self)
        if kind is None:
            kind = "calibrated" if hasattr(self, "calibration_") else "hdi"
        if kind == "calibrated" and not hasattr(self, "calibration_"):
            raise AttributeError("this model has no calibration_; call calibrate first")
        wanted = self._wanted(output)
        if wanted != "numpy":
            names, chosen = interval_names(kind, coverage), kind
            return self._table(
                wanted, names, lambda: self._mean_and_intervals(X, coverage, chosen), X
            )
        if kind != "calibrated":
            return self._query(X, "intervals", coverage, kind)
        at = self.calibration_.positions(coverage)
        base = self.calibration_.bases[0]  # of all levels
        return self._padded(self._query(X, "intervals", [base.level], base.kind))[..., at]

    def _mean_and_intervals(
        self, X: Any, coverage: ArrayLike, kind: Kind | Literal["calibrated"]
    ) -> NDArray[np.float64]:
        """Return the columns of `interval_names`."""
        if kind != "calibrated":
            return ends_of_kind(self._query(X, mean_and_intervals, coverage, kind), kind)
        at = self.calibration_.positions(np.atleast_1d(coverage))
        base = self.calibration_.bases[0]
        found = self._query(X, mean_and_intervals, [base.level], base.kind)
        return joined(found[:, 0], self._padded(found[:, 1:, None])[..., at])

    def _padded(self, ends: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the calibrated intervals (n, 2, levels) around base intervals (n, 2, 1)."""
        return self.calibration_.intervals(np.repeat(ends, len(self.calibration_.levels), 2))
