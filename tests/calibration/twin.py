"""Slow twins of hdiforest.calibration, one row and one candidate at a time; and made-up rows."""

import math
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hdiforest._utils.checks import checked_coverages
from hdiforest.calibration import _calibrate, _selection
from hdiforest.calibration._bases import Base, Candidates, candidate_bases
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._selection import SLOPES, reselected, rule_for

FAMILIES = ("raw", "centred")
KINDS = ("hdi", "equal_tailed", "averaged")
# Of three groups: raw and centred, and raw of pruned trees.
BASES = (
    *candidate_bases(FAMILIES, KINDS, (0.3, 0.8)),
    *candidate_bases(("raw",), KINDS, (0.3, 0.8), (5,)),
)


class Choice(NamedTuple):
    """What was selected: a row's quantile is q + slope times its width."""

    base: Base
    q: float
    slope: float
    unit: float


def selection(ends, y, y_train, coverages, *, bases, weights=None, objective="balanced", **options):
    """What a rule takes, and the rule for so many rows; see `calibrate_oob`."""
    postprocess = PostProcess.from_targets(y_train, clip=options.get("clip", True))
    candidates = Candidates.checked(bases, ends, y, postprocess, weights)
    rule = rule_for(len(candidates.y), objective, options.get("slopes", SLOPES))
    return (candidates, checked_coverages(coverages)), rule


def select_out_of_bag(*args, **options):
    known, rule = selection(*args, **options)
    return rule(*known)


def calibrate_oob(*args, selected=None, labels=None, **options):
    """The calibration without its cross-fit."""
    known, rule = selection(*args, **options)
    rule = _selection.corrected(rule) if selected is None else reselected(selected)
    return _calibrate.calibrate_oob(*known, rule, labels=labels)[0]


def calibrate_split(*args, selected, confidence=None, labels=None, **options):
    known, _ = selection(*args, **options)
    return _calibrate.calibrate_split(*known, selected, confidence, labels)


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
    return finish_by(known(tuple(y_train)), lower, upper, clip and len(y_train) >= 200)


def finish_by(facts, lower, upper, clips):
    least, largest, grid, distinct = facts
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


def pad(scores, coverage):
    k = math.ceil((len(scores) + 1) * coverage - 1e-9)
    return sorted(scores)[k - 1] if k <= len(scores) else math.inf


def score(interval, target, unit):
    """How far a target is outside; inside, which part of the half width, times the unit."""
    low, high = interval
    missed = max(low - target, target - high)
    return missed if missed >= 0 else missed / ((high - low) / 2) * unit


def widened(interval, q, unit):
    """Both ends moved outwards by q; or the interval scaled about its middle."""
    low, high = interval
    if q >= 0:
        return low - q, high + q
    middle, half = (low + high) / 2, (high - low) / 2 * (1 + q / unit)
    return middle - half, middle + half


def mean_half_width(intervals):
    mean = sum((high - low) / 2 for low, high in intervals) / len(intervals)
    return mean if mean > 0 else 1.0


def loss(intervals, y, coverage, objective):
    width = score = 0.0
    for (low, high), target in zip(intervals, y, strict=True):
        missed = max(low - target, 0) + max(target - high, 0)
        width += (high - low) / len(y)
        score += (high - low + 2 / (1 - coverage) * missed) / len(y)

    def log(value):
        return math.log(value) if value > 0 else -math.inf

    return {
        "width": log(width),
        "interval_score": log(score),
        "balanced": log(width) + 1.5 * log(score),
    }[objective]


def intervals_of(ends, bases, base):
    return [tuple(row) for row in ends[:, :, bases.index(base)].tolist()]


def widths_of(ends, bases, base):
    """Widths of the equal-tailed 0.8 intervals of the same family and leaf size."""
    base = Base(base.family, "equal_tailed", 0.8, base.min_samples_leaf)
    return [high - low for low, high in intervals_of(ends, bases, base)]


def finished(ends, bases, choice, y_train):
    """The intervals of all rows by one choice."""
    own = intervals_of(ends, bases, choice.base)
    widths = widths_of(ends, bases, choice.base) if choice.slope else [0.0] * len(own)
    facts, clips = known(tuple(y_train)), len(y_train) >= 200
    return [
        finish_by(facts, *widened(interval, choice.q + choice.slope * w, choice.unit), clips)
        for interval, w in zip(own, widths, strict=True)
    ]


def hulls(one, other):
    return [(min(a, c), max(b, d)) for (a, b), (c, d) in zip(one, other, strict=True)]


def choose(ends, bases, y, y_train, coverage, candidates, objective, slopes, inner):
    """Return the choice with the least loss, and the loss."""
    table = []
    for slope in slopes:
        for base in candidates:
            own = intervals_of(ends, bases, base)
            widths = widths_of(ends, bases, base) if slope else [0.0] * len(y)
            unit = mean_half_width(own)
            rows = zip(own, y, widths, strict=True)
            missed = [score(interval, t, unit) - slope * w for interval, t, w in rows]
            if inner is not None:
                pairs = zip(inner, missed, y, strict=True)
                least = min(missed)
                missed = [least if a - 1e-9 <= t <= b + 1e-9 else e for (a, b), e, t in pairs]
            choice = Choice(base, pad(missed, coverage), slope, unit)
            final = finished(ends, bases, choice, y_train)
            if inner is not None:
                final = hulls(final, inner)
            value = loss(final, y, coverage, objective)
            # Equal losses: the first slope, the largest level, the first base.
            table.append((value, slopes.index(slope), -base.level, len(table), choice))
    *_, choice = min(table, key=lambda row: row[:4])
    return choice, min(table)[0]


