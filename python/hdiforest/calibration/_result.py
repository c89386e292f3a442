"""What a calibration gives: its coverages, their intervals, and how it prints."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._utils.checks import check_choice, one_share, shares, significant
from hdiforest._utils.typing import Array
from hdiforest.calibration._bases import Base, check_base
from hdiforest.calibration._postprocess import PostProcess, nested
from hdiforest.calibration._quantiles import kth_shifted, rank, rows_needed, weight_needed

METHODS = ("oob", "split")
CROSS_METHODS = ("cv+", "jackknife+")


@dataclass(frozen=True)
class CrossCheck:
    """What intervals cover whose base and conformal quantile come from other rows."""

    coverage: float
    standard_error: float  # binomial, of the coverage
    mean_width: float
    # Coverage by thirds of width, narrow first; None: ties leave this third no rows.
    thirds: tuple[float | None, float | None, float | None]
    worst_of_five: float  # least coverage of five bins by width

    def __post_init__(self) -> None:
        _check_proportions(self, "coverage", "worst_of_five")
        _check_not_negative(self, "standard_error", "mean_width")
        if any(share is not None and not 0 <= share <= 1 for share in self.thirds):
            raise ValueError(f"thirds must be in [0, 1], got {self.thirds}")


@dataclass(frozen=True)
class Level:
    """One coverage, and what its intervals do on the calibration rows."""

    coverage: float  # asked for
    mean_width: float  # of the intervals of the calibration rows
    realised: float  # share of the calibration rows that they cover
    cross_check: CrossCheck | None  # None: too few rows for finite intervals

    def __post_init__(self) -> None:
        one_share("coverage", self.coverage)
        _check_not_negative(self, "mean_width")
        _check_proportions(self, "realised")

    @classmethod
    def from_check(cls, coverage: float, check: CrossCheck | None) -> Self:
        """Return a coverage of which nothing but the cross-check is known."""
        if check is None:
            return cls(coverage, np.inf, 1.0, None)
        return cls(coverage, check.mean_width, check.coverage, check)


@dataclass(frozen=True)
class FixedLevel(Level):
    """A coverage whose intervals are one base, widened by the same number for all rows."""

    base: Base
    q_hat: float  # conformal quantile of the scores; infinite: too few rows
    interval_score: float  # mean over the calibration rows

    def __post_init__(self) -> None:
        super().__post_init__()
        check_base(self.base)
        _check_not_negative(self, "interval_score")
        if not self.q_hat > -np.inf:
            raise ValueError(f"q_hat must be a number or infinite, got {self.q_hat}")


def _check_proportions(of: object, *names: str) -> None:
    for name in names:
        if not 0 <= getattr(of, name) <= 1:
            raise ValueError(f"{name} must be in [0, 1], got {getattr(of, name)}")


def _check_not_negative(of: object, *names: str) -> None:
    for name in names:
        if not getattr(of, name) >= 0:
            raise ValueError(f"{name} must not be negative, got {getattr(of, name)}")


class _Row(NamedTuple):
    """Cells of one coverage; the names are the table's head."""

    nominal: str
    coverage: str  # of the calibration rows
    cross_check: str  # coverage of rows that gave neither base nor conformal quantile
    worst_of_five: str  # least coverage of five bins by width, in the cross-check
    width: str
    intervals: str


_HEAD = _Row(*(name.replace("_", " ") for name in _Row._fields))


