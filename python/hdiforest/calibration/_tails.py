"""Tails: each tail of a censored target by itself, misses weighted by the chance to see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple, cast

import numpy as np

from hdiforest._model.fitted import Calibrated, FittedForest, IntervalQuery, Rows
from hdiforest._model.out_of_bag import OutOfBagIntervals
from hdiforest._utils import Array, Events
from hdiforest.calibration._result import CalibrationResult

LEAST_AT_RISK = 0.05  # chance not to be censored yet up to which an upper end is claimed
FEW_EVENTS = 20
_N_LEVELS = 1000
_CELLS_AT_ONCE = 1 << 22


class TailLevel(NamedTuple):
    """The levels of the quantiles that are the ends of intervals of one coverage.

    NaN means that no end is claimed.

    Parameters
    ----------
    coverage : float
        The share of event times to cover.
    lower : float
        Level of the lower end of an interval with two ends.
    upper : float
        Level of the upper end of an interval with two ends.
    lower_bound : float
        Level of a bound from below.
    upper_bound : float
        Level of a bound from above.
    infinite : float
        Share of the calibration rows whose interval with two ends has an infinite upper end.

    Examples
    --------
    >>> from hdiforest.survival import TailLevel
    >>> TailLevel(0.8, 0.1, 0.9, 0.2, 0.8, 0.0).of("lower")
    (0.2, nan)
    """

    coverage: float
    lower: float
    upper: float
    lower_bound: float
    upper_bound: float
    infinite: float

    def of(self, kind: str) -> tuple[float, float]:
        """Return the levels of both ends of a kind of interval.

        Parameters
        ----------
        kind : {"calibrated", "lower", "upper"}
            The kind.

        Returns
        -------
        tuple of two floats
            The levels of the lower and the upper end.
        """
        if kind == "calibrated":
            return self.lower, self.upper
        return (self.lower_bound, np.nan) if kind == "lower" else (np.nan, self.upper_bound)


@dataclass(frozen=True, repr=False)
class TailCalibration(CalibrationResult):
    """A calibration of intervals for censored times.

    Parameters
    ----------
    method : {"oob", "split"}
        Whether the calibration rows are training rows out of bag, or other rows.
    levels : tuple of TailLevel
        For each coverage the levels of the quantiles that are the ends.
    n : int
        Number of calibration rows.
    n_events : int
        Number of calibration rows with an event.

    Examples
    --------
    >>> import numpy as np
    >>> from hdiforest import HDISurvivalForest
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(300, 2))
    >>> time, until = np.exp(X[:, 0]), random.exponential(3, 300)
    >>> pairs = list(zip(time <= until, np.minimum(time, until)))
    >>> y = np.array(pairs, dtype=[("event", bool), ("time", float)])
    >>> HDISurvivalForest(random_state=0).fit(X, y).calibrate(coverage=0.8).calibration_.n
    300
    """

    method: str
    levels: tuple[TailLevel, ...]
    n: int
    n_events: int

    _head = "nominal", "lower end", "upper end", "lower bound", "upper bound", "infinite"
    guarantee = (
        "A new row is covered with about the probability c, if censoring is independent of the "
        "event's time given the features, and the forest of the censoring estimates it well. Lower "
        "bounds need least of it. An upper end is infinite where it would lie beyond the follow-up."
    )

    def __post_init__(self) -> None:
        self._check_coverages()

    def _title(self) -> str:
        return f"{super()._title()}, {self.n_events} events"

    def _cells(self, level: TailLevel) -> tuple[str, ...]:
        return tuple(f"{value:.3f}" for value in level)


@dataclass(frozen=True, eq=False)
class TailIntervals(Calibrated):
    """Quantiles at calibrated levels, as far as the follow-up goes."""

    result: TailCalibration
    # The forest of the time of censoring, if rows are censored.
    censoring: tuple[FittedForest, ...] = ()

    def __post_init__(self) -> None:
        forests = self.forest, *self.censoring
        n_features = {each.n_features for each in forests}
        if len(n_features) > 1 or not all(each.is_censored for each in forests):
            raise ValueError("tails must be those of forests of events, of the same features")

    def intervals(self, query: IntervalQuery) -> Array:
        """Return quantiles at the levels of the kind; no end is claimed where there is none."""
        X, positions, n_threads, *_ = query
        query.fill_mean(self.forest)
        chosen = [self.result.levels[k].of(query.kind) for k in positions.reshape(-1)]
        low, high = np.array(chosen).T
        curves, *censoring = (
            _Curves(each.scorer, X, n_threads) for each in (self.forest, *self.censoring)
        )
        follow_up = _FollowUp(censoring, len(X))
        quantiles = curves.quantiles(np.nan_to_num(np.concatenate([low, high])))
        ends = quantiles.reshape(len(X), 2, len(low))
        ends[:, 0] = np.where(np.isnan(low), 0, np.minimum(ends[:, 0], follow_up.end()[:, None]))
        is_claimed = ~np.isnan(high) & (follow_up.chance_beyond(ends[:, 1]) >= LEAST_AT_RISK)
        ends[:, 1] = np.where(is_claimed, ends[:, 1], np.inf)
        return ends.reshape(len(X), 2, *positions.shape)

    @property
    def why_not_out_of_bag(self) -> str:
        """Why there are no calibrated intervals of training rows."""
        return "the model is of censored targets"


class _Curves(NamedTuple):
    """Distributions of some rows."""

    engine: Any  # a Scorer of features, or a LeafIndex of leaves
    rows: Any
    n_threads: int

    def quantiles(self, levels: Any) -> Array:
        """Return quantiles, (n,) or (n, k)."""
        return np.asarray(self.engine.quantiles(self.rows, levels, n_threads=self.n_threads))

    def cdf(self, points: Array) -> Array:
        """Return distribution functions at points (n,) or (n, k)."""
        return np.asarray(self.engine.cdf(self.rows, points, n_threads=self.n_threads))


class _FollowUp:
    """How long n rows are followed, by their distributions of the time of censoring."""

    def __init__(self, censoring: Sequence[_Curves], n: int) -> None:
        self.curves, self.n = next(iter(censoring), None), n  # None: no row is censored

    def end(self) -> Array:
        """Return the time from which the chance to be followed is at most the least, (n,)."""
        if self.curves is None:
            return np.full(self.n, np.inf)
        end = self.curves.quantiles(1 - LEAST_AT_RISK)
        # Rows are censored just behind the events of their time; an end that is infinite stays so.
        return np.where(np.isfinite(end), np.nextafter(end, -np.inf), end)

    def chance_beyond(self, times: Array, *, inclusive: bool = False) -> Array:
        """Return P(C > t), or P(C >= t), of rows at points (n, k); 0 where they are infinite."""
        is_finite = np.isfinite(times)
        if self.curves is None:
            return is_finite.astype(float)
        points = np.where(is_finite, times, 0)
        points = points if inclusive else np.nextafter(points, np.inf)
        return np.where(is_finite, 1 - self.curves.cdf(points), 0)


def calibrate_tails(
    forest: FittedForest,
    grow_censoring: Callable[[], list[FittedForest]],
    coverages: Sequence[float],
    rows: tuple[Rows, Events, Array] | None,
    n_threads: int,
) -> TailIntervals:
    """Find for each coverage the levels at which each tail misses no more than its part.

    A miss is an event beyond an end; it counts by the inverse of the chance that it is seen, at
    the end that is tested. `rows` are new rows with events and times; None: the rows of the fit,
    each by the trees that did not draw it. The forest of the censoring is grown last.
    """
    if rows is None:
        sources = [OutOfBagIntervals(forest, n_threads)]
        split = "call calibrate(X, y) with rows that took no part in the fit"
        sources[0].require_rows("calibration out of bag", "{split}", split=split)
    censoring = grow_censoring()
    if rows is None:
        sources += [OutOfBagIntervals(each, n_threads) for each in censoring]
        usable = reduce(np.intersect1d, [source.usable for source in sources])
        training = forest.require_training_rows()
        event, time = cast("Events", training.event)[usable], training.y[usable]
        curves, *of_censoring = [
            _Curves(each.fitted.scorer.index, each.leaves_without(usable), n_threads)
            for each in sources
        ]
    else:
        X, event, time = rows
        forests = forest, *censoring
        curves, *of_censoring = [_Curves(each.scorer, X, n_threads) for each in forests]
    follow_up = _FollowUp(of_censoring, len(time))
    below, above, infinite = _misses(curves, follow_up, event, time)
    levels = tuple(_level(coverage, len(time), below, above, infinite) for coverage in coverages)
    method = "oob" if rows is None else "split"
    result = TailCalibration(method, levels, len(time), int(event.sum()))
    kept = (each.without_rows() for each in censoring)
    return TailIntervals(forest.without_rows(), result, tuple(kept))


def _misses(
    curves: _Curves, follow_up: _FollowUp, event: Events, time: Array
) -> tuple[Array, Array, Array]:
    """Return what each tail misses by its level k / 1000, and the share of infinite upper ends.

    (1001,) each: below the quantile at the level, and above it. Neither falls as intervals shrink.
    """
    levels = np.arange(_N_LEVELS + 1) / _N_LEVELS
    reached = curves.cdf(time)
    has_curve = ~np.isnan(reached)
    chance = follow_up.chance_beyond(time[:, None], inclusive=True)[:, 0]
    counts = event & has_curve & (time < follow_up.end())
    # An event lies below the quantile at a level that exceeds the distribution function there.
    order = np.argsort(reached[counts])
    weights = np.append(0, np.cumsum(1 / np.maximum(chance[counts][order], LEAST_AT_RISK)))
    below = weights[np.searchsorted(reached[counts][order], levels, "left")]

    above, n_infinite = np.zeros(_N_LEVELS + 1), np.zeros(_N_LEVELS + 1)
    at_once = max(1, _CELLS_AT_ONCE // len(time))
    for begin in range(0, _N_LEVELS + 1, at_once):
        part = slice(begin, begin + at_once)
        ends = curves.quantiles(levels[part])
        chance = follow_up.chance_beyond(ends)
        is_claimed = (chance >= LEAST_AT_RISK) & has_curve[:, None]
        is_missed = is_claimed & (time[:, None] > ends)
        above[part] = np.where(is_missed, 1 / np.maximum(chance, LEAST_AT_RISK), 0).sum(axis=0)
        n_infinite[part] = len(time) - is_claimed.sum(axis=0)
    above = np.maximum.accumulate(above[::-1])[::-1]
    return below / len(time), above / len(time), n_infinite / len(time)


def _level(coverage: float, n: int, below: Array, above: Array, infinite: Array) -> TailLevel:
    """Return the levels at which tails miss at most their part, less one row's."""

    def lower(part: float) -> float:
        allowed = np.flatnonzero(below <= part - 1 / (n + 1))
        return float(allowed[-1]) / _N_LEVELS if len(allowed) and allowed[-1] > 0 else np.nan

    def upper(part: float) -> float:
        allowed = np.flatnonzero(above <= part - 1 / (n + 1))
        return float(allowed[0]) / _N_LEVELS if len(allowed) else np.nan

    each, one = (1 - coverage) / 2, 1 - coverage
    end = upper(each)
    share = 1.0 if np.isnan(end) else float(infinite[round(end * _N_LEVELS)])
    return TailLevel(coverage, lower(each), end, lower(one), upper(one), share)
