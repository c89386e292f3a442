"""CoverageMonitor: whether intervals still cover what they say, as labelled rows come."""

from __future__ import annotations

import math
import os
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._utils import Array, checks
from hdiforest._utils.meta_estimators import model_and_rows, model_in
from hdiforest.displays._coverage import MonitorDisplay
from hdiforest.metrics._intervals import chance_range
from hdiforest.serving import _tensor_file as tensor_file
from hdiforest.serving._parts import Parts

LIMIT = 100  # of evidence, for an alarm
WINDOW = 200  # latest rows
_N_FIRST = 200  # new rows that others are ranked among
_MISS_BETS = np.array([0.5, 1.0, 2.0, 4.0])
_SIDES = np.array([-1.0, 0.0, 1.0])
_JUMP = 0.01
_MOST = 1e100  # of capital
_ONE_SIDE = 0.95  # share of misses on one side that is worth a word, of so many:
_MANY_MISSES = 20


class Evidence:
    """Capital of bets that gain if something is wrong. It may be looked at any time.

    A share 1 / (t (t + 1)) of a capital of 1 is put in before row t, so that a change is found at
    any row. If all is well, no bet gains on average. The capital then ever reaches 100 with a
    probability of at most 1/100 (Ville's inequality).
    """

    def __init__(self, n_bets: int) -> None:
        self._capital = np.zeros(n_bets)
        self._n = 0

    def _bet(self, factors: Array) -> float:
        """Put in the share of this row, multiply the capital, and return all of it."""
        self._n += 1
        self._capital += 1 / (self._n * (self._n + 1) * len(factors))
        self._capital = np.minimum(self._capital * factors, _MOST)
        return float(self._capital.sum()) + 1 / (self._n + 1)


class MissEvidence(Evidence):
    """Evidence that rows are missed with a probability above `miss`, given the rows before them."""

    def __init__(self, miss: float) -> None:
        self.miss, self.bets = miss, _MISS_BETS[_MISS_BETS * miss < 1]
        super().__init__(len(self.bets))

    def add(self, missed: bool) -> float:
        """Take in one row, and return the evidence."""
        return self._bet(1 + self.bets * (missed - self.miss))


class DriftEvidence(Evidence):
    """Evidence that scores are not exchangeable, by the simple jumper.

    Each score is ranked among all earlier scores and joins them. Ranks of exchangeable scores are
    uniform and independent. Bets are on low, any and high ranks, and some capital jumps between
    them (Vovk and others, "Retrain or not retrain: conformal test martingales ...", COPA 2021).
    """

    def __init__(self) -> None:
        super().__init__(len(_SIDES))
        self._sorted: list[float] = []
        self._random = np.random.default_rng(0)

    def add(self, score: float) -> float:
        """Take in one score, and return the evidence."""
        low, high = bisect_left(self._sorted, score), bisect_right(self._sorted, score)
        n = len(self._sorted)
        insort(self._sorted, score)
        if n < _N_FIRST:
            return 1.0
        rank = (n - high + self._random.random() * (high - low + 1)) / (n + 1)
        self._capital += _JUMP * (self._capital.mean() - self._capital)
        return self._bet(1 + _SIDES * (rank - 0.5))


@dataclass(frozen=True)
class CoverageState:
    """The results of a `CoverageMonitor` for the rows so far.

    Parameters
    ----------
    n : int
        Number of rows.
    nominal : float
        The coverage that is watched.
    coverage : float
        Share of all rows that the intervals cover.
    band : (float, float)
        Range of `coverage` in 95 of 100 cases, if only chance moves it.
    recent : float
        Share of the last 200 rows that the intervals cover.
    recent_band : (float, float)
        Range of `recent` in 95 of 100 cases, if only chance moves it.
    below : int
        Number of targets below their interval.
    above : int
        Number of targets above their interval.
    evidence : float
        Evidence that rows are covered less often than the nominal coverage.
    drift : float
        Evidence that the rows have changed.
    alarms : dict of str to int
        The row at which the evidence first reached 100, by the names "coverage" and "drift".

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest import HDIForestRegressor
    >>> from hdiforest.monitoring import CoverageMonitor
    >>> X, y = make_regression(n_samples=600, n_features=4, noise=10, random_state=0)
    >>> model = HDIForestRegressor(random_state=0).fit(X[:400], y[:400])
    >>> state = CoverageMonitor(model, coverage=0.9).update(X[400:], y[400:])
    >>> state.n, state.nominal
    (200, 0.9)
    """

    n: int
    nominal: float
    coverage: float
    band: tuple[float, float]
    recent: float
    recent_band: tuple[float, float]
    below: int
    above: int
    evidence: float
    drift: float
    alarms: dict[str, int]

    def _repr_html_(self) -> str:
        return f"<p>{'<br>'.join(map(escape, str(self).splitlines()))}</p>"

    def __str__(self) -> str:
        low, high = self.recent_band
        lines = [
            f"{self.n:,} rows, {self.coverage:.3f} covered for {self.nominal:g}; of the last "
            f"{min(self.n, WINDOW)} {self.recent:.3f} (chance: {low:.3f} to {high:.3f})",
            f"evidence for too little coverage {self.evidence:.3g}, for drift {self.drift:.3g}",
        ]
        lines += [f"alarm ({name}) since row {row:,}" for name, row in self.alarms.items()]
        n_missed = self.below + self.above
        n_most, side = max((self.above, "above"), (self.below, "below"))
        if n_missed >= _MANY_MISSES and n_most >= _ONE_SIDE * n_missed:
            lines.append(
                f"{n_most:,} of {n_missed:,} misses are targets {side} their intervals: are they "
                "in the unit of the fit?"
            )
        return "\n".join(lines)


