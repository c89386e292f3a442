"""Calibration: what a calibrated model keeps, for each coverage and for all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from hdiforest._utils.checks import check_name, significant
from hdiforest._utils.typing import Array
from hdiforest.calibration.audit import Audit
from hdiforest.calibration.base_record import Record
from hdiforest.calibration.candidates import Base
from hdiforest.calibration.choice import Choice
from hdiforest.calibration.finish import Finish
from hdiforest.calibration.intervals import nested, padded

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
