"""Selects the base interval that is narrowest after calibration."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from hdiforest._utils import Array
from hdiforest._utils.checks import check_choice
from hdiforest.calibration._bases import FIXED_RAW, Base, Candidates
from hdiforest.calibration._postprocess import PostProcess, hull, nested
from hdiforest.calibration._quantiles import conformal_quantile
from hdiforest.metrics._intervals import interval_score, mean_width_score

Objective = Literal["width", "interval_score"]

# With fewer rows the narrowest candidate covers too little: the selection fits their noise.
MIN_ROWS_TO_SELECT = 500


def _mean_width(candidates: Candidates, intervals: Array, coverage: float) -> Array:  # noqa: ARG001
    return np.asarray(mean_width_score(intervals, sample_weight=candidates.weights))


def _mean_score(candidates: Candidates, intervals: Array, coverage: float) -> Array:
    coverages, weights = [coverage] * intervals.shape[-1], candidates.weights
    return np.asarray(interval_score(candidates.y, intervals, coverages, sample_weight=weights))


# What each objective makes least, (m,), for m candidates.
OBJECTIVES: dict[Objective, Callable[[Candidates, Array, float], Array]] = {
    "width": _mean_width,
    "interval_score": _mean_score,
}


class Selected(NamedTuple):
    """What makes the intervals of a coverage: a candidate, and how far it is widened."""

    base: Base
    q_hat: float  # conformal quantile
    loss: float = math.nan  # the objective, where one was compared


# Selects and widens a base for each of the coverages, which ascend, on the rows of the candidates.
Rule = Callable[[Candidates, Sequence[float], PostProcess], list[Selected]]


def rule_for(n_rows: int, objective: Objective = "width") -> Rule:
    """Return the rule for so many calibration rows: `narrowest_family`, or below 500 `fixed`."""
    check_choice("objective", objective, OBJECTIVES)
    if n_rows < MIN_ROWS_TO_SELECT:
        return fixed
    return partial(narrowest_family, objective=objective)


def narrowest_family(
    candidates: Candidates,
    coverages: Sequence[float],
    postprocess: PostProcess,
    *,
    objective: Objective = "width",
) -> list[Selected]:
    """Select the `narrowest` base of each coverage, all of one family.

    Intervals of one family come from one merge of a row's leaves, and differ less from coverage to
    coverage. Each coverage knows the intervals of the last. Of several families the one is taken
    whose objective, as a share of the sum over the families, is least in the sum over coverages;
    ties go to the first.
    """
    by_family: list[list[Selected]] = []
    for members in candidates.families():
        selected: list[Selected] = []
        for coverage in coverages:
            selected.append(narrowest(members, coverage, postprocess, objective=objective))
            inner = calibrated_intervals(members, selected, postprocess)[..., -1]
            members = replace(members, inner=inner)
        by_family.append(selected)
    losses = np.array([[each.loss for each in selected] for selected in by_family])
    totals = losses.sum(axis=0)
    counts = np.isfinite(totals) & (totals > 0)
    return by_family[int(np.argmin((losses[:, counts] / totals[counts]).sum(axis=1)))]


def narrowest(
    candidates: Candidates,
    coverage: float,
    postprocess: PostProcess,
    *,
    objective: Objective = "width",
) -> Selected:
    """Select the base whose intervals, widened and post-processed, have the least objective.

    Ties go to the larger level, then to the first. If the candidates have inner intervals,
    objective and conformal quantile are those of the hulls with these: targets inside widen
    nothing. O(n m) time and memory for n rows and m candidates.
    """
    y, weights, inner = candidates.y, candidates.weights, candidates.inner
    scores = postprocess.scores(candidates.ends, y)
    if inner is not None:
        covered = (inner[:, 0] <= y) & (y <= inner[:, 1])
        scores = np.where(covered[:, np.newaxis], scores.min(axis=0), scores)
    q_hat = conformal_quantile(scores.T, coverage, weights=weights)
    intervals = postprocess.widen(candidates.ends, q_hat)
    if inner is not None:
        intervals = hull(intervals, inner[..., np.newaxis])
    losses, bases = OBJECTIVES[objective](candidates, intervals, coverage), candidates.bases
    best = min(range(len(bases)), key=lambda j: (losses[j], -bases[j].level))
    return Selected(bases[best], float(q_hat[best]), float(losses[best]))


def fixed(
    candidates: Candidates, coverages: Sequence[float], postprocess: PostProcess
) -> list[Selected]:
    """Widen the base like `FIXED_RAW` but not raw, or the candidate nearest to that."""
    _, kind, level = FIXED_RAW
    base = min(
        candidates.bases, key=lambda b: (b.family == "raw", b.kind != kind, abs(b.level - level))
    )
    return [widen_base(candidates, base, coverage, postprocess) for coverage in coverages]


def widen_base(
    candidates: Candidates,
    base: Base,
    coverage: float,
    postprocess: PostProcess,
    *,
    confidence: float | None = None,
) -> Selected:
    """Widen a base that was selected before, or raise ValueError if it is no candidate."""
    scores = postprocess.scores(candidates.ends_of(base), candidates.y)
    q_hat = conformal_quantile(scores, coverage, weights=candidates.weights, confidence=confidence)
    return Selected(base, float(q_hat))


def calibrated_intervals(
    candidates: Candidates, selected: Sequence[Selected], postprocess: PostProcess
) -> Array:
    """Return the intervals (n, 2, k) of the candidates' rows for k ascending coverages."""
    ends = np.stack([candidates.ends_of(each.base) for each in selected], axis=-1)
    return nested(postprocess.widen(ends, [each.q_hat for each in selected]))
