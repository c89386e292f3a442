"""Calibrations from base intervals and targets alone: conformal quantiles by rows, or by folds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._utils import Array
from hdiforest.calibration import _selection as selection
from hdiforest.calibration._candidates import Candidates
from hdiforest.calibration._distribution import PredictiveDistribution
from hdiforest.calibration._groups import Groups, divide
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._quantiles import conformal_quantile, warn_of_infinite
from hdiforest.calibration._recalibrate import scores_to_start
from hdiforest.calibration._result import (
    Calibration,
    CrossCalibration,
    CrossCheck,
    FixedLevel,
    Level,
)
from hdiforest.calibration._selection import Objective, Selected, calibrated_intervals
from hdiforest.metrics import coverage_by_width, coverage_score, interval_score, mean_width_score

_N_BINS = 5
_MIN_SHARE_OF_BIN = 0.5 / _N_BINS  # ties make bins uneven, and small ones cover what chance gives


def calibrate(
    method: str,
    candidates: Candidates,
    coverages: tuple[float, ...],
    rule: selection.Rule,
    *,
    in_first: NDArray[np.bool_] | None = None,
    labels: ArrayLike | None = None,
    feature: int | None = None,
    confidence: float | None = None,
) -> tuple[Calibration, CrossFit]:
    """Select and widen bases for ascending coverages by n rows, and calibrate their distribution.

    `in_first` divides the rows of the cross-fit, by default in random halves. `labels`, (n,), name
    the groups of the rows, perhaps by a feature, which then have quantiles of their own. Warns of
    infinite intervals.

    By "oob" rows are training rows, none of which may have taken part in its own ends: out-of-bag
    scores of a nested family of intervals as in QOOB (Gupta, Kuchibhotla, Ramdas, "Nested conformal
    prediction and quantile out-of-bag ensemble methods", Pattern Recognition 127, 2022), but added
    to the intervals of the whole forest, which costs one prediction per row. The guarantee of 1 - 2
    (1 - c) of that paper and of the jackknife+ after bootstrap (Kim, Xu, Barber, NeurIPS 2020) does
    not carry over.

    By "split" rows took no part in the fit, nor in the choice that the rule returns. With a
    confidence, at least that share of all sets of such rows gives the coverage; without one all
    sets together give it on average. See `conformal_quantile` and `rank` for the literature.

    Coverages do not depend on each other, but for the nesting of their intervals. O(n m) time and
    memory per coverage.
    """
    fit = cross_fit(candidates, coverages, rule, in_first)
    selected, y, weights = fit.selected[0], candidates.y, candidates.weights
    postprocess, n = candidates.postprocess, len(candidates.y)
    q_hat, groups = None, None
    if labels is not None:
        distinct, codes = divide(labels)
        of_groups = selection.quantiles_by_group(candidates, codes, selected, confidence)
        counts = np.bincount(codes)
        lower, upper = np.moveaxis(calibrated_intervals(candidates, selected), 1, 0)
        covered = (lower <= y[:, np.newaxis]) & (y[:, np.newaxis] <= upper)
        shares = [np.bincount(codes, inside) / counts for inside in covered.T]
        groups = Groups(tuple(distinct), counts, of_groups, np.stack(shares, axis=1), feature)
        q_hat = groups.quantiles(codes, np.array([each.q_hat for each in selected]))
    # Measured on the intervals as they are used, that is nested.
    intervals = calibrated_intervals(candidates, selected, q_hat)
    widths = mean_width_score(intervals, sample_weight=weights)
    covered = coverage_score(y, intervals, sample_weight=weights)
    scores = interval_score(y, intervals, coverages, sample_weight=weights)
    measured = np.stack([widths, covered, scores], axis=1).tolist()
    parts = zip(coverages, measured, fit.checks(), selected, strict=True)
    levels = tuple(
        FixedLevel(c, width, share, check, each.base, each.q_hat, score)
        for c, (width, share, score), check, each in parts
    )
    infinite = [level.coverage for level in levels if math.isinf(level.q_hat)]
    warn_of_infinite(infinite, n, confidence)
    unclipped = replace(candidates, postprocess=replace(postprocess, clip=False))
    own_scores = [selection.scores_of(unclipped, each) for each in selected]
    recent = scores_to_start(own_scores, coverages, weights)
    quantiles = candidates.quantiles[selected[0].base.group]
    of_rows = quantiles, y, postprocess, coverages, weights, confidence
    distribution = PredictiveDistribution.fitted(*of_rows)
    about = n, confidence, weights is not None, groups, distribution, recent
    return Calibration(method, levels, postprocess, *about), fit


def calibrate_cross(
    ends: Sequence[Array],
    y: Sequence[Array],
    coverages: Sequence[float],
    postprocess: PostProcess,
    *,
    grouped: bool = False,
    method: str = "cv+",
    weights: Sequence[Array] | None = None,
) -> CrossCalibration:
    """Score the rows held out of each of K folds by the forest that was fitted without them.

    Each fold has finite ends (n_fold, 2, k), for ascending coverages, targets and perhaps positive
    weights (n_fold,). The cross-check widens each fold by the scores of all other folds. Warns of
    infinite intervals.
    """
    scores = [postprocess.engine.scores(*fold) for fold in zip(ends, y, strict=True)]
    targets, of_rows = np.concatenate(y), np.concatenate(scores)
    row_weights = None if weights is None else np.concatenate(weights)
    numbers, by_others = np.repeat(np.arange(len(y)), list(map(len, y))), []
    for fold, fold_ends in enumerate(ends):
        others = numbers != fold
        own_weights = None if row_weights is None else row_weights[others]
        of_levels = zip(of_rows[others].T, coverages, strict=True)
        q_hat = [float(conformal_quantile(own, c, weights=own_weights)) for own, c in of_levels]
        by_others.append(postprocess.engine.widen(fold_ends, q_hat, nested=True))
    intervals, zeros = np.concatenate(by_others), np.zeros(len(targets))
    infinite = [c for c in coverages if np.isinf(conformal_quantile(zeros, c, weights=row_weights))]
    warn_of_infinite(infinite, len(targets))
    orders = [np.argsort(fold, axis=0, kind="stable") for fold in scores]
    levels = []
    for ends_of_level, c in zip(np.moveaxis(intervals, -1, 0), coverages, strict=True):
        check = measure_cross_check(targets, ends_of_level, row_weights)
        measured = (np.inf, 1.0) if check is None else (check.mean_width, check.coverage)
        levels.append(Level(c, *measured, check))
    ordered = tuple(np.take_along_axis(*fold, axis=0) for fold in zip(scores, orders, strict=True))
    heavy = tuple(w[order] for w, order in zip(weights or (), orders, strict=False))
    return CrossCalibration(tuple(levels), ordered, postprocess, grouped, method, heavy or None)


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Intervals of n rows for k coverages, each by the selection of the other half of the rows."""

    candidates: Candidates
    in_first: NDArray[np.bool_]  # (n,), which half a row is in
    intervals: Array  # (n, 2, k)
    # (2, k) of each half by what it selected itself: mean widths and interval scores.
    widths: Array
    scores: Array
    selected: tuple[list[Selected], ...]  # by all rows, the first half and the second

    def of_rows(self, rows: NDArray[np.intp]) -> CrossFit:
        """Return the intervals of some rows. The selection stays the one of all rows."""
        some: Any = {"in_first": self.in_first[rows], "intervals": self.intervals[rows]}
        return replace(self, candidates=self.candidates.rows(rows), **some)

    def checks(self) -> tuple[CrossCheck | None, ...]:
        """Return the cross-check of each coverage."""
        y, weights = self.candidates.y, self.candidates.weights
        each_ends = np.moveaxis(self.intervals, -1, 0)
        return tuple(measure_cross_check(y, ends, weights) for ends in each_ends)


def best_by_half(fits: Sequence[CrossFit], objective: Objective) -> CrossFit:
    """Return the intervals of each half by the fit that is best on the other half."""
    losses = [selection.loss(fit.widths, fit.scores, objective).sum(axis=1) for fit in fits]
    by_first, by_second = (fits[int(j)] for j in np.argmin(losses, axis=0))
    in_first = by_first.in_first
    intervals = by_first.intervals.copy()
    intervals[in_first] = by_second.intervals[in_first]
    widths = np.stack([by_first.widths[0], by_second.widths[1]])
    scores = np.stack([by_first.scores[0], by_second.scores[1]])
    return replace(by_first, intervals=intervals, widths=widths, scores=scores)


def cross_fit(
    candidates: Candidates,
    coverages: Sequence[float],
    rule: selection.Rule,
    in_first: NDArray[np.bool_] | None = None,
) -> CrossFit:
    """Cross-fit a rule in two halves of the rows, for k ascending coverages.

    Each half is widened by the selection of the other half, so that the optimism of the selection
    shows. Half as many rows select as in the calibration itself, which therefore does no worse on
    average. The cross-check is valid for new groups (persons, sites) if no group is in both halves.
    """
    n, k = len(candidates.y), len(coverages)
    in_first = selection.first_half(n) if in_first is None else in_first
    intervals = np.full((n, 2, k), np.inf)
    widths, scores = np.full((2, k), np.inf), np.full((2, k), np.inf)
    all_selected = [rule(candidates, coverages)] * 3
    for half, in_half in enumerate((in_first, ~in_first)):
        if in_half.any():
            rows, others = candidates.rows(in_half), candidates.rows(~in_half)
            selected = all_selected[1 + half] = rule(rows, coverages)
            fitted, weights = calibrated_intervals(rows, selected), rows.weights
            widths[half] = mean_width_score(fitted, sample_weight=weights)
            scores[half] = interval_score(rows.y, fitted, coverages, sample_weight=weights)
            intervals[~in_half] = calibrated_intervals(others, selected)
    return CrossFit(candidates, in_first, intervals, widths, scores, tuple(all_selected))


def measure_cross_check(y: Array, ends: Array, weights: Array | None = None) -> CrossCheck | None:
    """Return the coverage of intervals (n, 2), with weights (n,). None if some are infinite."""
    if np.isinf(ends).any():
        return None
    share = float(coverage_score(y, ends, sample_weight=weights))
    narrow, middle, wide = (
        None if np.isnan(third) else float(third)
        for third in coverage_by_width(y, ends, 3, sample_weight=weights).coverage[1:]
    )
    bins = coverage_by_width(y, ends, _N_BINS, sample_weight=weights)
    shares = np.full(len(y), 1 / len(y)) if weights is None else weights / weights.sum()
    return CrossCheck(
        coverage=share,
        standard_error=float(np.sqrt(share * (1 - share) * (shares**2).sum())),
        mean_width=float(mean_width_score(ends, sample_weight=weights)),
        thirds=(narrow, middle, wide),
        worst_of_five=float(bins.coverage[bins.counts >= _MIN_SHARE_OF_BIN * len(y)].min()),
    )
