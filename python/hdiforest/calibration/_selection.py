"""Selects the base interval that is narrowest after calibration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from hdiforest._utils.checks import check_choice
from hdiforest._utils.typing import Array
from hdiforest.calibration._bases import FIXED_RAW, Base, Candidates
from hdiforest.calibration._postprocess import PostProcess, hull, nested
from hdiforest.calibration._quantiles import conformal_quantile
from hdiforest.calibration._result import FixedLevel
from hdiforest.metrics._intervals import coverage_score, interval_score, mean_width_score

Objective = Literal["width", "interval_score"]
# What each objective makes least: a mean over the rows, by its name in a level.
OBJECTIVES: dict[Objective, str] = {"width": "mean_width", "interval_score": "interval_score"}

# With fewer rows the narrowest candidate covers too little: the selection fits their noise.
MIN_ROWS_TO_SELECT = 500

# Selects and widens a base for each of the coverages, which ascend, on the rows of the candidates.
Rule = Callable[[Candidates, Sequence[float], PostProcess], list[FixedLevel]]


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
) -> list[FixedLevel]:
    """Select the `narrowest` base of each coverage, all of one family.

    Intervals of one family come from one merge of a row's leaves, and differ less from coverage to
    coverage. Each coverage knows the intervals of the last. Of several families the one is taken
    whose objective, as a share of the sum over the families, is least in the sum over coverages;
    ties go to the first.
    """
    by_family: list[list[FixedLevel]] = []
    for members in candidates.families():
        levels: list[FixedLevel] = []
        for coverage in coverages:
            levels.append(narrowest(members, coverage, postprocess, objective=objective))
            inner = calibrated_intervals(members, levels, postprocess)[..., -1]
            members = replace(members, inner=inner)
        by_family.append(levels)
    name = OBJECTIVES[objective]
    losses = np.array([[getattr(level, name) for level in levels] for levels in by_family])
    totals = losses.sum(axis=0)
    counts = np.isfinite(totals) & (totals > 0)
    return by_family[int(np.argmin((losses[:, counts] / totals[counts]).sum(axis=1)))]


def narrowest(
    candidates: Candidates,
    coverage: float,
    postprocess: PostProcess,
    *,
    objective: Objective = "width",
) -> FixedLevel:
    """Select the base whose intervals, widened and post-processed, have the least objective.

    Ties go to the larger level, then to the first. If the candidates have inner intervals, width,
    score and conformal quantile are those of the hulls with these: targets inside widen nothing.
    O(n m) time and memory for n rows and m candidates.
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
    measures = _measure(candidates, intervals, [coverage] * len(q_hat))
    losses, bases = measures[OBJECTIVES[objective]], candidates.bases
    best = min(range(len(bases)), key=lambda j: (losses[j], -bases[j].level))
    return _level(coverage, bases[best], q_hat[best], measures, best)


def fixed(
    candidates: Candidates, coverages: Sequence[float], postprocess: PostProcess
) -> list[FixedLevel]:
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
) -> FixedLevel:
    """Widen a base that was selected before, or raise ValueError if it is no candidate."""
    ends = candidates.ends_of(base)[..., np.newaxis]
    scores = postprocess.scores(ends, candidates.y)
    q_hat = conformal_quantile(
        scores.T, coverage, weights=candidates.weights, confidence=confidence
    )
    measures = _measure(candidates, postprocess.widen(ends, q_hat), [coverage])
    return _level(coverage, base, q_hat[0], measures, 0)


def calibrated_intervals(
    candidates: Candidates, levels: Sequence[FixedLevel], postprocess: PostProcess
) -> Array:
    """Return the intervals (n, 2, k) of the candidates' rows for k ascending coverages."""
    ends = np.stack([candidates.ends_of(level.base) for level in levels], axis=-1)
    return nested(postprocess.widen(ends, [level.q_hat for level in levels]))


def with_measures(
    candidates: Candidates, levels: Sequence[FixedLevel], intervals: Array
) -> list[FixedLevel]:
    """Return the levels with what intervals (n, 2, k) of the rows measure."""
    measures = _measure(candidates, intervals, [level.coverage for level in levels])
    return [
        _level(level.coverage, level.base, level.q_hat, measures, j)
        for j, level in enumerate(levels)
    ]


def _measure(
    candidates: Candidates, intervals: Array, coverages: Sequence[float]
) -> dict[str, Array]:
    y, weights = candidates.y, candidates.weights
    return {
        "mean_width": np.asarray(mean_width_score(intervals, sample_weight=weights)),
        "interval_score": np.asarray(
            interval_score(y, intervals, coverages, sample_weight=weights)
        ),
        "realised": np.asarray(coverage_score(y, intervals, sample_weight=weights)),
    }


def _level(
    coverage: float, base: Base, q_hat: float, measures: dict[str, Array], column: int
) -> FixedLevel:
    numbers = {name: float(values[column]) for name, values in measures.items()}
    return FixedLevel(coverage, cross_check=None, base=base, q_hat=float(q_hat), **numbers)
