"""Base intervals: the candidates of a calibration, and their ends for its rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._utils import Array
from hdiforest._utils.checks import (
    check_choice,
    check_names,
    check_targets,
    check_weights,
    one_share,
)

FAMILIES = ("raw", "centred", "stacked")
BaseKind = Literal["hdi", "equal_tailed", "smoothed_hdi"]
KINDS: tuple[BaseKind, ...] = ("hdi", "equal_tailed", "smoothed_hdi")

DEFAULT_COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)

# Compared by default.
DEFAULT_KINDS: tuple[BaseKind, ...] = ("hdi", "equal_tailed")
LEVELS = (0.30, 0.40, 0.50, 0.60, 0.70, 0.80, 0.86, 0.90, 0.94)


class Base(NamedTuple):
    """An interval before it is widened; each field is a coordinate of the candidates.

    Parameters
    ----------
    family : {"raw", "centred", "stacked"}
        Which atoms the distribution has: targets, or residuals around a mean.
    kind : {"hdi", "equal_tailed", "smoothed_hdi"}
        Of the interval that is read from the distribution.
    level : float
        The share of the distribution that the interval holds.
    """

    family: str
    kind: str
    level: float

    def __str__(self) -> str:
        return f"{self.family} {self.kind} {self.level:g}"


# Widened where nothing is selected and there are no centres.
FIXED_RAW = Base("raw", "equal_tailed", 0.8)


# A further coordinate is a field of `Base`, checked in `check_base` and listed in
# `candidate_bases`. Either the ends are read by it, in `base_intervals` and `OutOfBagIntervals`, or
# they are moved by it, in `PostProcess.scores` and `widen`.
def check_base(base: Base) -> None:
    """Raise ValueError unless each coordinate is one that a base may have."""
    check_choice("family", base.family, FAMILIES)
    check_choice("kind", base.kind, KINDS)
    one_share("level", base.level)


def candidate_bases(
    families: Sequence[str],
    kinds: Sequence[str] = DEFAULT_KINDS,
    levels: Sequence[float] = LEVELS,
) -> tuple[Base, ...]:
    """Return all bases with these coordinates, or raise ValueError if there are no such."""
    check_names("families", families, FAMILIES)
    check_names("kinds", kinds, KINDS)
    return tuple(Base(f, k, float(c)) for f in families for k in kinds for c in levels)


def positions_by_family(bases: Iterable[Base]) -> dict[str, list[int]]:
    """Return where the bases of each family are: one merge of a row's leaves serves them all."""
    positions: dict[str, list[int]] = {}
    for j, base in enumerate(bases):
        positions.setdefault(base.family, []).append(j)
    return positions


@dataclass(frozen=True, eq=False)
class Candidates:
    """Base intervals of calibration rows, and the targets that these intervals should cover."""

    bases: tuple[Base, ...]  # m of them
    ends: Array  # (n, 2, m), in the unit of y; finite, lower <= upper
    y: Array  # (n,), finite
    weights: Array | None  # (n,), positive; None: all rows weigh alike
    # (n, 2); what the selected intervals will be joined with: those of the next lower coverage.
    inner: Array | None = None

    @classmethod
    def checked(
        cls,
        bases: Sequence[Base],
        ends: ArrayLike,
        y: ArrayLike,
        weights: ArrayLike | None = None,
    ) -> Self:
        """Return the parts together, or raise ValueError if shapes differ or values are wrong."""
        for base in bases:
            check_base(base)
        targets = check_targets("y", y)
        ends = np.asarray(ends, dtype=np.float64)
        shape = (len(targets), 2, len(bases))
        if ends.shape != shape or not bases:
            raise ValueError(f"ends must have shape (n, 2, n_bases) = {shape}, got {ends.shape}")
        if not np.isfinite(ends).all() or (ends[:, 0] > ends[:, 1]).any():
            raise ValueError("ends must be finite with lower <= upper")
        if weights is not None:
            weights = check_weights("weights", weights, len(targets), positive=True)
        return cls(tuple(bases), ends, targets, weights)

    def rows(self, rows: NDArray[np.intp]) -> Candidates:
        """Return the candidates of some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        inner = None if self.inner is None else self.inner[rows]
        return Candidates(self.bases, self.ends[rows], self.y[rows], weights, inner)

    def families(self) -> list[Candidates]:
        """Return the candidates of each family."""
        return [
            replace(self, bases=tuple(self.bases[j] for j in at), ends=self.ends[..., at])
            for at in positions_by_family(self.bases).values()
        ]

    def ends_of(self, base: Base) -> Array:
        """Return the ends of one base, (n, 2), or raise ValueError."""
        if base not in self.bases:
            raise ValueError(f"ends must hold the base {base}")
        ends: Array = self.ends[:, :, self.bases.index(base)]
        return ends
