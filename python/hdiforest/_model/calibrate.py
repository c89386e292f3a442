"""Calibrates a FittedForest: base intervals of its rows, by each method, for `calibration`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import product
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hdiforest._model.fitted import FittedForest, GroupSource, Jackknife, base_intervals
from hdiforest._model.out_of_bag import OutOfBagIntervals
from hdiforest._model.predict import USUAL_COVERAGE
from hdiforest._model.stacking import check_mean
from hdiforest._model.training_rows import TreeBlock, draw_rows
from hdiforest._utils import Array, checks
from hdiforest._utils.checks import CallError
from hdiforest._utils.hints import steps
from hdiforest.calibration import Calibration, OutOfBag, _bases, _calibrate
from hdiforest.calibration import _selection as select
from hdiforest.calibration._bases import Candidates
from hdiforest.calibration._joint import calibrate_jointly
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._quantiles import rows_needed
from hdiforest.calibration._regions import (
    RegionCalibration,
    calibrate_region,
    read_regions,
    shape_of,
)
from hdiforest.calibration._result import JointCalibration, base_quantiles, with_distribution
from hdiforest.calibration._selection import Selected
from hdiforest.exceptions import InfiniteIntervalsWarning

LEAF_SIZES = (1, 5, 15)

Rows = tuple[NDArray[Any], Array]  # (n, n_features), and their targets

# Of regions; bandwidths and gaps in standard deviations of the distinct targets.
_LEVELS_OF_REGIONS = (0.60, 0.68, 0.74, 0.80, 0.84, 0.88, 0.92)
_BANDWIDTHS = (0.05, 0.15)
_GAPS = (0.1, 0.3)
_NO_MEAN = "mean must be None"


@dataclass(frozen=True)
class Settings:
    """What a choice out of bag depends on; see `HDIForestRegressor.calibrate`."""

    coverages: tuple[float, ...]  # ascending
    kinds: Sequence[_bases.BaseKind]
    clip: bool = True
    objective: select.Objective = "balanced"
    adaptive: bool = True
    leaf_sizes: Sequence[int] = LEAF_SIZES
    mean: Any = None
    max_rows: int = OutOfBag.max_rows
    random_state: int | None = 0
    by: GroupSource | None = None


def default_kinds(fitted: FittedForest) -> Sequence[_bases.BaseKind]:
    """Return the kinds of intervals to choose among: for monotonic ones those whose ends are."""
    return ("equal_tailed",) if fitted.weights == "monotonic" else _bases.DEFAULT_KINDS


def check_calibration(fitted: FittedForest, settings: Settings) -> None:
    """Raise ValueError unless a forest can be calibrated so, as far as arguments tell."""
    checks.check_names("kinds", settings.kinds, _bases.KINDS)
    checks.check_choice("objective", settings.objective, select.OBJECTIVES)
    checks.check_flag("adaptive", settings.adaptive)
    sizes = settings.leaf_sizes
    if not sizes or len(set(sizes)) < len(sizes):
        raise ValueError(f"min_samples_leaf must be one or more distinct numbers, got {sizes!r}")
    for size in sizes:
        checks.check_whole_number("min_samples_leaf", size)
    checks.check_flag("clip", settings.clip)
    if settings.mean is not None:
        check_mean(settings.mean, fitted)
        if fitted.weights != "all":
            raise CallError(f"{{no_mean}} with weights={fitted.weights!r}", no_mean=_NO_MEAN)


def calibrate_out_of_bag(
    fitted: FittedForest, settings: Settings, n_threads: int, blocks: Sequence[TreeBlock] = ()
) -> FittedForest:
    """Return the forest with intervals selected and widened on its training rows.

    `blocks` are all leaves and draws, if at hand. ValueError if too few trees leave rows out.
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
    fitted: FittedForest, settings: Settings, n_threads: int, blocks: Sequence[TreeBlock] = ()
) -> tuple[FittedForest, NDArray[np.intp], _calibrate.CrossFit]:
    """Do as `calibrate_out_of_bag`; return also the rows of the cross-fit, and the cross-fit."""
    source = OutOfBagIntervals(fitted, n_threads, settings.mean, settings.random_state, blocks)
    _require_out_of_bag("oob", source)
    return _calibrate_on(source, settings)