class _Seen(NamedTuple):
    """What a file holds of a monitor; the same rows again give the same evidence."""

    coverage: float
    miss: float  # probability that is allowed, from the calibration at the start
    sides: NDArray[np.int32]  # (n,)
    scores: NDArray[np.float64]  # (n,)


def _read_seen(parts: Parts) -> _Seen:
    coverage, miss = parts.array("coverage_and_miss", "float64", (2,)).tolist()
    sides = parts.array("sides", "int32", (None,))
    seen = _Seen(coverage, miss, sides, parts.array("scores", "float64", (None,)))
    parts.require_empty()
    if not (0 < seen.coverage < 1 and 0 < seen.miss < 1 and len(seen.sides) == len(seen.scores)):
        raise ValueError("coverage and miss must lie between 0 and 1, sides be as many as scores")
    if not (np.isin(seen.sides, _SIDES).all() and np.isfinite(seen.scores).all()):
        raise ValueError("sides must be -1, 0 or 1, and scores finite")
    return seen


_FORMAT = tensor_file.Format(
    "file of CoverageMonitor.save", "monitor", "hdicore_monitor", _read_seen
)


class CoverageMonitor:
    """Watch whether calibrated intervals cover new rows as their targets arrive, in order.

    Parameters
    ----------
    model : fitted estimator
        A calibrated `HDIForestRegressor` or `LeafModel` of one target, or a `ForestSearchOOB`, also
        as the last step of a Pipeline or the best of a search. `recalibrate` may move it meanwhile.
    coverage : float, default=0.9
        The coverage to watch, one of the calibrated coverages.

    Attributes
    ----------
    state : CoverageState
        The results after the last `update`.

    Notes
    -----
    An alarm means an evidence of 100. If all is well, an evidence ever reaches 100 with a
    probability of at most 1/100.

    For "coverage" all is well if each row is missed with a probability of at most 1 - coverage plus
    two standard errors of the calibration. The standard errors are added because the calibration
    rows leave the coverage of later rows to chance.

    For "drift" all is well if the rows are exchangeable. The evidence uses ranks of the distances
    of targets from raw intervals, among the distances of new rows. The ranks begin with the first
    200 rows (:doc:`/later_rows`).

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest import HDIForestRegressor
    >>> from hdiforest.monitoring import CoverageMonitor
    >>> X, y = make_regression(n_samples=600, n_features=4, noise=10, random_state=0)
    >>> model = HDIForestRegressor(random_state=0).fit(X[:400], y[:400])
    >>> monitor = CoverageMonitor(model, coverage=0.9)
    >>> state = monitor.update(X[400:], y[400:])
    >>> state.n, state.alarms
    (200, {})
    """

    def __init__(self, model: Any, coverage: float = 0.9) -> None:
        checks.one_share("coverage", coverage)
        estimator = model_in(model, "predict_interval", "model")
        calibration = estimator.calibration_
        if estimator.n_outputs_ > 1:
            raise ValueError(f"model must be of one target, this one has {estimator.n_outputs_}")
        calibration.positions(coverage)
        self.model, self.coverage = model, coverage
        error = math.sqrt(coverage * (1 - coverage) / calibration.n)
        self._misses = MissEvidence(min(1 - coverage + 2 * error, 0.999))
        self._drift = DriftEvidence()
        self._sides: list[int] = []  # -1: the target was below its interval; 1: above
        self._scores: list[float] = []
        self._evidence = {"coverage": 1.0, "drift": 1.0}
        self._alarms: dict[str, int] = {}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the results so far to a file, 12 bytes a row, without the model. Needs safetensors.

        Parameters
        ----------
        path : path
            The file to write, whole or not at all.

        Raises
        ------
        OSError
            If the file cannot be written.
        ValueError
            If no rows were taken in.
        """
        _ = self.state  # there are rows
        arrays = {
            "coverage_and_miss": np.array([self.coverage, self._misses.miss]),
            "sides": np.array(self._sides, dtype=np.int32),
            "scores": np.array(self._scores),
        }
        tensor_file.write(Path(path), _FORMAT, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], model: Any) -> Self:
        """Return a monitor that goes on where a saved one stopped. O(n log n) for n rows.

        Parameters
        ----------
        path : path
            The file that `save` wrote.
        model : fitted estimator
            The model that was watched. It may have been recalibrated.

        Returns
        -------
        CoverageMonitor
            A monitor with the state of the saved one.

        Raises
        ------
        OSError
            If the file cannot be read.
        ValueError
            If the file is damaged or of another kind, or the model is not calibrated for the
            coverage that was watched.
        """
        seen = tensor_file.load(Path(path), _FORMAT, mapped=False).content
        monitor = cls(model, seen.coverage)
        monitor._misses = MissEvidence(seen.miss)
        monitor._take_in(seen.sides.tolist(), seen.scores.tolist())
        return monitor

    def update(self, X: ArrayLike, y: ArrayLike) -> CoverageState:
        """Take in rows with their targets, the latest last.

        Parameters
        ----------
        X : (n, n_features) array or table
            New rows. Several calls give the same result as one call with all rows. Rows are taken
            in before `recalibrate` takes them in.
        y : (n,) array
            Targets of the rows.

        Returns
        -------
        CoverageState
            The results for all rows so far. Refused rows leave the monitor as it was.
        """
        targets = checks.check_targets("y", y)
        estimator, rows = model_and_rows(self.model, X, "predict_interval", "model")
        lower, upper = estimator.predict_interval(rows, self.coverage, kind="calibrated").T
        checks.check_as_many("y", targets, len(lower))
        raw = estimator.predict_interval(rows, 0.8, kind="equal_tailed")
        checks.check_no_interval_is_empty(lower + upper + raw.sum(axis=1))
        sides = (targets > upper) * 1 - (targets < lower)
        scores = np.maximum(raw[:, 0] - targets, targets - raw[:, 1])  # how far they are outside
        self._take_in(sides.tolist(), scores.tolist())
        return self.state

    def _take_in(self, sides: Sequence[int], scores: Sequence[float]) -> None:
        for side, score in zip(sides, scores, strict=True):
            self._sides.append(side)
            self._scores.append(score)
            added = self._misses.add(side != 0), self._drift.add(score)
            self._evidence = dict(zip(self._evidence, added, strict=True))
            for name, evidence in self._evidence.items():
                if evidence >= LIMIT:
                    self._alarms.setdefault(name, len(self._sides))

    @property
    def state(self) -> CoverageState:
        """The results for all rows so far."""
        sides = np.array(self._sides, dtype=np.intp)
        if len(sides) == 0:
            raise ValueError("the monitor has seen no rows yet; call update")
        covered, sizes = sides == 0, [len(sides), min(len(sides), WINDOW)]
        (low, recent_low), (high, recent_high) = chance_range(self.coverage, sizes, 0.95)
        return CoverageState(
            n=len(sides),
            nominal=self.coverage,
            coverage=float(covered.mean()),
            band=(float(low), float(high)),
            recent=float(covered[-WINDOW:].mean()),
            recent_band=(float(recent_low), float(recent_high)),
            below=int((sides < 0).sum()),
            above=int((sides > 0).sum()),
            evidence=self._evidence["coverage"],
            drift=self._evidence["drift"],
            alarms=dict(self._alarms),
        )

    def plot(self, ax: Any = None) -> MonitorDisplay:
        """Draw the coverage of the last 200 rows over the rows, and mark alarms.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The axes to draw on. The default is axes of a new figure.

        Returns
        -------
        MonitorDisplay
            The picture.
        """
        _ = self.state  # there are rows
        fields: Any = {"covered": np.array(self._sides) == 0, "alarms": self._alarms}
        return MonitorDisplay(**fields, nominal=self.coverage, window=WINDOW).plot(ax)
