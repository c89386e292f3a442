"""What a calibration gives: its coverages, their intervals, and how it prints."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

import hdicore
from hdiforest._model.bases import Base, check_base
from hdiforest._utils import Array
from hdiforest._utils.checks import (
    CallError,
    aligned,
    html_table,
    one_share,
    shares,
    significant,
)
from hdiforest.calibration._distribution import PredictiveDistribution
from hdiforest.calibration._groups import Groups
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._quantiles import rank, rows_needed, weight_needed

USUAL_COVERAGE = 0.9  # of what is predicted
Recalibrating = Literal["rolling", "aci"]


@dataclass(frozen=True)
class CrossCheck:
    """The coverage of intervals with a base and a conformal quantile from other rows.

    Parameters
    ----------
    coverage : float
        Share of the rows that the intervals cover.
    standard_error : float
        Standard error of the coverage, by the binomial distribution.
    mean_width : float
        Mean width of the intervals, in the unit of y.
    thirds : tuple of three floats or None
        Coverage of each third of the rows by width, narrow first. None means that ties leave the
        third no rows.
    worst_of_five : float
        Least coverage of five bins by width.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest import HDIForestRegressor
    >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
    >>> model = HDIForestRegressor(random_state=0).fit(X, y)
    >>> abs(model.calibration_.level(0.9).cross_check.coverage - 0.9) < 0.05
    True
    """

    coverage: float
    standard_error: float
    mean_width: float
    thirds: tuple[float | None, float | None, float | None]
    worst_of_five: float

    def __post_init__(self) -> None:
        _require(self, _SHARE, "coverage", "worst_of_five")
        _require(self, _NOT_NEGATIVE, "standard_error", "mean_width")
        if any(share is not None and not 0 <= share <= 1 for share in self.thirds):
            raise ValueError(f"thirds must be in [0, 1], got {self.thirds}")


@dataclass(frozen=True)
class LaterCheck(CrossCheck):
    """The coverage of later rows, block after block, each by a forest of the rows before it.

    Parameters
    ----------
    coverage : float
        Share of the rows of all blocks that the intervals cover.
    standard_error : float
        Standard error of the coverage, by the binomial distribution.
    mean_width : float
        Mean width of the intervals, in the unit of y.
    thirds : tuple of three floats or None
        Coverage of each third of the rows by width, narrow first.
    worst_of_five : float
        Least coverage of five bins by width.
    blocks : tuple of float
        Share of the rows of each block that the intervals cover, in the order of the rows.
    """

    blocks: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.blocks or not all(0 <= share <= 1 for share in self.blocks):
            raise ValueError(f"blocks must be one or more numbers in [0, 1], got {self.blocks}")


@dataclass(frozen=True)
class Level:
    """One coverage, and the result of its intervals on the calibration rows.

    Parameters
    ----------
    coverage : float
        The coverage that was asked for.
    mean_width : float
        Mean width of the intervals of the calibration rows, in the unit of y.
    realised : float
        Share of the calibration rows that the intervals cover.
    cross_check : CrossCheck or None
        The coverage of intervals that come from other rows. None means that there are too few rows
        for finite intervals.

    Examples
    --------
    >>> from hdiforest.calibration import Level
    >>> Level(coverage=0.9, mean_width=2.5, realised=0.91, cross_check=None).coverage
    0.9
    """

    coverage: float
    mean_width: float
    realised: float
    cross_check: CrossCheck | None

    def __post_init__(self) -> None:
        one_share("coverage", self.coverage)
        _require(self, _NOT_NEGATIVE, "mean_width")
        _require(self, _SHARE, "realised")


@dataclass(frozen=True)
class FixedLevel(Level):
    """A coverage with intervals that are one base, widened by a conformal quantile.

    Parameters
    ----------
    coverage : float
        The coverage that was asked for.
    mean_width : float
        Mean width of the intervals of the calibration rows, in the unit of y.
    realised : float
        Share of the calibration rows that the intervals cover.
    cross_check : CrossCheck or None
        The coverage of intervals that come from other rows. None means that there are too few rows
        for finite intervals.
    base : Base
        The interval that is widened.
    q_hat : float
        Conformal quantile of the scores, in the unit of y. Both ends move outwards by it, or
        inwards if it is negative. It is infinite if there are too few rows.
    interval_score : float
        Mean interval score of the calibration rows, in the unit of y.
    later : LaterCheck, optional
        The coverage of the second half of the rows in their order, in blocks.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest import HDIForestRegressor
    >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
    >>> model = HDIForestRegressor(random_state=0).fit(X, y)
    >>> model.calibration_.level(0.9).coverage
    0.9
    """

    base: Base
    q_hat: float
    interval_score: float
    later: LaterCheck | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_base(self.base)
        _require(self, _NOT_NEGATIVE, "interval_score")
        _require(self, ("be a number or infinite", lambda q: q > -np.inf), "q_hat")


Rule = tuple[str, Callable[[float], bool]]  # what a number must be, and whether it is; NaN never is
_SHARE: Rule = "be in [0, 1]", lambda share: 0 <= share <= 1
_NOT_NEGATIVE: Rule = "not be negative", lambda number: number >= 0


def _require(of: object, rule: Rule, *names: str) -> None:
    for name in names:
        if not rule[1](getattr(of, name)):
            raise ValueError(f"{name} must {rule[0]}, got {getattr(of, name)}")


def _measured(level: Level) -> tuple[str, ...]:
    """Return the cells of a row but for the last, which says what the intervals are made of."""
    checked, worst = "-", "-"
    if (check := level.cross_check) is not None:
        checked = f"{check.coverage:.3f} ± {check.standard_error:.3f}"
        worst = f"{check.worst_of_five:.3f}"
    width = significant(level.mean_width)
    return f"{level.coverage:g}", f"{level.realised:.3f}", checked, worst, width


class CalibrationResult(ABC):
    """The coverages of a calibration, looked up and shown."""

    method: str
    levels: tuple[Any, ...]  # of Level
    n: int  # calibration rows
    guarantee: str  # what is promised of one interval of each coverage c, in words
    _head: ClassVar = ("nominal", "coverage", "cross check", "worst of five", "width", "intervals")

    def _check_coverages(self) -> None:
        coverages = self.coverages
        if not coverages or any(a >= b for a, b in pairwise(coverages)):
            raise ValueError(f"coverages must be one or more and ascend, got {coverages}")

    @cached_property
    def coverages(self) -> tuple[float, ...]:
        """The coverages that were calibrated, ascending."""
        return tuple(level.coverage for level in self.levels)

    def positions(self, coverage: ArrayLike) -> NDArray[np.intp]:
        """Return the positions of coverages among the calibrated coverages.

        Parameters
        ----------
        coverage : float or sequence of k floats
            Calibrated coverages.

        Returns
        -------
        () or (k,) intp
            Positions in `coverages`, from 0 on.

        Raises
        ------
        ValueError
            If a coverage was not calibrated.
        """
        number: Any = coverage
        if isinstance(number, float) and number in self.coverages:  # one row would wait for checks
            return np.array(self.coverages.index(number))
        levels = shares("coverage", coverage)
        positions = [self._position(level) for level in levels.reshape(-1).tolist()]
        return np.array(positions, dtype=np.intp).reshape(levels.shape)

    def __contains__(self, coverage: float) -> bool:
        """Whether a coverage was calibrated."""
        return self._find(coverage) is not None

    def level(self, coverage: float) -> Any:
        """Return the result of one coverage.

        Parameters
        ----------
        coverage : float
            A calibrated coverage.

        Returns
        -------
        FixedLevel or Level
            The result of the coverage: a FixedLevel for a `Calibration`, and a Level for a
            `CrossCalibration` or a `JointCalibration`.

        Raises
        ------
        ValueError
            If the coverage was not calibrated.
        """
        return self.levels[self._position(coverage)]

    @property
    def finite_coverages(self) -> tuple[float, ...]:
        """The coverages with finite intervals, for which there were enough rows."""
        return self.coverages

    def _find(self, coverage: float) -> int | None:
        for position, calibrated in enumerate(self.coverages):
            if math.isclose(calibrated, coverage, rel_tol=0, abs_tol=1e-7):  # float32 will do
                return position
        return None

    def _position(self, coverage: float) -> int:
        if (position := self._find(coverage)) is not None:
            return position
        if 0 < coverage < 1 and self.n < (needed := rows_needed(coverage)):
            raise CallError(
                f"{{coverage}} {coverage:g} needs {needed} calibration rows, and there are "
                f"{self.n}; ask for a lower one, or for {{hdi}}, which is not calibrated",
                hdi="kind='hdi'",
            )
        listed, with_it = (
            ", ".join(f"{level:g}" for level in levels)
            for levels in (self.coverages, sorted([*self.coverages, coverage]))
        )
        # Another method would have another guarantee.
        how = {"oob": "", "split": "X, y, "}.get(self.method, f"method={self.method!r}, ")
        raise CallError(
            f"{{coverage}} must be one that was calibrated: {listed}; got {coverage:g}; "
            "{calibrate}, or use {hdi}, which is not calibrated",
            with_it.replace(",", ""),
            calibrate=f"call calibrate({how}coverage=[{with_it}])",
            hdi="kind='hdi'",
        )

    def __repr__(self) -> str:
        rows = self._rows()
        return "\n".join([self._title(), aligned(rows, left=len(rows[0])), *self._notes()])

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{escape(note)}</p>" for note in self._notes())
        return f"{html_table(self._rows(), self._title())}{notes}"

    def _notes(self) -> list[str]:
        return [self.guarantee] if self.guarantee else []

    def _title(self) -> str:
        return f"Calibration, method {self.method}, {self.n} rows"

    def _rows(self) -> list[tuple[str, ...]]:
        return [self._head, *map(self._cells, self.levels)]

    @abstractmethod
    def _cells(self, level: Any) -> tuple[str, ...]:
        """Return the row of a coverage in the table, under `_head`."""


class Step(NamedTuple):
    """One call of `recalibrate`.

    Parameters
    ----------
    method : {"rolling", "aci"}
        The method of the call.
    window : int
        Number of scores in the window.
    rate : float
        Step by which the share of misses moves, for "aci".
    n : int
        Number of rows.
    coverage : tuple of k floats
        Share of the rows that the intervals of each coverage held, each before the row was taken
        in.
    q_hat : tuple of k floats
        Conformal quantiles after the call, in the unit of y.
    """

    method: Recalibrating
    window: int
    rate: float
    n: int
    coverage: tuple[float, ...]
    q_hat: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Recent:
    """The latest scores of k coverages. They begin with quantiles of the calibration's scores."""

    scores: Array  # (m, k), oldest first
    misses: tuple[float, ...]  # share of misses that the quantile of each coverage is for
    history: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        if self.scores.ndim != 2 or np.isnan(self.scores).any():
            raise ValueError("the latest scores must be (m, k) numbers")
        k = self.scores.shape[1]
        if len(self.misses) != k or not all(-1 <= miss <= 2 for miss in self.misses):
            raise ValueError(f"the shares of misses must be {k} numbers from -1 to 2")


