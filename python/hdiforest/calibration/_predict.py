"""Means and intervals of rows, of every kind, by a fitted forest."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from hdiforest._model.fitted import Calibrated, FittedForest, IntervalQuery, Rows
from hdiforest._utils import Array, Kind
from hdiforest._utils.checks import CallError, check_choice, shares
from hdiforest._utils.kinds import ENDS, ONE_SIDED
from hdiforest.calibration._distribution import PredictiveDistribution, Reading
from hdiforest.calibration._outputs import OutputIntervals, calibrations_of
from hdiforest.calibration._result import USUAL_COVERAGE, AnyCalibration
from hdiforest.calibration._tails import TailCalibration

KindRead = Literal["calibrated", Kind]
AnyKind = Literal["raw", "calibrated", Kind]  # "raw" is "hdi"

_ROWS_AT_ONCE = 1 << 16  # so that memory stays flat


def resolve_kind_and_levels(
    fitted: FittedForest, kind: AnyKind | None, levels: Sequence[float] | None
) -> tuple[KindRead, list[float]]:
    """Return the kind and the levels to predict, with defaults in place of None.

    The default kind is "calibrated" if the model is calibrated, and "hdi" otherwise. The default
    level is 0.9, or the lowest calibrated coverage if 0.9 was not calibrated. Raises ValueError if
    the model is not calibrated for the levels.
    """
    calibration = fitted.calibration
    if kind is None or kind == "raw":
        kind = "hdi" if kind == "raw" or calibration is None else "calibrated"
    if kind != "calibrated":
        readings_of_bounds(calibration, kind, USUAL_COVERAGE)
        return kind, [USUAL_COVERAGE] if levels is None else list(levels)
    if calibration is None:
        raise CallError("{kind} must not be calibrated, because the model has no calibration")
    if levels is None:
        coverages = calibration.coverages
        usual = (level for level in coverages if math.isclose(level, USUAL_COVERAGE, abs_tol=1e-9))
        return kind, [next(usual, coverages[0])]
    calibration.positions(levels)
    return kind, list(levels)


def predict_mean_and_intervals(
    fitted: FittedForest,
    X: Rows,
    levels: Sequence[float],
    kind: KindRead,
    n_threads: int,
    of_folds: Sequence[Rows] = (),
) -> tuple[Array, Array]:
    """Return means (n,) and intervals (n, 2, k) of one target. See `IntervalQuery`."""
    mean = np.empty(len(X) if fitted.scorer.index.scalar_output else (len(X), 1))
    if kind == "calibrated" or is_calibrated_bound(fitted.calibration, kind):
        calibrated = require_calibrated(fitted)
        positions, codes = calibrated.result.positions(levels), calibrated.group_codes(X)
        intervals = calibrated.intervals(
            IntervalQuery(X, positions, n_threads, mean, of_folds, codes, kind)
        )
    elif (bounds := readings_of_bounds(fitted.calibration, kind, levels)) is not None:
        fitted.scorer.mean(X, out=mean, n_threads=n_threads)
        intervals = read_distributions(fitted, X, bounds[0], n_threads)
    else:
        ends = None if fitted.is_censored else mean
        intervals = fitted.scorer.intervals(X, levels, kind, mean=ends, n_threads=n_threads)
        if ends is None:
            fitted.fill_mean(X, mean.reshape(-1), n_threads)
    return mean.reshape(-1), intervals.reshape(len(X), 2, len(levels))


def is_calibrated_bound(calibration: Any, kind: str) -> bool:
    """Whether a kind has one end that the calibration itself gives, at its own coverages."""
    return kind in ONE_SIDED and isinstance(calibration, TailCalibration)


def require_calibrated(fitted: FittedForest) -> Calibrated:
    """Return the calibration, or raise AttributeError."""
    if fitted.calibrated is None:
        raise AttributeError("this model has no calibration_; call calibrate first")
    return fitted.calibrated


def boxes_of(calibrated: Calibrated) -> Calibrated:
    """Return the calibration with the sides of boxes. With one target a side is the interval."""
    return calibrated.boxes if isinstance(calibrated, OutputIntervals) else calibrated


def read_distributions(
    fitted: FittedForest, X: Rows, reading: Reading, n_threads: int, values: Sequence[Array] = ()
) -> Array:
    """Return what is read from the base quantiles of rows, and their values."""
    bases = fitted.calibration.bases[0].quantiles(reading.levels)
    parts = []
    for begin in range(0, max(1, len(X)), _ROWS_AT_ONCE):
        part = slice(begin, begin + _ROWS_AT_ONCE)
        base = fitted.base_intervals(X[part], bases, n_threads)[:, 1]
        parts.append(reading.read(base, *(each[part] for each in values)))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def of_outputs(fitted: FittedForest, answer: Callable[..., Array], *values: Array) -> Array:
    """Return the answers of the forests of several outputs, (n, n_outputs, ...).

    Of one output that of the forest itself. Each is called with its number, and its values.
    """
    outputs = () if fitted.calibrated is None else fitted.calibrated.outputs
    if not outputs:
        return answer(fitted, 0, *values)
    parts = enumerate(outputs)
    return np.stack([answer(part, o, *(each[:, o] for each in values)) for o, part in parts], 1)


def distributions_of(
    calibration: AnyCalibration | None, kind: str | None
) -> list[PredictiveDistribution] | None:
    """Return what makes calibrated distributions of outputs; None for those of the forest.

    The kind None is "calibrated" if that can be. Raises AttributeError if the kind is "calibrated"
    and there is no calibration, and ValueError if that is one by folds.
    """
    check_choice("kind", kind, ("calibrated", "raw", None))
    calibrations = calibrations_of(calibration)
    distributions = [each.distribution for each in calibrations if each.distribution is not None]
    if kind == "raw" or (kind is None and len(distributions) < len(calibrations or [None])):
        return None
    if calibration is None:
        raise AttributeError("this model has no calibration_; call calibrate first")
    if calibrations and len(distributions) == len(calibrations):
        return distributions
    if calibrations:
        raise ValueError("the file of this model holds no distribution; calibrate the model again")
    raise CallError(
        "distributions and one-sided bounds are calibrated by method 'oob' or 'split', and the "
        f"model was by {calibration.method!r}; calibrate it so, or use {{raw}}",
        raw="predict_quantiles(kind='raw')",
    )


def readings_of_bounds(
    calibration: AnyCalibration | None, kind: str, coverage: ArrayLike
) -> list[Reading] | None:
    """Return what reads one-sided intervals (n, 2[, k]) of each output; None: not calibrated."""
    if calibration is None or kind not in ONE_SIDED or is_calibrated_bound(calibration, kind):
        return None
    (end,) = ENDS[kind]
    distributions = distributions_of(calibration, "calibrated") or []
    coverages = shares("coverage", coverage, one=True)
    first = calibrations_of(calibration)[0]
    confidence, n = first.confidence, first.n

    def reading(distribution: PredictiveDistribution) -> Reading:
        levels, read = distribution.bounds(coverages.reshape(-1), end, n, confidence)
        return Reading(levels, lambda base: read(base).reshape(len(base), 2, *coverages.shape))

    return list(map(reading, distributions))
