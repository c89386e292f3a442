"""Slow twins of hdiforest.calibration, one row and one candidate at a time; and made-up rows."""

import math
from functools import lru_cache
from itertools import pairwise

import numpy as np

from hdiforest.calibration._bases import candidate_bases

NAMES = (("raw", "centred"), ("hdi", "equal_tailed"), (0.3, 0.8, 0.94))
BASES = candidate_bases(*NAMES)


def by_base(ends):
    """Ends of families, kinds, rows and levels as those of rows and bases."""
    n = ends.shape[2]
    return np.moveaxis(ends, (2, 3), (0, 1)).reshape(n, 2, -1)


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
    return min(y_train), max(y_train), lattice(y_train)


def finish(lower, upper, y_train, clip=True):
    """One interval; values within 1e-6 steps of a lattice point are taken to be it."""
    least, largest, grid = known(tuple(y_train))
    if lower > upper:
        lower = upper = (lower + upper) / 2

    def clipped(end):
        return min(max(end, least), largest) if clip and len(y_train) >= 200 else end

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
        return next((y for y in set(y_train) if abs(y - point) < 1e-6 * step), point)

    return clipped(target(min(inside))), clipped(target(max(inside)))


def pad(scores, coverage):
    k = math.ceil((len(scores) + 1) * coverage - 1e-9)
    return sorted(scores)[k - 1] if k <= len(scores) else math.inf


def scores(intervals, y):
    return [max(low - t, t - high) for (low, high), t in zip(intervals, y, strict=True)]


def widened(intervals, q, y_train, clip=True):
    return [finish(low - q, high + q, y_train, clip) for low, high in intervals]


def loss(intervals, y, coverage, objective):
    total = 0.0
    for (low, high), target in zip(intervals, y, strict=True):
        total += high - low
        if objective == "interval_score":
            missed = max(low - target, 0) + max(target - high, 0)
            total += 2 / (1 - coverage) * missed
    return total / len(y)


def choose(ends, y, y_train, coverage, names, objective="width", n_rule=None, inner=None):
    """Return (family, kind, level, pad) for rows of `ends` as the package takes them."""
    chooses = (len(y) if n_rule is None else n_rule) >= 500
    families, kinds, levels = names
    table = []
    for f, family in enumerate(families):
        for k, kind in enumerate(kinds):
            for c, level in enumerate(levels):
                if not chooses and (family, kind, level) != (
                    "centred",
                    "equal_tailed",
                    0.8,
                ):
                    continue
                base = ends[f, k, :, :, c].tolist()
                missed = scores(base, y)
                if inner is not None and chooses:
                    pairs = zip(inner, missed, y, strict=True)
                    missed = [min(missed) if a <= t <= b else e for (a, b), e, t in pairs]
                q = pad(missed, coverage)
                final = widened(base, q, y_train)
                if inner is not None:
                    pairs = zip(final, inner, strict=True)
                    final = [(min(a, c), max(b, d)) for (a, b), (c, d) in pairs]
                value = loss(final, y, coverage, objective)
                table.append((value, -level, len(table), family, kind, level, q))
    return min(table)[3:], min(table)[0]


def choose_all(ends, y, y_train, coverages, names, objective, n_rule):
    """Return a choice for each coverage, each knowing the intervals of the last, of one family."""
    families, kinds, levels = names
    if n_rule < 500:
        options = (names, objective, n_rule)
        return [choose(ends, y, y_train, c, *options)[0] for c in coverages]
    found = []
    for f, family in enumerate(families):
        own, own_names = ends[f : f + 1], ((family,), kinds, levels)
        choices, losses, inner = [], [], None
        for c in coverages:
            choice, value = choose(own, y, y_train, c, own_names, objective, n_rule, inner)
            choices.append(choice)
            losses.append(value)
            inner = intervals(own, y_train, own_names, choices)[..., -1].tolist()
        found.append((choices, losses))
    totals = [sum(column) for column in zip(*(losses for _, losses in found), strict=True)]

    def share(losses):
        return sum(v / t for v, t in zip(losses, totals, strict=True) if 0 < t < math.inf)

    return min(found, key=lambda one: share(one[1]))[0]


def intervals(ends, y_train, names, choices):
    """Intervals (n, 2, k) of all rows of `ends`: padded, finished, nested."""
    families, kinds, levels = names
    out = np.empty((ends.shape[2], 2, len(choices)))
    for j, (family, kind, level, q) in enumerate(choices):
        base = ends[families.index(family), kinds.index(kind), :, :, levels.index(level)]
        out[:, :, j] = widened(base.tolist(), q, y_train)
        if j > 0:
            out[:, 0, j] = np.minimum(out[:, 0, j], out[:, 0, j - 1])
            out[:, 1, j] = np.maximum(out[:, 1, j], out[:, 1, j - 1])
    return out


def made(n, seed=0, names=NAMES, lattice=False):
    """Candidate intervals of n rows, better or worse by family, kind and level; and targets."""
    rng = np.random.default_rng(seed)
    centre, scale = rng.normal(5, 3, n), rng.gamma(2, 1, n)
    y = centre + scale * rng.normal(size=n)
    y = np.round(y) if lattice else y
    shape = tuple(map(len, names[:2]))
    noise = rng.normal(size=(*shape, n, 1)) * rng.uniform(0.2, 1, (*shape, 1, 1))
    half = scale[:, None] * np.array(names[2]) * rng.uniform(0.5, 3, (*shape, 1, 1))
    middle = centre[:, None] + noise
    return np.stack([middle - half, middle + half], axis=3), y


def two_kinds_of_rows(rng, n):
    """X, which does not say of which kind a row is, y, and weights: of noisy ones twice as much."""
    noisy = np.arange(n) % 2 == 0
    X = rng.random((n, 2))
    return X, X[:, 0] + rng.normal(scale=np.where(noisy, 3.0, 0.3)), np.where(noisy, 1.5, 0.75)
