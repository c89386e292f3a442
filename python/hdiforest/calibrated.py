"""Intervals that cover what they say: calibrates a fitted forest, and predicts with the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from hdiforest.base_intervals import base_intervals
from hdiforest.calibrating import (
    DEFAULT_COVERAGES,
    MAX_ROWS,
    Settings,
    calibrated_by_jackknife,
    calibrated_by_split,
    calibrated_out_of_bag,
    further_level,
)
from hdiforest.calibration import DEFAULT_KINDS, KINDS, Calibration, CrossCalibration
from hdiforest.calibration.base_record import Record
from hdiforest.calibration.candidates import BaseKind, check_name, check_names, checked_targets
from hdiforest.calibration.choice import OBJECTIVES, Objective
from hdiforest.calibration.coverages import checked_coverages
from hdiforest.calibration.record import check_confidence
from hdiforest.conditional import ConditionalDistributions, Kind
from hdiforest.cross_fit import cross_fitted, cross_intervals, fold_rows
from hdiforest.fitted import FittedForest
from hdiforest.out_of_bag import OutOfBagDistributions
from hdiforest.rows import checked_rows
from hdiforest.stacking import check_mean

METHODS = ("oob", "split", "cv+", "jackknife+")


class CalibratedIntervals(OutOfBagDistributions, ConditionalDistributions):
    """Calibrates the intervals of a fitted forest, and predicts calibrated ones."""

    @property
    def calibration_(self) -> Calibration | CrossCalibration:
        """What `calibrate` chose for each coverage; absent from a model without it."""
        calibration = getattr(getattr(self, "_fitted", None), "calibration", None)
        if calibration is None:
            raise AttributeError("this model has no calibration_; call calibrate first")
        found: Calibration | CrossCalibration = calibration
        return found

    def calibrate(
        self,
        coverage: float | Sequence[float] = DEFAULT_COVERAGES,
        *,
        method: Literal["oob", "split", "cv+", "jackknife+"] = "oob",
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        mean: Any = None,
        kinds: Sequence[BaseKind] = DEFAULT_KINDS,
        clip: bool = True,
        objective: Objective = "width",
        confidence: float | None = None,
        cv: int = 10,
        max_rows: int = MAX_ROWS,
        random_state: int | None = None,
    ) -> Self:
        """Choose and pad intervals so that they cover what they say.

        Parameters
        ----------
        coverage : float or sequence of floats, default=(0.5, 0.8, 0.9, 0.95, 0.99)
            Coverages that the intervals shall have, above 0 and below 1.
        method : {"oob", "split", "cv+", "jackknife+"}, default="oob"
            "oob" needs no new rows: the trees that did not draw a training row predict its
            interval. No guarantee holds for every distribution. "split" pads on rows X, y that
            took no part in the fit; the coverage is then guaranteed on average over such rows.
            "cv+" fits the forest again without each fold of the training rows, and predicts with
            all these forests; a coverage of about 2c - 1 is guaranteed, and c is usual.
            "jackknife+" has nearly that guarantee without another fit, from 1000 training rows at
            most: each makes a forest of the trees that did not draw it, and for each row to predict
            all these are merged.
        X : (n_calibration, n_features) array or table, optional
            Rows for "split".
        y : (n_calibration,) array, optional
            Their targets.
        groups : (n_training_rows,) array, optional
            For "cv+": rows of one group (person, site) share a fold, so that intervals are those
            for new groups.
        mean : "boosting" or regressor, optional
            Another model of the mean, on which to centre the intervals together with the forest's;
            "boosting" is scikit-learn's HistGradientBoostingRegressor. It is cloned, and fitted
            six times, in five folds and on all training rows, as arrays without names. Needs
            ``weights="all"``.
        kinds : sequence of str, default=("hdi", "equal_tailed")
            Kinds of intervals to choose among; "smoothed_hdi" is the third. With it, intervals of
            the paper's data are 0.3 to 1.5 % narrower at 0.9, with interval scores within 1 %,
            and the calibration takes a sixth longer.
        clip : bool, default=True
            Whether intervals end where the training targets do; never below 200 training rows.
        objective : {"width", "interval_score"}, default="width"
            What the choice among candidates minimises.
        confidence : float, optional
            For "split": the probability, over calibration rows, of at least the coverage.
        cv : int, default=10
            For "cv+": the number of folds. Fitting and scoring take as many times as long.
        max_rows : int, default=20000
            Largest number of training rows to use. The standard error of a coverage is then 0.2 %.
        random_state : int, optional
            Seed of the choice of these rows, if there are more, of folds, and of "boosting".

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
            few trees leave rows out, the rows for "split" are training rows, or a loaded model has
            no forest to fit for "cv+".

        Notes
        -----
        Candidates are HDIs and equal-tailed intervals at nine levels, of the targets and, with
        ``weights="all"``, of residuals around the mean of the leaves. Each is padded by one number,
        and the narrowest is kept. Weights of the training rows are weights of
        their scores: pads are weighted quantiles and coverages weighted shares (CV+ and jackknife+
        count all rows of positive weight alike). No training row takes part in its own interval,
        nor in the residuals of the others; but where there is another `mean`, it takes part in
        those of the other folds.
        O(entries of its leaves + atoms log atoms) for each row.
        """
        fitted = self._require_fitted()
        _check_arguments(fitted, method, coverage, kinds, objective, mean, max_rows)
        _check_rows_and_folds(method, X, y, groups, confidence)
        settings = Settings(
            checked_coverages(coverage), kinds, clip, objective, mean, max_rows, random_state
        )
        if method == "oob":
            self._fitted = calibrated_out_of_bag(fitted, settings, self._n_threads())
        elif method == "jackknife+":
            self._fitted = calibrated_by_jackknife(fitted, settings, self._n_threads())
        elif method == "cv+":
            self._fitted = self._cross_fitted(fitted, settings, cv, groups)
        else:
            rows = checked_rows(self, cast("ArrayLike", X), fitted)
            targets = checked_targets("y", cast("ArrayLike", y))
            if targets.shape != (len(rows),):
                raise ValueError(f"y must have shape ({len(rows)},), got {targets.shape}")
            self._fitted = calibrated_by_split(
                fitted, settings, rows, targets, confidence, self._n_threads()
            )
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
            In (0, 1]. Of "calibrated" intervals the share of targets to cover, below 1: one of
            those that `calibrate` was given; or another one if that was out of bag, without a
            `mean`, and the training rows are there (it is then calibrated on them, once, without a
            choice of its own). Of the others the share of the conditional distribution to hold.
        kind : {"calibrated", "hdi", "equal_tailed", "lower", "upper", "smoothed_hdi"}, optional
            By default "calibrated" after `calibrate`, and "hdi" before. "hdi" is the shortest
            interval (Algorithm 1 of the paper); "equal_tailed" runs between the
            (1 - coverage) / 2 and (1 + coverage) / 2 quantiles; "lower" is the largest lower bound,
            with infinity as the upper end; "upper" the smallest upper bound. "smoothed_hdi" is the
            mean of the shortest intervals from each atom that hold the coverage, weighted by
            exp(-5 (width - least) / least): its ends do not jump from row to row as those of "hdi"
            do, and it may hold less.

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
            If an argument is out of range, or a coverage was not calibrated and cannot be.

        Notes
        -----
        O(entries of the row's leaves + distinct targets / 64) per row, and O(support) per level.
        """
        fitted = self._require_fitted()
        if kind is None:
            kind = "hdi" if fitted.calibration is None else "calibrated"
        if kind != "calibrated":
            return self._query(X, "intervals", coverage, kind)
        return self._calibrated_intervals(fitted, checked_rows(self, X, fitted), coverage)

    def _calibrated_intervals(
        self,
        fitted: FittedForest,
        rows: NDArray[np.float32] | NDArray[np.float64],
        coverage: ArrayLike,
        mean: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """Return intervals of checked rows; `mean` (n,) is filled with their means."""
        calibration = self._calibration_at(np.asarray(coverage, dtype=np.float64).ravel().tolist())
        at = calibration.positions(coverage)
        # Intervals contain those of lower coverages; higher ones are not needed.
        calibration = calibration.first(int(at.max(initial=0)) + 1)
        n_threads = self._n_threads(len(rows))
        if isinstance(calibration, CrossCalibration):
            if mean is not None:
                fitted.scorer.mean(rows, out=mean, n_threads=n_threads)
            return cross_intervals(calibration, fitted, rows, n_threads)[..., at]
        ends = base_intervals(fitted, rows, calibration.bases, n_threads, mean)
        return calibration.intervals(ends)[..., at]

    def _calibration_at(self, coverages: Sequence[float]) -> Calibration | CrossCalibration:
        """Return the calibration, with further coverages if they can be calibrated out of bag."""
        fitted, calibration = self._require_fitted(), self.calibration_
        unknown = [c for c in coverages if not calibration.has(c)]
        if not unknown:
            return calibration
        checked_coverages(unknown[0])
        if (reason := _why_no_further(fitted)) is not None:
            listed = ", ".join(f"{known:g}" for known in calibration.coverages)
            raise ValueError(
                f"coverage must be one that was calibrated: {listed}; got {unknown[0]:g}, which "
                f"cannot be added, because {reason}"
            )
        calibration = cast("Calibration", calibration)
        for coverage in unknown:
            if coverage not in fitted.further_levels:
                checked_coverages(coverage)
                fitted.further_levels[coverage] = further_level(
                    fitted, calibration, coverage, self._n_threads()
                )
        further = [fitted.further_levels[c] for c in set(unknown)]
        levels = sorted([*calibration.levels, *further], key=lambda level: level.coverage)
        return replace(calibration, levels=tuple(levels))

    def _cross_fitted(
        self, fitted: FittedForest, settings: Settings, cv: int, groups: ArrayLike | None
    ) -> FittedForest:
        forest = getattr(self, "estimator_", None)
        if forest is None:
            raise ValueError(
                "method='cv+' fits the forest again, and a model that was loaded from a file has "
                "none to fit; calibrate before saving"
            )
        rows = fitted.require_training_rows()
        folds = list(fold_rows(rows, cv, groups, settings.random_state))

        def new_model() -> Any:
            kind: Any = type(self)
            return kind(clone(forest), weights=fitted.weights, n_jobs=self.n_jobs)

        calibration, forests = cross_fitted(
            new_model, rows, settings, folds, groups is not None, self._n_threads()
        )
        return fitted.uncalibrated(calibration=calibration, folds=forests)


def _why_no_further(fitted: FittedForest) -> str | None:
    """Say why no further coverage can be calibrated; None if it can be, out of bag."""
    calibration = fitted.calibration
    if not isinstance(calibration, Calibration) or calibration.method != "oob":
        method = cast("Record", calibration).method
        return f"the model was calibrated by {method!r}"
    if fitted.training_rows is None:
        return "the model was saved without its training rows"
    if any(base.family == "stacked" for base in calibration.bases):
        return "what the other mean predicts out of fold is not kept"
    return None


def _check_arguments(
    fitted: FittedForest,
    method: str,
    coverage: float | Sequence[float],
    kinds: Sequence[str],
    objective: str,
    mean: Any,
    max_rows: int,
) -> None:
    check_name("method", method, METHODS)
    if fitted.n_outputs > 1:
        raise ValueError(f"calibrate needs a model of one target, got {fitted.n_outputs}")
    checked_coverages(coverage)
    check_names("kinds", kinds, KINDS)
    check_name("objective", objective, OBJECTIVES)
    check_mean(mean, fitted.training_rows)
    if mean is not None and fitted.weights != "all":
        raise ValueError(f"mean must be None with weights={fitted.weights!r}")
    if not isinstance(max_rows, int | np.integer) or max_rows < 1:
        raise ValueError(f"max_rows must be a whole number from 1 on, got {max_rows!r}")


def _check_rows_and_folds(
    method: str,
    X: ArrayLike | None,
    y: ArrayLike | None,
    groups: ArrayLike | None,
    confidence: float | None,
) -> None:
    if method == "split" and (X is None or y is None):
        raise ValueError("X and y must be given with method='split'")
    if method != "split" and (X is not None or y is not None or confidence is not None):
        raise ValueError(f"X, y and confidence must be None with method={method!r}")
    if method != "cv+" and groups is not None:
        raise ValueError(
            f"groups must be None with method={method!r}: rows of one group would be on both "
            "sides; use method='cv+', or 'split' with rows of groups that took no part in the fit"
        )
    if confidence is not None:
        check_confidence(confidence)
