"""Censored targets in fractions: weights of a row, Kaplan-Meier, and what is read from it."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np


def weights_of(leaves, query, counts=None):
    """Weight of each training row for one query row: trees that contribute share 1 alike."""
    weights = [Fraction(0)] * len(leaves)
    for tree, leaf in enumerate(query):
        here = [i for i in range(len(leaves)) if leaves[i][tree] == leaf]
        times = [1 if counts is None else int(counts[i][tree]) for i in here]
        for i, k in zip(here, times, strict=True):
            weights[i] += Fraction(k, sum(times)) if k else 0
    total = sum(weights)
    return [weight / total for weight in weights] if total else weights


@dataclass
class Survival:
    """Times of events, and P(T <= time) at each; the rest lies above `horizon`, the last time."""

    times: list
    upto: list
    horizon: float

    @classmethod
    def of(cls, times, event, weights):
        """Kaplan and Meier (1958): at each event the weight at risk loses its share."""
        at_risk, survival, found, upto = sum(weights), Fraction(1), [], []
        came, gone = {}, {}
        for time, is_event, weight in zip(times, event, weights, strict=True):
            if weight:
                gone[time] = gone.get(time, 0) + weight
                came[time] = came.get(time, 0) + (weight if is_event else 0)
        for time in sorted(gone):
            if came[time]:
                survival *= 1 - came[time] / at_risk
                found.append(time)
                upto.append(1 - survival)
            at_risk -= gone[time]
        return cls(found, upto, max(gone))

    @property
    def masses(self):
        return dict(zip(self.times, np.diff([Fraction(0), *self.upto]), strict=True))

    @property
    def beyond(self):
        return 1 - (self.upto or [0])[-1]

    def below(self, time, inclusive=True):
        """P(T <= time), or P(T < time)."""
        n = (bisect_right if inclusive else bisect_left)(self.times, time)
        return self.upto[n - 1] if n else Fraction(0)

    def quantile(self, level):
        """First event time up to which the mass reaches the level; infinite if there is none."""
        n = bisect_left(self.upto, level)
        return self.times[n] if n < len(self.times) else inf

    def lower(self, coverage):
        """Last event time from which on the mass holds the coverage, up to infinity."""
        if self.beyond >= coverage:
            return self.horizon, inf
        starts = [t for t in self.times if 1 - self.below(t, inclusive=False) >= coverage]
        return starts[-1], inf

    def upper(self, coverage):
        return -inf, self.quantile(coverage)

    def equal_tailed(self, coverage):
        tail = (1 - coverage) / 2
        return min(self.quantile(tail), self.horizon), self.quantile(1 - tail)

    def hdi(self, coverage):
        """Ties: most mass, then the midpoint nearest the median if it is reached, then leftmost."""
        windows = []
        median = self.quantile(Fraction(1, 2))
        for start, before in zip(self.times, [Fraction(0), *self.upto], strict=False):
            end = self.quantile(before + coverage)
            if end < inf:
                off = abs(Fraction(start + end) / 2 - Fraction(median)) if median < inf else 0
                windows.append((end - start, before - self.below(end), off, start, end))
        return min(windows)[3:] if windows else self.lower(coverage)


def rounding_bound(leaves, query, counts, n_events, shift):
    """How far P(T > t) is at most from the exact one.

    A tree has 2^shift units. Weights at risk are off by less than a unit for each tree that still
    has some, thus by the weight of the heaviest leaf in rows at most, relative; hazards by twice
    that. 2^-52 is the unit of masses.
    """
    heaviest = 1
    for tree, leaf in enumerate(query):
        here = [i for i in range(len(leaves)) if leaves[i][tree] == leaf]
        of_leaf = len(here) if counts is None else sum(int(counts[i][tree]) for i in here)
        heaviest = max(heaviest, of_leaf)
    of_hazards = Fraction(2 * heaviest, 2**shift)
    return of_hazards * (1 + of_hazards) + Fraction(2 * n_events + 1, 2**52)
