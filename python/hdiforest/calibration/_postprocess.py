"""Post-processing of intervals: clipping to the range of targets, rounding to their lattice."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

import hdicore
from hdiforest._utils import Array
from hdiforest._utils.checks import check_flag, check_targets

# A target is outside the range of n others with a probability of at most 2 / (n + 1).
MIN_ROWS_TO_CLIP = 200
_MAX_DEVIATION = 1e-3  # of a target from its lattice point, in steps
_ROUNDING = 1e-6  # what rounding may add to it
_MAX_STEPS = 2.0**30  # deviations of doubles from a longer lattice are mostly rounding


class Lattice(NamedTuple):
    """Equally spaced values base + k step, k = 0, 1, ..."""

    base: float
    step: float
    slack: float  # how far, in steps, a value may be from the lattice point that it is


def find_lattice(y_train: ArrayLike) -> Lattice | None:
    """Return the lattice of n targets, or None.

    A lattice needs from two to n / 4 distinct values, with differences that are whole multiples of
    the least difference (within 0.001 of it).
    """
    y = check_targets("y_train", y_train)
    return lattice_of_values(np.unique(y), len(y))


def lattice_of_values(values: Array, n_rows: int) -> Lattice | None:
    """Return the lattice of the distinct targets of so many rows, ascending; see `find_lattice`."""
    if len(values) < 2 or len(values) > n_rows / 4:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        heights = values - values[0]
        multiples = np.round(heights / np.diff(values).min())
        if not multiples[-1] <= _MAX_STEPS:
            return None
        # The least difference carries the rounding of two neighbours; the whole range less.
        step = heights[-1] / multiples[-1]
        deviation = np.abs(heights / step - multiples).max()
    if not deviation <= _MAX_DEVIATION:
        return None
    return Lattice(float(values[0]), float(step), float(deviation) + _ROUNDING)


@dataclass(frozen=True)
class PostProcess:
    """Range and lattice of the targets, applied to every widened interval."""

    low: float  # least training target
    high: float  # largest training target
    lattice: Lattice | None
    clip: bool  # whether intervals end where the training targets do
    # Distinct training targets on the lattice, ascending: they are ends as they are.
    targets: Array | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        _ = self.engine  # which checks the numbers

    @classmethod
    def from_targets(cls, y_train: ArrayLike, *, clip: bool = True) -> Self:
        """Read range and lattice of the training targets. Below 200 targets nothing is clipped."""
        y = check_targets("y_train", y_train)
        check_flag("clip", clip)
        clips = bool(clip and len(y) >= MIN_ROWS_TO_CLIP)
        points = find_lattice(y)
        targets = None if points is None else np.unique(y)
        return cls(float(y.min()), float(y.max()), points, clips, targets)

    @cached_property
    def engine(self) -> hdicore.PostProcess:
        """The compiled object that widens and scores intervals."""
        return hdicore.PostProcess(
            self.low, self.high, clip=self.clip, lattice=self.lattice, targets=self.targets
        )
