"""Means and intervals of rows, of every kind, by a fitted forest."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._model.fitted import AnyCalibration, FittedForest, base_intervals
from hdiforest._utils import Array, Kind
from hdiforest._utils.checks import CallError, check_choice, shares
from hdiforest._utils.kinds import ENDS, ONE_SIDED
from hdiforest.calibration import Calibration, CrossCalibration, JointCalibration
from hdiforest.calibration._bases import FIXED_RAW
from hdiforest.calibration._distribution import PredictiveDistribution, Reading
from hdiforest.calibration._result import USUAL_COVERAGE

Rows = NDArray[np.floating[Any]]
AnyKind = Literal["calibrated", Kind]

_ROWS_AT_ONCE = 1 << 16  # so that memory stays flat
_ENDS_AT_ONCE = 1 << 20  # of all forests, so that memory stays flat


def resolve_kind_and_levels(
    fitted: FittedForest, kind: AnyKind | None, levels: Sequence[float] | None
) -> tuple[AnyKind, list[float]]:
    """Return what to predict, with the defaults for what is None.

    The kind is "calibrated" if the model is, else "hdi". The level is 0.9, or the lowest that was
    calibrated if 0.9 was not. Raises ValueError if the model is not calibrated so.
    """
    calibration = fitted.calibration
    if kind is None:
        kind = "hdi" if calibration is None else "calibrated"
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
    kind: AnyKind,
    n_threads: int,
    of_folds: Sequence[Rows] = (),
) -> tuple[Array, Array]:
    """Return means (n,) and intervals (n, 2, k) of one target; see `predict_calibrated`."""
    mean = np.empty(len(X) if fitted.scorer.index.scalar_output else (len(X), 1))
    if kind == "calibrated":
        codes = fitted.group_codes(X)
        intervals = predict_calibrated(fitted, X, levels, n_threads, mean, of_folds, codes)
    elif (bounds := readings_of_bounds(fitted.calibration, kind, levels)) is not None:
        fitted.scorer.mean(X, out=mean, n_threads=n_threads)
        intervals = read_distributions(fitted, X, bounds[0], n_threads)
    else:
        intervals = fitted.scorer.intervals(X, levels, kind, mean=mean, n_threads=n_threads)
    return mean.reshape(-1), intervals.reshape(len(X), 2, len(levels))


def predict_calibrated(
    fitted: FittedForest,
    X: Rows,
    coverage: ArrayLike,
    n_threads: int,
    mean: Array | None = None,
    of_folds: Sequence[Rows] = (),
    codes: NDArray[np.intp] | None = None,
    joint: bool = False,
) -> Array:
    """Return calibrated intervals of checked rows, (n, 2) or (n, 2, k) for k coverages.

    Of several outputs (n, n_outputs, 2[, k]); if `joint` these are the sides of boxes. An array
    `mean` (n,) or (n, n_outputs) is filled with means. `of_folds` are the rows for the forest of
    each fold, if not X; `codes` are `FittedForest.group_codes`.
    """
    if fitted.outputs and mean is not None:
        fitted.scorer.mean(X, out=mean, n_threads=n_threads)
    if fitted.outputs:

        def answer(part: FittedForest, _: int) -> Array:
            return predict_calibrated(part, X, coverage, n_threads, codes=codes)

        return of_outputs(fitted, answer, joint=joint)
    if fitted.calibration is None:
        raise AttributeError("this model has no calibration_; call calibrate first")
    at = fitted.calibration.positions(coverage)
    if isinstance(fitted.calibration, CrossCalibration):
        if mean is not None:
            fitted.scorer.mean(X, out=mean, n_threads=n_threads)
        return _predict_by_folds(fitted, X, at, n_threads, of_folds)
    return calibrated_rows(fitted, X, at, n_threads, mean, codes)


def calibrated_rows(
    fitted: FittedForest,
    X: Rows,
    at: NDArray[np.intp],
    n_threads: int,
    mean: Array | None = None,
    codes: NDArray[np.intp] | None = None,
) -> Array:
    """Return intervals (n, 2) or (n, 2, k) of coverages at positions () or (k,)."""
    groups, centred, scorer = fitted.groups, fitted.centred, fitted.calibrated
    options: dict[str, Any] = {"n_threads": n_threads}
    if groups is not None and codes is not None:
        options["q_hat"] = groups.quantiles(codes, cast("Calibration", fitted.calibration).q_hat)
    positions = at.reshape(-1)
    if centred is None:
        means = None if mean is None else mean.reshape(-1)
        ends = scorer.intervals(X, positions, mean=means, **options)
    else:
        if mean is not None:
            fitted.scorer.mean(X, out=mean, n_threads=n_threads)
        options["shifts"] = centred.shifts(X, n_threads)
        ends = centred.read(scorer.intervals, X, positions, **options)
    return ends.reshape(len(X), 2, *at.shape)


def read_distributions(
    fitted: FittedForest, X: Rows, reading: Reading, n_threads: int, values: Sequence[Array] = ()
) -> Array:
    """Return what is read from the base quantiles of rows, and their values."""
    bases = cast("Calibration", fitted.calibration).bases[0].quantiles(reading.levels)
    parts = []
    for begin in range(0, max(1, len(X)), _ROWS_AT_ONCE):
        part = slice(begin, begin + _ROWS_AT_ONCE)
        base = base_intervals(fitted, X[part], bases, n_threads)[:, 1]
        parts.append(reading.read(base, *(each[part] for each in values)))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def of_outputs(
    fitted: FittedForest, answer: Callable[..., Array], *values: Array, joint: bool = False
) -> Array:
    """Return the answers of the forests of several outputs, or of boxes, (n, n_outputs, ...).

    Of one output that of the forest itself. Each is called with its number, and its values.
    """
    if not fitted.outputs:
        return answer(fitted, 0, *values)
    parts = enumerate(fitted.boxes if joint else fitted.outputs)
    return np.stack([answer(part, o, *(each[:, o] for each in values)) for o, part in parts], 1)


def distributions_of(
    calibration: AnyCalibration | None, kind: str | None
) -> list[PredictiveDistribution] | None:
    """Return what makes calibrated distributions of outputs; None for those of the forest.

    The kind None is "calibrated" if that can be. Raises AttributeError if the kind is "calibrated"
    and there is no calibration, and ValueError if that is one by folds.
    """
    check_choice("kind", kind, ("calibrated", "raw", None))
    own = [calibration] if isinstance(calibration, Calibration) else []
    own = list(calibration.outputs) if isinstance(calibration, JointCalibration) else own
    found = [each.distribution for each in own if each.distribution is not None]
    if kind == "raw" or (kind is None and len(found) < len(own or [None])):
        return None
    if calibration is None:
        raise AttributeError("this model has no calibration_; call calibrate first")
    if own and len(found) == len(own):
        return found
    if own:
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
    if calibration is None or kind not in ONE_SIDED:
        return None
    (end,) = ENDS[kind]
    distributions = distributions_of(calibration, "calibrated") or []
    coverages = shares("coverage", coverage, one=True)
    if coverages.ndim > 1:
        raise ValueError(f"coverage must be a number or a list of numbers, got {coverage!r}")
    first = calibration.outputs[0] if isinstance(calibration, JointCalibration) else calibration
    confidence, n = cast("Calibration", first).confidence, first.n

    def reading(distribution: PredictiveDistribution) -> Reading:
        levels, read = distribution.bounds(coverages.reshape(-1), end, n, confidence)
        return Reading(levels, lambda base: read(base).reshape(len(base), 2, *coverages.shape))

    return list(map(reading, distributions))


def predict_fold(fold: FittedForest, X: Rows, k: int, n_threads: int) -> Array:
    """Return the intervals of the k lowest coverages, (n, 2, k), by the forest of one fold."""
    if not isinstance(fold.calibration, Calibration):
        ends = base_intervals(fold, X, [FIXED_RAW], n_threads)
        return np.broadcast_to(ends, (len(X), 2, k))
    return calibrated_rows(fold, X, np.arange(k), n_threads)


def _predict_by_folds(
    fitted: FittedForest,
    X: Rows,
    at: NDArray[np.intp],
    n_threads: int,
    of_folds: Sequence[Rows],
) -> Array:
    """Return intervals (n, 2) or (n, 2, k) of coverages at positions () or (k,)."""
    calibration = cast("CrossCalibration", fitted.calibration)
    of_folds, k = of_folds or [X] * len(fitted.folds), int(at.max()) + 1
    intervals = np.empty((len(X), 2, at.size))
    step = max(1, _ENDS_AT_ONCE // len(calibration.scores))
    for begin in range(0, len(X), step):
        part = slice(begin, begin + step)
        if fitted.jackknife is not None:
            leaves = fitted.scorer.forest.leaves(X[part], n_threads=n_threads)
            ends = fitted.jackknife.intervals(leaves, n_threads)
        else:
            pairs = zip(fitted.folds, of_folds, strict=True)
            ends = np.stack([predict_fold(fold, rows[part], k, n_threads) for fold, rows in pairs])
        intervals[part] = calibration.engine.widen(ends, at.reshape(-1), n_threads=n_threads)
    return intervals.reshape(len(X), 2, *at.shape)
