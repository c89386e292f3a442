"""The audit of a calibration: chosen and padded on one half of the rows, measured on the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hdiforest._utils.typing import Array
from hdiforest.calibration.candidates import Candidates
from hdiforest.calibration.choice import Rule, calibrated
from hdiforest.calibration.finish import Finish
from hdiforest.metrics import coverage_by_width, coverage_score, mean_width_score

_SEED = 0  # of the halves, so that an audit repeats
_N_BINS = 5
_MIN_SHARE_OF_BIN = 0.5 / _N_BINS  # ties make bins uneven, and small ones cover what chance gives


@dataclass(frozen=True)
class Audit:
    """What intervals cover whose choice and pad come from other rows."""

    coverage: float
    standard_error: float  # binomial, of the coverage
    mean_width: float
    # Coverage by thirds of width, narrow first; None: ties leave this third no rows.
    thirds: tuple[float | None, float | None, float | None]
    worst_of_five: float  # least coverage of five bins by width

    def __post_init__(self) -> None:
        for name in ("coverage", "worst_of_five"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be in [0, 1], got {getattr(self, name)}")
        for name in ("standard_error", "mean_width"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
        if any(share is not None and not 0 <= share <= 1 for share in self.thirds):
            raise ValueError(f"thirds must be in [0, 1], got {self.thirds}")


def audit(
    candidates: Candidates, coverages: Sequence[float], finish: Finish, rule: Rule
) -> tuple[Audit | None, ...]:
    """Cross-fit a rule in two random halves of the rows.

    Parameters
    ----------
    candidates : Candidates
    coverages : sequence of k floats
        Ascending.
    finish : Finish
    rule : Rule

    Returns
    -------
    tuple of k Audit or None
        None where a half has too few rows for a finite pad.

    Notes
    -----
    Each half's intervals are chosen and padded on the other, so the optimism of the choice shows.
    Half as many rows choose as in the calibration itself, which therefore does no worse on average.
    Rows of one group (person, site) must not be in both halves for the audit to speak of new
    groups.
    """
    n = len(candidates.y)
    if n < 2:
        return (None,) * len(coverages)
    order = np.random.default_rng(_SEED).permutation(n)
    halves = order[: n // 2], order[n // 2 :]
    intervals = np.empty((n, 2, len(coverages)))
    for measured, fitted in (halves, halves[::-1]):
        choices = rule(candidates.rows(fitted), coverages, finish)
        intervals[measured] = calibrated(candidates.rows(measured), choices, finish)
    return tuple(
        measure(candidates.y, ends, candidates.weights) for ends in np.moveaxis(intervals, -1, 0)
    )


def measure(y: Array, ends: Array, weights: Array | None = None) -> Audit | None:
    """Return what intervals (n, 2) of rows with weights (n,) cover; None if some are infinite."""
    if np.isinf(ends).any():
        return None
    share = float(coverage_score(y, ends, sample_weight=weights))
    narrow, middle, wide = (
        None if np.isnan(third) else float(third)
        for third in coverage_by_width(y, ends, 3, sample_weight=weights).coverage[1:]
    )
    bins = coverage_by_width(y, ends, _N_BINS, sample_weight=weights)
    shares = np.full(len(y), 1 / len(y)) if weights is None else weights / weights.sum()
    return Audit(
        coverage=share,
        standard_error=float(np.sqrt(share * (1 - share) * (shares**2).sum())),
        mean_width=float(mean_width_score(ends, sample_weight=weights)),
        thirds=(narrow, middle, wide),
        worst_of_five=float(bins.coverage[bins.counts >= _MIN_SHARE_OF_BIN * len(y)].min()),
    )
