"""Candidate base intervals of a calibration, and their ends for its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._utils.checks import (
    check_choice,
    check_names,
    check_targets,
    check_weights,
    one_share,
)
from hdiforest._utils.typing import Array

FAMILIES = ("raw", "centred", "stacked")


BaseKind = Literal["hdi", "equal_tailed", "smoothed_hdi"]
KINDS: tuple[BaseKind, ...] = ("hdi", "equal_tailed", "smoothed_hdi")


DEFAULT_COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)

# Compared by default.
DEFAULT_KINDS: tuple[BaseKind, ...] = ("hdi", "equal_tailed")
LEVELS = (0.30, 0.40, 0.50, 0.60, 0.70, 0.80, 0.86, 0.90, 0.94)


class Base(NamedTuple):
    """Intervals before they are widened."""

    family: str  # of FAMILIES: which atoms the distribution has
    kind: str  # of KINDS
    level: float  # the share of the distribution that the interval holds


# Widened where nothing is selected and there are no centres.
FIXED_RAW = Base("raw", "equal_tailed", 0.8)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Base intervals of calibration rows, and the targets that these intervals should cover."""

    bases: tuple[Base, ...]  # m of them
    ends: Array  # (n, 2, m), finite, lower <= upper
    y: Array  # (n,), finite
    weights: Array | None  # (n,); None: all rows weigh alike
    # (n, 2); what the selected intervals will be joined with: those of the next lower coverage.
    inner: Array | None = None

    @classmethod
    def from_bases(
        cls,
        bases: Sequence[Base],
        ends: ArrayLike,
        y: ArrayLike,
        weights: ArrayLike | None = None,
    ) -> Self:
        """Check the ends of base intervals.

        Parameters
        ----------
        bases : sequence of m Base
        ends : (n, 2, m) array
            Lower and upper ends, in the unit of y.
        y : (n,) array
            Targets of the n rows.
        weights : (n,) array, optional
            Weights of the rows, positive.

        Raises
        ------
        ValueError
            If a name is not known, shapes differ, or a value is out of range.
        """
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

    @classmethod
    def from_grid(
        cls,
        ends: ArrayLike,
        y: ArrayLike,
        *,
        families: Sequence[str],
        kinds: Sequence[str] = DEFAULT_KINDS,
        levels: Sequence[float] = LEVELS,
        weights: ArrayLike | None = None,
    ) -> Self:
        """Check and arrange the ends of each family, kind and level.

        Parameters
        ----------
        ends : (n_families, n_kinds, n, 2, n_levels) array
        y, weights
            As in `from_bases`.
        families, kinds, levels : sequences
            What the axes of `ends` are.

        Raises
        ------
        ValueError
            As `from_bases`.
        """
        check_names("families", families, FAMILIES)
        check_names("kinds", kinds, KINDS)
        ends = np.asarray(ends, dtype=np.float64)
        n = ends.shape[2] if ends.ndim == 5 else -1
        shape = (len(families), len(kinds), n, 2, len(levels))
        if ends.shape != shape:
            raise ValueError(
                "ends must have shape (n_families, n_kinds, n, 2, n_levels) = "
                f"({shape[0]}, {shape[1]}, n, 2, {shape[4]}), got {ends.shape}"
            )
        bases = [Base(f, k, float(c)) for f in families for k in kinds for c in levels]
        return cls.from_bases(bases, ends.transpose(2, 3, 0, 1, 4).reshape(n, 2, -1), y, weights)

    def take(self, rows: NDArray[np.intp]) -> Candidates:
        """Return the candidates of some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        inner = None if self.inner is None else self.inner[rows]
        return Candidates(self.bases, self.ends[rows], self.y[rows], weights, inner)

    def select_family(self, family: str) -> Candidates:
        """Return the candidates of one family."""
        at = [j for j, base in enumerate(self.bases) if base.family == family]
        bases = tuple(self.bases[j] for j in at)
        return Candidates(bases, self.ends[..., at], self.y, self.weights, self.inner)

    def ends_of(self, base: Base) -> Array:
        """Return the ends of one base, (n, 2), or raise ValueError."""
        if base not in self.bases:
            raise ValueError(f"ends must hold the base {base.family}, {base.kind}, {base.level:g}")
        ends: Array = self.ends[:, :, self.bases.index(base)]
        return ends


def check_base(base: Base) -> None:
    """Raise ValueError unless its names are known and its level is above 0 and below 1."""
    check_choice("family", base.family, FAMILIES)
    check_choice("kind", base.kind, KINDS)
    one_share("level", base.level)
