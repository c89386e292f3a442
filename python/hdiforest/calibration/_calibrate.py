"""Calibrates by out-of-bag rows or by rows held out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from hdiforest.calibration._bases import DEFAULT_KINDS, LEVELS, Base, Candidates
from hdiforest.calibration._postprocess import Finish
from hdiforest.calibration._result import Calibration, Level, audit, check_confidence
from hdiforest.calibration._scores import checked_coverages, warn_of_infinite
from hdiforest.calibration._selection import (
    Choice,
    Objective,
    Rule,
    calibrated,
    padded_base,
    rule_for,
)
from hdiforest.metrics import coverage_score, interval_score, mean_width_score


def calibrate_oob(
    ends: ArrayLike,
    y: ArrayLike,
    y_train: ArrayLike,
    coverages: float | Sequence[float],
    *,
    families: Sequence[str],
    kinds: Sequence[str] = DEFAULT_KINDS,
    levels: Sequence[float] = LEVELS,
    weights: ArrayLike | None = None,
    clip: bool = True,
    objective: Objective = "width",
) -> Calibration:
    """Choose and pad a base for each coverage on training rows, each out of bag.

    Parameters
    ----------
    ends : (n_families, n_kinds, n, 2, n_levels) array
        Ends of the candidate intervals of n training rows, in the unit of y. No row may have taken
        part in its own.
    y : (n,) array
        Targets of these rows.
    y_train : (n_training_rows,) array
        All training targets: their range and lattice finish the intervals.
    coverages : float or sequence of floats
        Above 0 and below 1, in any order.
    families, kinds, levels : sequences
        What the axes of `ends` are.
    weights : (n,) array, optional
        Weights of the rows. Pads are weighted quantiles of the scores then, and widths and
        coverages weighted means.
    clip : bool, default=True
        Whether intervals end where the training targets do. Never below 200 training rows.
    objective : {"width", "interval_score"}, default="width"
        What the choice makes least; from 500 rows on.

    Returns
    -------
    Calibration

    Raises
    ------
    ValueError
        If shapes differ or a value is out of range.

    Warns
    -----
    UserWarning
        If pads are infinite; it gives the number of rows needed.

    Notes
    -----
    Out-of-bag scores of a nested family of intervals as in QOOB (Gupta, Kuchibhotla, Ramdas,
    "Nested conformal prediction and quantile out-of-bag ensemble methods", Pattern Recognition 127,
    2022), but added to the intervals of the whole forest, which costs one prediction per row. The
    guarantee of 1 - 2 (1 - c) of that paper and of the jackknife+ after bootstrap (Kim, Xu, Barber,
    NeurIPS 2020) does not carry over. Where bases are chosen, coverages are calibrated from the
    lowest on, each as the hull with the one before: intervals are nested without covering more than
    asked, and those of a coverage depend on the lower ones. O(n m) time and memory per coverage,
    for m candidates.
    """
    candidates = Candidates.of_grid(
        ends, y, families=families, kinds=kinds, levels=levels, weights=weights
    )
    finish = Finish.of(y_train, clip=clip)
    rule = rule_for(len(candidates.y), objective)
    return _calibration("oob", candidates, checked_coverages(coverages), finish, rule)


def calibrate_split(
    ends: ArrayLike,
    y: ArrayLike,
    y_train: ArrayLike,
    coverages: float | Sequence[float],
    *,
    bases: Sequence[Base],
    confidence: float | None = None,
    weights: ArrayLike | None = None,
    clip: bool = True,
) -> Calibration:
    """Pad bases that were chosen before on rows that took no part in the fit or the choice.

    Parameters
    ----------
    ends : (n, 2, k) array
        Ends of the intervals of the n new rows by `bases`.
    y : (n,) array
        Targets of these rows.
    y_train, weights, clip
        As in `calibrate_oob`.
    coverages : float or sequence of k floats
        Above 0 and below 1, ascending.
    bases : sequence of k Base
        One for each coverage.
    confidence : float, optional
        With it at least that share of all sets of calibration rows gives the coverage; without, all
        sets do so on average.

    Returns
    -------
    Calibration

    Raises
    ------
    ValueError
        If shapes differ, a value is out of range, or both weights and confidence are given.

    Warns
    -----
    UserWarning
        If pads are infinite; it gives the number of rows needed.

    Notes
    -----
    Split conformal prediction with the scores of Romano, Patterson and Candes (NeurIPS 2019), and
    with `confidence` the beta law of Vovk (ACML 2012); see `hdiforest.calibration._scores`.
    """
    candidates = Candidates.of(bases, ends, y, weights)
    if confidence is not None:
        check_confidence(confidence)
    shares = checked_coverages(coverages)
    if len(shares) != len(bases) or list(shares) != np.ravel(coverages).tolist():
        raise ValueError(f"coverages must be {len(bases)} that ascend, got {coverages!r}")

    def rule(rows: Candidates, coverages: Sequence[float], finish: Finish) -> list[Choice]:
        pairs = zip(bases, coverages, strict=True)
        return [padded_base(rows, base, c, finish, confidence=confidence) for base, c in pairs]

    finish = Finish.of(y_train, clip=clip)
    return _calibration("split", candidates, shares, finish, rule, confidence)


def _calibration(
    method: str,
    candidates: Candidates,
    coverages: tuple[float, ...],
    finish: Finish,
    rule: Rule,
    confidence: float | None = None,
) -> Calibration:
    choices = rule(candidates, coverages, finish)
    intervals = calibrated(candidates, choices, finish)
    y, weights = candidates.y, candidates.weights
    widths = np.asarray(mean_width_score(intervals, sample_weight=weights))
    scores = np.asarray(interval_score(y, intervals, coverages, sample_weight=weights))
    shares = np.asarray(coverage_score(y, intervals, sample_weight=weights))
    audits = audit(candidates, coverages, finish, rule)
    levels = tuple(
        # Of the intervals as they are used, that is nested.
        Level(
            replace(
                choice,
                mean_width=float(widths[j]),
                interval_score=float(scores[j]),
                realised=float(shares[j]),
            ),
            audits[j],
        )
        for j, choice in enumerate(choices)
    )
    infinite = [choice.coverage for choice in choices if math.isinf(choice.pad)]
    warn_of_infinite(infinite, choices[0].n, confidence)
    return Calibration(method, levels, finish, confidence, weights is not None)
