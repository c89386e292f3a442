"""Calibrates a fitted forest: by its out-of-bag rows, by rows held out, by jackknife+."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hdiforest._model.fitted import FittedForest, Jackknife, base_intervals
from hdiforest._model.out_of_bag import OutOfBagIntervals
from hdiforest._model.training_rows import TrainingRows
from hdiforest.calibration._bases import DEFAULT_KINDS, FIXED_RAW, LEVELS, BaseKind, Candidates
from hdiforest.calibration._calibrate import calibrate_cross, calibrate_oob, calibrate_split
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._quantiles import rows_needed
from hdiforest.calibration._result import Calibration, FixedLevel
from hdiforest.calibration._selection import Objective, narrowest

DEFAULT_COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)


USUAL_LEVEL = 0.9  # of what is predicted


MAX_ROWS = 20_000  # whose coverage has a standard error of 0.2 %


MAX_JACKKNIFE_ROWS = 1000  # each costs a merge for each row to predict


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
    """Return the forest with intervals selected and widened on its training rows.

    Raises
    ------
    ValueError
        If too few trees leave rows out.
    """
    source = OutOfBagIntervals(fitted, n_threads, settings.mean, settings.random_state)
    _require_out_of_bag("oob", source)
    return _calibrated_on(source, fitted, settings)


def _calibrated_on(
    source: OutOfBagIntervals, fitted: FittedForest, settings: Settings
) -> FittedForest:
    """Return the forest with intervals selected and widened on the usable rows of a source."""
    chosen = _chosen_rows(source.usable, settings.max_rows, settings.random_state)
    ends = source.intervals(chosen, settings.kinds, LEVELS)
    finite = np.isfinite(ends).all(axis=(0, 1, 3, 4))
    with_ends = chosen[finite]
    calibration = calibrate_oob(
        ends[:, :, finite],
        source.rows.y[with_ends],
        source.targets,
        settings.coverages,
        families=source.families,
        kinds=settings.kinds,
        weights=_weights_of(source.rows, with_ends),
        clip=settings.clip,
        objective=settings.objective,
    )
    needs_centred = any(base.family != "raw" for base in calibration.bases)
    centred = source.centred_forest() if needs_centred else None
    return fitted.uncalibrated(calibration=calibration, centred=centred)


def calibrated_by_default(fitted: FittedForest, n_threads: int) -> FittedForest:
    """Return the forest with `DEFAULT_COVERAGES` calibrated out of bag, as far as possible.

    Coverages for which there are too few rows are left out. A forest of several targets, or with
    too few trees that leave rows out, or too few rows for `USUAL_LEVEL`, or of targets too large to
    be averaged, stays as it is.
    """
    if fitted.n_outputs > 1:
        return fitted
    settings = Settings(DEFAULT_COVERAGES, DEFAULT_KINDS, True, "width", None, MAX_ROWS, 0)
    try:
        result = calibrated_if_possible(fitted, settings, n_threads)
    except ValueError:  # targets too large to be averaged
        return fitted
    if not isinstance(result.calibration, Calibration):
        return fitted
    result = result.with_finite_coverages()
    usual = result.calibration is not None and result.calibration.has(USUAL_LEVEL)
    return result if usual else fitted


def further_level(
    fitted: FittedForest, calibration: Calibration, coverage: float, n_threads: int
) -> FixedLevel:
    """Calibrate one more coverage out of bag; nothing is chosen.

    Its base is that of the next higher coverage, or of the highest, and its conformal quantile is
    no larger: so it fits between the others, whose intervals stay as they are.

    Parameters
    ----------
    fitted : FittedForest
        With its training rows.
    calibration : Calibration
        Of `fitted`, out of bag, with raw and centred bases only.
    coverage : float
        Above 0 and below 1.
    n_threads : int

    Raises
    ------
    ValueError
        If there are too few rows for it.
    """
    n_lower = sum(each.coverage < coverage for each in calibration.levels)
    higher = calibration.levels[n_lower] if n_lower < len(calibration.levels) else None
    base = (higher or calibration.levels[-1]).base
    source = OutOfBagIntervals(fitted, n_threads)
    rows = _chosen_rows(source.usable, calibration.n, 0)
    ends = source.by_base(rows, [*calibration.bases[:n_lower], base])
    finite = np.isfinite(ends).all(axis=(1, 2))
    with_ends = rows[finite]
    weights = _weights_of(source.rows, with_ends)
    candidates = Candidates.from_bases(
        [base], ends[finite, :, -1:], source.rows.y[with_ends], weights
    )
    if n_lower > 0:
        lower = calibration.first(n_lower).intervals(ends[finite, :, :-1])
        candidates = replace(candidates, inner=lower[..., -1])
    level = narrowest(candidates, coverage, calibration.postprocess)
    if not np.isfinite(level.q_hat):
        raise ValueError(
            f"coverage {coverage:g} needs {rows_needed(coverage)} calibration rows, and there are "
            f"{len(with_ends)}; ask for a lower one, or for kind='hdi', which is not calibrated"
        )
    return level if higher is None else replace(level, q_hat=min(level.q_hat, higher.q_hat))


def calibrated_if_possible(
    fitted: FittedForest, settings: Settings, n_threads: int
) -> FittedForest:
    """Return the forest as `calibrated_out_of_bag` does, without its errors and warnings.

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
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "intervals of coverage .* are infinite")
        return _calibrated_on(source, fitted, settings)


def calibrated_by_split(
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


def calibrated_by_jackknife(
    fitted: FittedForest, settings: Settings, n_threads: int
) -> FittedForest:
    """Return the forest with the scores of some training rows, each by trees that did not draw it.

    Raises
    ------
    ValueError
        If fewer than half of the rows have 20 trees that did not draw them.

    Notes
    -----
    Kim, Xu and Barber, "Predictive inference is free with the jackknife+-after-bootstrap", NeurIPS
    2020. The base is not chosen by the rows, and leaves count rows as the trees drew them, so that
    a row has no part in the forest that is used for it.
    """
    forest = fitted.scorer.forest
    source = OutOfBagIntervals(fitted, n_threads)
    rows = source.rows
    _require_out_of_bag("jackknife+", source)
    n = min(settings.max_rows, MAX_JACKKNIFE_ROWS)
    chosen = _chosen_rows(source.usable, n, settings.random_state)
    jackknife = Jackknife(
        rows.index(forest, source.leaves, "inbag", n_threads=n_threads),
        np.asarray(cast("NDArray[Any]", source.counts)[chosen] > 0),
    )
    ends = jackknife.own_intervals(source.leaves[chosen], n_threads)
    calibration = calibrate_cross(
        list(np.repeat(ends[:, np.newaxis, :, np.newaxis], len(settings.coverages), axis=3)),
        list(rows.y[chosen, np.newaxis]),
        settings.coverages,
        PostProcess.from_targets(rows.y[rows.has_weight], clip=settings.clip),
        method="jackknife+",
        weights=None
        if rows.sample_weight is None
        else list(rows.sample_weight[chosen, np.newaxis]),
    )
    return fitted.uncalibrated(calibration=calibration, jackknife=jackknife)


def _require_out_of_bag(method: str, source: OutOfBagIntervals) -> None:
    if source.shortage is not None:
        raise ValueError(
            f"method={method!r} needs {source.shortage}; use more trees that draw their rows, or "
            "method='split' or 'cv+'"
        )


def _weights_of(rows: TrainingRows, chosen: NDArray[np.intp]) -> NDArray[np.float64] | None:
    return None if rows.sample_weight is None else rows.sample_weight[chosen]


def _chosen_rows(
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
