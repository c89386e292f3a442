"""Means and intervals of rows, of every kind, by a fitted forest."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._model.calibrate import USUAL_LEVEL, further_level
from hdiforest._model.fitted import FittedForest, base_intervals
from hdiforest._model.out_of_bag import OutOfBagIntervals
from hdiforest._utils.checks import checked_coverages, shares
from hdiforest._utils.typing import Array, Kind
from hdiforest.calibration._bases import FIXED_RAW
from hdiforest.calibration._result import Calibration, CalibrationResult, CrossCalibration

Rows = NDArray[np.floating[Any]]


_ENDS_AT_ONCE = 1 << 20  # of all forests, so that memory stays flat


def cross_intervals(
    calibration: CrossCalibration,
    fitted: FittedForest,
    X: Rows,
    n_threads: int,
    of_folds: Sequence[Rows] = (),
) -> NDArray[np.float64]:
    """Return the calibrated intervals of the rows of X, (n, 2, k).

    `of_folds` are the same rows for each fold's forest if they are not those of X.
    """
    of_folds = of_folds or [X] * len(fitted.folds)
    k = len(calibration.levels)
    found = np.empty((len(X), 2, k))
    step = max(1, _ENDS_AT_ONCE // len(calibration.scores))
    for begin in range(0, len(X), step):
        part = slice(begin, begin + step)
        if fitted.jackknife is not None:
            leaves = fitted.scorer.forest.leaves(X[part], n_threads=n_threads)
            own = fitted.jackknife.intervals(leaves, n_threads)[..., np.newaxis]
            ends = np.broadcast_to(own, (*own.shape[:3], k))
        else:
            by_fold = zip(fitted.folds, of_folds, strict=True)
            ends = np.stack(
                [fold_intervals(fold, own[part], k, n_threads) for fold, own in by_fold]
            )
        found[part] = calibration.intervals(ends)
    return found


def fold_intervals(fold: FittedForest, X: Rows, k: int, n_threads: int) -> NDArray[np.float64]:
    """Return the intervals of the k lowest coverages, (n, 2, k), by the forest of one fold."""
    if not isinstance(fold.calibration, Calibration):
        ends = base_intervals(fold, X, [FIXED_RAW], n_threads)
        return np.broadcast_to(ends, (len(X), 2, k))
    calibration = fold.calibration.first(k)
    return calibration.intervals(base_intervals(fold, X, calibration.bases, n_threads))


AnyKind = Literal["calibrated", Kind]


_NO_ROWS = "the model was saved without its training rows"


class UnknownCoverageError(ValueError):
    """A coverage that was not calibrated and cannot be added.

    Parameters
    ----------
    fact : str
        The message without what to do, which the command says in words of its own.
    coverages : list of float
        Those that were calibrated and those that were asked for, ascending.
    method : str
        By which the model was calibrated.
    options : dict
        What `calibrate` must be given, as text, to calibrate all of them in the same way; empty if
        they are added where the training rows are there.
    has_rows : bool
        Whether the training rows are there.
    """

    def __init__(
        self,
        fact: str,
        coverages: list[float],
        method: str,
        options: dict[str, str],
        has_rows: bool,
    ) -> None:
        super().__init__(fact, coverages, method, options, has_rows)  # pickles hold these
        self.fact, self.coverages, self.method = fact, coverages, method
        self.options, self.has_rows = options, has_rows

    def calls(self) -> str:
        """Say what to load and to call in Python."""
        # Folds are fitted again, for which a loaded model has no forest.
        is_cross = self.method == "cv+"
        steps = [] if is_cross or self.has_rows else ["a file saved with training_rows=True"]
        if self.options:
            levels = ", ".join(f"{coverage:g}" for coverage in self.coverages)
            options = ", ".join(f"{name}={value}" for name, value in self.options.items())
            steps.append(f"calibrate([{levels}], {options}){' before saving' if is_cross else ''}")
        return " and ".join(steps)

    def __str__(self) -> str:
        return f"{self.fact}; the ways out are {self.calls()}, or kind='hdi'"


def chosen_kind_and_levels(
    fitted: FittedForest,
    kind: AnyKind | None,
    levels: Sequence[float] | None,
    n_threads: Callable[[], int],
) -> tuple[AnyKind, list[float]]:
    """Return what to predict, with the defaults for what is None.

    The kind is "calibrated" if the model is, else "hdi". The level is 0.9, or the lowest that was
    calibrated if 0.9 was not.

    Raises
    ------
    ValueError
        If the kind is "calibrated" and the model is not, or not at one of the levels and has no
        training rows to be calibrated on.
    """
    calibration = fitted.calibration
    if kind is None:
        kind = fitted.usual_kind
    if kind != "calibrated":
        return kind, [USUAL_LEVEL] if levels is None else list(levels)
    if calibration is None:
        raise ValueError("kind must not be calibrated, because the model has no calibration")
    if levels is None:
        known = calibration.coverages
        usual = (level for level in known if math.isclose(level, USUAL_LEVEL, abs_tol=1e-9))
        return kind, [next(usual, known[0])]
    calibration = calibration_at(fitted, levels, n_threads)
    for level in levels:
        calibration.position(level)
    return kind, list(levels)


def mean_and_intervals(
    fitted: FittedForest,
    X: Rows,
    levels: Sequence[float],
    kind: AnyKind,
    n_threads: int,
    of_folds: Sequence[Rows] = (),
) -> tuple[Array, Array]:
    """Return means (n,) and intervals (n, 2, k) of the rows by a forest of one target.

    `of_folds` are as `calibrated_intervals` takes them.
    """
    mean = np.empty(len(X) if fitted.scorer.index.scalar_output else (len(X), 1))
    if kind == "calibrated":
        intervals = calibrated_intervals(fitted, X, levels, n_threads, mean, of_folds=of_folds)
    else:
        intervals = fitted.scorer.intervals(X, levels, kind, mean=mean, n_threads=n_threads)
    return mean.reshape(-1), intervals.reshape(len(X), 2, len(levels))


def calibrated_intervals(
    fitted: FittedForest,
    rows: Rows,
    coverage: ArrayLike,
    n_threads: int,
    mean: Array | None = None,
    n_calibrating: Callable[[], int] | None = None,
    of_folds: Sequence[Rows] = (),
) -> Array:
    """Return intervals of checked rows, (n, 2) or (n, 2, k).

    Parameters
    ----------
    fitted : FittedForest
        With a calibration.
    rows : (n, n_features) array
    coverage : float or k floats
    n_threads : int
    mean : (n,) array, optional
        Filled with the means of the rows.
    n_calibrating : callable, optional
        Says how many threads may calibrate a further coverage; by default `n_threads`.
    of_folds : sequence of (n, n_features_of_fold) arrays, default=()
        The same rows for the forest of each fold, if they are not `rows`.

    Raises
    ------
    ValueError
        If a coverage was not calibrated and cannot be.
    """
    levels = shares("coverage", coverage).ravel().tolist()
    calibration = calibration_at(fitted, levels, n_calibrating or (lambda: n_threads))
    at = calibration.positions(coverage)
    # Intervals contain those of lower coverages; higher ones are not needed.
    calibration = calibration.first(int(at.max(initial=0)) + 1)
    if isinstance(calibration, CrossCalibration):
        if mean is not None:
            fitted.scorer.mean(rows, out=mean, n_threads=n_threads)
        return cross_intervals(calibration, fitted, rows, n_threads, of_folds)[..., at]
    ends = base_intervals(fitted, rows, calibration.bases, n_threads, mean)
    return calibration.intervals(ends)[..., at]


def calibrated_out_of_bag_intervals(
    fitted: FittedForest, coverage: ArrayLike, n_threads: int
) -> Array:
    """Return intervals of all training rows, (n, 2) or (n, 2, k), each out of bag.

    From the base intervals of the trees that did not draw the row, widened and post-processed as
    those of new rows. NaN for rows that no such tree has a base interval for.

    Raises
    ------
    ValueError
        As `calibrated_intervals`, or if the calibration does not say what these intervals are.
    """
    if (reason := why_not_out_of_bag(fitted)) is not None:
        raise ValueError(
            f"kind must not be 'calibrated' out of bag, because {reason}; use kind='hdi', whose "
            "intervals are not calibrated, or calibrate by method='oob' or 'split' without a mean"
        )
    levels = shares("coverage", coverage).ravel().tolist()
    calibration = cast("Calibration", calibration_at(fitted, levels, lambda: n_threads))
    at = calibration.positions(coverage)
    calibration = calibration.first(int(at.max(initial=0)) + 1)
    source = OutOfBagIntervals(fitted, n_threads)
    ends = source.by_base(np.arange(len(source.rows.y)), calibration.bases)
    return calibration.intervals(ends)[..., at]


def calibration_at(
    fitted: FittedForest, coverages: Sequence[float], n_threads: Callable[[], int]
) -> Calibration | CrossCalibration:
    """Return the calibration, with further coverages if they can be calibrated out of bag.

    Raises
    ------
    AttributeError
        If the forest has no calibration.
    ValueError
        If there are too few rows for a further coverage.
    """
    calibration = fitted.calibration
    if calibration is None:
        raise AttributeError("this model has no calibration_; call calibrate first")
    unknown = [c for c in coverages if not calibration.has(c)]
    if not unknown:
        return calibration
    checked_coverages(sorted(set(unknown)))
    if (reason := _why_no_further(fitted)) is not None:
        listed = ", ".join(f"{known:g}" for known in calibration.coverages)
        raise UnknownCoverageError(
            f"coverage must be one that was calibrated: {listed}; got {unknown[0]:g}, which "
            f"cannot be added, because {reason}",
            sorted({*calibration.coverages, *unknown}),
            calibration.method,
            _options_again(fitted),
            fitted.training_rows is not None,
        )
    calibration = cast("Calibration", calibration)
    for coverage in unknown:
        if coverage not in fitted.further_levels:
            fitted.further_levels[coverage] = further_level(
                fitted, calibration, coverage, n_threads()
            )
    further = [fitted.further_levels[c] for c in set(unknown)]
    levels = sorted([*calibration.levels, *further], key=lambda level: level.coverage)
    return replace(calibration, levels=tuple(levels))


def _options_again(fitted: FittedForest) -> dict[str, str]:
    """Return what `calibrate` must be given, besides coverages, to do what it did."""
    calibration: Any = fitted.calibration
    method = calibration.method
    options = {} if method == "oob" else {"method": repr(method)}
    if method == "split":
        options |= {"X": "...", "y": "..."}
        if calibration.confidence is not None:
            options["confidence"] = f"{calibration.confidence:g}"
    if method == "cv+" and calibration.grouped:
        options["groups"] = "..."
    if fitted.centred is not None and fitted.centred.mean is not None:
        options["mean"] = "..."
    return options


def _why_no_further(fitted: FittedForest) -> str | None:
    """Say why no further coverage can be calibrated; None if it can be, out of bag."""
    calibration = cast("CalibrationResult", fitted.calibration)
    if calibration.method != "oob":
        return f"the model was calibrated by {calibration.method!r}"
    if fitted.training_rows is None:
        return _NO_ROWS
    return why_not_out_of_bag(fitted)


def why_not_out_of_bag(fitted: FittedForest) -> str | None:
    """Say why the calibration has no intervals of training rows; None if it has."""
    calibration = fitted.calibration
    if isinstance(calibration, CrossCalibration):
        return f"the model was calibrated by {calibration.method!r}"
    if fitted.centred is not None and fitted.centred.mean is not None:
        return "what the other mean predicts out of fold is not kept"
    return None
