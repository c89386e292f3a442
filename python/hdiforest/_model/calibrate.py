"""Calibrates a FittedForest: base intervals of its rows, by each method, for `calibration`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hdiforest._model.fitted import FittedForest, Jackknife, base_intervals
from hdiforest._model.out_of_bag import OutOfBagIntervals
from hdiforest._model.predict import USUAL_COVERAGE
from hdiforest._model.stacking import check_mean
from hdiforest._model.training_rows import TrainingRows
from hdiforest._utils.checks import check_choice, check_flag, check_names
from hdiforest.calibration import Calibration, OutOfBag
from hdiforest.calibration._bases import (
    DEFAULT_KINDS,
    FIXED_RAW,
    KINDS,
    LEVELS,
    BaseKind,
)
from hdiforest.calibration._calibrate import calibrate_cross, calibrate_oob, calibrate_split
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._quantiles import rows_needed
from hdiforest.calibration._selection import OBJECTIVES, Objective


@dataclass(frozen=True)
class Settings:
    """What a choice out of bag depends on; see `HDIForestRegressor.calibrate`."""

    coverages: tuple[float, ...]  # ascending
    kinds: Sequence[BaseKind]
    clip: bool = True
    objective: Objective = "width"
    mean: Any = None
    max_rows: int = OutOfBag.max_rows
    random_state: int | None = 0


def default_kinds(fitted: FittedForest) -> Sequence[BaseKind]:
    """Return the kinds of intervals to choose among: for monotonic ones those whose ends are."""
    return ("equal_tailed",) if fitted.weights == "monotonic" else DEFAULT_KINDS


def check_calibration(fitted: FittedForest, settings: Settings) -> None:
    """Raise ValueError unless a forest can be calibrated so, as far as arguments tell."""
    if fitted.n_outputs > 1:
        raise ValueError(f"calibrate needs a model of one target, got {fitted.n_outputs}")
    check_names("kinds", settings.kinds, KINDS)
    check_choice("objective", settings.objective, OBJECTIVES)
    check_flag("clip", settings.clip)
    if settings.mean is not None:
        check_mean(settings.mean, fitted.training_rows)
        if fitted.weights != "all":
            raise ValueError(f"mean must be None with weights={fitted.weights!r}")


def calibrate_out_of_bag(fitted: FittedForest, settings: Settings, n_threads: int) -> FittedForest:
    """Return the forest with intervals selected and widened on its training rows.

    Raises
    ------
    ValueError
        If too few trees leave rows out.
    """
    source = OutOfBagIntervals(fitted, n_threads, settings.mean, settings.random_state)
    _require_out_of_bag("oob", source)
    return _calibrate_on(source, fitted, settings)


def _calibrate_on(
    source: OutOfBagIntervals, fitted: FittedForest, settings: Settings
) -> FittedForest:
    """Return the forest with intervals selected and widened on the usable rows of a source."""
    rows = _draw_rows(source.usable, settings.max_rows, settings.random_state)
    ends = source.intervals(rows, settings.kinds, LEVELS)
    finite = np.isfinite(ends).all(axis=(0, 1, 3, 4))
    rows = rows[finite]
    calibration = calibrate_oob(
        ends[:, :, finite],
        source.rows.y[rows],
        source.targets,
        settings.coverages,
        families=source.families,
        kinds=settings.kinds,
        weights=_weights_of(source.rows, rows),
        clip=settings.clip,
        objective=settings.objective,
    )
    needs_centred = any(base.family != "raw" for base in calibration.bases)
    centred = source.centred_forest() if needs_centred else None
    return fitted.uncalibrated(calibration=calibration, centred=centred)


def calibrate_finite_coverages(
    fitted: FittedForest, settings: Settings, n_threads: int
) -> FittedForest:
    """Return the forest as `calibrate_out_of_bag` does, at the coverages that its rows allow.

    Raises
    ------
    ValueError
        If rows are too few for the coverage that is usually predicted, or too few trees leave rows
        out.
    """
    with ignore_infinite_intervals():
        result = calibrate_out_of_bag(fitted, settings, n_threads)
    n_rows = cast("Calibration", result.calibration).n
    result = result.with_finite_coverages()
    if result.calibration is None or not result.calibration.has(USUAL_COVERAGE):
        raise ValueError(
            f"coverage {USUAL_COVERAGE:g} needs {rows_needed(USUAL_COVERAGE)} calibration rows, "
            f"and there are {n_rows}"
        )
    return result


def calibrate_if_possible(fitted: FittedForest, settings: Settings, n_threads: int) -> FittedForest:
    """Return the forest as `calibrate_out_of_bag` does, without its errors and warnings.

    Without a calibration if too few trees leave rows out.

    Raises
    ------
    ValueError
        If another mean is given and too few trees leave rows out.
    """
    source = OutOfBagIntervals(fitted, n_threads, settings.mean, settings.random_state)
    if (shortage := source.shortage) is not None:
        if settings.mean is not None:
            raise ValueError(f"mean must be None, because another one needs {shortage}")
        return fitted.uncalibrated()
    with ignore_infinite_intervals():
        return _calibrate_on(source, fitted, settings)


@contextmanager
def ignore_infinite_intervals() -> Iterator[None]:
    """Ignore the warning that rows are too few for a coverage."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "intervals of coverage .* are infinite")
        yield


