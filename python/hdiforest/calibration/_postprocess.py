"""Post-processing of intervals: clipping to the range of targets, rounding to their lattice."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from hdiforest._utils import Array
from hdiforest._utils.checks import check_flag, check_targets

# A target is outside the range of n others with a probability of at most 2 / (n + 1).
MIN_ROWS_TO_CLIP = 200
_MAX_DEVIATION = 1e-3  # of a target from its lattice point, in steps
_ROUNDING = 1e-6  # what rounding may add to it
_ROUNDINGS = 4  # of the operations between a score and an end, relative to both
_MAX_STEPS = 2.0**30  # deviations of doubles from a longer lattice are mostly rounding


class Lattice(NamedTuple):
    """Equally spaced values base + k step, k = 0, 1, ..."""

    base: float
    step: float
    slack: float  # how far, in steps, a value may be from the lattice point that it is

    def places(self, values: Array) -> Array:
        """Return how many steps values are from the base."""
        with np.errstate(over="ignore"):
            return np.asarray((values - self.base) / self.step)


def find_lattice(y_train: ArrayLike) -> Lattice | None:
    """Return the lattice that n targets lie on.

    None unless they have from two to n / 4 distinct values, whose differences are whole multiples
    of the least one (within 0.001 of it).
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
    """What is known of every target, and so applied to every widened interval.

    `scores` and `widen` alone say what a conformal quantile does to an interval.
    """

    low: float  # least training target
    high: float  # largest training target
    lattice: Lattice | None
    clip: bool  # whether intervals end where the training targets do
    # Distinct training targets on the lattice, ascending: they are ends as they are.
    targets: Array | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not (np.isfinite([self.low, self.high]).all() and self.low <= self.high):
            raise ValueError(f"low and high must be finite with low <= high, got {self}")
        if self.lattice is not None:
            base, step, slack = self.lattice
            if not (np.isfinite([base, step, slack]).all() and step > 0 and 0 <= slack < 0.01):
                raise ValueError(
                    "lattice must have a finite base, a positive step and a slack in [0, 0.01), "
                    f"got {self.lattice}"
                )
        if self.targets is not None and (
            self.lattice is None
            or self.targets.dtype != np.float64
            or self.targets.ndim != 1
            or not (np.diff(self.targets) > 0).all()
            or not ((self.targets >= self.low) & (self.targets <= self.high)).all()
        ):
            raise ValueError(
                "targets must be ascending float64 numbers in [low, high], and None without lattice"
            )

    @classmethod
    def from_targets(cls, y_train: ArrayLike, *, clip: bool = True) -> Self:
        """Read the range and the lattice of the training targets; below 200 nothing is clipped."""
        y = check_targets("y_train", y_train)
        check_flag("clip", clip)
        clips = bool(clip and len(y) >= MIN_ROWS_TO_CLIP)
        points = find_lattice(y)
        targets = None if points is None else np.unique(y)
        return cls(float(y.min()), float(y.max()), points, clips, targets)

    def apply(self, lower: ArrayLike, upper: ArrayLike) -> tuple[Array, Array]:
        """Return intervals with ends that targets can have; lower <= upper, or NaN where one was.

        Crossed ends become their midpoint. On a lattice each end moves inwards to a lattice point,
        as the training target that it is, if there is one; an interval between two points becomes
        the nearer one. Finite ends are clipped to the range of the training targets. Targets in the
        range and on the lattice stay inside, and intervals with the same midpoint stay nested.
        """
        shape = np.shape(lower)
        low, high = (np.array(ends, dtype=np.float64, ndmin=1) for ends in (lower, upper))
        crossed = low > high
        low[crossed] = high[crossed] = low[crossed] / 2 + high[crossed] / 2
        self._clip(low, high)
        if (points := self.lattice) is not None:
            first = np.ceil(points.places(low) - points.slack)
            last = np.floor(points.places(high) + points.slack)
            between = first > last
            middle = low[between] / 2 + high[between] / 2
            first[between] = last[between] = np.round(points.places(middle))
            low, high = self._points(first, -1, points), self._points(last, 1, points)
            self._clip(low, high)
        return low.reshape(shape), high.reshape(shape)

    def nearest(self, values: Array, outwards: int) -> Array:
        """Return the nearest values that targets can have, infinite ones of the range, too.

        Lattice points of no training target are moved as far as targets deviate: 1 up, -1 down.
        """
        if self.lattice is not None:
            places = np.round(self.lattice.places(values))
            values = self._points(places, outwards, self.lattice)
        return np.clip(values, self.low, self.high) if self.clip else values

    def cells(self, y: Array) -> tuple[Array, Array]:
        """Return from where to where values are rounded to targets y.

        Of y between two points both are where those begin that are rounded up.
        """
        if self.lattice is None:
            return y, y
        (base, step, slack), places = self.lattice, self.lattice.places(y)
        below, above = np.ceil(places - slack) - 0.5, np.floor(places + slack) + 0.5
        return base + step * below, base + step * above

    def scores(self, ends: Array, y: Array) -> Array:
        """Return the conformity scores: what widens intervals enough to cover their targets (n,).

        Of ends (n, 2) or (n, 2, m) they are max(l - y, y - u), (n,) or (n, m). Of a target off the
        lattice the farther of the lattice points around it counts; outside the range that intervals
        are clipped to they are infinite. Clipping and rounding take nothing from the guarantee:
        this is eq. 6 of Romano, Patterson, Candes, NeurIPS 2019, as least index of a nested family
        (Gupta, Kuchibhotla, Ramdas, Pattern Recognition 127, 2022, section 2).
        """
        low, high = y.copy(), y.copy()  # from where to where an interval must reach
        if self.lattice is not None:
            nearest = np.round(self.lattice.places(y))
            below = y < self._points(nearest, -1, self.lattice)
            above = y > self._points(nearest, 1, self.lattice)
            off = below | above
            low[off] = self._points((nearest - below)[off], -1, self.lattice)
            high[off] = self._points((nearest + above)[off], 1, self.lattice)
        if self.clip:
            outside = (y < self.low) | (y > self.high)
            low[outside], high[outside] = -np.inf, np.inf
        columns = (...,) + (np.newaxis,) * (ends.ndim - 2)
        return np.asarray(np.maximum(ends[:, 0] - low[columns], high[columns] - ends[:, 1]))

    def widen(self, ends: Array, q_hat: ArrayLike) -> Array:
        """Widen base intervals (n, 2, m) by conformal quantiles (m,) or (n, m), and post-process.

        Both ends move outwards by the quantile. An interval holds its target whenever the target's
        score is at most the quantile: each end has an allowance for rounding.
        """
        q = np.asarray(q_hat, dtype=np.float64)
        # At a quantile of 0 comparisons are exact, and intervals of width zero stay so.
        allowance = np.where(q == 0, 0, _ROUNDINGS * np.finfo(np.float64).eps)
        lower = ends[:, 0] - q - allowance * (np.abs(ends[:, 0]) + np.abs(q))
        upper = ends[:, 1] + q + allowance * (np.abs(ends[:, 1]) + np.abs(q))
        return np.stack(self.apply(lower, upper), axis=1)

    def intervals(self, ends: Array, q_hat: ArrayLike) -> Array:
        """Widen base intervals (n, 2, k) for k ascending coverages, and nest them."""
        return nested(self.widen(ends, q_hat))

    def _clip(self, *all_ends: Array) -> None:
        for ends in all_ends if self.clip else ():
            np.clip(ends, self.low, self.high, out=ends, where=np.isfinite(ends))

    def _points(self, k: Array, outwards: int, points: Lattice) -> Array:
        """Return the training targets that are the k-th lattice points.

        A point that no training target has is moved outwards as far as targets deviate from theirs.
        """
        base, step, slack = points
        ends = base + step * k + outwards * step * max(slack - _ROUNDING, 0)
        places, targets = self._places
        if len(places) > 0:
            at = np.minimum(np.searchsorted(places, k), len(places) - 1)
            ends = np.where(places[at] == k, targets[at], ends)
        return ends

    @cached_property
    def _places(self) -> tuple[Array, Array]:
        """Lattice points of training targets, counted from the base, and these targets."""
        if self.targets is None or self.lattice is None:
            return np.empty(0), np.empty(0)
        places = self.lattice.places(self.targets)
        on = np.abs(places - np.round(places)) <= self.lattice.slack
        return np.round(places[on]), self.targets[on]


def nested(intervals: Array) -> Array:
    """Return the hull of each interval and those of lower coverage, along the last axis.

    Only intervals of one base are nested by their quantiles; the hull never lowers coverage.
    """
    lower = np.minimum.accumulate(intervals[:, 0], axis=-1)
    upper = np.maximum.accumulate(intervals[:, 1], axis=-1)
    return np.stack([lower, upper], axis=1)
