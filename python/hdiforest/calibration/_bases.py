"""Base intervals: which are tried, and their ends for the rows of a calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._utils.checks import check_name, check_names
from hdiforest._utils.typing import Array

FAMILIES = ("raw", "centred", "stacked")


BaseKind = Literal["hdi", "equal_tailed", "smoothed_hdi"]


KINDS: tuple[BaseKind, ...] = ("hdi", "equal_tailed", "smoothed_hdi")


# Chosen among by default.
DEFAULT_KINDS: tuple[BaseKind, ...] = ("hdi", "equal_tailed")


LEVELS = (0.30, 0.40, 0.50, 0.60, 0.70, 0.80, 0.86, 0.90, 0.94)


class Base(NamedTuple):
    """Intervals before they are padded."""

    family: str  # of FAMILIES: which atoms the distribution has
    kind: str  # of KINDS
    level: float  # the share of the distribution that the interval holds


# Padded where nothing is chosen and there are no centres.
FIXED_RAW = Base("raw", "equal_tailed", 0.8)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Base intervals of calibration rows, and the targets that these intervals should cover."""

    bases: tuple[Base, ...]  # m of them
    ends: Array  # (n, 2, m), finite, lower <= upper
    y: Array  # (n,), finite
    weights: Array | None  # (n,); None: all rows weigh alike
    # (n, 2); what the chosen intervals will be joined with: those of the next lower coverage.
    inner: Array | None = None

    @classmethod
    def of(
        cls,
        bases: Sequence[Base],
        ends: ArrayLike,
        y: ArrayLike,
        weights: ArrayLike | None = None,
    ) -> Self:
        """Check what a forest gave for the calibration rows.

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
        targets = checked_targets("y", y)
        given = np.asarray(ends, dtype=np.float64)
        shape = (len(targets), 2, len(bases))
        if given.shape != shape or not bases:
            raise ValueError(f"ends must have shape (n, 2, n_bases) = {shape}, got {given.shape}")
        if not np.isfinite(given).all() or (given[:, 0] > given[:, 1]).any():
            raise ValueError("ends must be finite with lower <= upper")
        return cls(tuple(bases), given, targets, _checked_weights(weights, len(targets)))

    @classmethod
    def of_grid(
        cls,
        ends: ArrayLike,
        y: ArrayLike,
        *,
        families: Sequence[str],
        kinds: Sequence[str] = DEFAULT_KINDS,
        levels: Sequence[float] = LEVELS,
        weights: ArrayLike | None = None,
    ) -> Self:
        """Check and arrange what a forest gave: each family, kind and level.

        Parameters
        ----------
        ends : (n_families, n_kinds, n, 2, n_levels) array
        y, weights
            As in `of`.
        families, kinds, levels : sequences
            What the axes of `ends` are.

        Raises
        ------
        ValueError
            As `of`.
        """
        check_names("families", families, FAMILIES)
        check_names("kinds", kinds, KINDS)
        given = np.asarray(ends, dtype=np.float64)
        n = given.shape[2] if given.ndim == 5 else -1
        shape = (len(families), len(kinds), n, 2, len(levels))
        if given.shape != shape:
            raise ValueError(
                "ends must have shape (n_families, n_kinds, n, 2, n_levels) = "
                f"({shape[0]}, {shape[1]}, n, 2, {shape[4]}), got {given.shape}"
            )
        bases = [Base(f, k, float(c)) for f in families for k in kinds for c in levels]
        return cls.of(bases, given.transpose(2, 3, 0, 1, 4).reshape(n, 2, -1), y, weights)

    def rows(self, chosen: NDArray[np.intp]) -> Candidates:
        """Return the candidates of some of the rows."""
        weights = None if self.weights is None else self.weights[chosen]
        inner = None if self.inner is None else self.inner[chosen]
        return Candidates(self.bases, self.ends[chosen], self.y[chosen], weights, inner)

    def of_family(self, family: str) -> Candidates:
        """Return the candidates of one family."""
        own = [j for j, base in enumerate(self.bases) if base.family == family]
        bases = tuple(self.bases[j] for j in own)
        return Candidates(bases, self.ends[..., own], self.y, self.weights, self.inner)

    def ends_of(self, base: Base) -> Array:
        """Return the ends of one base, (n, 2), or raise ValueError."""
        if base not in self.bases:
            raise ValueError(
                f"ends must hold the chosen base {base.family}, {base.kind}, {base.level:g}"
            )
        ends: Array = self.ends[:, :, self.bases.index(base)]
        return ends


def check_base(base: Base) -> None:
    """Raise ValueError unless its names are known and its level is above 0 and below 1."""
    check_name("family", base.family, FAMILIES)
    check_name("kind", base.kind, KINDS)
    level: Any = base.level
    if not (isinstance(level, int | float | np.number) and 0 < level < 1):
        raise ValueError(f"levels must lie between 0 and 1, got {level!r}")


def checked_targets(argument: str, given: ArrayLike) -> Array:
    """Return finite targets, (n,), at least one."""
    y = np.asarray(given, dtype=np.float64)
    if y.ndim != 1 or len(y) == 0:
        raise ValueError(f"{argument} must have shape (n,) with n > 0, got {y.shape}")
    if not np.isfinite(y).all():
        raise ValueError(f"{argument} must be finite")
    return y


def _checked_weights(given: ArrayLike | None, n: int) -> Array | None:
    if given is None:
        return None
    weights = np.asarray(given, dtype=np.float64)
    if weights.shape != (n,):
        raise ValueError(f"weights must have shape ({n},), got {weights.shape}")
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise ValueError("weights must be finite and positive")
    return weights