class CalibrationResult(ABC):
    """The coverages of a calibration, looked up and shown."""

    method: str
    levels: tuple[Any, ...]  # of Level
    n: int  # calibration rows

    @property
    @abstractmethod
    def guarantee(self) -> str:
        """What is promised of one interval of each coverage c, in words."""

    @abstractmethod
    def _describe(self, level: Any) -> str:
        """Say what the intervals of a coverage are made of."""

    def _check_coverages(self) -> None:
        coverages = self.coverages
        if not coverages or any(a >= b for a, b in pairwise(coverages)):
            raise ValueError(f"coverages must be one or more and ascend, got {coverages}")

    @property
    def coverages(self) -> tuple[float, ...]:
        """The coverages that were calibrated, ascending."""
        return tuple(level.coverage for level in self.levels)

    def position(self, coverage: float) -> int:
        """Return the position of a coverage among those that were calibrated.

        Raises
        ------
        ValueError
            If it is not among them.
        """
        for position, known in enumerate(self.coverages):
            if math.isclose(known, coverage, rel_tol=0, abs_tol=1e-7):  # float32 will do
                return position
        if 0 < coverage < 1 and self.n < (needed := rows_needed(coverage)):
            raise ValueError(
                f"coverage {coverage:g} needs {needed} calibration rows, and there are {self.n}; "
                "ask for a lower one, or for kind='hdi', which is not calibrated"
            )
        listed, wanted = (
            ", ".join(f"{level:g}" for level in sorted(levels))
            for levels in (self.coverages, (*self.coverages, coverage))
        )
        # Another method would have another guarantee.
        how = {"oob": "", "split": "X, y, "}.get(self.method, f"method={self.method!r}, ")
        fit = f"fit with calibration=[{wanted}], " if self.method == "oob" else ""
        raise ValueError(
            f"coverage must be one that was calibrated: {listed}; got {coverage:g}; call "
            f"calibrate({how}coverage=[{wanted}]), {fit}or use kind='hdi', which is not calibrated"
        )

    def positions(self, coverage: ArrayLike) -> NDArray[np.intp]:
        """Return the positions of a coverage, (), or of k of them, (k,).

        Raises
        ------
        ValueError
            If there are more dimensions, or as `position`.
        """
        levels = shares("coverage", coverage)
        if levels.ndim > 1 or levels.size == 0:
            raise ValueError(f"coverage must be a number or a list of numbers, got {coverage!r}")
        at = [self.position(level) for level in levels.reshape(-1).tolist()]
        return np.array(at, dtype=np.intp).reshape(levels.shape)

    def has(self, coverage: float) -> bool:
        """Whether a coverage was calibrated."""
        try:
            self.position(coverage)
        except ValueError:
            return False
        return True

    def level(self, coverage: float) -> Any:
        """Return what is known of a coverage, or raise ValueError as `position`."""
        return self.levels[self.position(coverage)]

    def __repr__(self) -> str:
        rows = self._rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        return "\n".join([self._title(), *lines, self.guarantee])

    def _repr_html_(self) -> str:
        head, *body = (
            "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row)
            for row, tag in zip(self._rows(), ["th", *["td"] * len(self.levels)], strict=True)
        )
        return (
            f"<table><caption>{escape(self._title())}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{''.join(f'<tr>{row}</tr>' for row in body)}</tbody></table>"
            f"<p>{escape(self.guarantee)}</p>"
        )

    def _title(self) -> str:
        return f"Calibration, method {self.method}, {self.n} rows"

    def _rows(self) -> Sequence[_Row]:
        return [_HEAD, *(_cells(level, self._describe(level)) for level in self.levels)]


def _cells(level: Level, intervals: str) -> _Row:
    check = level.cross_check
    return _Row(
        nominal=f"{level.coverage:g}",
        coverage=f"{level.realised:.3f}",
        cross_check="-" if check is None else f"{check.coverage:.3f} ± {check.standard_error:.3f}",
        worst_of_five="-" if check is None else f"{check.worst_of_five:.3f}",
        width=significant(level.mean_width),
        intervals=intervals,
    )


