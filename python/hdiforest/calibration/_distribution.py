"""Conformal predictive distributions: which level of a forest's distribution is asked for which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._utils import Array
from hdiforest._utils.checks import reals
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._quantiles import BASE_LEVELS, rank

_KNOWN = np.array(BASE_LEVELS)  # with straight lines between them

# Levels that are known exactly, of more rows; others have the next larger one.
_N_KNOTS = 500
_KNOTS = np.concatenate([[0.001], np.arange(1, _N_KNOTS) / _N_KNOTS, [0.999]])

_SEED = 0  # of the ranks among ties, so that a calibration repeats
_ROUNDING = 1e-9  # of a level that should equal a knot
_ROUNDINGS = 16  # of the operations between a quantile and its level
_HUGE = 1e300  # infinite points are moved here


class Reading(NamedTuple):
    """A function of base quantiles of rows, (n, k) at k levels, and perhaps of other values."""

    levels: tuple[float, ...]  # some of `BASE_LEVELS`
    read: Callable[..., Array]


@dataclass(frozen=True, eq=False)
class PredictiveDistribution:
    """A distribution for each row whose quantiles cover what their level says.

    A row x has a continuous quantile function Q(x, s): the quantiles of the forest at
    `BASE_LEVELS`, straight lines between them, and beyond them lines with the slope of the range of
    the training targets. The score of a target y is the s with Q(x, s) = y, drawn at random where
    several have it. The calibrated quantile at level k / (n + 1) is Q at the k-th smallest score of
    n calibration rows, moved to the nearest point of the lattice of the targets, if they have one,
    and into their range, if intervals are clipped.

    A split conformal predictive system (Vovk, Nouretdinov, Manokhin, Gammerman, "Cross-conformal
    predictive distributions", COPA 2018) whose conformity measure is the probability integral
    transform of the forest (Chernozhukov, Wuthrich, Zhu, "Distributional conformal prediction",
    PNAS 118, 2021), continued beyond the outer quantiles so that tails can be longer than the
    forest's.
    """

    levels: Array  # (m,) that are known, ascending, above 0 and below 1; at most some 500
    scores: Array  # (m,) what s each is, ascending
    postprocess: PostProcess

    def __post_init__(self) -> None:
        levels, scores = self.levels, self.scores
        if levels.ndim != 1 or len(levels) == 0 or levels.shape != scores.shape:
            raise ValueError("levels and scores of the distribution must be as many, and some")
        if not (np.diff(levels) > 0).all() or not 0 < levels[0] <= levels[-1] < 1:
            raise ValueError("levels of the distribution must ascend between 0 and 1")
        if np.isnan(scores).any() or (scores[1:] < scores[:-1]).any():
            raise ValueError("scores of the distribution must be numbers and ascend")

    @classmethod
    def fitted(
        cls,
        base: Array,
        y: Array,
        postprocess: PostProcess,
        coverages: Sequence[float],
        weights: Array | None = None,
        confidence: float | None = None,
    ) -> Self:
        """Return the distribution by calibration rows.

        Their base quantiles are (n, 19), their targets and perhaps positive weights (n,). Levels
        that bounds of these coverages have are kept exactly. O(n log n).
        """
        below = _scores(base, y, postprocess, strictly=True)
        at = _scores(base, y, postprocess, strictly=False)
        draws = np.random.default_rng(_SEED).random(len(y))
        scores = below + draws * (at - below)
        if postprocess.clip:  # no quantile reaches them
            scores[y < postprocess.low], scores[y > postprocess.high] = -np.inf, np.inf
        weights = np.ones(len(y)) if weights is None else weights
        order = np.argsort(scores, kind="stable")
        levels = np.cumsum(weights[order]) / (weights.sum() + weights.max())
        bounds = _levels_of_bounds(coverages, len(y), confidence)
        upwards = np.searchsorted(levels, np.append(_KNOTS, bounds) - _ROUNDING)
        downwards = np.searchsorted(levels, 1 - bounds + _ROUNDING) - 1
        positions = np.concatenate([upwards, downwards, [0, len(y) - 1]])
        kept = np.unique(positions.clip(0, len(y) - 1))
        levels, scores = levels[kept], scores[order][kept]
        rises = np.diff(levels, prepend=0) > 0  # not where a weight is lost in the sum
        return cls(levels[rises], scores[rises], postprocess)

    def quantiles(self, levels: Array, outwards: int = 1) -> Reading:
        """Return what reads quantiles (n, k) at levels (k,) in [0, 1], or at the next known ones.

        Points of the lattice that no training target has are moved `outwards`: 1 up, -1 down.
        """
        position = np.searchsorted(self.levels, levels - _ROUNDING)
        scores = np.where(levels > 0, np.append(self.scores, np.inf)[position], -np.inf)
        below, above, share = _places(scores)
        needed = np.unique([below, above])
        low, high = np.searchsorted(needed, below), np.searchsorted(needed, above)

        def read(base: Array) -> Array:
            return self._between(base[:, low], base[:, high], share, scores, outwards)

        return Reading(tuple(_KNOWN[needed].tolist()), read)

    def cdf(self, *, inclusive: bool = True) -> Reading:
        """Return what reads P(Y <= y), or P(Y < y), from further points y, (n,) or (n, k).

        It is the largest level that is known whose quantile is at most, or below, y.
        """

        def read(base: Array, y: Array) -> Array:
            values = np.empty(y.shape)
            for column in np.ndindex(y.shape[1:]):
                values[:, *column] = self._cdf_of(base, y[:, *column], inclusive)
            return values

        return Reading(BASE_LEVELS, read)

    def draws(self) -> Reading:
        """Return what reads draws from further numbers (n, k), uniform in [0, 1)."""

        def read(base: Array, uniforms: Array) -> Array:
            # Of the levels that are known, as the others may be infinite.
            levels = (1 - uniforms) * self.levels[-1]
            scores = self.scores[np.searchsorted(self.levels, levels - _ROUNDING)]
            below, above, share = _places(scores)
            low, high = (np.take_along_axis(base, at, axis=1) for at in (below, above))
            return self._between(low, high, share, scores)

        return Reading(BASE_LEVELS, read)

    def bounds(self, coverages: Array, kind: str, n: int, confidence: float | None) -> Reading:
        """Return what reads one-sided intervals (n_rows, 2, k), by n calibration rows.

        The upper bound is the quantile at c, and the "lower" one that at the largest level that is
        known up to 1 - c; with a confidence at the levels that it needs.
        """
        levels = _levels_of_bounds(coverages, n, confidence)
        if kind == "lower":
            position = np.searchsorted(self.levels, 1 - levels + _ROUNDING)
            levels = np.append(0.0, self.levels)[position]
        end, infinity = (0, np.inf) if kind == "lower" else (1, -np.inf)
        quantiles = self.quantiles(levels, -1 if kind == "lower" else 1)

        def read(base: Array) -> Array:
            bounds = quantiles.read(base)
            ends = np.stack([bounds, bounds], axis=1)
            ends[:, 1 - end] = np.where(np.isnan(bounds), np.nan, infinity)
            return ends

        return Reading(quantiles.levels, read)

    def _between(
        self, low: Array, high: Array, share: Array, scores: Array, outwards: int = 1
    ) -> Array:
        """Return Q at scores, a share of the way from one base quantile to the next, finished."""
        inside = np.minimum(low + share * (high - low), high)  # not beyond it by rounding
        beyond = scores - scores.clip(_KNOWN[0], _KNOWN[-1])
        values = self.postprocess.nearest(inside + _unit(self.postprocess) * beyond, outwards)
        return np.where(np.isnan(inside), np.nan, values)

    def _cdf_of(self, base: Array, y: Array, inclusive: bool) -> Array:
        finite = np.clip(y, -_HUGE, _HUGE)
        scale = np.maximum(np.abs(base[:, [0, -1]]).max(axis=1), np.abs(finite))
        # What rounding may have taken from a quantile, or added to it.
        allowance = scale * _ROUNDINGS * np.finfo(np.float64).eps
        moved = finite + np.where(inclusive, allowance, -allowance)
        scores = _scores(base, moved, self.postprocess, strictly=not inclusive)
        side: Literal["left", "right"] = "right" if inclusive else "left"
        values = np.append(0.0, self.levels)[np.searchsorted(self.scores, scores, side)]
        clips = self.postprocess.clip
        low, high = (self.postprocess.low, self.postprocess.high) if clips else (-np.inf, np.inf)
        none, everything = (y < low, y >= high) if inclusive else (y <= low, y > high)
        cases = [np.isnan(base[:, 0]), none, everything]
        return np.select(cases, [np.nan, 0.0, 1.0], values)


def _places(scores: Array) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    """Return between which base levels scores are, and which share of the way; all may be one."""
    cell = np.clip(np.searchsorted(_KNOWN, scores, side="right") - 1, 0, len(_KNOWN) - 2)
    share = np.clip((scores - _KNOWN[cell]) / (_KNOWN[cell + 1] - _KNOWN[cell]), 0, 1)
    return np.where(share == 1, cell + 1, cell), np.where(share == 0, cell, cell + 1), share


def _levels_of_bounds(coverages: ArrayLike, n: int, confidence: float | None) -> Array:
    """Return the levels of the quantiles that are upper bounds, by n calibration rows."""
    if confidence is None:
        return np.asarray(coverages, dtype=np.float64)
    ranks = [rank(n, c, confidence=confidence) for c in np.asarray(coverages).tolist()]
    return np.array(ranks) / (n + 1)


def _unit(postprocess: PostProcess) -> float:
    """Return what a score of one is beyond the base quantiles, in the unit of y."""
    return (postprocess.high / 2 - postprocess.low / 2) or 1.0


def _scores(base: Array, y: Array, postprocess: PostProcess, *, strictly: bool) -> Array:
    """Return the largest s with Q(x, s) <= y, or least with >= y, (n,); Q is not clipped here."""
    below, above = postprocess.cells(y)
    z = below if strictly else above
    known, last = _KNOWN, len(_KNOWN) - 1
    points = z[:, np.newaxis]
    count = ((base < points) if strictly else (base <= points)).sum(axis=1)
    rows, cell = np.arange(len(z)), np.clip(count - 1, 0, last - 1)
    low, high = base[rows, cell], base[rows, cell + 1]
    unit = _unit(postprocess)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # where another case holds
        between = known[cell] + (known[cell + 1] - known[cell]) * ((z - low) / (high - low))
        tails = [known[0] + (z - base[:, 0]) / unit, known[-1] + (z - base[:, -1]) / unit]
    return np.asarray(np.select([count == 0, count > last], tails, between))


def checked_levels(levels: ArrayLike) -> Array:
    """Return levels in [0, 1], () or (k,), or raise ValueError as the engine does."""
    try:
        numbers = np.asarray(levels)
    except ValueError:  # lists of several lengths
        numbers = np.array(None)
    if numbers.dtype.kind not in "iuf" or numbers.ndim > 1 or numbers.size == 0:
        raise ValueError(f"quantiles must be a number or a list of numbers, got {levels!r}")
    for level in numbers.flat:
        if not 0 <= level <= 1:
            raise ValueError(f"quantiles must be from 0 to 1, got {level:g}")
    return numbers.astype(np.float64)


def checked_points(y: ArrayLike, n_outputs: int = 1) -> Array:
    """Return points of each row and output, one or k, or one number for all, or ValueError."""
    points, of_row = reals("y", y), (n_outputs,)[n_outputs == 1 :]
    n_axes = 1 + len(of_row)
    fits = points.ndim in (n_axes, n_axes + 1) and points.shape[1:n_axes] == of_row
    if not (fits or points.ndim == 0) or np.isnan(points).any():
        shapes = "(n,) or (n, k)" if n_outputs == 1 else f"(n, {n_outputs}) or (n, {n_outputs}, k)"
        raise ValueError(f"y must be {shapes} numbers without NaN, got {points.shape}")
    return points
