"""Results of calibrations, and how they print."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._utils.checks import check_name, shares, significant
from hdiforest._utils.typing import Array
from hdiforest.calibration._bases import Base, Candidates
from hdiforest.calibration._postprocess import Finish, nested, padded
from hdiforest.calibration._selection import Choice, Rule, calibrated
from hdiforest.metrics import coverage_by_width, coverage_score, mean_width_score


class Row(NamedTuple):
    """Cells of one coverage; the names are the table's head."""

    nominal: str
    coverage: str  # of the calibration rows
    audit: str  # coverage of rows that neither chose nor padded
    worst_of_five: str  # least coverage of five bins by width, in the audit
    width: str
    chosen: str


_HEAD = tuple(name.replace("_", " ") for name in Row._fields)


def text_table(rows: Sequence[Row]) -> str:
    """Return lines with aligned columns."""
    lines = [_HEAD, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def html_table(title: str, rows: Sequence[Row], note: str) -> str:
    """Return a table with a caption and a paragraph below."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in _HEAD)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return (
        f"<table><caption>{escape(title)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table><p>{escape(note)}</p>"
    )


class AnyLevel(Protocol):
    """What there is for each coverage, whatever the method."""

    @property
    def coverage(self) -> float:
        """What was asked for."""

    @property
    def mean_width(self) -> float:
        """Of the intervals of the calibration rows."""

    @property
    def realised(self) -> float:
        """Share of the calibration rows that their intervals cover."""

    @property
    def audit(self) -> Audit | None:
        """How intervals did on rows that gave no pads for themselves; None: too few rows."""


class Record(ABC):
    """The coverages of a calibration, looked up and shown."""

    method: str
    levels: tuple[Any, ...]  # of AnyLevel

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of calibration rows."""

    @property
    @abstractmethod
    def guarantee(self) -> str:
        """What is promised of one interval of each coverage c, in words."""

    @abstractmethod
    def _chosen(self, position: int) -> str:
        """Say what was chosen for a coverage."""

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
            if _same(known, coverage):
                return position
        listed = ", ".join(f"{known:g}" for known in self.coverages)
        raise ValueError(f"coverage must be one that was calibrated: {listed}; got {coverage:g}")

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
        return any(_same(known, coverage) for known in self.coverages)

    def level(self, coverage: float) -> Any:
        """Return what is kept of a coverage, or raise ValueError as `position`."""
        return self.levels[self.position(coverage)]

    def __repr__(self) -> str:
        return f"{self._title()}\n{text_table(self._rows())}\n{self.guarantee}"

    def _repr_html_(self) -> str:
        return html_table(self._title(), self._rows(), self.guarantee)

    def _title(self) -> str:
        return f"Calibration, method {self.method}, {self.n} rows"

    def _rows(self) -> Sequence[Row]:
        return [_row(level, self._chosen(i)) for i, level in enumerate(self.levels)]


def _same(coverage: float, other: float) -> bool:
    return math.isclose(coverage, other, rel_tol=0, abs_tol=1e-7)  # float32 will do


def _row(level: AnyLevel, chosen: str) -> Row:
    audit = level.audit
    return Row(
        nominal=f"{level.coverage:g}",
        coverage=f"{level.realised:.3f}",
        audit="-" if audit is None else f"{audit.coverage:.3f} ± {audit.standard_error:.3f}",
        worst_of_five="-" if audit is None else f"{audit.worst_of_five:.3f}",
        width=significant(level.mean_width),
        chosen=chosen,
    )


_SEED = 0  # of the halves, so that an audit repeats


_N_BINS = 5


_MIN_SHARE_OF_BIN = 0.5 / _N_BINS  # ties make bins uneven, and small ones cover what chance gives


@dataclass(frozen=True)
class Audit:
    """What intervals cover whose choice and pad come from other rows."""

    coverage: float
    standard_error: float  # binomial, of the coverage
    mean_width: float
    # Coverage by thirds of width, narrow first; None: ties leave this third no rows.
    thirds: tuple[float | None, float | None, float | None]
    worst_of_five: float  # least coverage of five bins by width

    def __post_init__(self) -> None:
        for name in ("coverage", "worst_of_five"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be in [0, 1], got {getattr(self, name)}")
        for name in ("standard_error", "mean_width"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
        if any(share is not None and not 0 <= share <= 1 for share in self.thirds):
            raise ValueError(f"thirds must be in [0, 1], got {self.thirds}")


def audit(
    candidates: Candidates, coverages: Sequence[float], finish: Finish, rule: Rule
) -> tuple[Audit | None, ...]:
    """Cross-fit a rule in two random halves of the rows.

    Parameters
    ----------
    candidates : Candidates
    coverages : sequence of k floats
        Ascending.
    finish : Finish
    rule : Rule

    Returns
    -------
    tuple of k Audit or None
        None where a half has too few rows for a finite pad.

    Notes
    -----
    Each half's intervals are chosen and padded on the other, so the optimism of the choice shows.
    Half as many rows choose as in the calibration itself, which therefore does no worse on average.
    Rows of one group (person, site) must not be in both halves for the audit to speak of new
    groups.
    """
    n = len(candidates.y)
    if n < 2:
        return (None,) * len(coverages)
    order = np.random.default_rng(_SEED).permutation(n)
    halves = order[: n // 2], order[n // 2 :]
    intervals = np.empty((n, 2, len(coverages)))
    for measured, fitted in (halves, halves[::-1]):
        choices = rule(candidates.rows(fitted), coverages, finish)
        intervals[measured] = calibrated(candidates.rows(measured), choices, finish)
    return tuple(
        measure(candidates.y, ends, candidates.weights) for ends in np.moveaxis(intervals, -1, 0)
    )


def measure(y: Array, ends: Array, weights: Array | None = None) -> Audit | None:
    """Return what intervals (n, 2) of rows with weights (n,) cover; None if some are infinite."""
    if np.isinf(ends).any():
        return None
    share = float(coverage_score(y, ends, sample_weight=weights))
    narrow, middle, wide = (
        None if np.isnan(third) else float(third)
        for third in coverage_by_width(y, ends, 3, sample_weight=weights).coverage[1:]
    )
    bins = coverage_by_width(y, ends, _N_BINS, sample_weight=weights)
    shares = np.full(len(y), 1 / len(y)) if weights is None else weights / weights.sum()
    return Audit(
        coverage=share,
        standard_error=float(np.sqrt(share * (1 - share) * (shares**2).sum())),
        mean_width=float(mean_width_score(ends, sample_weight=weights)),
        thirds=(narrow, middle, wide),
        worst_of_five=float(bins.coverage[bins.counts >= _MIN_SHARE_OF_BIN * len(y)].min()),
    )


METHODS = ("oob", "split")


@dataclass(frozen=True)
class Level:
    """One coverage: what was chosen for it, and how that did on other rows."""

    choice: Choice
    audit: Audit | None  # None: half of the rows are too few for a finite pad

    @property
    def coverage(self) -> float:
        """What was asked for."""
        return self.choice.coverage

    @property
    def mean_width(self) -> float:
        """Of the calibrated intervals of the calibration rows."""
        return self.choice.mean_width

    @property
    def realised(self) -> float:
        """Share of the calibration rows that their intervals cover."""
        return self.choice.realised


@dataclass(frozen=True, repr=False)
class Calibration(Record):
    """How intervals of a model are made to cover what is asked of them.

    Parameters
    ----------
    method : {"oob", "split"}
        Whether pads come from the training rows, out of bag, or from other rows.
    levels : tuple of Level
        Coverage ascends.
    finish : Finish
    confidence : float, optional
        The confidence in which the calibration rows give the coverage; only "split".
    weighted : bool, default=False
        Whether the calibration rows had weights.
    """

    method: str
    levels: tuple[Level, ...]
    finish: Finish
    confidence: float | None = None
    weighted: bool = False

    def __post_init__(self) -> None:
        check_name("method", self.method, METHODS)
        self._check_coverages()
        if len({level.choice.n for level in self.levels}) > 1:
            raise ValueError("n must be the same for all coverages")
        if self.confidence is not None:
            check_confidence(self.confidence)
            if self.method != "split" or self.weighted:
                raise ValueError('confidence must be None unless method is "split" without weights')

    @property
    def bases(self) -> tuple[Base, ...]:
        """The base of each coverage; what `intervals` expects the ends of."""
        return tuple(level.choice.base for level in self.levels)

    @property
    def n(self) -> int:
        """Number of calibration rows."""
        return self.levels[0].choice.n

    @property
    def guarantee(self) -> str:
        """What is promised of one interval of each coverage c, in words."""
        if self.method == "oob":
            return (
                "No guarantee holds for every distribution: pads come from the training rows, each "
                "by trees that did not draw it; the audit shows what to expect."
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
            Padded, finished, and nested: each coverage contains the lower ones. NaN where an end
            of this or of a lower coverage is.
        """
        return nested(padded(ends, [level.choice.pad for level in self.levels], self.finish))

    def _chosen(self, position: int) -> str:
        choice = self.levels[position].choice
        return f"{choice.family} {choice.kind} {choice.level:g}, pad {significant(choice.pad)}"


def check_confidence(confidence: Any) -> None:
    """Raise ValueError unless it is above 0 and below 1."""
    if not (isinstance(confidence, int | float | np.number) and 0 < confidence < 1):
        raise ValueError(f"confidence must be above 0 and below 1, got {confidence}")