@dataclass(frozen=True, repr=False)
class Calibration(CalibrationResult):
    """How intervals of a model are made to cover what is asked of them.

    Parameters
    ----------
    method : {"oob", "split"}
        Whether conformal quantiles come from the training rows, out of bag, or from other rows.
    levels : tuple of FixedLevel
        Coverage ascends.
    postprocess : PostProcess
    n : int
        Number of calibration rows.
    confidence : float, optional
        The confidence in which the calibration rows give the coverage; only "split".
    weighted : bool, default=False
        Whether the calibration rows had weights.
    """

    method: str
    levels: tuple[FixedLevel, ...]
    postprocess: PostProcess
    n: int
    confidence: float | None = None
    weighted: bool = False

    def __post_init__(self) -> None:
        check_choice("method", self.method, METHODS)
        self._check_coverages()
        if self.n < 1:
            raise ValueError(f"n must be positive, got {self.n}")
        if self.confidence is not None:
            one_share("confidence", self.confidence)
            if self.method != "split" or self.weighted:
                raise ValueError('confidence must be None unless method is "split" without weights')

    @property
    def bases(self) -> tuple[Base, ...]:
        """The base of each coverage; what `intervals` expects the ends of."""
        return tuple(level.base for level in self.levels)

    @property
    def guarantee(self) -> str:
        """What is promised of one interval of each coverage c, in words."""
        if self.method == "oob":
            return (
                "No guarantee holds for every distribution: conformal quantiles come from the "
                "training rows, each by trees that did not draw it; the cross-check shows what to "
                "expect."
            )
        if self.confidence is not None:
            return (
                f"With a confidence of {self.confidence:g} in the draw of the {self.n} calibration "
                "rows, at least the share c of all new rows is covered, if calibration and new "
                "rows are drawn independently from one distribution."
            )
        if self.weighted:
            return (
                "At least with probability c a new row is covered, if the weights of the "
                f"{self.n} calibration rows are proportional to how much more often such rows are "
                "among new ones, and the new row weighs no more than the heaviest of them."
            )
        return (
            "At least with probability c a new row is covered, if it is exchangeable with the "
            f"{self.n} calibration rows; at most with c + 1 / {self.n + 1} if moreover no scores "
            "tie, before intervals are nested."
        )

    def first(self, k: int) -> Self:
        """Return the calibration of the k lowest coverages."""
        return replace(self, levels=self.levels[:k])

    def intervals(self, ends: Array) -> Array:
        """Return calibrated intervals of any rows.

        Parameters
        ----------
        ends : (n, 2, k) array
            Lower and upper ends by `bases`.

        Returns
        -------
        (n, 2, k) float64
            Widened, post-processed, and nested: each coverage contains the lower ones. NaN where an
            end of this or of a lower coverage is.
        """
        return nested(self.postprocess.widen(ends, [level.q_hat for level in self.levels]))

    def _describe(self, level: FixedLevel) -> str:
        family, kind, share = level.base
        return f"{family} {kind} {share:g}, q_hat {significant(level.q_hat)}"


