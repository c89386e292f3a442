"""Intervals of a batch: the least total width at a mean mass, by one price for all rows.

`predict_batch` takes rows that are in memory. Rows that come in parts are read pass after pass:
`find_rule` asks for the `Sums` of each part at some prices, and returns a `PriceRule`, which
chooses the intervals of one part after the other.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdicore._core import LeafIndex, Scorer

__all__ = ["BatchIntervals", "PriceRule", "Reading", "Sums", "find_rule", "predict_batch"]

Array = NDArray[np.float64]
Source = Scorer | LeafIndex

# Shares are counted in whole numbers, so that sums do not depend on the order of rows.
UNITS = 1 << 32
_N_PRICES = 32  # of one pass: the engine reads so many at once
_REACH = 2.0**20  # of the prices of the first pass, relative to the range of the targets
_NEAR = 2.0**-42  # prices so close count as one
_MAX_PASSES = 50
_MAX_RANGE = 2.0**900  # of targets, so that prices and sums of widths are finite
_ROWS_AT_ONCE = 1 << 13


class BatchIntervals(NamedTuple):
    """Intervals of n rows that hold a mean mass together, as `predict_batch` returns them.

    Parameters
    ----------
    interval : (n, 2) float64
        Lower and upper ends, in the unit of the targets. NaN if a row has no distribution.
    mass : (n,) float64
        Share of its distribution that the interval of each row holds.
    price : float
        Width that the whole distribution of a row is worth, in the unit of the targets. 0 if
        intervals that hold `min_coverage` are enough.
    total_width : float
        Sum of the widths.
    bound : float
        Lower bound of the sum of the widths of any intervals with the same mean mass.

    Examples
    --------
    >>> from hdicore import LeafIndex
    >>> from hdicore.batch import predict_batch
    >>> index = LeafIndex.from_leaves([[0], [0], [0], [1], [1]], [1.0, 2.0, 9.0, 3.0, 4.0])
    >>> batch = predict_batch(index, [[0], [1]], coverage=0.6, min_coverage=0.3)
    >>> batch.bound <= batch.total_width
    True
    """

    interval: Array
    mass: Array
    price: float
    total_width: float
    bound: float


class Sums(NamedTuple):
    """The sums of rows at each of k prices.

    Parameters
    ----------
    n_rows : int
        Number of rows with a distribution.
    masses : (k,) int64
        Sums of the shares that the intervals hold. Each share is rounded down to a whole number of
        2**-32, so that sums do not depend on the order of rows.
    widths : (k,) float64
        Sums of the widths of the intervals.
    """

    n_rows: int
    masses: NDArray[np.int64]
    widths: Array

    @classmethod
    def of(cls, parts: Sequence[Sums]) -> Self:
        """Add the sums of several parts.

        Parameters
        ----------
        parts : sequence of Sums
            One or more sums, at the same prices.

        Returns
        -------
        Sums
            The sums of all rows.
        """
        n_rows, masses, widths = zip(*parts, strict=True)
        return cls(sum(n_rows), np.asarray(sum(masses)), np.asarray(sum(widths)))

    @classmethod
    def read(
        cls, source: Source, rows: Any, prices: Array, min_coverage: float, n_threads: int = 0
    ) -> Self:
        """Read the sums of rows, some thousands at a time.

        Parameters
        ----------
        source : Scorer or LeafIndex
            The forest of one target, or its index.
        rows : (n, n_features) array, or (n, n_trees) int array
            Features for a Scorer, leaves for a LeafIndex. n may be any number.
        prices : (k,) float
            Prices, ascending. See `Scorer.priced_intervals`.
        min_coverage : float
            Share in [0, 1] that each interval holds at least.
        n_threads : int, default=0
            Number of threads. 0 means all that the process may use.

        Returns
        -------
        Sums
            The sums of the rows.
        """
        arguments = source, rows, prices, min_coverage, n_threads
        return cls.of([part.sums() for part in Reading.parts(*arguments)])


class Reading(NamedTuple):
    """Intervals and masses of n rows at each of k prices.

    Parameters
    ----------
    ends : (n, 2, k) float64
        Lower and upper ends.
    masses : (n, k) int64
        Shares in units of 2**-32, rounded down. -1 if a row has no distribution.
    """

    ends: Array
    masses: NDArray[np.int64]

    @classmethod
    def of(
        cls, source: Source, rows: Any, prices: Array, min_coverage: float, n_threads: int = 0
    ) -> Self:
        """Read the intervals of rows.

        Parameters
        ----------
        source : Scorer or LeafIndex
            The forest of one target, or its index.
        rows : (n, n_features) array, or (n, n_trees) int array
            Features for a Scorer, leaves for a LeafIndex.
        prices : (k,) float
            Prices, ascending. See `Scorer.priced_intervals`.
        min_coverage : float
            Share in [0, 1] that each interval holds at least.
        n_threads : int, default=0
            Number of threads. 0 means all that the process may use.

        Returns
        -------
        Reading
            The intervals of the rows.

        Raises
        ------
        ValueError
            If `Scorer.priced_intervals` refuses an argument, or there are several targets.
        """
        _index_of(source)
        shares = np.empty((len(rows), len(prices)))
        ends, _ = source.priced_intervals(
            rows, prices, min_coverage, mass=shares, n_threads=n_threads
        )
        return cls(ends, np.nan_to_num(np.floor(shares * UNITS), nan=-1).astype(np.int64))

    @property
    def widths(self) -> Array:
        """Widths of the intervals, (n, k) float64."""
        widths: Array = self.ends[:, 1] - self.ends[:, 0]
        return widths

    @classmethod
    def parts(cls, source: Source, rows: Any, *arguments: Any) -> Iterator[Self]:
        """Read the intervals of rows, some thousands at a time.

        Parameters
        ----------
        source : Scorer or LeafIndex
            The forest of one target, or its index.
        rows : (n, n_features) array, or (n, n_trees) int array
            Features for a Scorer, leaves for a LeafIndex. n may be any number.
        *arguments : optional
            Prices, min_coverage and n_threads. See `of`.

        Yields
        ------
        Reading
            The intervals of some rows, one part after the other.
        """
        for begin in range(0, max(1, len(rows)), _ROWS_AT_ONCE):
            yield cls.of(source, rows[begin : begin + _ROWS_AT_ONCE], *arguments)

    def sums(self) -> Sums:
        """Add up masses and widths of the rows with a distribution.

        Returns
        -------
        Sums
            The sums, at the same prices.
        """
        known = self.masses[:, 0] >= 0
        masses, widths = self.masses[known], self.widths[known]
        return Sums(len(masses), masses.sum(axis=0), widths.sum(axis=0))


class PriceSearch:
    """Brackets the price at which rows have a mean mass, by sums at up to 32 prices a pass."""

    def __init__(self, coverage: float, source: Source) -> None:
        self.coverage = coverage
        self.low, self.high = 0.0, math.inf
        with np.errstate(over="ignore"):
            unit = float(np.ptp(_index_of(source).atoms()))
        if not (unit == 0 or 1 / _MAX_RANGE <= unit <= _MAX_RANGE):
            raise ValueError(
                f"source must have targets in a range from 2**-900 to 2**900, or of 0, got {unit:g}"
            )
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
    """Two close prices and the rule to choose between them, as `find_rule` returns it.

    Rows take the intervals of the higher price, in their order, until the mean mass is reached. All
    later rows take the intervals of the lower price.

    Parameters
    ----------
    prices : (2,) float64
        The prices, ascending.
    min_coverage : float
        Share that each interval holds at least.
    coverage : float
        The mean share.
    missing : tuple of int
        Mass that the rows have yet to add at the beginning of each part. `choose` takes it.
    bound : float
        Lower bound of the total width of any intervals with the mean mass.

    Examples
    --------
    >>> from functools import partial
    >>> from hdicore import LeafIndex
    >>> from hdicore.batch import Reading, Sums, find_rule
    >>> index = LeafIndex.from_leaves([[0], [0], [0], [1], [1]], [1.0, 2.0, 9.0, 3.0, 4.0])
    >>> rows = [[0], [1]]
    >>> ask = lambda prices: [Sums.read(index, rows, prices, 0.3)]
    >>> rule = find_rule(ask, index, coverage=0.6, min_coverage=0.3)
    >>> ends, mass, _ = rule.choose(Reading.of(index, rows, rule.prices, 0.3), rule.missing[0])
    >>> ends.shape
    (2, 2)
    """

    prices: Array
    min_coverage: float
    coverage: float
    missing: tuple[int, ...]
    bound: float

    @staticmethod
    def choose(reading: Reading, missing: int) -> tuple[Array, Array, int]:
        """Choose the intervals of rows.

        Parameters
        ----------
        reading : Reading
            Some rows at the two prices.
        missing : int
            Mass that the rows have yet to add: the number of the part that begins with the rows, or
            the result of the call for the rows before.

        Returns
        -------
        ends : (n, 2) float64
            Lower and upper ends. NaN if a row has no distribution.
        mass : (n,) float64
            Shares that the intervals hold.
        missing : int
            Mass that the next rows of the part have yet to add.
        """
        gains = np.diff(reading.masses, axis=1)[:, 0]
        at = (np.cumsum(gains) - gains < missing).astype(np.intp)
        ends, masses = _chosen(reading, at)
        return ends, _shares(masses), missing - int(gains[at > 0].sum())


def find_rule(
    ask: Callable[[Array], Sequence[Sums]],
    source: Source,
    coverage: float = 0.9,
    min_coverage: float = 0.5,
) -> PriceRule:
    """Find the prices for rows that come in parts, in passes over all of them.

    Parameters
    ----------
    ask : callable
        Function of ascending prices, (k,), that returns the `Sums` of each part at the prices and
        `min_coverage`. It is called once for each pass, three to five times on most data.
    source : Scorer or LeafIndex
        The forest or index from which the parts are read.
    coverage : float, default=0.9
        The mean share, above 0 and below 1. See `predict_batch`.
    min_coverage : float, default=0.5
        The share in [0, 1) that each interval holds at least. See `predict_batch`.

    Returns
    -------
    PriceRule
        The rule that chooses intervals. Their total width is within a hundredth of a row's mean
        width, and the width of one row, of the least one.

    Raises
    ------
    ValueError
        If an argument is out of range, or there are several targets.

    Notes
    -----
    O(parts) memory. See `PriceRule` for an example.
    """
    _check_shares(coverage, min_coverage)
    search = PriceSearch(coverage, source)
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
    if min_coverage > 0 and left[0] < 0 and whole.widths[pair][0] > 0:
        mean = int(whole.masses[pair][0]) / UNITS / whole.n_rows
        _warn_of_floor(min_coverage, coverage, mean)
    return PriceRule(prices[pair], min_coverage, coverage, tuple(left), bound)


def predict_batch(
    source: Source,
    rows: ArrayLike,
    coverage: float = 0.9,
    min_coverage: float = 0.5,
    *,
    n_threads: int = 0,
) -> BatchIntervals:
    """Find the intervals of least total width that hold a mean share of the rows' distributions.

    Parameters
    ----------
    source : Scorer or LeafIndex
        The forest of one target, or its index.
    rows : (n, n_features) array, or (n, n_trees) int array
        All rows of the batch: features for a Scorer, leaves for a LeafIndex.
    coverage : float, default=0.9
        The mean share, above 0 and below 1. Rows without a distribution do not count.
    min_coverage : float, default=0.5
        The share in [0, 1) that each interval holds at least. If intervals that hold it are enough,
        they are returned, with a UserWarning.
    n_threads : int, default=0
        Number of threads. 0 means all that the process may use.

    Returns
    -------
    BatchIntervals
        Intervals and masses, the price, and the total width with a lower bound of it.

    Raises
    ------
    ValueError
        If an argument is out of range or of the wrong shape, or there are several targets.

    Notes
    -----
    All rows have one price t, and each row takes the interval of most t * mass - width. Of all ways
    to reach a mean mass, the intervals of one price have the least total width.

    The price is the slope of a segment of the lower hull of width over mass of some row. Only the
    interval of that row is cut back to the missing mass, so that total and bound differ by less
    than the width of a segment. After the first pass only rows are read that have different
    intervals at the two prices that are left.

    Examples
    --------
    >>> from hdicore import LeafIndex
    >>> from hdicore.batch import predict_batch
    >>> index = LeafIndex.from_leaves([[0], [0], [0], [1], [1]], [1.0, 2.0, 9.0, 3.0, 4.0])
    >>> predict_batch(index, [[0], [1]], coverage=0.6, min_coverage=0.3).interval.shape
    (2, 2)
    """
    _check_shares(coverage, min_coverage)
    search, rows = PriceSearch(coverage, source), np.asarray(rows)

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
    if min_coverage > 0 and missing < 0 and price == 0 and total > 0:
        _warn_of_floor(min_coverage, coverage, float(np.nanmean(shares)))
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


def _index_of(source: Source) -> LeafIndex:
    """Return the index that is read, or raise ValueError."""
    index = source.index if isinstance(source, Scorer) else source
    if not index.scalar_output:
        raise ValueError(f"source must be of one target, got {index.n_outputs}")
    return index


def _warn_of_floor(min_coverage: float, coverage: float, mean: float) -> None:
    warnings.warn(
        f"min_coverage={min_coverage:g} alone holds {mean:.3f} on average, more than "
        f"coverage={coverage:g}",
        stacklevel=3,
    )


def _check_shares(coverage: Any, min_coverage: Any) -> None:
    if not (np.ndim(coverage) == 0 and 0 < coverage < 1):
        raise ValueError(f"coverage must be a number above 0 and below 1, got {coverage!r}")
    if not (np.ndim(min_coverage) == 0 and 0 <= min_coverage < 1):
        raise ValueError(
            f"min_coverage must be a number from 0 on and below 1, got {min_coverage!r}"
        )