def calibrate_by_split(
    fitted: FittedForest,
    settings: Settings,
    X: NDArray[Any],
    y: NDArray[np.float64],
    confidence: float | None,
    n_threads: int,
) -> FittedForest:
    """Return the forest with bases selected out of bag, if so, and widened by rows of their own.

    Raises
    ------
    ValueError
        If the rows are training rows, or some have no interval.
    """
    rows = fitted.require_training_rows()
    _refuse_training_rows(X, y, rows.X, rows.y)
    fitted = calibrate_if_possible(fitted, settings, n_threads)
    selection = cast("Calibration | None", fitted.calibration)
    bases = [FIXED_RAW] * len(settings.coverages) if selection is None else selection.bases
    ends = base_intervals(fitted, X, bases, n_threads)
    n_empty = int(np.isnan(ends).any(axis=(1, 2)).sum())
    if n_empty > 0:
        raise ValueError(f"{n_empty} of the {len(X)} rows of X have no interval")
    calibration = calibrate_split(
        ends,
        y,
        rows.y[rows.has_weight],
        settings.coverages,
        bases=bases,
        confidence=confidence,
        clip=settings.clip,
    )
    return replace(fitted, calibration=calibration)


def calibrate_by_jackknife(
    fitted: FittedForest, settings: Settings, n_threads: int
) -> FittedForest:
    """Return the forest with the scores of some training rows, each by trees that did not draw it.

    Raises
    ------
    ValueError
        If fewer than half of the rows have 20 trees that did not draw them, or leaves have bounds.

    Notes
    -----
    Kim, Xu and Barber, "Predictive inference is free with the jackknife+-after-bootstrap", NeurIPS
    2020. The base is not chosen by the rows, and leaves count rows as the trees drew them, so that
    a row has no part in the forest that is used for it.
    """
    if fitted.weights == "monotonic":
        raise ValueError("method must not be 'jackknife+' with weights='monotonic'; 'cv+' may be")
    source = OutOfBagIntervals(fitted, n_threads)
    _require_out_of_bag("jackknife+", source)
    training, counts = source.rows, cast("NDArray[Any]", source.counts)
    rows = _draw_rows(source.usable, settings.max_rows, settings.random_state)
    index = training.index(fitted.scorer.forest, source.leaves, "inbag", n_threads=n_threads)
    jackknife = Jackknife(index, np.asarray(counts[rows] > 0))
    ends = jackknife.own_intervals(source.leaves[rows], n_threads)
    weights = _weights_of(training, rows)
    calibration = calibrate_cross(
        list(np.repeat(ends[:, np.newaxis, :, np.newaxis], len(settings.coverages), axis=3)),
        list(training.y[rows, np.newaxis]),
        settings.coverages,
        PostProcess.from_targets(training.y[training.has_weight], clip=settings.clip),
        method="jackknife+",
        weights=None if weights is None else list(weights[:, np.newaxis]),
    )
    return fitted.uncalibrated(calibration=calibration, jackknife=jackknife)


def _require_out_of_bag(method: str, source: OutOfBagIntervals) -> None:
    if source.shortage is not None:
        raise ValueError(
            f"method={method!r} needs {source.shortage}; use more trees that draw their rows, or "
            "calibrate by method='split' or 'cv+'"
        )


def _weights_of(training: TrainingRows, rows: NDArray[np.intp]) -> NDArray[np.float64] | None:
    return None if training.sample_weight is None else training.sample_weight[rows]


def _draw_rows(
    usable: NDArray[np.intp], max_rows: int, random_state: int | None
) -> NDArray[np.intp]:
    if len(usable) <= max_rows:
        return usable
    return np.sort(np.random.default_rng(random_state).choice(usable, max_rows, replace=False))


def _refuse_training_rows(
    X: NDArray[Any], y: NDArray[np.float64], X_train: NDArray[Any], y_train: NDArray[np.float64]
) -> None:
    """Raise ValueError if more than half of some rows are training rows, targets included."""

    def keys(rows: NDArray[Any], targets: NDArray[np.float64]) -> Iterator[bytes]:
        floats = np.ascontiguousarray(rows, dtype=np.float32)
        return (row.tobytes() + t.tobytes() for row, t in zip(floats, targets, strict=True))

    new = set(keys(X, y))
    n_known = len(new.intersection(keys(X_train, y_train)))
    if 2 * n_known > len(y):
        raise ValueError(
            f"X and y must be rows that took no part in the fit; {n_known} of {len(y)} are "
            "training rows"
        )
