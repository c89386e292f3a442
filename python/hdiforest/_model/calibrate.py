"""Calibrates a FittedForest: base intervals of its rows, by each method, for `calibration`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hdiforest._model.fitted import (
    AnyCalibration,
    FittedForest,
    GroupSource,
    Jackknife,
    base_intervals,
)
from hdiforest._model.out_of_bag import OutOfBagIntervals
from hdiforest._model.predict import USUAL_COVERAGE
from hdiforest._model.stacking import check_mean
from hdiforest._model.training_rows import TrainingRows, TreeBlock
from hdiforest._utils import Array
from hdiforest._utils.checks import check_choice, check_flag, check_names, check_whole_number
from hdiforest.calibration import Calibration, OutOfBag
from hdiforest.calibration._bases import (
    DEFAULT_KINDS,
    FIXED_RAW,
    KINDS,
    Base,
    BaseKind,
    Candidates,
    candidate_bases,
)
from hdiforest.calibration._calibrate import (
    CrossFit,
    calibrate_cross,
    calibrate_oob,
    calibrate_split,
)
from hdiforest.calibration._joint import calibrate_jointly
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._quantiles import rows_needed
from hdiforest.calibration._result import JointCalibration, base_quantiles, with_distribution
from hdiforest.calibration._selection import (
    MAX_ROWS_TO_SELECT,
    MIN_ROWS_TO_SELECT,
    OBJECTIVES,
    SLOPES,
    Objective,
    Selected,
    corrected,
    first_half,
    reselected,
    rule_for,
)

LEAF_SIZES = (1, 5, 15)


@dataclass(frozen=True)
class Settings:
    """What a choice out of bag depends on; see `HDIForestRegressor.calibrate`."""

    coverages: tuple[float, ...]  # ascending
    kinds: Sequence[BaseKind]
    clip: bool = True
    objective: Objective = "balanced"
    adaptive: bool = True
    leaf_sizes: Sequence[int] = LEAF_SIZES
    mean: Any = None
    max_rows: int = OutOfBag.max_rows
    random_state: int | None = 0
    by: GroupSource | None = None


def default_kinds(fitted: FittedForest) -> Sequence[BaseKind]:
    """Return the kinds of intervals to choose among: for monotonic ones those whose ends are."""
    return ("equal_tailed",) if fitted.weights == "monotonic" else DEFAULT_KINDS


def check_calibration(fitted: FittedForest, settings: Settings) -> None:
    """Raise ValueError unless a forest can be calibrated so, as far as arguments tell."""
    check_names("kinds", settings.kinds, KINDS)
    check_choice("objective", settings.objective, OBJECTIVES)
    check_flag("adaptive", settings.adaptive)
    sizes = settings.leaf_sizes
    if not sizes or len(set(sizes)) < len(sizes):
        raise ValueError(f"min_samples_leaf must be one or more distinct numbers, got {sizes!r}")
    for size in sizes:
        check_whole_number("min_samples_leaf", size)
    check_flag("clip", settings.clip)
    if settings.mean is not None:
        check_mean(settings.mean, fitted.training_rows)
        if fitted.weights != "all":
            raise ValueError(f"mean must be None with weights={fitted.weights!r}")


def calibrate_out_of_bag(
    fitted: FittedForest,
    settings: Settings,
    n_threads: int,
    blocks: Sequence[TreeBlock] = (),
) -> FittedForest:
    """Return the forest with intervals selected and widened on its training rows.

    `blocks` are all their leaves and draws, if they are at hand. Raises ValueError if too few trees
    leave rows out.
    """
    if fitted.n_outputs == 1:
        return calibrate_and_cross_fit(fitted, settings, n_threads, blocks)[0]
    training = fitted.require_training_rows()
    blocks = blocks or list(training.blocks(fitted.scorer.forest, None, n_threads))
    parts = [fitted.of_output(output, n_threads) for output in range(fitted.n_outputs)]
    found = [calibrate_and_cross_fit(part, settings, n_threads, blocks) for part in parts]
    rows = reduce(np.intersect1d, [own for _, own, _ in found])
    fits = [fit.of_rows(np.searchsorted(own, rows)) for _, own, fit in found]
    known = [(fit.candidates, fit.selected) for fit in fits]
    return _jointly(fitted, [forest for forest, _, _ in found], known, fits[0].in_first)


def _jointly(
    fitted: FittedForest,
    forests: Sequence[FittedForest],
    known: Sequence[tuple[Candidates, Sequence[list[Selected]]]],
    in_first: NDArray[np.bool_],
) -> FittedForest:
    """Return a forest of several outputs with the calibrated forests of each, and their boxes."""
    own = [cast("Calibration", forest.calibration) for forest in forests]
    calibration = calibrate_jointly(own, known, in_first, fitted.target_names)
    outputs = tuple(replace(forest, grown=None) for forest in forests)
    return fitted.uncalibrated(calibration=calibration, outputs=outputs)


def calibrate_and_cross_fit(
    fitted: FittedForest,
    settings: Settings,
    n_threads: int,
    blocks: Sequence[TreeBlock] = (),
) -> tuple[FittedForest, NDArray[np.intp], CrossFit]:
    """Do as `calibrate_out_of_bag`, and return also the rows of the cross-fit, and the cross-fit.

    Its halves are the same for all forests of so many training rows.
    """
    source = OutOfBagIntervals(fitted, n_threads, settings.mean, settings.random_state, blocks)
    _require_out_of_bag("oob", source)
    return _calibrate_on(source, settings)


def _calibrate_on(
    source: OutOfBagIntervals, settings: Settings, *, intervals_alone: bool = False
) -> tuple[FittedForest, NDArray[np.intp], CrossFit]:
    """Return the forest, pruned, with intervals selected and widened on the rows of a source.

    Where there are many rows, candidates are compared on some of them, and the selected one is
    widened on the others.
    """
    drawn = _draw_rows(source.usable, settings.max_rows, settings.random_state)
    is_divided = len(drawn) >= 2 * MAX_ROWS_TO_SELECT
    n_compared = MAX_ROWS_TO_SELECT if is_divided else len(drawn)
    compared = _draw_rows(drawn, n_compared, settings.random_state)
    sizes, adaptive = settings.leaf_sizes, settings.adaptive and "equal_tailed" in settings.kinds
    if source.fitted.weights == "monotonic":
        # Bounds of leaves cannot be merged, and monotonic ends must not depend on widths.
        sizes, adaptive = (1,), False
    if len(compared) < MIN_ROWS_TO_SELECT:
        sizes = (min(sizes),)
    sources = {m: source.pruned(m) for m in sizes}
    bases = candidate_bases(source.families, settings.kinds, leaf_sizes=sizes)
    ends = np.concatenate(
        [
            sources[m].intervals(compared, [b for b in bases if b.min_samples_leaf == m])
            for m in sizes
        ],
        axis=-1,
    )
    postprocess = PostProcess.from_targets(source.targets, clip=settings.clip)
    rows, candidates = _known(source.rows, compared, bases, ends, postprocess)
    rule = rule_for(len(rows), settings.objective, SLOPES if adaptive else (0.0,))
    if is_divided:
        selected = rule(candidates, settings.coverages)
        bases = tuple(dict.fromkeys(b for s in selected for b in (s.base, s.base.of_width)))
        others = np.setdiff1d(drawn, compared)
        ends = sources[bases[0].min_samples_leaf].intervals(others, bases)
        rows, candidates = _known(source.rows, others, bases, ends, postprocess)
    in_first = first_half(len(source.rows.y))[rows]
    labels = None if settings.by is None else settings.by.labels(source.rows.X)[rows]
    rule = reselected(selected) if is_divided else corrected(rule)
    calibration, fit = calibrate_oob(candidates, settings.coverages, rule, in_first, labels)
    best = sources[calibration.bases[0].min_samples_leaf]
    if not intervals_alone:
        quantiles = best.intervals(rows, base_quantiles(calibration))[:, 1]
        calibration = with_distribution(calibration, quantiles, candidates.y, candidates.weights)
    families = {base.family for base in calibration.bases} - {"raw"}
    centred = best.centred_forest(families.pop()) if families else None
    grown = None if best is source else source.fitted.uncalibrated()
    calibration = _with_feature(calibration, settings)
    forest = best.fitted.uncalibrated(
        calibration=calibration, centred=centred, grown=grown, by=settings.by
    )
    return forest, rows, fit


def _known(
    training: TrainingRows,
    rows: NDArray[np.intp],
    bases: tuple[Base, ...],
    ends: Array,
    postprocess: PostProcess,
) -> tuple[NDArray[np.intp], Candidates]:
    """Return the rows with finite ends (n, 2, m), and what is known of them."""
    finite = np.isfinite(ends).all(axis=(1, 2))
    rows = rows[finite]
    weights = _weights_of(training, rows)
    return rows, Candidates.checked(bases, ends[finite], training.y[rows], postprocess, weights)


def calibrate_finite_coverages(
    fitted: FittedForest,
    settings: Settings,
    n_threads: int,
    blocks: Sequence[TreeBlock] = (),
) -> FittedForest:
    """Return the forest as `calibrate_out_of_bag` does, at the coverages that its rows allow.

    Raises ValueError, too, if rows are too few for the coverage that is usually predicted.
    """
    with ignore_infinite_intervals():
        result = calibrate_out_of_bag(fitted, settings, n_threads, blocks)
        if isinstance(joint := result.calibration, JointCalibration):
            finite = np.array(joint.coverages)[np.isfinite(joint.q_hat).all(axis=1)]
            if 0 < len(finite) < len(joint.levels):
                settings = replace(settings, coverages=tuple(finite.tolist()))
                result = calibrate_out_of_bag(fitted, settings, n_threads, blocks)
    n_rows = cast("AnyCalibration", result.calibration).n
    if isinstance(result.calibration, Calibration):
        result = result.with_finite_coverages()
    if result.calibration is None or USUAL_COVERAGE not in result.calibration:
        raise ValueError(
            f"coverage {USUAL_COVERAGE:g} needs {rows_needed(USUAL_COVERAGE)} calibration rows, "
            f"and there are {n_rows}"
        )
    return result


def calibrate_if_possible(fitted: FittedForest, settings: Settings, n_threads: int) -> FittedForest:
    """Return the forest as `calibrate_out_of_bag` does, without its errors, warnings, distribution.

    Without a calibration if too few trees leave rows out; ValueError if there is a mean then.
    """
    source = OutOfBagIntervals(fitted, n_threads, settings.mean, settings.random_state)
    if (shortage := source.shortage) is not None:
        if settings.mean is not None:
            raise ValueError(f"mean must be None, because another one needs {shortage}")
        return fitted.uncalibrated()
    with ignore_infinite_intervals():
        return _calibrate_on(source, settings, intervals_alone=True)[0]


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
    y: Array,
    confidence: float | None,
    n_threads: int,
) -> FittedForest:
    """Return the forest with bases selected out of bag, if so, and widened by rows of their own.

    Raises ValueError if the rows are training rows, or some have no interval.
    """
    rows = fitted.require_training_rows()
    _refuse_training_rows(X, y, rows.X, rows.y)
    if fitted.n_outputs == 1:
        return _split_output(fitted, settings, X, y, confidence, n_threads)[0]
    forests, known = [], []
    for output, own in enumerate(y.T.copy()):
        part = fitted.of_output(output, n_threads)
        forest, of_rows = _split_output(part, settings, X, own, confidence, n_threads)
        forests.append(forest)
        known.append(of_rows)
    return _jointly(fitted, forests, known, first_half(len(y)))


def _split_output(
    fitted: FittedForest,
    settings: Settings,
    X: NDArray[Any],
    y: Array,
    confidence: float | None,
    n_threads: int,
) -> tuple[FittedForest, tuple[Candidates, list[list[Selected]]]]:
    """Return the forest of one target as `calibrate_by_split` does, and what boxes are made of."""
    rows = fitted.require_training_rows()
    y_train = rows.y[rows.has_weight]
    fitted = calibrate_if_possible(fitted, replace(settings, by=None), n_threads)
    selection = cast("Calibration | None", fitted.calibration)
    if selection is None:
        unit = float(y_train.std()) or 1.0
        selected = [Selected(FIXED_RAW, 0.0, 0.0, unit, coverage=c) for c in settings.coverages]
        bases: tuple[Base, ...] = (FIXED_RAW,)
    else:
        bases = tuple(dict.fromkeys(selection.bases))
        selected = [
            Selected(e.base, e.q_hat, e.slope, e.unit, coverage=e.coverage)
            for e in selection.levels
        ]
    ends = base_intervals(fitted, X, bases, n_threads)
    n_empty = int(np.isnan(ends).any(axis=(1, 2)).sum())
    if n_empty > 0:
        raise ValueError(f"{n_empty} of the {len(X)} rows of X have no interval")
    postprocess = PostProcess.from_targets(y_train, clip=settings.clip)
    candidates = Candidates.checked(bases, ends, y, postprocess)
    labels = None if settings.by is None else settings.by.labels(X)
    calibration = calibrate_split(candidates, settings.coverages, selected, confidence, labels)
    quantiles = base_intervals(fitted, X, base_quantiles(calibration), n_threads)[:, 1]
    calibration = _with_feature(with_distribution(calibration, quantiles, y), settings)
    forest = replace(fitted, calibration=calibration, by=settings.by)
    return forest, (candidates, [selected] * 3)


def _with_feature(calibration: Calibration, settings: Settings) -> Calibration:
    """Return the calibration with the feature that tells the groups of rows, if there is one."""
    if settings.by is None or calibration.groups is None:
        return calibration
    groups = replace(calibration.groups, feature=settings.by.feature)
    return replace(calibration, groups=groups)


def calibrate_by_jackknife(
    fitted: FittedForest, settings: Settings, n_threads: int
) -> FittedForest:
    """Return the forest with the scores of some training rows, each by trees that did not draw it.

    Kim, Xu and Barber, "Predictive inference is free with the jackknife+-after-bootstrap", NeurIPS
    2020. The base is not chosen by the rows, and leaves count rows as the trees drew them, so that
    a row has no part in the forest that is used for it. Raises as `calibrate_out_of_bag`.
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
            f"method={method!r} needs {source.shortage}; fit more trees that draw their rows, or "
            "call calibrate(X, y) with rows that took no part in the fit, or "
            "calibrate(method='cv+')"
        )


def _weights_of(training: TrainingRows, rows: NDArray[np.intp]) -> Array | None:
    return None if training.sample_weight is None else training.sample_weight[rows]


def _draw_rows(
    usable: NDArray[np.intp], max_rows: int, random_state: int | None
) -> NDArray[np.intp]:
    if len(usable) <= max_rows:
        return usable
    return np.sort(np.random.default_rng(random_state).choice(usable, max_rows, replace=False))


def _refuse_training_rows(X: NDArray[Any], y: Array, X_train: NDArray[Any], y_train: Array) -> None:
    """Raise ValueError if more than half of some rows are training rows, targets included."""

    def keys(rows: NDArray[Any], targets: Array) -> Iterator[bytes]:
        floats = np.ascontiguousarray(rows, dtype=np.float32)
        return (row.tobytes() + t.tobytes() for row, t in zip(floats, targets, strict=True))

    n_training = len(set(keys(X, y)).intersection(keys(X_train, y_train)))
    if 2 * n_training > len(y):
        raise ValueError(
            f"X and y must be rows that took no part in the fit; {n_training} of {len(y)} are "
            "training rows"
        )
