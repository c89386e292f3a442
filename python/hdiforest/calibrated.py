"""Intervals that cover what they say: calibrates a fitted forest, and predicts with the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from hdiforest._model.calibrate import (
    DEFAULT_COVERAGES,
    MAX_ROWS,
    Settings,
    calibrated_by_jackknife,
    calibrated_by_split,
    calibrated_out_of_bag,
)
from hdiforest._model.fitted import FittedForest
from hdiforest._model.predict import calibrated_intervals
from hdiforest._model.stacking import check_mean
from hdiforest._tables.frames import Output
from hdiforest._tables.names import interval_names
from hdiforest._utils.checks import check_flag, check_name, check_names
from hdiforest._utils.random_state import checked_seed
from hdiforest._utils.typing import Kind
from hdiforest.calibration import DEFAULT_KINDS, KINDS, Calibration, CrossCalibration
from hdiforest.calibration._bases import BaseKind, checked_targets
from hdiforest.calibration._result import check_confidence
from hdiforest.calibration._scores import checked_coverages
from hdiforest.calibration._selection import OBJECTIVES, Objective
from hdiforest.conditional import ConditionalDistributions
from hdiforest.cross_fit import cross_fitted, fold_rows
from hdiforest.out_of_bag import OutOfBagDistributions
from hdiforest.output import ends_of_kind, joined, mean_and_intervals
from hdiforest.rows import Block, Rows, checked_blocks, concatenated
from hdiforest.table_steps import TableSteps

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
        kinds: Sequence[BaseKind] | None = None,
        clip: bool = True,
        objective: Objective = "width",
        confidence: float | None = None,
        cv: int = 10,
        max_rows: int = MAX_ROWS,
        random_state: int | RandomState | None = None,
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
            all these forests, their steps and searches included; a coverage of about 2c - 1 is
            guaranteed, and c is usual.
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
        kinds : sequence of str, optional
            Kinds of intervals to choose among: by default "hdi" and "equal_tailed", and with
            ``weights="monotonic"`` the latter alone, so that the ends of calibrated intervals are
            monotonic, too. "smoothed_hdi" is the third. With it, intervals of
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
        random_state : int, RandomState or None, default=None
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
            no forest, or an unpickled one no table, to fit for "cv+".

        Notes
        -----
        Candidates are HDIs and equal-tailed intervals at nine levels, of the targets and, with
        ``weights="all"``, of residuals around the mean of the leaves. Each is padded by one number,
        and the narrowest is kept. Weights of the training rows are weights of their scores: pads
        are weighted quantiles and coverages weighted shares. No training row takes part in its own
        interval, nor in the residuals of the others; but where there is another `mean`, it takes
        part in those of the other folds.
        O(entries of its leaves + atoms log atoms) for each row.
        """
        fitted = self._require_fitted()
        if kinds is None:
            kinds = ("equal_tailed",) if fitted.weights == "monotonic" else DEFAULT_KINDS
        _check_arguments(fitted, method, coverage, kinds, objective, mean, max_rows)
        check_flag("clip", clip)
        seed = checked_seed(random_state)
        _check_rows_and_folds(method, X, y, groups, confidence)
        settings = Settings(
            checked_coverages(coverage), kinds, clip, objective, mean, max_rows, seed
        )
        if method == "oob":
            self._fitted = calibrated_out_of_bag(fitted, settings, self._n_threads())
        elif method == "jackknife+":
            self._fitted = calibrated_by_jackknife(fitted, settings, self._n_threads())
        elif method == "cv+":
            self._fitted = self._cross_fitted(fitted, settings, cv, groups)
        else:
            rows = concatenated(block.rows for block in checked_blocks(self, X, fitted))
            targets = checked_targets("y", cast("ArrayLike", y))
            if targets.shape != (len(rows),):
                raise ValueError(f"y must have shape ({len(rows)},), got {targets.shape}")
            self._fitted = calibrated_by_split(
                fitted, settings, rows, targets, confidence, self._n_threads()
            )
        if method != "cv+" and self._steps is not None:
            self._steps = replace(self._steps, folds=())
        return self

    def predict_interval(
        self,
        X: ArrayLike,
        coverage: float | ArrayLike = 0.9,
        *,
        kind: Kind | Literal["calibrated"] | None = None,
        output: Output | None = None,
    ) -> Any:
        """Prediction intervals.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
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
        output : {"numpy", "pandas", "polars", "pyarrow"}, optional
            An array, or a table of that library; by default what `set_output` says, an array if
            nothing. Tables have the mean of each row in front. See `set_output` for the names of
            the columns.

        Returns
        -------
        (n, 2) or (n, 2, k) float64, or table
            Lower and upper ends, in the unit of y; (n, n_outputs, 2[, k]) with several outputs.
            NaN where all leaves of the row are empty: possible with ``weights="oob"``. Calibrated
            intervals of a higher coverage contain those of a lower one.

        Raises
        ------
        AttributeError
            If kind is "calibrated" and the model is not.
        ValueError
            If an argument is out of range, or a coverage was not calibrated and cannot be.

        Warns
        -----
        UserWarning
            If X holds the rows of the fit, all of them in their order: use `oob_interval`.

        Notes
        -----
        O(entries of the row's leaves + distinct targets / 64) per row, and O(support) per level.
        """
        if kind is None:
            held = getattr(self, "_fitted", None)
            kind = "hdi" if held is None else held.usual_kind
        wanted = self._wanted(output)
        if wanted != "numpy":
            names, chosen = interval_names(kind, coverage), kind
            return self._table(
                wanted, names, lambda: self._mean_and_intervals(X, coverage, chosen), X
            )
        if kind != "calibrated":
            return self._query(X, "intervals", coverage, kind, hint=True)
        fitted = self._require_fitted()
        return concatenated(
            self._calibrated_intervals(
                fitted, block.rows, coverage, of_folds=self._rows_of_folds(block)
            )
            for block in checked_blocks(self, X, fitted, hint=True)
        )

    def _mean_and_intervals(
        self, X: ArrayLike, coverage: ArrayLike, kind: Kind | Literal["calibrated"]
    ) -> NDArray[np.float64]:
        """Return the columns of `interval_names`."""
        if kind != "calibrated":
            found = self._query(X, mean_and_intervals, coverage, kind, hint=True)
            return ends_of_kind(found, kind)
        fitted, levels = self._require_fitted(), np.atleast_1d(coverage)

        def columns(block: Block) -> NDArray[np.float64]:
            mean, of_folds = np.empty(len(block.rows)), self._rows_of_folds(block)
            ends = self._calibrated_intervals(fitted, block.rows, levels, mean, of_folds)
            return joined(mean, ends)

        blocks = checked_blocks(self, X, fitted, hint=True)
        return concatenated(columns(block) for block in blocks)

    def _rows_of_folds(self, block: Block) -> list[Rows]:
        """Return rows as the steps of each fold make them, if folds have steps of their own."""
        return [] if self._steps is None else [s.encode(block.given) for s in self._steps.folds]

    def _calibrated_intervals(
        self,
        fitted: FittedForest,
        rows: Rows,
        coverage: ArrayLike,
        mean: NDArray[np.float64] | None = None,
        of_folds: Sequence[Rows] = (),
    ) -> NDArray[np.float64]:
        """Return intervals of checked rows; `mean` (n,) is filled with their means.

        `of_folds` are the same rows for the forest of each fold, if these have steps of their own.
        """
        n_threads = self._n_threads(len(rows))
        return calibrated_intervals(
            fitted,
            rows,
            coverage,
            n_threads,
            mean,
            n_calibrating=self._n_threads,
            of_folds=of_folds,
        )

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

        X = rows.X if self._steps is None else self._training_table
        if X is None:
            raise ValueError(
                "method='cv+' fits the steps before the forest again, to the table of the fit, "
                "which pickles do not hold; calibrate before pickling"
            )
        calibration, forests, steps = cross_fitted(
            new_model, X, rows, settings, folds, groups is not None, self._n_threads()
        )
        if self._steps is not None:
            self._steps = replace(self._steps, folds=cast("tuple[TableSteps, ...]", steps))
        return fitted.uncalibrated(calibration=calibration, folds=forests)


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
    if method == "jackknife+" and fitted.weights == "monotonic":
        raise ValueError("method must not be 'jackknife+' with weights='monotonic'; 'cv+' may be")
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
