"""Candidates: the base intervals that a calibration compares, and their ends for its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hdiforest._model.bases import Base, Group
from hdiforest._utils import Array
from hdiforest.calibration._postprocess import PostProcess

DEFAULT_COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)

# Compared. Low ones are nearly of constant width once they are widened, high ones as the forest has
# it; the last two are for a coverage of 0.99.
LEVELS = (0.30, 0.40, 0.50, 0.60, 0.70, 0.80, 0.86, 0.90, 0.94, 0.97, 0.985)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Base intervals of calibration rows, and the targets to cover."""

    bases: Sequence[Base]  # m of them
    ends: Array  # (n, 2, m), in the unit of y; finite, lower <= upper
    y: Array  # (n,), finite
    postprocess: PostProcess  # of the intervals, once they are widened
    quantiles: Mapping[Group, Array]  # (n, 19) of each distribution, at `BASE_LEVELS`
    weights: Array | None = None  # (n,), positive; None: all rows weigh alike

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
        bases = [self.bases[j] for j in positions]
        return replace(self, bases=bases, ends=self.ends[..., positions])

    def ends_of(self, base: Base) -> Array:
        """Return the ends of one base, (n, 2)."""
        return np.asarray(self.ends[:, :, self.bases.index(base)])
