"""Selects the base interval that is narrowest after calibration."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._utils import Array
from hdiforest._utils.checks import check_choice
from hdiforest.calibration._bases import FIXED_RAW, Base, Candidates
from hdiforest.calibration._postprocess import hull
from hdiforest.calibration._quantiles import conformal_quantile
from hdiforest.metrics._intervals import interval_scores, weighted_mean

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
# Of twice as many rows candidates are compared on so many, and the best is widened by the others.
MAX_ROWS_TO_SELECT = 2000
# How much of the optimism that halves show is allowed for. All rows have about 0.7 of it; but rows
# out of bag are predicted by a third of the trees, which makes up for a part. Chosen so that pure
# noise is covered as asked; on data with a signal more than a third covers too much.
_SHARE_OF_OPTIMISM = 1 / 3

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
    coverage: float = math.nan  # that `q_hat` is the conformal quantile of


# Selects and widens a base for each of the coverages, which ascend, on the rows of the candidates.
Rule = Callable[[Candidates, Sequence[float]], list[Selected]]


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
    *,
    objective: Objective = "balanced",
    slopes: Sequence[float] = SLOPES,
) -> list[Selected]:
    """Select the `best` base of each coverage, all of one group.

    Intervals of one group come from one merge of a row's leaves, and differ less from coverage to
    coverage. The objective of the group is least in the sum over the coverages at which those of
    all groups are finite, if any; ties go to the first.
    """
    by_group: list[list[Selected]] = []
    for members in candidates.groups():
        selected: list[Selected] = []
        for coverage in coverages:
            inner = last_intervals(members, selected)
            selected.append(best(members, coverage, objective, slopes, inner))
        by_group.append(selected)
    losses = np.array([[each.loss for each in selected] for selected in by_group])
    counts = np.isfinite(losses).all(axis=0)
    if not counts.any():  # infinite intervals, or points, which are best
        counts = ~np.isposinf(losses).any(axis=0)
    return by_group[int(np.argmin(losses[:, counts].sum(axis=1)))]


def corrected(rule: Rule) -> Rule:
    """Return a rule that allows for its optimism: what it selects covers its own rows best.

    The rows of each half are ranked among those of the other, by what this other half selects. The
    level at which these ranks reach a coverage c exceeds c by the optimism of half as many rows,
    and conformal quantiles are those of c plus a share of it; never below those of c. On a lattice
    they are those of c: ties cover more than is asked already. What is `fixed` shows none.
    """
    if rule is fixed:
        return rule

    def wider(candidates: Candidates, coverages: Sequence[float]) -> list[Selected]:
        selected = rule(candidates, coverages)
        if candidates.postprocess.lattice is not None:
            return selected
        ranks = np.empty((len(candidates.y), len(coverages)))
        in_first = first_half(len(ranks))
        for in_half in (in_first, ~in_first):
            rows, others = candidates.rows(in_half), candidates.rows(~in_half)
            ranks[~in_half] = _ranks_among(rows, others, rule(rows, coverages))
        weights = candidates.row_weights
        largest = float(weights.sum() / (weights.sum() + weights.max()))  # with finite quantiles
        levels = []
        for of_coverage, c in zip(ranks.T, coverages, strict=True):
            reached = float(conformal_quantile(of_coverage, c, weights=candidates.weights))
            level = c + _SHARE_OF_OPTIMISM * max(0.0, reached - c)
            levels.append(max(c, min(level, largest)))
        return reselected(selected)(candidates, levels)

    return wider


def first_half(n: int) -> NDArray[np.bool_]:
    """Return which of n rows are in the first of two random halves, the same for each n."""
    in_first = np.zeros(n, dtype=bool)
    in_first[np.random.default_rng(0).permutation(n)[: n // 2]] = True
    return in_first


def _ranks_among(rows: Candidates, others: Candidates, selected: Sequence[Selected]) -> Array:
    """Return the levels (n_others, k) from which on others are covered by the rows' quantiles."""
    parts = [(part, calibrated_intervals(part, selected)) for part in (rows, others)]
    weights, ranks = rows.row_weights, np.empty((len(others.y), len(selected)))
    for j, each in enumerate(selected):
        own_scores, scores = (
            shifted_scores(part, each, intervals[..., j - 1] if j > 0 else None)
            for part, intervals in parts
        )
        order = np.argsort(own_scores)
        weight_up_to = np.concatenate([[0.0], np.cumsum(weights[order])])
        below = weight_up_to[np.searchsorted(own_scores[order], scores, side="left")]
        ranks[:, j] = (below + others.row_weights) / (weights.sum() + weights.max())
    return ranks


def shifted_scores(candidates: Candidates, selected: Selected, inner: Array | None = None) -> Array:
    """Return the scores (n,) that the quantile of what was selected is one of.

    Minus infinity where the intervals of the next lower coverage, `inner` (n, 2), hold the target.
    """
    ends = candidates.ends_of(selected.base)
    scores = candidates.postprocess.scores(ends, candidates.y, selected.unit)
    if selected.slope:
        scores = _less(scores, selected.slope * cast("Array", candidates.widths_of(selected.base)))
    if inner is not None:
        scores[_holds(inner, candidates.y)] = -np.inf
    return scores


def reselected(selected: Sequence[Selected]) -> Rule:
    """Return the rule that takes given bases and slopes, and finds their quantiles."""

    def rule(candidates: Candidates, coverages: Sequence[float]) -> list[Selected]:
        again: list[Selected] = []
        for each, coverage in zip(selected, coverages, strict=True):
            inner, member = last_intervals(candidates, again), candidates.only(each.base)
            again.append(best(member, coverage, "width", (each.slope,), inner))
        return again

    return rule


