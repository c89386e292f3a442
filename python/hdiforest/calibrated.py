"""Intervals that cover what they say: calibrates a fitted forest, and predicts with the result."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest.base_intervals import MIN_OOB_TREES, OutOfBagIntervals, base_intervals
from hdiforest.calibration import KINDS, LEVELS, Base, Calibration, calibrate_oob, calibrate_split
from hdiforest.calibration.calibrate import checked_coverages
from hdiforest.calibration.candidates import BaseKind, check_name, check_names
from hdiforest.calibration.choice import OBJECTIVES
from hdiforest.calibration.record import check_confidence
from hdiforest.conditional import ConditionalDistributions, Kind
from hdiforest.fitted import FittedForest
from hdiforest.out_of_bag import OutOfBagDistributions
from hdiforest.rows import checked_rows
from hdiforest.stacking import check_mean

Objective = Literal["width", "interval_score"]

# Padded where too few trees leave rows out for a choice.
FIXED_RAW = Base("raw", "equal_tailed", 0.8)


class CalibratedIntervals(OutOfBagDistributions, ConditionalDistributions):
    """Calibrates the intervals of a fitted forest, and predicts calibrated ones."""

    @property
    def calibration_(self) -> Calibration:
        """What `calibrate` chose for each coverage; absent from a model without it."""
        calibration = getattr(getattr(self, "_fitted", None), "calibration", None)
        if calibration is None:
            raise AttributeError("this model has no calibration_; call calibrate first")
        found: Calibration = calibration
        return found

    def calibrate(
        self,
        coverage: float | Sequence[float] = (0.5, 0.8, 0.9, 0.95, 0.99),
        *,
        method: Literal["oob", "split"] = "oob",
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        mean: Any = None,
        kinds: Sequence[BaseKind] = KINDS,
        clip: bool = True,
        objective: Objective = "width",
        confidence: float | None = None,
        max_rows: int = 20_000,
        random_state: int | None = None,
    ) -> Self:
        """Choose and pad intervals so that they cover what they say.

        Parameters
        ----------
        coverage : float or sequence of floats, default=(0.5, 0.8, 0.9, 0.95, 0.99)
            Coverages that the intervals shall have, above 0 and below 1.
        method : {"oob", "split"}, default="oob"
            "oob" needs no new rows: the trees that did not draw a training row predict its
            interval. No guarantee holds for every distribution. "split" pads on rows X, y that
            took no part in the fit; the coverage is then guaranteed on average over such rows.
        X : (n_calibration, n_features) array or table, optional
            Rows for "split".
        y : (n_calibration,) array, optional
            Their targets.
        mean : "boosting" or regressor, optional
            Another model of the mean, on which to centre the intervals together with the forest's;
            "boosting" is scikit-learn's HistGradientBoostingRegressor. It is cloned, and fitted
            six times: in five folds, and on all training rows. Needs ``weights="all"``.
        kinds : sequence of {"hdi", "equal_tailed"}, default=("hdi", "equal_tailed")
            Kinds of intervals to choose among.
        clip : bool, default=True
            Whether intervals end where the training targets do; never below 200 training rows.
        objective : {"width", "interval_score"}, default="width"
            What the choice among candidates minimises.
        confidence : float, optional
            For "split": the probability, over calibration rows, of at least the coverage.
        max_rows : int, default=20000
            Largest number of training rows to use. The standard error of a coverage is then 0.2 %.
        random_state : int, optional
            Seed of the choice of these rows, if there are more.

        Returns
        -------
        HDIForestRegressor
            The model itself. `calibration_` shows what was chosen, and the coverage of rows that
            took no part in the choice.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ValueError
            If an argument is out of range, the model has several outputs or no training rows, too
            few trees leave rows out, or the rows for "split" are training rows.

        Notes
        -----
        Candidates are HDIs and equal-tailed intervals at nine levels, of the targets and, with
        ``weights="all"``, of residuals around the mean of the leaves. Each is padded by one number,
        and the narrowest is kept. Rows of weight 0 do not count; pads ignore other weights. No
        training row takes part in its own interval, nor in the residuals of the others; but where
        there is another `mean`, it takes part in those of the other folds.
        O(entries of its leaves + atoms log atoms) for each row.
        """
        fitted = self._require_fitted()
        _check_arguments(fitted, method, X, y, coverage, objective, confidence, max_rows)
        check_names("kinds", kinds, KINDS)
        check_mean(mean)
        if mean is not None and fitted.weights != "all":
            raise ValueError(f"mean must be None with weights={fitted.weights!r}")
        source = OutOfBagIntervals(fitted, self._n_threads(), mean, random_state)
        calibration = None
        if method == "oob" or source.has_enough:
            with warnings.catch_warnings():
                if method == "split":  # whose rows may well be enough
                    warnings.filterwarnings("ignore", "intervals of coverage .* are infinite")
                calibration = _out_of_bag(
                    source, coverage, kinds, clip, objective, max_rows, random_state
                )
            fitted = _with_calibration(fitted, source, calibration)
        if method == "split" and X is not None:
            fitted = self._split(fitted, source, calibration, X, y, coverage, clip, confidence)
        self._fitted = fitted
        return self

    def predict_interval(
        self,
        X: ArrayLike,
        coverage: float | ArrayLike = 0.9,
        *,
        kind: Kind | Literal["calibrated"] | None = None,
    ) -> NDArray[np.float64]:
        """Prediction intervals.

        Parameters
        ----------
        X : (n, n_features) array or table
        coverage : float or list of k floats, default=0.9
            In (0, 1]. Of "calibrated" intervals the share of targets to cover: one of those that
            `calibrate` was given. Of the others the share of the conditional distribution to hold.
        kind : {"calibrated", "hdi", "equal_tailed", "lower", "upper"}, optional
            By default "calibrated" after `calibrate`, and "hdi" before. "hdi" is the shortest
            interval (Algorithm 1 of the paper); "equal_tailed" runs between the
            (1 - coverage) / 2 and (1 + coverage) / 2 quantiles; "lower" is the largest lower bound,
            with infinity as the upper end; "upper" the smallest upper bound.

        Returns
        -------
        (n, 2) or (n, 2, k) float64
            Lower and upper ends, in the unit of y; (n, n_outputs, 2[, k]) with several outputs.
            NaN where all leaves of the row are empty: possible with ``weights="oob"``. Calibrated
            intervals of a higher coverage contain those of a lower one.

        Raises
        ------
        AttributeError
            If kind is "calibrated" and the model is not.
        ValueError
            If an argument is out of range, or a coverage was not calibrated.

        Notes
        -----
        O(entries of the row's leaves + distinct targets / 64) per row, and O(support) per level.
        """
        fitted = self._require_fitted()
        if kind is None:
            kind = "hdi" if fitted.calibration is None else "calibrated"
        if kind != "calibrated":
            return self._query(X, "intervals", coverage, kind)
        calibration = self.calibration_
        levels = np.asarray(coverage, dtype=np.float64)
        if levels.ndim > 1:
            raise ValueError(f"coverage must be a number or a list of them, got {coverage!r}")
        at = [calibration.position(level) for level in levels.reshape(-1)]
        # Intervals contain those of lower coverages; higher ones are not needed.
        calibration = replace(calibration, levels=calibration.levels[: max(at, default=0) + 1])
        rows = checked_rows(self, X, fitted)
        ends = base_intervals(fitted, rows, calibration.bases, self._n_threads(len(rows)))
        intervals = calibration.intervals(ends)[..., at]
        return intervals if levels.ndim else intervals[..., 0]

    def _split(
        self,
        fitted: FittedForest,
        source: OutOfBagIntervals,
        chosen: Calibration | None,
        X: ArrayLike,
        y: ArrayLike | None,
        coverage: float | Sequence[float],
        clip: bool,
        confidence: float | None,
    ) -> FittedForest:
        """Return the forest with pads from new rows; the bases were chosen out of bag, if so."""
        rows = checked_rows(self, X, fitted)
        targets = np.asarray(y, dtype=np.float64)
        if targets.shape != (len(rows),):
            raise ValueError(f"y must have shape ({len(rows)},), got {targets.shape}")
        n_threads = self._n_threads(len(rows))
        _refuse_training_rows(source, rows, targets)
        coverages = checked_coverages(coverage)
        bases = [FIXED_RAW] * len(coverages) if chosen is None else chosen.bases
        ends = base_intervals(fitted, rows, bases, n_threads)
        n_empty = int(np.isnan(ends).any(axis=(1, 2)).sum())
        if n_empty > 0:
            raise ValueError(f"{n_empty} of the {len(rows)} rows of X have no interval")
        calibration = calibrate_split(
            ends,
            targets,
            source.targets,
            coverages,
            bases=bases,
            confidence=confidence,
            clip=clip,
        )
        return replace(fitted, calibration=calibration)


def _check_arguments(
    fitted: FittedForest,
    method: str,
    X: ArrayLike | None,
    y: ArrayLike | None,
    coverage: float | Sequence[float],
    objective: str,
    confidence: float | None,
    max_rows: int,
) -> None:
    if method not in ("oob", "split"):
        raise ValueError(f"method must be 'oob' or 'split', got {method!r}")
    if fitted.n_outputs > 1:
        raise ValueError(f"calibrate needs a model of one target, got {fitted.n_outputs}")
    if method == "split" and (X is None or y is None):
        raise ValueError("X and y must be given with method='split'")
    if method == "oob" and (X is not None or y is not None or confidence is not None):
        raise ValueError("X, y and confidence must be None with method='oob'")
    if not isinstance(max_rows, int | np.integer) or max_rows < 1:
        raise ValueError(f"max_rows must be a whole number from 1 on, got {max_rows!r}")
    checked_coverages(coverage)
    check_name("objective", objective, OBJECTIVES)
    if confidence is not None:
        check_confidence(confidence)


def _out_of_bag(
    source: OutOfBagIntervals,
    coverage: float | Sequence[float],
    kinds: Sequence[BaseKind],
    clip: bool,
    objective: Objective,
    max_rows: int,
    random_state: int | None,
) -> Calibration:
    n_rows = len(source.targets)
    chosen = source.usable
    if not source.has_enough:
        raise ValueError(
            f"method='oob' needs at least {MIN_OOB_TREES} trees that did not draw a row, and "
            f"{len(chosen)} of {n_rows} training rows have so many; use more trees that draw "
            "their rows, or method='split'"
        )
    if len(chosen) > max_rows:
        rng = np.random.default_rng(random_state)
        chosen = np.sort(rng.choice(chosen, max_rows, replace=False))
    ends = source.intervals(chosen, kinds, LEVELS)
    finite = np.isfinite(ends).all(axis=(0, 1, 3, 4))
    return calibrate_oob(
        ends[:, :, finite],
        source.rows.y[chosen[finite]],
        source.targets,
        coverage,
        families=source.families,
        kinds=kinds,
        clip=clip,
        objective=objective,
    )


def _with_calibration(
    fitted: FittedForest, source: OutOfBagIntervals, calibration: Calibration
) -> FittedForest:
    needs_centred = any(base.family != "raw" for base in calibration.bases)
    return replace(
        fitted,
        calibration=calibration,
        centred=source.centred_forest() if needs_centred else None,
    )


def _refuse_training_rows(
    source: OutOfBagIntervals, X: NDArray[Any], y: NDArray[np.float64]
) -> None:
    """Raise ValueError if more than half of some rows are training rows, targets included."""

    def keys(rows: NDArray[Any], targets: NDArray[np.float64]) -> Iterator[bytes]:
        floats = np.ascontiguousarray(rows, dtype=np.float32)
        return (row.tobytes() + t.tobytes() for row, t in zip(floats, targets, strict=True))

    new = set(keys(X, y))
    n_known = len(new.intersection(keys(source.rows.X, source.rows.y)))
    if 2 * n_known > len(y):
        raise ValueError(
            f"X and y must be rows that took no part in the fit; {n_known} of {len(y)} are "
            "training rows"
        )