@dataclass(frozen=True, repr=False)
class Calibration(CalibrationResult):
    """A calibration by "oob" or "split": base intervals, widened by conformal quantiles.

    Parameters
    ----------
    method : {"oob", "split"}
        The source of the conformal quantiles: the training rows, out of bag, or new rows.
    levels : tuple of FixedLevel
        The results of the coverages, ascending.
    postprocess : PostProcess
        Clips and rounds the intervals.
    n : int
        Number of calibration rows.
    confidence : float, optional
        The confidence in which the calibration rows give the coverage. Only "split" has one.
    weighted : bool, default=False
        Whether the calibration rows had weights.
    groups : Groups, optional
        The groups of rows that have conformal quantiles of their own.
    distribution : PredictiveDistribution, optional
        Calibrates quantiles, distribution functions and one-sided bounds.
    recent : Recent, optional
        The scores with which `recalibrate` moves the quantiles.
    guarantee : str, optional
        The promise for one interval of each coverage c, in words.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest import HDIForestRegressor
    >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
    >>> model = HDIForestRegressor(random_state=0).fit(X, y)
    >>> model.calibration_.coverages
    (0.5, 0.8, 0.9, 0.95, 0.99)
    >>> model.calibration_.method, model.calibration_.n
    ('oob', 300)
    """

    method: str
    levels: tuple[FixedLevel, ...]
    postprocess: PostProcess
    n: int
    confidence: float | None = None
    weighted: bool = False
    groups: Groups | None = None
    distribution: PredictiveDistribution | None = field(default=None, compare=False)
    recent: Recent | None = field(default=None, compare=False)
    guarantee: str = ""

    def __post_init__(self) -> None:
        self._check_coverages()
        if len({base.group for base in self.bases}) > 1:
            raise ValueError(
                "levels must be of one distribution, that is of one family and min_samples_leaf"
            )
        if self.n < 1:
            raise ValueError(f"n must be positive, got {self.n}")
        if self.confidence is not None:
            one_share("confidence", self.confidence)
            if self.method != "split" or self.weighted:
                raise ValueError('confidence must be None unless method is "split" without weights')
        if self.groups is not None and self.groups.q_hat.shape[1] != len(self.levels):
            raise ValueError(f"the quantiles of groups must be of {len(self.levels)} coverages")
        if self.recent is not None and len(self.recent.misses) != len(self.levels):
            raise ValueError(f"the latest scores must be of {len(self.levels)} coverages")

    @property
    def bases(self) -> tuple[Base, ...]:
        """The base of each coverage. `intervals` takes ends of the bases."""
        return tuple(level.base for level in self.levels)

    @property
    def q_hat(self) -> Array:
        """The conformal quantile of each coverage, (k,)."""
        return np.array([level.q_hat for level in self.levels])

    @property
    def history(self) -> tuple[Step, ...]:
        """The results of the calls of `recalibrate`, the latest last, at most 1,000."""
        return () if self.recent is None else self.recent.history

    @property
    def finite_coverages(self) -> tuple[float, ...]:
        """The coverages with finite intervals, for which there were enough rows."""
        return tuple(level.coverage for level in self.levels if math.isfinite(level.q_hat))

    def with_checks(self, name: str, checks: Sequence[CrossCheck | None]) -> Calibration:
        """Return the calibration with another `cross_check` or `later` for each coverage.

        Parameters
        ----------
        name : {"cross_check", "later"}
            The field to replace.
        checks : sequence of k CrossCheck or None
            The values of the field, one for each coverage.

        Returns
        -------
        Calibration
            A copy with the values.
        """
        others: Any = [{name: check} for check in checks]
        pairs = zip(self.levels, others, strict=True)
        return replace(self, levels=tuple(replace(level, **other) for level, other in pairs))

    def intervals(self, ends: Array, codes: NDArray[np.intp] | None = None) -> Array:
        """Return calibrated intervals of rows.

        Parameters
        ----------
        ends : (n, 2, k) array
            Lower and upper ends by the first k of `bases`.
        codes : (n,) intp array, optional
            The groups of the rows, by `Groups.codes`. Without them all rows take the common
            quantile.

        Returns
        -------
        (n, 2, k) float64
            Lower and upper ends, widened, post-processed and nested: each coverage contains the
            lower ones. NaN if an end of the same or of a lower coverage is NaN.
        """
        q_hat = self.q_hat
        if self.groups is not None and codes is not None:
            q_hat = self.groups.quantiles(codes, q_hat)
        return self.postprocess.engine.widen(ends, q_hat[..., : ends.shape[2]], nested=True)

    @property
    def later(self) -> tuple[LaterCheck | None, ...]:
        """The coverage of later rows, for each coverage. Empty if no order was given."""
        checks = tuple(level.later for level in self.levels)
        return () if all(check is None for check in checks) else checks

    def _title(self) -> str:
        groups = "" if self.groups is None else f", {self.groups}"
        n = sum(step.n for step in self.history)
        return super()._title() + groups + (f", recalibrated by {n} rows" if n else "")

    def _rows(self) -> list[tuple[str, ...]]:
        rows = super()._rows()
        if not self.later:
            return rows
        column = ["later rows"]
        for check in self.later:
            blocks = "" if check is None else f"{min(check.blocks):.2f} to {max(check.blocks):.2f}"
            column.append("-" if check is None else f"{check.coverage:.3f} ({blocks})")
        return [(*row[:3], cell, *row[3:]) for row, cell in zip(rows, column, strict=True)]

    def _notes(self) -> list[str]:
        notes, least = super()._notes(), self.bases[0].min_samples_leaf
        if self.groups is not None:
            j = min(range(len(self.levels)), key=lambda j: abs(self.coverages[j] - USUAL_COVERAGE))
            notes.insert(0, self.groups.spread(j, self.coverages[j]))
        if least > 1:
            pruned = f"The trees are pruned to leaves of at least {least} rows, for predict, too."
            notes.insert(0, pruned)
        return notes

    def _cells(self, level: FixedLevel) -> tuple[str, ...]:
        return *_measured(level), f"{level.base}, q_hat {significant(level.q_hat)}"