def best(
    candidates: Candidates,
    coverage: float,
    objective: Objective,
    slopes: Sequence[float],
    inner: Array | None = None,
) -> Selected:
    """Select the base and the slope whose intervals, once finished, have the least objective.

    Of ties the first slope is taken, then the larger level, then the first base. With intervals of
    the next lower coverage, `inner` (n, 2), objective and quantile are those of the hulls: targets
    inside widen nothing. O(n m) time and memory for each slope.
    """
    scores, bases, units = candidates.scores, candidates.bases, candidates.units
    weights = candidates.weights
    by_slope = []
    for slope in slopes:
        shifts = slope * cast("Array", candidates.widths)[:, np.newaxis] if slope else 0.0
        shifted = _less(scores, shifts) if slope else scores
        if inner is not None:
            held = _holds(inner, candidates.y)[:, np.newaxis]
            shifted = np.where(held, shifted.min(axis=0), shifted)
        q_hat = conformal_quantile(shifted.T, coverage, weights=weights)
        intervals = candidates.postprocess.widen(candidates.ends, q_hat + shifts, units)
        if inner is not None:
            intervals = hull(intervals, inner[..., np.newaxis])
        lower, upper = intervals[:, 0], intervals[:, 1]
        scored = interval_scores(candidates.y[:, np.newaxis], lower, upper, 1 - coverage)
        width, score = (weighted_mean(of, weights) for of in (upper - lower, scored))
        losses = loss(width, score, objective)
        j = min(range(len(bases)), key=lambda j: (losses[j], -bases[j].level))
        by_slope.append(
            Selected(bases[j], float(q_hat[j]), slope, float(units[j]), float(losses[j]), coverage)
        )
    return min(by_slope, key=lambda selected: selected.loss)


def _less(scores: Array, shifts: Array | float) -> Array:
    """Return scores - shifts, rounded so that plus the shifts they are no less than the scores."""
    less = scores - shifts
    is_below = less + shifts < scores
    less[is_below] = np.nextafter(less[is_below], np.inf)
    return less


def loss(width: ArrayLike, score: ArrayLike, objective: Objective) -> Array:
    """Return what an objective makes least, of mean widths and mean interval scores."""
    weighed = zip(OBJECTIVES[objective], (width, score), strict=True)
    with np.errstate(divide="ignore"):  # points: minus infinity, which is least
        return np.asarray(sum(weight * np.log(mean) for weight, mean in weighed if weight))


def fixed(candidates: Candidates, coverages: Sequence[float]) -> list[Selected]:
    """Widen the base like `FIXED_RAW` but not raw, or the candidate nearest to that."""

    def distance(base: Base) -> tuple[int, bool, bool, float]:
        is_other = base.kind != FIXED_RAW.kind
        difference = abs(base.level - FIXED_RAW.level)
        return base.min_samples_leaf, base.family == "raw", is_other, difference

    base = min(candidates.bases, key=distance)
    return [widen_base(candidates, Selected(base), c) for c in coverages]


def widen_base(
    candidates: Candidates, selected: Selected, coverage: float, confidence: float | None = None
) -> Selected:
    """Find the quantile of what was selected before; its slope and unit stay."""
    if math.isnan(selected.unit):
        selected = selected._replace(unit=float(candidates.only(selected.base).units[0]))
    scores, weights = shifted_scores(candidates, selected), candidates.weights
    q_hat = conformal_quantile(scores, coverage, weights=weights, confidence=confidence)
    return selected._replace(q_hat=float(q_hat), coverage=coverage)


def quantiles_by_group(
    candidates: Candidates,
    codes: NDArray[np.intp],
    selected: Sequence[Selected],
    *,
    hulls: bool,
    confidence: float | None = None,
) -> Array:
    """Return the conformal quantiles of each group by itself, (g, k); NaN if it has too few rows.

    `codes` (n,) are the groups of the candidates' rows, from 0 on. With `hulls` targets that lower
    coverages hold widen nothing, as where a base is selected.
    """
    q_hat = np.full((int(codes.max()) + 1, len(selected)), np.nan)
    for code, own in enumerate(q_hat):
        rows = candidates.rows(codes == code)
        of_group: list[Selected] = []
        options: Any = {"weights": rows.weights, "confidence": confidence}
        for j, each in enumerate(selected):
            inner = last_intervals(rows, of_group) if hulls else None
            scores = shifted_scores(rows, each, inner)
            scores[np.isneginf(scores)] = scores[~np.isneginf(scores)].min(initial=each.q_hat)
            q = float(conformal_quantile(scores, each.coverage, **options))
            own[j] = q if np.isfinite(q) else np.nan
            of_group.append(each._replace(q_hat=q) if np.isfinite(q) else each)
    return q_hat


def calibrated_intervals(
    candidates: Candidates, selected: Sequence[Selected], q_hat: Array | None = None
) -> Array:
    """Return intervals (n, 2, k) for k ascending coverages, by quantiles (n, k) if given."""
    ends = np.stack([candidates.ends_of(each.base) for each in selected], axis=-1)
    is_adaptive = any(each.slope for each in selected)
    widths = candidates.widths_of(selected[0].base) if is_adaptive else None
    widenings = [(each.q_hat, each.slope, each.unit) for each in selected]
    return candidates.postprocess.intervals(ends, widenings, widths, q_hat)


def last_intervals(candidates: Candidates, selected: Sequence[Selected]) -> Array | None:
    """Return the intervals (n, 2) of the largest coverage, and None where there is none yet."""
    return calibrated_intervals(candidates, selected)[..., -1] if selected else None


def _holds(intervals: Array, y: Array) -> NDArray[np.bool_]:
    """Whether intervals (n, 2) hold targets (n,)."""
    lower, upper = intervals.T
    return np.asarray((lower <= y) & (y <= upper))