def _calibrate_on(
    source: OutOfBagIntervals, settings: Settings, *, intervals_alone: bool = False
) -> tuple[FittedForest, NDArray[np.intp], _calibrate.CrossFit]:
    """Return the forest, pruned, with intervals selected and widened on the rows of a source."""
    drawn = draw_rows(source.usable, settings.max_rows, settings.random_state)
    # Of many rows some compare the candidates, and the others widen the selected one.
    is_divided = len(drawn) >= 2 * select.MAX_ROWS_TO_SELECT
    n_compared = select.MAX_ROWS_TO_SELECT if is_divided else len(drawn)
    compared = draw_rows(drawn, n_compared, settings.random_state)
    sizes, adaptive = settings.leaf_sizes, settings.adaptive and "equal_tailed" in settings.kinds
    if source.fitted.weights == "monotonic":
        # Bounds of leaves cannot be merged, and monotonic ends must not depend on widths.
        sizes, adaptive = (1,), False
    if len(compared) < select.MIN_ROWS_TO_SELECT:
        sizes = (min(sizes),)
    sources = {m: source.pruned(m) for m in sizes}
    of_size = [
        _bases.candidate_bases(source.families, settings.kinds, leaf_sizes=(m,)) for m in sizes
    ]
    bases = tuple(base for own in of_size for base in own)
    pairs = steps("calibrating by leaf size", list(zip(sizes, of_size, strict=True)))
    ends = [sources[m].intervals(compared, own) for m, own in pairs]
    postprocess = PostProcess.from_targets(source.rows.weighted_targets, clip=settings.clip)
    every = np.concatenate(ends, axis=-1)
    rows, candidates = _known(source, compared, bases, every, postprocess)
    rule = select.rule_for(len(rows), settings.objective, select.SLOPES if adaptive else (0.0,))
    if is_divided:
        selected = rule(candidates, settings.coverages)
        bases = tuple(dict.fromkeys(b for s in selected for b in (s.base, s.base.of_width)))
        others = np.setdiff1d(drawn, compared)
        every = sources[bases[0].min_samples_leaf].intervals(others, bases)
        rows, candidates = _known(source, others, bases, every, postprocess)
    # The same halves for all forests of so many training rows.
    in_first = select.first_half(len(source.rows.y))[rows]
    labels = None if settings.by is None else settings.by.labels(source.rows.X)[rows]
    rule = select.reselected(selected) if is_divided else select.corrected(rule)
    calibration, fit = _calibrate.calibrate_oob(
        candidates, settings.coverages, rule, in_first, labels
    )
    best = sources[calibration.bases[0].min_samples_leaf]
    if not intervals_alone:
        quantiles = best.intervals(rows, base_quantiles(calibration))[:, 1]
        calibration = with_distribution(calibration, quantiles, candidates.y, candidates.weights)
    families = [base.family for base in calibration.bases if base.family != "raw"]
    forest = best.fitted.uncalibrated(
        calibration=_with_feature(calibration, settings.by),
        centred=best.centred_forest(families[0]) if families else None,
        grown=None if best is source else source.fitted.uncalibrated(),
        by=settings.by,
    )
    return forest, rows, fit


def _known(
    source: OutOfBagIntervals,
    rows: NDArray[np.intp],
    bases: tuple[_bases.Base, ...],
    ends: Array,
    postprocess: PostProcess,
) -> tuple[NDArray[np.intp], Candidates]:
    """Return the rows with finite ends (n, 2, m), and what is known of them."""
    finite = np.isfinite(ends).all(axis=(1, 2))
    rows = rows[finite]
    own = source.rows.y[rows], postprocess, source.weights_of(rows)
    return rows, Candidates.checked(bases, ends[finite], *own)


def calibrate_finite_coverages(
    fitted: FittedForest, settings: Settings, n_threads: int, blocks: Sequence[TreeBlock] = ()
) -> FittedForest:
    """Do as `calibrate_out_of_bag` at coverages that its rows allow; ValueError if 0.9 is not."""
    with ignore_infinite_intervals():
        result = calibrate_out_of_bag(fitted, settings, n_threads, blocks)
        if isinstance(joint := result.calibration, JointCalibration):
            finite = np.array(joint.coverages)[np.isfinite(joint.q_hat).all(axis=1)]
            if 0 < len(finite) < len(joint.levels):
                settings = replace(settings, coverages=tuple(finite.tolist()))
                result = calibrate_out_of_bag(fitted, settings, n_threads, blocks)
    n_rows = cast("Calibration | JointCalibration", result.calibration).n
    if isinstance(result.calibration, Calibration):
        result = result.with_finite_coverages()
    if result.calibration is None or USUAL_COVERAGE not in result.calibration:
        raise ValueError(
            f"coverage {USUAL_COVERAGE:g} needs {rows_needed(USUAL_COVERAGE)} calibration rows, "
            f"and there are {n_rows}"
        )
    return result


