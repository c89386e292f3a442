"""Candidates: the base intervals that a calibration compares, and their ends for its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._model.bases import Base, Group, check_base
from hdiforest._utils import Array
from hdiforest._utils.checks import check_targets, check_weights
from hdiforest.calibration._postprocess import PostProcess

DEFAULT_COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)

# Compared. Low ones are nearly of constant width once they are widened, high ones as the forest has
# it; the last two are for a coverage of 0.99.
LEVELS = (0.30, 0.40, 0.50, 0.60, 0.70, 0.80, 0.86, 0.90, 0.94, 0.97, 0.985)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Base intervals of calibration rows, and the targets to cover."""

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
            quantiles={group: quantiles[rows] for group, quantiles in self.quantiles.items()},
        )

    def of_group(self, group: Group) -> Candidates:
        """Return the intervals of one distribution."""
        positions = [j for j, base in enumerate(self.bases) if base.group == group]
        return replace(
            self, bases=tuple(self.bases[j] for j in positions), ends=self.ends[..., positions]
        )

    def ends_of(self, base: Base) -> Array:
        """Return the ends of one base, (n, 2), or raise ValueError."""
        if base not in self.bases:
            raise ValueError(f"ends must hold the base {base}")
        return np.asarray(self.ends[:, :, self.bases.index(base)])
