"""Which base interval serves a coverage: the one that is narrowest once padded and finished."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from hdiforest.calibration.candidates import FAMILIES, KINDS, Array, Base, Candidates, check_name
from hdiforest.calibration.finish import Finish
from hdiforest.calibration.intervals import hull, nested, padded
from hdiforest.calibration.pads import conformity_scores, pad
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
        if not self.mean_width >= 0:
            raise ValueError(f"mean_width must not be negative, got {self.mean_width}")
        if not 0 <= self.realised <= 1:
            raise ValueError(f"realised must be in [0, 1], got {self.realised}")
        if self.n < 1:
            raise ValueError(f"n must be positive, got {self.n}")

    @property
    def base(self) -> Base:
        """What is padded."""
        return Base(self.family, self.kind, self.level)


# Chooses a base for a coverage and pads it, on the rows of the candidates.
Rule = Callable[[Candidates, float, Finish], Choice]


def rule_for(n_rows: int, objective: Objective = "width") -> Rule:
    """Return the rule for so many calibration rows: `narrowest`, or below 500 `fixed`."""
    check_name("objective", objective, OBJECTIVES)
    return fixed if n_rows < MIN_ROWS_TO_CHOOSE else partial(narrowest, objective=objective)


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
        What is least in the mean over the rows. Ties go to the larger level, then to the first.

    Notes
    -----
    If the candidates have inner intervals, width, score and pad are those of the hulls with these:
    targets inside need no pad. O(n m) time and memory for n rows and m candidates.
    """
    scores = conformity_scores(candidates.ends, candidates.y, finish)
    if candidates.inner is not None:
        covered = (candidates.inner[:, 0] <= candidates.y) & (
            candidates.y <= candidates.inner[:, 1]
        )
        scores = np.where(covered[:, np.newaxis], scores.min(axis=0), scores)
    pads = pad(scores.T, coverage, weights=candidates.weights)
    intervals = padded(candidates.ends, pads, finish)
    if candidates.inner is not None:
        intervals = hull(intervals, candidates.inner[..., np.newaxis])
    widths = np.asarray(mean_width_score(intervals))
    if objective == "width":
        losses = widths
    else:
        shares = np.full(len(pads), coverage)
        losses = np.asarray(interval_score(candidates.y, intervals, shares))
    bases = candidates.bases
    best = min(range(len(bases)), key=lambda j: (losses[j], -bases[j].level))
    return Choice(
        *bases[best],
        pad=float(pads[best]),
        coverage=coverage,
        mean_width=float(widths[best]),
        realised=float(coverage_score(candidates.y, intervals[..., best])),
        n=len(candidates.y),
    )


def fixed(candidates: Candidates, coverage: float, finish: Finish) -> Choice:
    """Pad the equal-tailed base at level 0.8, not a raw one, or the candidate nearest to that."""
    base = min(
        candidates.bases,
        key=lambda b: (b.family == "raw", b.kind != FIXED_KIND, abs(b.level - FIXED_LEVEL)),
    )
    return padded_base(candidates, base, coverage, finish)


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
    ends, y = candidates.ends_of(base), candidates.y
    scores = conformity_scores(ends, y, finish)
    q = pad(scores, coverage, weights=candidates.weights, confidence=confidence)
    intervals = padded(ends[..., np.newaxis], q[np.newaxis], finish)[..., 0]
    return Choice(
        *base,
        pad=float(q),
        coverage=coverage,
        mean_width=float(mean_width_score(intervals)),
        realised=float(coverage_score(y, intervals)),
        n=len(y),
    )


def choose(
    candidates: Candidates, coverages: Sequence[float], finish: Finish, rule: Rule
) -> list[Choice]:
    """Apply a rule to each of the coverages, which ascend; each knows the intervals of the last."""
    choices: list[Choice] = []
    for coverage in coverages:
        choices.append(rule(candidates, coverage, finish))
        inner = calibrated(candidates, choices, finish)[..., -1]
        candidates = replace(candidates, inner=inner)
    return choices


def calibrated(candidates: Candidates, choices: Sequence[Choice], finish: Finish) -> Array:
    """Return the intervals (n, 2, k) of the candidates' rows by k choices of ascending coverage."""
    ends = np.stack([candidates.ends_of(choice.base) for choice in choices], axis=-1)
    return nested(padded(ends, [choice.pad for choice in choices], finish))