@dataclass(frozen=True, repr=False, eq=False)
class CrossCalibration(CalibrationResult):
    """A calibration by "cv+" or "jackknife+": scores of training rows by K forests.

    Each forest scores rows that took no part in it.

    Parameters
    ----------
    levels : tuple of k Level
        The results of the coverages, ascending.
    scores : tuple of K (n_fold, k) arrays
        Conformity scores of the rows held out of each fold, ascending along the first axis.
    postprocess : PostProcess
        Clips and rounds the intervals.
    grouped : bool, default=False
        Whether folds kept groups of rows together.
    method : {"cv+", "jackknife+"}, default="cv+"
        The forests. With "cv+" each is fitted without a fold of rows. With "jackknife+" each has
        the trees that did not draw one row.
    weights : tuple of K (n_fold, k) arrays, optional
        Positive weights of the rows with the scores. None means equal weights.
    guarantee : str, optional
        The promise for one interval of each coverage c, in words.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest import HDIForestRegressor
    >>> from hdiforest.calibration import JackknifePlus
    >>> X, y = make_regression(n_samples=200, n_features=4, noise=10, random_state=0)
    >>> model = HDIForestRegressor(calibration=False, random_state=0).fit(X, y)
    >>> result = model.calibrate(coverage=0.8, method=JackknifePlus(max_rows=100)).calibration_
    >>> type(result).__name__, result.method
    ('CrossCalibration', 'jackknife+')
    """

    levels: tuple[Level, ...]
    scores: tuple[Array, ...]
    postprocess: PostProcess
    grouped: bool = False
    method: str = "cv+"
    weights: tuple[Array, ...] | None = None
    guarantee: str = ""

    def __post_init__(self) -> None:
        self._check_coverages()
        k, shapes = len(self.levels), [fold.shape for fold in self.scores]
        if any(shape[1:] != (k,) for shape in shapes):
            raise ValueError(f"scores of each fold must be of {k} coverages")
        if self.weights is not None and [fold.shape for fold in self.weights] != shapes:
            raise ValueError("weights must be as many as scores in each fold")
        if not all(((fold > 0) & np.isfinite(fold)).all() for fold in self.weights or ()):
            raise ValueError("weights must be finite and positive")
        _ = self.engine  # which checks the numbers

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of rows with scores."""
        return sum(map(len, self.scores))

    def intervals(self, ends: Array) -> Array:
        """Return calibrated intervals of rows.

        Parameters
        ----------
        ends : (K, n, 2, k) array
            Lower and upper ends by the forest of each fold.

        Returns
        -------
        (n, 2, k) float64
            Lower and upper ends, post-processed and nested: each coverage contains the lower ones.
            NaN if an end is NaN.

        Notes
        -----
        The upper end is the ceil((n + 1) c)-th smallest of u_i + e_i over the training rows i. e_i
        is the score of row i, and u_i is the upper end by the forest fitted without the fold of row
        i. The lower end is computed likewise (Barber, Candes, Ramdas and Tibshirani 2021, eq. 8,
        with the scores of Romano, Patterson and Candes 2019). With weights, the rows up to the end
        have the share c of the total weight. O(K log n) for each row and coverage.
        """
        return self.engine.widen(ends, range(len(self.levels)))

    @cached_property
    def needed(self) -> list[float]:
        """How many scores, or how much weight, must be up to an end of each coverage."""
        if self.weights is None:
            return [float(rank(self.n, coverage)) for coverage in self.coverages]
        of_levels = zip(np.concatenate(self.weights).T, self.coverages, strict=True)
        return [weight_needed(own, coverage) for own, coverage in of_levels]

    @cached_property
    def engine(self) -> hdicore.CrossCalibration:
        """The compiled object that makes one interval of the intervals of all forests."""
        return hdicore.CrossCalibration(
            self.scores, self.needed, self.postprocess.engine, weights=self.weights
        )

    def _cells(self, level: Level) -> tuple[str, ...]:
        what = "folds" if self.method == "cv+" else "rows"
        return *_measured(level), f"by {len(self.scores)} {what}"


@dataclass(frozen=True, repr=False, eq=False)
class JointCalibration(CalibrationResult):
    """Calibrations of d outputs, and of boxes that cover all targets of a row together.

    Parameters
    ----------
    outputs : tuple of d Calibration
        The calibrations of the outputs, by the same rows and for the same coverages.
    levels : tuple of k Level
        The results of the boxes. The width of a box is the geometric mean of its sides.
    q_hat : (k, d) array
        Conformal quantiles of boxes. They widen the base intervals of each output, in its unit.
    names : tuple of d str
        Names of the outputs.
    method : {"oob", "split"}
        The method of all calibrations.
    n : int
        Number of calibration rows of all calibrations.

    Notes
    -----
    The quantile of an output is ``location + t * scale``, with one t for all outputs. t is the
    conformal quantile of the largest standardised score of each row, (score - location) / scale (as
    Diquigiovanni, Fontana, Vantini, "Conformal prediction bands for multivariate functional data",
    Journal of Multivariate Analysis 189, 2022).

    Location is the output's own quantile, so that a box is made of the output's own intervals, each
    widened. Scale is half of their mean width, or half the range of the targets if the mean width
    is 0 or infinite. With "split" both are computed out of bag, so that the guarantee of one score
    holds.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest import HDIForestRegressor
    >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
    >>> model = HDIForestRegressor(random_state=0).fit(X, np.column_stack([y, -y]))
    >>> model.calibration_.q_hat.shape
    (5, 2)
    >>> model.predict_interval(X[:3] + 0.1, coverage=0.9, joint=True).shape
    (3, 2, 2)
    """

    outputs: tuple[Calibration, ...]
    levels: tuple[Level, ...]
    q_hat: Array
    names: tuple[str, ...]
    method: str
    n: int

    def __post_init__(self) -> None:
        shape = len(self.levels), len(self.outputs)
        if any(each.coverages != self.coverages for each in self.outputs):
            raise ValueError("the calibrations of all outputs must be of the same coverages")
        if len({each.groups and each.groups.labels for each in self.outputs}) > 1:
            raise ValueError("the groups of all outputs must be the same")
        if (self.q_hat.shape, len(self.names)) != (shape, shape[1]) or np.isnan(self.q_hat).any():
            raise ValueError(f"the quantiles of boxes must be {shape} numbers")

    @property
    def guarantee(self) -> str:  # type: ignore[override]
        """The promise for one interval, or one box, of each coverage c, in words."""
        return self.outputs[0].guarantee

    @cached_property
    def boxes(self) -> tuple[Calibration, ...]:
        """Calibrations of single outputs, with the sides of boxes as intervals."""
        if self.outputs[0].groups is not None:
            raise ValueError("joint must be False: the calibration was made by groups")

        def side(calibration: Calibration, q_hat: list[float]) -> Calibration:
            pairs = zip(calibration.levels, q_hat, strict=True)
            return replace(calibration, levels=tuple(replace(level, q_hat=q) for level, q in pairs))

        return tuple(map(side, self.outputs, self.q_hat.T.tolist()))

    @property
    def finite_coverages(self) -> tuple[float, ...]:
        """The coverages with finite boxes, for which there were enough rows."""
        is_finite = np.asarray(np.isfinite(self.q_hat).all(axis=1))
        return tuple(np.array(self.coverages)[is_finite].tolist())

    def _rows(self) -> list[tuple[str, ...]]:
        head, *together = super()._rows()
        tables = [*(each._rows()[1:] for each in self.outputs), together]
        named = zip((*self.names, "all together"), tables, strict=True)
        return [("output", *head), *((name, *row) for name, table in named for row in table)]

    def _cells(self, level: Level) -> tuple[str, ...]:
        q_hat = map(significant, self.q_hat[self.levels.index(level)].tolist())
        return *_measured(level), f"q_hat {', '.join(q_hat)}"


AnyCalibration = Calibration | CrossCalibration | JointCalibration
