"""Slow twin of hdiforest.calibration, one row and one base at a time."""

import math
from functools import lru_cache
from itertools import pairwise

import numpy as np

from hdiforest.calibration import Base

GROUPS = (("raw", 1), ("centred", 1), ("raw", 5))
LEVELS = (0.3, 0.8, 0.94)
BASES = tuple(Base(family, "averaged", level, m) for family, m in GROUPS for level in LEVELS)
OF_QUANTILES = [k / 20 for k in range(1, 20)]


def lattice(y):
    values = sorted(set(y))
    if len(values) < 2 or len(values) > len(y) / 4:
        return None
    step = min(b - a for a, b in pairwise(values))
    places = [(value - values[0]) / step for value in values]
    if any(abs(place - round(place)) > 1e-3 for place in places):
        return None
    return values[0], step


@lru_cache
def known(y_train):
    return min(y_train), max(y_train), lattice(y_train), sorted(set(y_train))


def finish(lower, upper, y_train, clip=True):
    """One interval; values within 1e-6 steps of a lattice point are taken to be it."""
    least, largest, grid, distinct = known(tuple(y_train))
    clips = clip and len(y_train) >= 200
    if lower > upper:
        lower = upper = (lower + upper) / 2

    def clipped(end):
        return min(max(end, least), largest) if clips else end

    if not math.isinf(lower):
        lower, upper = clipped(lower), clipped(upper)
    if grid is None or math.isinf(lower):
        return lower, upper
    base, step = grid
    near = range(math.floor((lower - base) / step) - 1, math.ceil((upper - base) / step) + 2)
    points = [base + step * k for k in near]
    inside = [p for p in points if lower - 1e-6 * step <= p <= upper + 1e-6 * step]
    if not inside:
        inside = [min(points, key=lambda p: abs(p - (lower + upper) / 2))]

    def target(point):
        return next((y for y in distinct if abs(y - point) < 1e-6 * step), point)

    return clipped(target(min(inside))), clipped(target(max(inside)))


def conformal_quantile(scores, coverage, weights):
    """The least score up to which rows have the share of all weight and that of one more row."""
    needed = coverage * (sum(weights) + max(weights)) - 1e-9
    for score in sorted(scores):
        if sum(w for s, w in zip(scores, weights, strict=True) if s <= score) >= needed:
            return score
    return math.inf


def mean(values, weights):
    return sum(v * w for v, w in zip(values, weights, strict=True)) / sum(weights)


def crps(quantiles, y, weights):
    """Half of it: the mean pinball loss."""
    losses = []
    for row, target in zip(quantiles, y, strict=True):
        of_levels = zip(OF_QUANTILES, row, strict=True)
        losses.append(sum((t - (target < q)) * (target - q) for t, q in of_levels) / 19)
    return mean(losses, weights)


def moved(ends, q, y_train):
    return [finish(low - q, high + q, y_train) for low, high in ends]


def intervals_of(ends, bases, base):
    return [tuple(row) for row in ends[:, :, bases.index(base)].tolist()]


def loss(intervals, y, coverage, objective, weights):
    missed = [max(a - t, 0) + max(t - b, 0) for (a, b), t in zip(intervals, y, strict=True)]
    widths = [b - a for a, b in intervals]
    width, score = mean(widths, weights), mean(widths, weights)
    score += 2 / (1 - coverage) * mean(missed, weights)
    of_width, of_score = {"balanced": (1, 1.5), "width": (1, 0), "interval_score": (0, 1)}[
        objective
    ]
    with np.errstate(divide="ignore"):
        return (of_width and of_width * np.log(width)) + (of_score and of_score * np.log(score))


def choose_all(ends, quantiles, y, y_train, coverages, objective="balanced", weights=None, n=None):
    """Return base and quantile of each coverage; `n` rows decide whether levels are compared."""
    weights = [1.0] * len(y) if weights is None else weights
    group = min(GROUPS, key=lambda g: crps(quantiles[g].tolist(), y, weights))  # of ties the first
    own = [base for base in BASES if base.group == group]
    chosen = []
    for c in coverages:
        if (n or len(y)) < 500:
            compared = [max((b for b in own if b.level <= max(min(c, 0.8), 0.3)), key=own.index)]
        else:
            compared = own[::-1]  # of ties the largest level
        tried = []
        for base in compared:
            plain = intervals_of(ends, BASES, base)
            scores = [max(a - t, t - b) for (a, b), t in zip(plain, y, strict=True)]
            q = conformal_quantile(scores, c, weights)
            tried.append((loss(moved(plain, q, y_train), y, c, objective, weights), base, q))
        chosen.append(min(tried, key=lambda each: each[0])[1:])
    return chosen


def intervals(ends, y_train, chosen):
    """Intervals (n, 2, k) of all rows of `ends`, (n, 2, m): widened, finished, nested."""
    found = np.array([moved(intervals_of(ends, BASES, base), q, y_train) for base, q in chosen])
    found[..., 0] = np.minimum.accumulate(found[..., 0])
    found[..., 1] = np.maximum.accumulate(found[..., 1])
    return np.moveaxis(found, 0, -1)