@dataclass(frozen=True, repr=False, eq=False)
class CrossCalibration(CalibrationResult):
    """Scores of training rows by K forests, each of which knows nothing of its rows.

    Parameters
    ----------
    levels : tuple of k Level
        Coverage ascends.
    scores : tuple of K (n_fold, k) arrays
        Conformity scores of the rows held out of each fold, ascending along the first axis.
    postprocess : PostProcess
    grouped : bool, default=False
        Whether folds kept groups of rows together.
    method : {"cv+", "jackknife+"}, default="cv+"
        Whether each forest was fitted without a fold of rows, or is made of the trees that did not
        draw one row.
    weights : tuple of K (n_fold, k) arrays, optional
        Positive weights of the rows with these scores; None if all weigh alike.
    """

    levels: tuple[Level, ...]
    scores: tuple[Array, ...]
    postprocess: PostProcess
    grouped: bool = False
    method: str = "cv+"
    weights: tuple[Array, ...] | None = None

    def __post_init__(self) -> None:
        check_choice("method", self.method, CROSS_METHODS)
        self._check_coverages()
        k = len(self.levels)
        if len(self.scores) < 2:
            raise ValueError("scores must be those of two folds or more")
        for scores in self.scores:
            if scores.ndim != 2 or scores.shape[1] != k:
                raise ValueError(f"scores of each fold must be of {k} coverages")
            if not np.isfinite(scores).all() or (np.diff(scores, axis=0) < 0).any():
                raise ValueError("scores must be finite and ascend")
        if self.weights is not None:
            if [fold.shape for fold in self.weights] != [fold.shape for fold in self.scores]:
                raise ValueError("weights must be as many as scores in each fold")
            if not all(((fold > 0) & np.isfinite(fold)).all() for fold in self.weights):
                raise ValueError("weights must be finite and positive")

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of rows that gave scores."""
        return sum(map(len, self.scores))

    @property
    def guarantee(self) -> str:
        """What is promised of one interval of each coverage c, in words."""
        if self.weights is not None:
            return (
                "No guarantee is known for rows with weights: conformal quantiles are weighted, "
                "and the cross-check shows what to expect of rows that are drawn by these weights."
            )
        if self.grouped:
            return (
                "No guarantee is known for single rows of new groups, whose rows depend on each "
                "other: conformal quantiles come from groups that no tree of their forest saw, so "
                "the cross-check shows what to expect of new groups."
            )
        clipped = f", less {2 / (self.n + 1):.2g} for the clipping" if self.postprocess.clip else ""
        if self.method == "jackknife+":
            return (
                f"At least with probability 2c - 1 a new row is covered{clipped}, if it is "
                "exchangeable with the training rows and the number of trees was drawn from a "
                "binomial distribution; a given number comes close, and the cross-check shows what "
                "to expect."
            )
        return (
            f"At least with probability 2c - 1 - {self._loss():.2g} a new row is covered{clipped}, "
            f"if it is exchangeable with the {self.n} training rows and folds are of one size; the "
            "cross-check shows what to expect."
        )

    def _loss(self) -> float:
        # Barber, Candes, Ramdas, Tibshirani (Annals of Statistics 49, 2021), theorem 4.
        n, folds = self.n, len(self.scores)
        return min(2 * (1 - 1 / folds) / (n / folds + 1), (1 - folds / n) / (folds + 1))

    def first(self, k: int) -> Self:
        """Return the calibration of the k lowest coverages."""
        return replace(
            self,
            levels=self.levels[:k],
            scores=tuple(scores[:, :k] for scores in self.scores),
            weights=self.weights and tuple(weights[:, :k] for weights in self.weights),
        )

    def intervals(self, ends: Array) -> Array:
        """Return calibrated intervals of any rows.

        Parameters
        ----------
        ends : (K, n, 2, k) array
            Lower and upper ends by the forest of each fold.

        Returns
        -------
        (n, 2, k) float64
            Post-processed and nested: each coverage contains the lower ones. NaN where an end is.

        Notes
        -----
        The upper end is the ceil((n + 1) c)-th smallest of u_i + e_i over the training rows i with
        score e_i, where u_i is the upper end by the forest that was fitted without the fold of row
        i; the lower end likewise (Barber, Candes, Ramdas and Tibshirani 2021, eq. 8, with the
        scores of Romano, Patterson and Candes 2019). With weights, the rows up to that one have the
        share c of the total weight, as in `conformal_quantile`. O(K log n) for each row and
        coverage.
        """
        result = np.empty(ends.shape[1:])
        for j, level in enumerate(self.levels):
            scores = [fold[:, j] for fold in self.scores]
            k: float = rank(self.n, level.coverage)
            weights = self.weights and [fold[:, j] for fold in self.weights]
            if weights is not None:
                k = weight_needed(np.concatenate(weights), level.coverage)
            result[:, 0, j] = -kth_shifted(-ends[:, :, 0, j], scores, k, weights)
            result[:, 1, j] = kth_shifted(ends[:, :, 1, j], scores, k, weights)
        lower, upper = self.postprocess.apply(result[:, 0], result[:, 1])
        return nested(np.stack([lower, upper], axis=1))

    def _describe(self, level: Level) -> str:  # noqa: ARG002 (each fold has its own)
        what = "folds" if self.method == "cv+" else "rows"
        return f"by {len(self.scores)} {what}"