def calibrate_if_possible(fitted: FittedForest, settings: Settings, n_threads: int) -> FittedForest:
    """Do as `calibrate_out_of_bag`, if that can be, without its warnings and a distribution."""
    source = OutOfBagIntervals(fitted, n_threads, settings.mean, settings.random_state)
    if (shortage := source.shortage) is not None:
        if settings.mean is not None:
            raise CallError(f"{{no_mean}}, because another one needs {shortage}", no_mean=_NO_MEAN)
        return fitted.uncalibrated()
    with ignore_infinite_intervals():
        return _calibrate_on(source, settings, intervals_alone=True)[0]


@contextmanager
def ignore_infinite_intervals() -> Iterator[None]:
    """Ignore the warning that rows are too few for a coverage."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InfiniteIntervalsWarning)
        yield


def calibrate_by_split(
    fitted: FittedForest, settings: Settings, rows: Rows, confidence: float | None, n_threads: int
) -> FittedForest:
    """Return the forest with bases selected out of bag, if so, and widened by rows of their own."""
    (X, y), training = rows, fitted.require_training_rows()
    _refuse_training_rows(X, y, training.X, training.y)
    if fitted.n_outputs == 1:
        return _split_output(fitted, settings, rows, confidence, n_threads)[0]
    found = [
        _split_output(fitted.of_output(j, n_threads), settings, (X, own), confidence, n_threads)
        for j, own in enumerate(y.T.copy())
    ]
    forests, known = zip(*found, strict=True)
    return _jointly(fitted, forests, known, select.first_half(len(y)))


def _split_output(
    fitted: FittedForest, settings: Settings, rows: Rows, confidence: float | None, n_threads: int
) -> tuple[FittedForest, tuple[Candidates, list[list[Selected]]]]:
    """Return the forest of one target as `calibrate_by_split` does, and what boxes are made of."""
    (X, y), y_train = rows, fitted.require_training_rows().weighted_targets
    fitted = calibrate_if_possible(fitted, replace(settings, by=None), n_threads)
    selection = cast("Calibration | None", fitted.calibration)
    if selection is None:
        unit = float(y_train.std()) or 1.0
        bases: tuple[_bases.Base, ...] = (_bases.FIXED_RAW,)
        selected = [Selected(bases[0], 0.0, 0.0, unit, coverage=c) for c in settings.coverages]
    else:
        bases = tuple(dict.fromkeys(selection.bases))
        selected = [
            Selected(e.base, e.q_hat, e.slope, e.unit, coverage=e.coverage)
            for e in selection.levels
        ]
    ends = base_intervals(fitted, X, bases, n_threads)
    checks.check_no_interval_is_empty(ends)
    postprocess = PostProcess.from_targets(y_train, clip=settings.clip)
    candidates = Candidates.checked(bases, ends, y, postprocess)
    labels = None if settings.by is None else settings.by.labels(X)
    calibration = _calibrate.calibrate_split(
        candidates, settings.coverages, selected, confidence, labels
    )
    quantiles = base_intervals(fitted, X, base_quantiles(calibration), n_threads)[:, 1]
    calibration = _with_feature(with_distribution(calibration, quantiles, y), settings.by)
    forest = replace(fitted, calibration=calibration, by=settings.by)
    return forest, (candidates, [selected] * 3)


def _with_feature(calibration: Calibration, by: GroupSource | None) -> Calibration:
    """Return the calibration with the feature that tells the groups of rows, if there is one."""
    if by is None or calibration.groups is None:
        return calibration
    return replace(calibration, groups=replace(calibration.groups, feature=by.feature))


def calibrate_by_jackknife(
    fitted: FittedForest, settings: Settings, n_threads: int
) -> FittedForest:
    """Return the forest with the scores of some training rows, each by trees that did not draw it.

    Kim, Xu and Barber, "Predictive inference is free with the jackknife+-after-bootstrap", NeurIPS
    2020. The base is not chosen by the rows, and leaves count rows as the trees drew them, so that
    a row has no part in the forest that is used for it.
    """
    if fitted.weights == "monotonic":
        raise ValueError("method must not be 'jackknife+' with weights='monotonic'; 'cv+' may be")
    if settings.mean is not None:
        raise ValueError("mean must be None with method='jackknife+', which fits no centres")
    source = OutOfBagIntervals(fitted, n_threads)
    _require_out_of_bag("jackknife+", source)
    training, counts = source.rows, cast("NDArray[Any]", source.counts)
    rows = draw_rows(source.usable, settings.max_rows, settings.random_state)
    index = training.index(fitted.scorer.forest, source.leaves, "inbag", n_threads=n_threads)
    jackknife = Jackknife(index, np.asarray(counts[rows] > 0))
    ends = jackknife.read(np.where(jackknife.drawn, np.int32(-1), source.leaves[rows]), n_threads)
    weights = source.weights_of(rows)
    calibration = _calibrate.calibrate_cross(
        list(np.repeat(ends[:, np.newaxis, :, np.newaxis], len(settings.coverages), axis=3)),
        list(training.y[rows, np.newaxis]),
        settings.coverages,
        PostProcess.from_targets(source.rows.weighted_targets, clip=settings.clip),
        method="jackknife+",
        weights=None if weights is None else list(weights[:, np.newaxis]),
    )
    return fitted.uncalibrated(calibration=calibration, jackknife=jackknife)


def _require_out_of_bag(method: str, source: OutOfBagIntervals) -> None:
    if source.shortage is not None:
        raise CallError(
            f"{{method}} needs {source.shortage}; fit more trees that draw their rows, or {{rest}}",
            method,
            method=f"method={method!r}",
            rest="call calibrate(X, y) with rows that took no part in the fit, or "
            "calibrate(method='cv+')",
        )


def _refuse_training_rows(X: NDArray[Any], y: Array, X_train: NDArray[Any], y_train: Array) -> None:
    """Raise ValueError if more than half of some rows are training rows, targets included."""

    def keys(rows: NDArray[Any], targets: Array) -> Iterator[bytes]:
        floats = np.ascontiguousarray(rows, dtype=np.float32)
        return (row.tobytes() + t.tobytes() for row, t in zip(floats, targets, strict=True))

    n_training = len(set(keys(X, y)).intersection(keys(X_train, y_train)))
    if 2 * n_training > len(y):
        raise CallError(
            f"{{rows}} rows that took no part in the fit; {n_training} of {len(y)} are "
            "training rows",
            rows="X and y must be",
        )


def calibrate_regions(
    fitted: FittedForest, coverage: float, max_pieces: int, rows: Rows | None, n_threads: int
) -> RegionCalibration:
    """Select the shape of the shortest regions out of bag; widen them there, or by other rows."""
    source, index = OutOfBagIntervals(fitted, n_threads), fitted.scorer.index
    if rows is None and source.shortage is not None:
        raise ValueError(
            f"calibrate_region needs {source.shortage}; fit more trees that draw their rows, or "
            "call calibrate_region(X, y) with rows that took no part in the fit"
        )
    postprocess = PostProcess.from_targets(source.rows.weighted_targets)
    found = []
    if source.shortage is None:
        drawn = draw_rows(source.usable, select.MAX_ROWS_TO_SELECT, 0)
        ask, y = partial(source.query_raw, "regions", drawn), source.rows.y[drawn]
        weights = source.weights_of(drawn)
        bandwidths = _BANDWIDTHS if postprocess.lattice is None else (0.0,)
        for level, gap, bandwidth in product(_LEVELS_OF_REGIONS, _GAPS, bandwidths):
            shape = shape_of(index, level, max_pieces, gap, bandwidth)
            regions = read_regions(ask, index, shape, postprocess.lattice)
            found.append(calibrate_region(regions, y, coverage, "oob", shape, postprocess, weights))
    best = min(found, key=lambda each: each.mean_length, default=None)
    if rows is None and best is not None:
        return best
    X, y = cast("Rows", rows)
    _refuse_training_rows(X, y, source.rows.X, source.rows.y)
    shape = shape_of(index, coverage, max_pieces) if best is None else best.shape
    ask = partial(fitted.scorer.regions, X, n_threads=n_threads)
    regions = read_regions(ask, index, shape, postprocess.lattice)
    return calibrate_region(regions, y, coverage, "split", shape, postprocess)
