"""Base intervals: the candidates of a calibration, and their ends for its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._utils import Array, BaseKind
from hdiforest._utils.checks import (
    check_choice,
    check_targets,
    check_weights,
    check_whole_number,
    one_share,
)
from hdiforest._utils.kinds import BASE_KINDS
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._quantiles import BASE_LEVELS

FAMILIES = ("raw", "centred", "stacked")

DEFAULT_COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)

# Compared. Low ones are nearly of constant width once they are widened, high ones as the forest has
# it; the last two are for a coverage of 0.99.
LEVELS = (0.30, 0.40, 0.50, 0.60, 0.70, 0.80, 0.86, 0.90, 0.94, 0.97, 0.985)

Group = tuple[str, int]


class Base(NamedTuple):
    """An interval before it is widened; each field is a coordinate of the candidates.

    Parameters
    ----------
    family : {"raw", "centred", "stacked"}
        Which atoms the distribution has: targets, or residuals around a mean.
    kind : str
        Of the interval that is read from the distribution, such as "averaged", whose ends are
        midway between those of the HDI and of the equal-tailed interval.
    level : float
        The share of the distribution that the interval holds.
    min_samples_leaf : int, default=1
        That the trees are pruned to.
    """

    family: str
    kind: BaseKind
    level: float
    min_samples_leaf: int = 1

    def __str__(self) -> str:
        pruned = f" leaf {self.min_samples_leaf}" if self.min_samples_leaf > 1 else ""
        return f"{self.family} {self.kind} {self.level:g}{pruned}"

    @property
    def group(self) -> Group:
        """The distribution that it is of: a family, of trees of one leaf size."""
        return self.family, self.min_samples_leaf

    def quantiles(self, levels: Sequence[float] = BASE_LEVELS) -> list[Base]:
        """Return quantiles of its distribution, as upper ends of one-sided intervals.

        Parameters
        ----------
        levels : sequence of k floats
            Above 0 and below 1; by default 0.05, 0.10, ..., 0.95.

        Returns
        -------
        list of k Base
            Of the kind "upper".
        """
        return [self._replace(kind="upper", level=level) for level in levels]


# Widened where nothing is selected and there are no centres.
FIXED_RAW = Base("raw", "equal_tailed", 0.8)


def check_base(base: Base) -> None:
    """Raise ValueError unless each coordinate is one that a base may have."""
    check_choice("family", base.family, FAMILIES)
    check_choice("kind", base.kind, BASE_KINDS)
    one_share("level", base.level)
    check_whole_number("min_samples_leaf", base.min_samples_leaf, 1)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Base intervals of calibration rows, and the targets that these intervals should cover."""

    bases: tuple[Base, ...]  # m of them
    ends: Array  # (n, 2, m), in the unit of y; finite, lower <= upper
    y: Array  # (n,), finite
    postprocess: PostProcess  # of the intervals, once they are widened
    weights: Array | None = None  # (n,), positive; None: all rows weigh alike
    # (n, 19) of each distribution, at `BASE_LEVELS`; needed where there are several.
    quantiles: Mapping[Group, Array] = field(default_factory=dict)

    @classmethod
    def checked(
        cls,
        bases: Sequence[Base],
        ends: ArrayLike,
        y: ArrayLike,
        postprocess: PostProcess,
        weights: ArrayLike | None = None,
        quantiles: Mapping[Group, Array] | None = None,
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
        return cls(tuple(bases), ends, targets, postprocess, weights, quantiles or {})

    def rows(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Candidates:
        """Return the candidates of some of the rows."""
        return replace(
            self,
            ends=self.ends[rows],
            y=self.y[rows],
            weights=None if self.weights is None else self.weights[rows],
            quantiles={group: own[rows] for group, own in self.quantiles.items()},
        )

    def of_group(self, group: Group) -> Candidates:
        """Return the intervals of one distribution."""
        at = [j for j, base in enumerate(self.bases) if base.group == group]
        return replace(self, bases=tuple(self.bases[j] for j in at), ends=self.ends[..., at])

    def ends_of(self, base: Base) -> Array:
        """Return the ends of one base, (n, 2), or raise ValueError."""
        if base not in self.bases:
            raise ValueError(f"ends must hold the base {base}")
        return np.asarray(self.ends[:, :, self.bases.index(base)])
