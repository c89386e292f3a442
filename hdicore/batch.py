"""Intervals of a batch: the least total width at a mean mass, by one price for all rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hdicore._core import LeafIndex, Scorer

Array = NDArray[np.float64]
Source = Scorer | LeafIndex

# Shares are counted in whole numbers, so that sums do not depend on the order of rows.
UNITS = 1 << 32
_N_PRICES = 32  # of one pass: the engine reads so many at once
_REACH = 2.0**20  # of the prices of the first pass, relative to the range of the targets
_NEAR = 2.0**-42  # prices so close count as one
_MAX_PASSES = 50
_ROWS_AT_ONCE = 1 << 13


class BatchIntervals(NamedTuple):
    """Intervals of n rows that hold a mean mass together.

    Parameters
    ----------
    interval : (n, 2) float64, or table
        Lower and upper ends; NaN where a row has no distribution.
    mass : (n,) float64
        Share of its distribution that the interval of each row holds.
    price : float
        Width for which rows buy the whole of their mass, in the unit of y.
    total_width : float
        Sum of the widths.
    bound : float
        No intervals of this mean mass have a sum of widths below it.
    """

    interval: Any
    mass: Array
    price: float
    total_width: float
    bound: float


class Sums(NamedTuple):
    """What rows have together at each of k prices."""

    n_rows: int  # with a distribution
    masses: NDArray[np.int64]  # (k,) in UNITS
    widths: Array  # (k,)

    @classmethod
    def of(cls, parts: Sequence[Sums]) -> Self:
        """Return the sums of several parts."""
        n_rows, masses, widths = zip(*parts, strict=True)
        return cls(sum(n_rows), np.asarray(sum(masses)), np.asarray(sum(widths)))

    @classmethod
    def read(cls, *arguments: Any) -> Self:
        """Return the sums of what `Reading.parts` yields."""
        return cls.of([part.sums() for part in Reading.parts(*arguments)])


class Reading(NamedTuple):
    """Intervals and masses of n rows at each of k prices."""

    ends: Array  # (n, 2, k)
    masses: NDArray[np.int64]  # (n, k) in UNITS; -1: the row has no distribution

    @classmethod
    def of(
        cls,
        source: Source,
        rows: Any,
        prices: Array,
        min_coverage: float,
        n_threads: int,
    ) -> Self:
        """Read from rows of features, or of leaves."""
        shares = np.empty((len(rows), len(prices)))
        ends, _ = source.priced_intervals(
            rows, prices, min_coverage, mass=shares, n_threads=n_threads
        )
        return cls(ends, np.nan_to_num(np.floor(shares * UNITS), nan=-1).astype(np.int64))

    @property
    def widths(self) -> Array:
        """Widths (n, k)."""
        widths: Array = self.ends[:, 1] - self.ends[:, 0]
        return widths

    @classmethod
    def parts(cls, source: Source, rows: Any, *arguments: Any) -> Iterator[Self]:
        """Yield what `of` returns, for some rows at a time."""
        for begin in range(0, max(1, len(rows)), _ROWS_AT_ONCE):
            yield cls.of(source, rows[begin : begin + _ROWS_AT_ONCE], *arguments)

    def sums(self) -> Sums:
        """Return the sums over the rows with a distribution."""
        known = self.masses[:, 0] >= 0
        masses, widths = self.masses[known], self.widths[known]
        return Sums(len(masses), masses.sum(axis=0), widths.sum(axis=0))


class PriceSearch:
    """Brackets the price at which rows have a mean mass, by sums at up to 32 prices a pass."""

    def __init__(self, coverage: float, unit: float) -> None:
        self.coverage = coverage
        self.low, self.high = 0.0, math.inf
        self._unit = unit or 1.0

    def prices(self, slopes: Array | None = None) -> Array:
        """Return ascending prices to ask next: at and beside `slopes`, or else evenly spaced."""
        if self.low == 0 and self.high == math.inf:
            return np.geomspace(self._unit / _REACH, self._unit * _REACH, _N_PRICES)
        low = self.low or self.high / _REACH
        high = self.high if self.high < math.inf else self.low * _REACH
        if slopes is None:
            return np.geomspace(low, high, _N_PRICES)
        some = np.quantile(slopes, np.linspace(0, 1, _N_PRICES // 3), method="nearest")
        beside = np.multiply.outer([1 - _NEAR, 1, 1 + _NEAR], some)
        return np.unique(np.clip([low, high, *beside.ravel()], low, high))

    def target(self, sums: Sums) -> int:
        """Return the UNITS that the rows must hold together."""
        return math.ceil(self.coverage * sums.n_rows * UNITS)

    def narrow(self, prices: Array, sums: Sums) -> slice:
        """Keep the neighbours among the prices between which the mass is reached; where they are.

        If it is reached below all prices, or above, these are the first two, or the last.
        """
        enough = np.maximum.accumulate(sums.masses) >= self.target(sums)
        at = int(enough.argmax()) if enough.any() else len(prices)
        if at > 0:
            self.low = float(prices[at - 1])
        if at < len(prices):
            self.high = float(prices[at])
        at = min(max(at, 1), len(prices) - 1)
        return slice(at - 1, at + 1)

    @property
    def is_bracket(self) -> bool:
        """Whether the mass is known to be reached between two prices."""
        return self.low > 0 and self.high < math.inf

    @property
    def is_exhausted(self) -> bool:
        """Whether the prices left are as good as one, as none, or as any."""
        return (
            self.high <= self.low * (1 + 3 * _NEAR)
            or self.high <= self._unit / _REACH**2
            or self.low >= self._unit * _REACH**2
        )

    def bound(self, prices: Array, sums: Sums) -> float:
        """Return the greatest lower bound of the total width that one of the prices gives.

        No intervals have more surplus at a price than those of that price. Their masses are rounded
        down, by less than a unit each, and ties may cost as much.
        """
        missing = (self.target(sums) - sums.masses - 2 * sums.n_rows) / UNITS
        return max(0.0, float((sums.widths + prices * missing).max()))


class PriceRule(NamedTuple):
    """Two close prices: rows take the intervals of the higher one until the mass is reached."""

    prices: Array  # (2,)
    min_coverage: float
    coverage: float
    missing: tuple[int, ...]  # UNITS that the rows of each part have yet to add
    bound: float  # of the total width

    @staticmethod
    def choose(reading: Reading, missing: int) -> tuple[Array, Array, int]:
        """Return intervals (n, 2) and shares (n,) of rows, and what is missing behind them."""
        gains = np.diff(reading.masses, axis=1)[:, 0]
        at = (np.cumsum(gains) - gains < missing).astype(np.intp)
        ends, masses = _chosen(reading, at)
        return ends, _shares(masses), missing - int(gains[at > 0].sum())


def range_of_targets(source: Source) -> float:
    """Return the largest less the least target of what is read."""
    index = source.index if isinstance(source, Scorer) else source
    return float(np.ptp(index.atoms()))


def find_rule(
    ask: Callable[[Array], Sequence[Sums]],
    coverage: float,
    min_coverage: float,
    unit: float,
) -> PriceRule:
    """Return the rule for the rows of several parts, which are read pass after pass.

    `ask` returns the sums of each part at ascending prices; `unit` is the range of the targets.
    Passes end when the total width is within a hundredth of a row's mean width of the least one.
    O(parts) memory.
    """
    search = PriceSearch(coverage, unit)
    for _ in range(_MAX_PASSES):
        prices = search.prices()
        parts = ask(prices)
        whole = Sums.of(parts)
        pair = search.narrow(prices, whole)
        excess = (int(whole.masses[pair][1]) - search.target(whole)) / UNITS
        loss = (search.high - search.low) * excess * whole.n_rows
        if search.is_exhausted or 100 * loss <= whole.widths[pair][1]:
            break
    missing, left = search.target(whole) - int(whole.masses[pair][0]), []
    for part in parts:
        left.append(missing)
        missing -= int(np.diff(part.masses[pair])[0])
    bound = search.bound(prices, whole)
    return PriceRule(prices[pair], min_coverage, coverage, tuple(left), bound)


def predict_batch(
    source: Source, rows: Any, n_threads: int, coverage: float, min_coverage: float
) -> BatchIntervals:
    """Return the intervals of all rows, of features or of leaves.

    The price is the slope of a segment of the lower hull of width over mass of some row, and the
    total width exceeds the least one by less than the width of one segment. After the first pass
    only rows are read whose intervals differ between the two prices that are left.
    """
    search = PriceSearch(coverage, range_of_targets(source))

    def read(some: NDArray[np.intp], prices: Array) -> Iterator[Reading]:
        return Reading.parts(source, rows[some], prices, min_coverage, n_threads)

    both = Reading(np.empty((len(rows), 2, 2)), np.empty((len(rows), 2), dtype=np.int64))
    active, slopes, bound = np.arange(len(rows)), None, 0.0
    settled = Sums(0, np.zeros(1, np.int64), np.zeros(1))
    for _ in range(_MAX_PASSES):
        prices = search.prices(slopes)
        sums = Sums.of([settled, *(part.sums() for part in read(active, prices))])
        bound = max(bound, search.bound(prices, sums))
        pair = search.narrow(prices, sums)
        for each, parts in zip(both, zip(*read(active, prices[pair]), strict=True), strict=True):
            each[active] = np.concatenate(parts)
        changes = both.masses[active, 0] < both.masses[active, 1]
        if search.is_exhausted or (search.is_bracket and not changes.any()):
            break
        if search.is_bracket:
            same = active[~changes]
            rest = Reading(both.ends[same, ..., :1], both.masses[same, :1])
            settled, active = Sums.of([settled, rest.sums()]), active[changes]
            slopes = _slopes(both, active)
    active = active[changes]
    order = active[np.argsort(_slopes(both, active), kind="stable")]
    gains = np.diff(both.masses[order], axis=1)[:, 0]
    missing = search.target(sums) - int(both.masses[:, 0].clip(0).sum())
    before = np.cumsum(gains) - gains
    order = order[before < missing]
    at = np.zeros(len(rows), dtype=np.intp)
    at[order] = 1
    ends, masses = _chosen(both, at)
    shares, price = _shares(masses), search.low
    if len(order) > 0:
        last, price = order[-1:], float(_slopes(both, order[-1:])[0])
        lacking = int(both.masses[last[0], 0]) + missing - int(before[len(order) - 1])
        level = min(1.0, max(lacking / UNITS, min_coverage))
        shortest = source.intervals(rows[last], level, n_threads=1)
        if np.ptp(shortest) < np.ptp(ends[last]):
            ends[last] = shortest
            up_to = source.cdf(rows[last], shortest[:, 1], n_threads=1)
            shares[last] = up_to - source.cdf(
                rows[last], shortest[:, 0], inclusive=False, n_threads=1
            )
    total = math.fsum(np.nan_to_num(ends[:, 1] - ends[:, 0]))
    return BatchIntervals(ends, shares, price, total, min(bound, total))


def _slopes(both: Reading, rows: NDArray[np.intp]) -> Array:
    """Return what rows pay for the mass that they gain from the first price to the second."""
    extra, gains = np.diff(both.widths[rows], axis=1), np.diff(both.masses[rows], axis=1)
    slopes: Array = (extra * UNITS / gains)[:, 0]
    return slopes


def _chosen(reading: Reading, at: NDArray[np.intp]) -> tuple[Array, NDArray[np.int64]]:
    """Return the ends (n, 2) and masses (n,) of each row at one of the prices."""
    rows = np.arange(len(at))
    return reading.ends[rows, :, at], reading.masses[rows, at]


def _shares(masses: NDArray[np.int64]) -> Array:
    return np.where(masses < 0, np.nan, masses / UNITS)
