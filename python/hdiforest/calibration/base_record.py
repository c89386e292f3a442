"""What calibrations of all methods have: levels of ascending coverage, and words for them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._utils.checks import shares, significant
from hdiforest.calibration.audit import Audit
from hdiforest.calibration.report import Row, html_table, text_table


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
