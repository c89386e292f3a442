"""Calibrates a FittedForest: base intervals of its rows, by each method, for `calibration`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hdiforest._model.fitted import FittedForest, GroupSource, Jackknife, base_intervals
from hdiforest._model.out_of_bag import OutOfBagIntervals
from hdiforest._model.stacking import check_mean
from hdiforest._model.training_rows import TreeBlock, draw_rows
from hdiforest._utils import Array, BaseKind, checks
from hdiforest._utils.checks import CallError
from hdiforest._utils.hints import steps
from hdiforest.calibration import Calibration, OutOfBag, _bases, _calibrate
from hdiforest.calibration import _selection as select
from hdiforest.calibration._bases import Candidates
from hdiforest.calibration._joint import calibrate_jointly
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._quantiles import rows_needed
from hdiforest.calibration._result import USUAL_COVERAGE, JointCalibration, with_distribution
from hdiforest.calibration._selection import Selected
from hdiforest.exceptions import InfiniteIntervalsWarning

# Of the trees that are compared: as they grew, and with larger leaves.
LEAF_SIZES = (1, 5)

Rows = tuple[NDArray[Any], Array]  # (n, n_features), and their targets

_NO_MEAN = "mean must be None"


@dataclass(frozen=True)
class Settings:
    """What a choice out of bag depends on; see `HDIForestRegressor.calibrate`."""

    coverages: tuple[float, ...]  # ascending
    objective: select.Objective = "balanced"
    mean: Any = None
    max_rows: int = OutOfBag.max_rows
    random_state: int | None = 0
    by: GroupSource | None = None


def check_calibration(fitted: FittedForest, settings: Settings) -> None:
    """Raise ValueError unless a forest can be calibrated so, as far as arguments tell."""
    checks.check_choice("objective", settings.objective, select.OBJECTIVES)
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
    # Of many rows some select, and the others find the quantiles.
    is_divided = len(drawn) >= 2 * select.MAX_ROWS_TO_SELECT
    n_compared = select.MAX_ROWS_TO_SELECT if is_divided else len(drawn)
    compared = draw_rows(drawn, n_compared, settings.random_state)
    # Bounds of leaves cannot be merged, and of the kinds this one alone is monotonic.
    is_monotonic = source.fitted.weights == "monotonic"
    sizes = (1,) if is_monotonic else LEAF_SIZES
    kind: BaseKind = "equal_tailed" if is_monotonic else "averaged"
    sources = {m: source.pruned(m) for m in sizes}
    bases = [
        [_bases.Base(f, kind, level, m) for f in source.families for level in _bases.LEVELS]
        for m in sizes
    ]
    pairs = steps("calibrating by leaf size", list(zip(sizes, bases, strict=True)))
    known = [_ends_and_quantiles(sources[m], compared, own) for m, own in pairs]
    every = tuple(base for own in bases for base in own)
    rows, candidates = _candidates(source, compared, every, known)
    rule = select.rule_for(len(rows), settings.objective)
    if is_divided:
        selected = rule(candidates, settings.coverages)
        rule = select.reselected(selected)
        every = tuple(dict.fromkeys(each.base for each in selected))
        others = np.setdiff1d(drawn, compared)
        known = [_ends_and_quantiles(sources[every[0].min_samples_leaf], others, every)]
        rows, candidates = _candidates(source, others, every, known)
    # The same halves for all forests of so many training rows.
    in_first = select.first_half(len(source.rows.y))[rows]
    labels = None if settings.by is None else settings.by.labels(source.rows.X)[rows]
    calibration, fit = _calibrate.calibrate_oob(
        candidates, settings.coverages, rule, in_first, labels
    )
    base = calibration.bases[0]
    if not intervals_alone:
        quantiles = candidates.quantiles[base.group]
        calibration = with_distribution(calibration, quantiles, candidates.y, candidates.weights)
    best, least = sources[base.min_samples_leaf], base.min_samples_leaf
    kept = (
        "trees as they grew" if least == 1 else f"leaves of at least {least} rows, for predict, too"
    )
    for own in steps(f"keeping {kept}", [best]):
        forest = own.fitted.uncalibrated(
            calibration=_with_feature(calibration, settings.by),
            centred=None if base.family == "raw" else own.centred_forest(base.family),
            grown=None if own is source else source.fitted.uncalibrated(),
            by=settings.by,
        )
    return forest, rows, fit


EndsAndQuantiles = tuple[Array, dict[_bases.Group, Array]]


def _ends_and_quantiles(
    source: OutOfBagIntervals, rows: NDArray[np.intp], bases: Sequence[_bases.Base]
) -> EndsAndQuantiles:
    """Return the ends of bases (n, 2, m), and the quantiles (n, 19) of each distribution."""
    first = {base.group: base for base in reversed(bases)}
    columns = [each for own in first.values() for each in own.quantiles()]
    ends = source.intervals(rows, [*bases, *columns])
    quantiles = np.split(ends[:, 1, len(bases) :], len(first), axis=1)
    return ends[..., : len(bases)], dict(zip(first, quantiles, strict=True))


def _candidates(
    source: OutOfBagIntervals,
    rows: NDArray[np.intp],
    bases: tuple[_bases.Base, ...],
    known: Sequence[EndsAndQuantiles],
) -> tuple[NDArray[np.intp], Candidates]:
    """Return the rows of which all is finite, and their candidates."""
    ends = np.concatenate([own for own, _ in known], axis=-1)
    quantiles = {group: each for _, own in known for group, each in own.items()}
    finite = np.isfinite(ends).all(axis=(1, 2))
    for each in quantiles.values():
        finite &= np.isfinite(each).all(axis=1)
    rows, of_rows = rows[finite], {group: each[finite] for group, each in quantiles.items()}
    postprocess = PostProcess.from_targets(source.rows.weighted_targets)
    own = source.rows.y[rows], postprocess, source.weights_of(rows)
    return rows, Candidates.checked(bases, ends[finite], *own, of_rows)


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
    refuse_training_rows(X, y, training.X, training.y)
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
    postprocess = PostProcess.from_targets(y_train)
    scale = partial(select.scale_of, postprocess=postprocess)
    selected = [Selected(_bases.FIXED_RAW, c, 0.0, scale(0.0)) for c in settings.coverages]
    if selection is not None:
        levels = selection.levels
        selected = [Selected(e.base, e.coverage, e.q_hat, scale(e.mean_width)) for e in levels]
    bases = tuple(dict.fromkeys(each.base for each in selected))
    ends = base_intervals(fitted, X, bases, n_threads)
    checks.check_no_interval_is_empty(ends)
    candidates = Candidates.checked(bases, ends, y, postprocess)
    labels = None if settings.by is None else settings.by.labels(X)
    calibration = _calibrate.calibrate_split(
        candidates, settings.coverages, selected, confidence, labels
    )
    quantiles = base_intervals(fitted, X, bases[0].quantiles(), n_threads)[:, 1]
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
        PostProcess.from_targets(source.rows.weighted_targets),
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


def refuse_training_rows(X: NDArray[Any], y: Array, X_train: NDArray[Any], y_train: Array) -> None:
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
