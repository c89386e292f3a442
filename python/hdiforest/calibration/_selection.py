"""Which base intervals give the narrowest calibrated ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from hdiforest._utils.checks import check_name
from hdiforest._utils.typing import Array
from hdiforest.calibration._bases import FAMILIES, KINDS, Base, Candidates
from hdiforest.calibration._postprocess import Finish, hull, nested, padded
from hdiforest.calibration._scores import conformity_scores, pad
from hdiforest.metrics import coverage_score, interval_score, mean_width_score

Objective = Literal["width", "interval_score"]


OBJECTIVES = ("width", "interval_score")


# With fewer rows the narrowest candidate covers too little: the choice fits their noise.
MIN_ROWS_TO_CHOOSE = 500


FIXED_KIND, FIXED_LEVEL = "equal_tailed", 0.8


@dataclass(frozen=True)
class Choice:
    """A base and its pad for one coverage, with what they give on the calibration rows."""

    family: str
    kind: str
    level: float  # share of the conditional distribution that the base holds
    pad: float  # infinite: too few rows
    coverage: float  # asked for
    mean_width: float  # of the calibrated intervals
    interval_score: float  # of the same, mean
    realised: float  # share of the calibration rows that they cover
    n: int  # calibration rows

    def __post_init__(self) -> None:
        check_name("family", self.family, FAMILIES)
        check_name("kind", self.kind, KINDS)
        for name in ("level", "coverage"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must be above 0 and below 1, got {getattr(self, name)}")
        if not self.pad > -np.inf:
            raise ValueError(f"pad must be a number or infinite, got {self.pad}")
        for name in ("mean_width", "interval_score"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
        if not 0 <= self.realised <= 1:
            raise ValueError(f"realised must be in [0, 1], got {self.realised}")
        if self.n < 1:
            raise ValueError(f"n must be positive, got {self.n}")

    @property
    def base(self) -> Base:
        """What is padded."""
        return Base(self.family, self.kind, self.level)


# Chooses and pads a base for each of the coverages, which ascend, on the rows of the candidates.
Rule = Callable[[Candidates, Sequence[float], Finish], list[Choice]]


def rule_for(n_rows: int, objective: Objective = "width") -> Rule:
    """Return the rule for so many calibration rows: `narrowest_family`, or below 500 `fixed`."""
    check_name("objective", objective, OBJECTIVES)
    if n_rows < MIN_ROWS_TO_CHOOSE:
        return fixed
    return partial(narrowest_family, objective=objective)


def narrowest_family(
    candidates: Candidates,
    coverages: Sequence[float],
    finish: Finish,
    *,
    objective: Objective = "width",
) -> list[Choice]:
    """Choose the `narrowest` base of each coverage, all of one family.

    Intervals of one family come from one merge of a row's leaves, and differ less from coverage to
    coverage. Each coverage knows the intervals of the last. Of several families the one is taken
    whose objective, as a share of the sum over the families, is least in the sum over coverages;
    ties go to the first.
    """
    by_family: list[list[Choice]] = []
    for family in dict.fromkeys(base.family for base in candidates.bases):
        own = candidates.of_family(family)
        choices: list[Choice] = []
        for coverage in coverages:
            choices.append(narrowest(own, coverage, finish, objective=objective))
            own = replace(own, inner=calibrated(own, choices, finish)[..., -1])
        by_family.append(choices)
    name = "mean_width" if objective == "width" else objective
    losses = np.array([[getattr(choice, name) for choice in choices] for choices in by_family])
    totals = losses.sum(axis=0)
    counts = np.isfinite(totals) & (totals > 0)
    return by_family[int(np.argmin((losses[:, counts] / totals[counts]).sum(axis=1)))]


def narrowest(
    candidates: Candidates, coverage: float, finish: Finish, *, objective: Objective = "width"
) -> Choice:
    """Choose the base with the narrowest intervals once they are padded and finished.

    Parameters
    ----------
    candidates : Candidates
    coverage : float
        Above 0 and below 1.
    finish : Finish
    objective : {"width", "interval_score"}, default="width"
        What is least in the weighted mean over the rows. Ties go to the larger level, then to the
        first.

    Notes
    -----
    If the candidates have inner intervals, width, score and pad are those of the hulls with these:
    targets inside need no pad. O(n m) time and memory for n rows and m candidates.
    """
    missed = conformity_scores(candidates.ends, candidates.y, finish)
    if candidates.inner is not None:
        covered = (candidates.inner[:, 0] <= candidates.y) & (
            candidates.y <= candidates.inner[:, 1]
        )
        missed = np.where(covered[:, np.newaxis], missed.min(axis=0), missed)
    pads = pad(missed.T, coverage, weights=candidates.weights)
    intervals = padded(candidates.ends, pads, finish)
    if candidates.inner is not None:
        intervals = hull(intervals, candidates.inner[..., np.newaxis])
    y, weights = candidates.y, candidates.weights
    widths = np.asarray(mean_width_score(intervals, sample_weight=weights))
    shares = np.full(len(pads), coverage)
    scores = np.asarray(interval_score(y, intervals, shares, sample_weight=weights))
    losses = widths if objective == "width" else scores
    bases = candidates.bases
    best = min(range(len(bases)), key=lambda j: (losses[j], -bases[j].level))
    return Choice(
        *bases[best],
        pad=float(pads[best]),
        coverage=coverage,
        mean_width=float(widths[best]),
        interval_score=float(scores[best]),
        realised=float(coverage_score(y, intervals[..., best], sample_weight=weights)),
        n=len(y),
    )


def fixed(candidates: Candidates, coverages: Sequence[float], finish: Finish) -> list[Choice]:
    """Pad the equal-tailed base at level 0.8, not a raw one, or the candidate nearest to that."""
    base = min(
        candidates.bases,
        key=lambda b: (b.family == "raw", b.kind != FIXED_KIND, abs(b.level - FIXED_LEVEL)),
    )
    return [padded_base(candidates, base, coverage, finish) for coverage in coverages]


def padded_base(
    candidates: Candidates,
    base: Base,
    coverage: float,
    finish: Finish,
    *,
    confidence: float | None = None,
) -> Choice:
    """Pad a base that was chosen before.

    Parameters
    ----------
    candidates : Candidates
    base : Base
    coverage : float
        Above 0 and below 1.
    finish : Finish
    confidence : float, optional
        See `pad`.

    Raises
    ------
    ValueError
        If the base is not among the candidates.
    """
    ends, y, weights = candidates.ends_of(base), candidates.y, candidates.weights
    scores = conformity_scores(ends, y, finish)
    q = pad(scores, coverage, weights=weights, confidence=confidence)
    intervals = padded(ends[..., np.newaxis], q[np.newaxis], finish)[..., 0]
    return Choice(
        *base,
        pad=float(q),
        coverage=coverage,
        mean_width=float(mean_width_score(intervals, sample_weight=weights)),
        interval_score=float(interval_score(y, intervals, coverage, sample_weight=weights)),
        realised=float(coverage_score(y, intervals, sample_weight=weights)),
        n=len(y),
    )


def calibrated(candidates: Candidates, choices: Sequence[Choice], finish: Finish) -> Array:
    """Return the intervals (n, 2, k) of the candidates' rows by k choices of ascending coverage."""
    ends = np.stack([candidates.ends_of(choice.base) for choice in choices], axis=-1)
    return nested(padded(ends, [choice.pad for choice in choices], finish))
