"""Selects the base interval that is narrowest after calibration."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from hdiforest._utils import Array
from hdiforest._utils.checks import check_choice
from hdiforest.calibration._bases import FIXED_RAW, Base, Candidates
from hdiforest.calibration._postprocess import PostProcess, hull
from hdiforest.calibration._quantiles import conformal_quantile
from hdiforest.metrics._intervals import weighted_mean

Objective = Literal["balanced", "width", "interval_score"]

# Weights of the logarithms of mean width and mean interval score, whose sum is made least. The
# weight 1.5 was chosen on the data sets that chose in bench/calibration: with 1 the score is 1 %
# larger, with 2 the width is.
OBJECTIVES: dict[Objective, tuple[float, float]] = {
    "balanced": (1.0, 1.5),
    "width": (1.0, 0.0),
    "interval_score": (0.0, 1.0),
}

# With fewer rows the narrowest candidate covers too little: the selection fits their noise.
MIN_ROWS_TO_SELECT = 500
# With more rows candidates are compared on a part of them, which takes less time.
MAX_ROWS_TO_SELECT = 2000

# What the width of a row's interval adds to its quantile, as a share. Negative ones were tried:
# narrow rows of low coverages then cover far too little. Larger ones gain nothing.
SLOPES = (0.0, 0.1, 0.25)


class Selected(NamedTuple):
    """What makes the intervals of a coverage: a candidate, and how far it is widened.

    The conformal quantile of a row is ``q_hat + slope * w``, with w the width of its `width_base`.
    """

    base: Base
    q_hat: float = math.nan
    slope: float = 0.0
    unit: float = math.nan  # see `PostProcess.widen`
    loss: float = math.nan  # the objective, where one was compared


# Selects and widens a base for each of the coverages, which ascend, on the rows of the candidates.
Rule = Callable[[Candidates, Sequence[float], PostProcess], list[Selected]]


def rule_for(
    n_rows: int, objective: Objective = "balanced", slopes: Sequence[float] = SLOPES
) -> Rule:
    """Return the rule for so many calibration rows: `best_group`, or below 500 `fixed`."""
    check_choice("objective", objective, OBJECTIVES)
    if n_rows < MIN_ROWS_TO_SELECT:
        return fixed
    return partial(best_group, objective=objective, slopes=slopes)


def best_group(
    candidates: Candidates,
    coverages: Sequence[float],
    postprocess: PostProcess,
    *,
    objective: Objective = "balanced",
    slopes: Sequence[float] = SLOPES,
) -> list[Selected]:
    """Select the `best` base of each coverage, all of one group.

    Intervals of one group come from one merge of a row's leaves, and differ less from coverage to
    coverage. Each coverage knows the intervals of the last. Of several groups the one is taken
    whose objective is least in the sum over the coverages at which it is finite for all, if there
    are any; ties go to the first.
    """
    by_group: list[list[Selected]] = []
    for members in candidates.groups():
        scores = postprocess.scores(members.ends, members.y, members.units)
        selected: list[Selected] = []
        for coverage in coverages:
            selected.append(best(members, scores, coverage, postprocess, objective, slopes))
            inner = calibrated_intervals(members, selected, postprocess)[..., -1]
            members = replace(members, inner=inner)
        by_group.append(selected)
    losses = np.array([[each.loss for each in selected] for selected in by_group])
    counts = np.isfinite(losses).all(axis=0)
    if not counts.any():  # infinite intervals, or points, which are best
        counts = ~np.isposinf(losses).any(axis=0)
    return by_group[int(np.argmin(losses[:, counts].sum(axis=1)))]


def reselected(selected: Sequence[Selected]) -> Rule:
    """Return the rule that takes given bases and slopes, and finds their quantiles."""

    def rule(
        candidates: Candidates, coverages: Sequence[float], postprocess: PostProcess
    ) -> list[Selected]:
        again: list[Selected] = []
        inner = None
        for each, coverage in zip(selected, coverages, strict=True):
            member = replace(candidates.only(each.base), inner=inner)
            scores = postprocess.scores(member.ends, member.y, member.units)
            again.append(best(member, scores, coverage, postprocess, "width", (each.slope,)))
            inner = calibrated_intervals(candidates, again, postprocess)[..., -1]
        return again

    return rule


def best(
    candidates: Candidates,
    scores: Array,
    coverage: float,
    postprocess: PostProcess,
    objective: Objective,
    slopes: Sequence[float],
) -> Selected:
    """Select the base and the slope whose intervals, once finished, have the least objective.

    Of ties the first slope is taken, then the larger level, then the first base. If the candidates
    have inner intervals, objective and conformal quantile are those of the hulls with these:
    targets inside widen nothing. `scores` (n, m) are those of the candidates. O(n m) time and
    memory for each slope, for n rows and m candidates.
    """
    y, inner, bases, units = candidates.y, candidates.inner, candidates.bases, candidates.units
    by_slope = []
    for slope in slopes:
        shifts = slope * cast("Array", candidates.widths)[:, np.newaxis] if slope else 0.0
        shifted = _less(scores, shifts) if slope else scores
        if inner is not None:
            covered = (inner[:, 0] <= y) & (y <= inner[:, 1])
            shifted = np.where(covered[:, np.newaxis], shifted.min(axis=0), shifted)
        q_hat = conformal_quantile(shifted.T, coverage, weights=candidates.weights)
        intervals = postprocess.widen(candidates.ends, q_hat + shifts, units)
        if inner is not None:
            intervals = hull(intervals, inner[..., np.newaxis])
        losses = _losses(candidates, intervals, coverage, objective)
        j = min(range(len(bases)), key=lambda j: (losses[j], -bases[j].level))
        by_slope.append(
            Selected(bases[j], float(q_hat[j]), slope, float(units[j]), float(losses[j]))
        )
    return min(by_slope, key=lambda selected: selected.loss)


def _less(scores: Array, shifts: Array | float) -> Array:
    """Return scores - shifts, rounded so that plus the shifts they are no less than the scores."""
    less = scores - shifts
    is_below = less + shifts < scores
    less[is_below] = np.nextafter(less[is_below], np.inf)
    return less


def _losses(
    candidates: Candidates, intervals: Array, coverage: float, objective: Objective
) -> Array:
    """Return the objective of the intervals (n, 2, m) of each candidate, (m,)."""
    y, weights = candidates.y[:, np.newaxis], candidates.weights
    lower, upper = intervals[:, 0], intervals[:, 1]
    widths = upper - lower
    missed = np.maximum(lower - y, 0) + np.maximum(y - upper, 0)
    scores = widths + 2 / (1 - coverage) * missed
    return loss(weighted_mean(widths, weights), weighted_mean(scores, weights), objective)


def loss(width: ArrayLike, score: ArrayLike, objective: Objective) -> Array:
    """Return what an objective makes least, of mean widths and mean interval scores."""
    of_width, of_score = OBJECTIVES[objective]
    with np.errstate(divide="ignore"):  # points: minus infinity, which is least
        terms = [of_width * np.log(width)] if of_width else []
        terms += [of_score * np.log(score)] if of_score else []
    return np.asarray(sum(terms))


def fixed(
    candidates: Candidates, coverages: Sequence[float], postprocess: PostProcess
) -> list[Selected]:
    """Widen the base like `FIXED_RAW` but not raw, or the candidate nearest to that."""
    kind, level = FIXED_RAW.kind, FIXED_RAW.level
    base = min(
        candidates.bases,
        key=lambda b: (
            b.min_samples_leaf,
            b.family == "raw",
            b.kind != kind,
            abs(b.level - level),
        ),
    )
    return [widen_base(candidates, Selected(base), c, postprocess) for c in coverages]


def widen_base(
    candidates: Candidates,
    selected: Selected,
    coverage: float,
    postprocess: PostProcess,
    *,
    confidence: float | None = None,
) -> Selected:
    """Find the quantile of what was selected before; its slope and unit stay."""
    candidate = candidates.only(selected.base)
    unit = float(candidate.units[0]) if math.isnan(selected.unit) else selected.unit
    scores = postprocess.scores(candidate.ends, candidate.y, unit)[:, 0]
    if selected.slope:
        scores = _less(scores, selected.slope * cast("Array", candidate.widths))
    weights = candidates.weights
    q_hat = conformal_quantile(scores, coverage, weights=weights, confidence=confidence)
    return selected._replace(q_hat=float(q_hat), unit=unit)


def calibrated_intervals(
    candidates: Candidates, selected: Sequence[Selected], postprocess: PostProcess
) -> Array:
    """Return the intervals (n, 2, k) of the candidates' rows for k ascending coverages."""
    ends = np.stack([candidates.ends_of(each.base) for each in selected], axis=-1)
    is_adaptive = any(each.slope for each in selected)
    widths = candidates.widths_of(selected[0].base) if is_adaptive else None
    return postprocess.intervals(ends, selected, widths)
