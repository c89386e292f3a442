"""Conformal predictive distributions: which level of a forest's distribution is asked for which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

import hdicore
from hdiforest._model.bases import BASE_LEVELS
from hdiforest._utils import Array
from hdiforest._utils.checks import reals
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._quantiles import rank

# Levels that are known exactly, of more rows; others have the next larger one.
_N_KNOTS = 500
_KNOTS = np.concatenate([[0.001], np.arange(1, _N_KNOTS) / _N_KNOTS, [0.999]])

_SEED = 0  # of the ranks among ties, so that a calibration repeats
_ROUNDING = 1e-9  # of a level that should equal a knot


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
        _ = self._engine  # which checks the numbers

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
        below, upto = (
            hdicore.PredictiveDistribution.scores(base, y, postprocess.engine, strictly=strictly)
            for strictly in (True, False)
        )
        draws = np.random.default_rng(_SEED).random(len(y))
        scores = below + draws * (upto - below)
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

    @cached_property
    def _engine(self) -> hdicore.PredictiveDistribution:
        return hdicore.PredictiveDistribution(self.levels, self.scores, self.postprocess.engine)

    def quantiles(self, levels: Array, outwards: int = 1) -> Reading:
        """Return what reads quantiles (n, k) at levels (k,) in [0, 1], or at the next known ones.

        Points of the lattice that no training target has are moved `outwards`: 1 up, -1 down.
        """
        read = partial(self._engine.quantiles, levels=levels, outwards=outwards)
        return Reading(tuple(self._engine.base_levels(levels).tolist()), read)

    def cdf(self, *, inclusive: bool = True) -> Reading:
        """Return what reads P(Y <= y), or P(Y < y), from further points y, (n,) or (n, k).

        It is the largest level that is known whose quantile is at most, or below, y.
        """
        return Reading(BASE_LEVELS, partial(self._engine.cdf, inclusive=inclusive))

    def draws(self) -> Reading:
        """Return what reads draws from further numbers (n, k), uniform in [0, 1)."""
        return Reading(BASE_LEVELS, self._engine.draws)

    def bounds(self, coverages: Array, end: str, n: int, confidence: float | None) -> Reading:
        """Return what reads one-sided intervals (n_rows, 2, k), by n calibration rows.

        The upper bound is the quantile at c, and the "lower" one that at the largest level that is
        known up to 1 - c; with a confidence at the levels that it needs.
        """
        levels = _levels_of_bounds(coverages, n, confidence)
        if end == "lower":
            position = np.searchsorted(self.levels, 1 - levels + _ROUNDING)
            levels = np.append(0.0, self.levels)[position]
        infinite, infinity = (1, np.inf) if end == "lower" else (0, -np.inf)
        quantiles = self.quantiles(levels, -1 if end == "lower" else 1)

        def read(base: Array) -> Array:
            bounds = quantiles.read(base)
            ends = np.stack([bounds, bounds], axis=1)
            ends[:, infinite] = np.where(np.isnan(bounds), np.nan, infinity)
            return ends

        return Reading(quantiles.levels, read)


def _levels_of_bounds(coverages: ArrayLike, n: int, confidence: float | None) -> Array:
    """Return the levels of the quantiles that are upper bounds, by n calibration rows."""
    if confidence is None:
        return np.asarray(coverages, dtype=np.float64)
    ranks = [rank(n, c, confidence=confidence) for c in np.asarray(coverages).tolist()]
    return np.array(ranks) / (n + 1)


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