def choose_all(
    ends, bases, y, y_train, coverages, objective="balanced", slopes=(0.0, 0.1, 0.25), n_rule=None
):
    """Return a choice for each coverage, each knowing the intervals of the last, of one group."""
    if (len(y) if n_rule is None else n_rule) < 500:
        options = ([Base("centred", "equal_tailed", 0.8)], objective, (0.0,), None)
        return [choose(ends, bases, y, y_train, c, *options)[0] for c in coverages]
    found = []
    for group in dict.fromkeys((base.family, base.min_samples_leaf) for base in bases):
        own = [base for base in bases if (base.family, base.min_samples_leaf) == group]
        choices, losses, inner = [], [], None
        for c in coverages:
            choice, value = choose(ends, bases, y, y_train, c, own, objective, slopes, inner)
            choices.append(choice)
            losses.append(value)
            inner = as_pairs(intervals(ends, bases, y_train, choices)[..., -1])
        found.append((choices, losses))
    finite = [all(math.isfinite(losses[j]) for _, losses in found) for j in range(len(coverages))]

    def total(losses):
        return sum(value for value, counts in zip(losses, finite, strict=True) if counts)

    return min(found, key=lambda one: total(one[1]))[0]


def corrected(ends, bases, y, y_train, coverages, *options):
    """Return choices whose quantiles allow for a third of the optimism that halves show."""
    choices = choose_all(ends, bases, y, y_train, coverages, *options)
    if lattice(y_train) is not None:
        return choices
    n = len(y)
    order = np.random.default_rng(0).permutation(n)
    ranks = [[] for _ in coverages]
    for rows in (order[: n // 2], order[n // 2 :]):
        own_y = [y[i] for i in rows]
        of_half = choose_all(ends[rows], bases, own_y, y_train, coverages, *options)
        by_row = scores_by(ends, bases, y, y_train, of_half)
        for i in np.setdiff1d(order, rows):
            for j, of_coverage in enumerate(ranks):
                below = sum(by_row[row][j] < by_row[i][j] - 1e-9 for row in rows)
                of_coverage.append((1 + below) / (len(rows) + 1))
    levels = [
        min(c + max(0, pad(of_coverage, c) - c) / 3, n / (n + 1))
        for of_coverage, c in zip(ranks, coverages, strict=True)
    ]
    return requantiled(ends, bases, y, y_train, levels, choices)


def scores_by(ends, bases, y, y_train, choices):
    """The scores of each row, one for each choice; least where a lower coverage covers the row."""
    boxes = intervals(ends, bases, y_train, choices)
    table = []
    for row, target in enumerate(y):
        scores = []
        for j, choice in enumerate(choices):
            (own,) = intervals_of(ends[row : row + 1], bases, choice.base)
            (width,) = widths_of(ends[row : row + 1], bases, choice.base)
            low, high = boxes[row, :, j - 1]
            is_inside = j > 0 and low - 1e-9 <= target <= high + 1e-9
            missed = score(own, target, choice.unit) - choice.slope * width
            scores.append(-math.inf if is_inside else missed)
        table.append(scores)
    return table


def as_pairs(intervals):
    return [tuple(row) for row in intervals.tolist()]


def requantiled(ends, bases, y, y_train, coverages, choices):
    """Return the same bases and slopes with the quantiles of these rows."""
    again, inner = [], None
    for choice, c in zip(choices, coverages, strict=True):
        options = ([choice.base], "width", (choice.slope,), inner)
        again.append(choose(ends, bases, y, y_train, c, *options)[0])
        inner = as_pairs(intervals(ends, bases, y_train, again)[..., -1])
    return again


def intervals(ends, bases, y_train, choices):
    """Intervals (n, 2, k) of all rows of `ends`, (n, 2, m): widened, finished, nested."""
    by_choice = []
    for choice in choices:
        own = finished(ends, bases, choice, y_train)
        by_choice.append(hulls(own, by_choice[-1]) if by_choice else own)
    return np.moveaxis(np.array(by_choice), 0, -1)


def made(n, seed=0, bases=BASES, lattice=False):
    """Candidate intervals (n, 2, m), better or worse by family, size and kind; and targets."""
    rng = np.random.default_rng(seed)
    centre, scale = rng.normal(5, 3, n), rng.gamma(2, 1, n)
    y = centre + scale * rng.normal(size=n)
    y = np.round(y) if lattice else y
    of_kind = {}
    for kind in dict.fromkeys((*base.group, base.kind) for base in bases):
        noise = rng.normal(size=n) * rng.uniform(0.2, 1)
        of_kind[kind] = centre + noise, scale * rng.uniform(0.5, 3)
    ends = np.empty((n, 2, len(bases)))
    for j, base in enumerate(bases):
        middle, half = of_kind[*base.group, base.kind]
        ends[:, 0, j], ends[:, 1, j] = middle - base.level * half, middle + base.level * half
    return ends, y


def two_kinds_of_rows(rng, n):
    """X, which does not say of which kind a row is, y, and weights: of noisy ones twice as much."""
    noisy = np.arange(n) % 2 == 0
    X = rng.random((n, 2))
    return X, X[:, 0] + rng.normal(scale=np.where(noisy, 3.0, 0.3)), np.where(noisy, 1.5, 0.75)
