"""Calibrates a fitted forest: on its training rows out of bag, or on rows of their own (split)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hdiforest.base_intervals import (
    FIXED_RAW,
    MIN_OOB_TREES,
    OutOfBagIntervals,
    base_intervals,
)
from hdiforest.calibration import LEVELS, Calibration, calibrate_oob, calibrate_split
from hdiforest.calibration.candidates import BaseKind
from hdiforest.calibration.choice import Objective
from hdiforest.fitted import FittedForest


@dataclass(frozen=True)
class Settings:
    """What a choice out of bag depends on; see `HDIForestRegressor.calibrate`."""

    coverages: tuple[float, ...]  # ascending
    kinds: Sequence[BaseKind]
    clip: bool
    objective: Objective
    mean: Any
    max_rows: int
    random_state: int | None


def calibrated_out_of_bag(fitted: FittedForest, settings: Settings, n_threads: int) -> FittedForest:
    """Return the forest with intervals chosen and padded on its training rows.

    Raises
    ------
    ValueError
        If too few trees leave rows out.
    """
    source = OutOfBagIntervals(fitted, n_threads, settings.mean, settings.random_state)
    if not source.has_enough:
        raise ValueError(
            f"method='oob' needs at least {MIN_OOB_TREES} trees that did not draw a row, and "
            f"{len(source.usable)} of {len(source.rows.y)} training rows have so many; use more "
            "trees that draw their rows, or method='split' or 'cv+'"
        )
    chosen = source.usable
    if len(chosen) > settings.max_rows:
        rng = np.random.default_rng(settings.random_state)
        chosen = np.sort(rng.choice(chosen, settings.max_rows, replace=False))
    ends = source.intervals(chosen, settings.kinds, LEVELS)
    finite = np.isfinite(ends).all(axis=(0, 1, 3, 4))
    calibration = calibrate_oob(
        ends[:, :, finite],
        source.rows.y[chosen[finite]],
        source.targets,
        settings.coverages,
        families=source.families,
        kinds=settings.kinds,
        clip=settings.clip,
        objective=settings.objective,
    )
    needs_centred = any(base.family != "raw" for base in calibration.bases)
    return replace(
        fitted,
        calibration=calibration,
        centred=source.centred_forest() if needs_centred else None,
        folds=(),
    )


def calibrated_if_possible(
    fitted: FittedForest, settings: Settings, n_threads: int
) -> FittedForest:
    """Return the forest as `calibrated_out_of_bag` does, without its errors and warnings.

    Without a calibration if too few trees leave rows out.
    """
    if not OutOfBagIntervals(fitted, n_threads).has_enough:
        return replace(fitted, calibration=None, centred=None, folds=())
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "intervals of coverage .* are infinite")
        return calibrated_out_of_bag(fitted, settings, n_threads)


def calibrated_by_split(
    fitted: FittedForest,
    settings: Settings,
    X: NDArray[Any],
    y: NDArray[np.float64],
    confidence: float | None,
    n_threads: int,
) -> FittedForest:
    """Return the forest with bases chosen out of bag, if so, and pads from rows of their own.

    Raises
    ------
    ValueError
        If the rows are training rows, or some have no interval.
    """
    rows = fitted.require_training_rows()
    _refuse_training_rows(X, y, rows.X, rows.y)
    fitted = calibrated_if_possible(fitted, settings, n_threads)
    chosen = cast("Calibration | None", fitted.calibration)
    bases = [FIXED_RAW] * len(settings.coverages) if chosen is None else chosen.bases
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
