"""CV+ and jackknife+: scores of held-out rows, each added to the intervals of its own forest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from hdiforest.calibration.audit import Audit, measure
from hdiforest.calibration.base_record import Record
from hdiforest.calibration.candidates import Array, check_name
from hdiforest.calibration.coverages import warn_of_infinite
from hdiforest.calibration.finish import Finish
from hdiforest.calibration.intervals import nested, padded
from hdiforest.calibration.pads import conformity_scores, pad, rank

METHODS = ("cv+", "jackknife+")


@dataclass(frozen=True)
class CrossLevel:
    """One coverage, and how its intervals did on rows that gave no pads for themselves."""

    coverage: float
    audit: Audit | None  # None: too few rows for a finite pad

    @property
    def mean_width(self) -> float:
        """Of the audit's intervals."""
        return np.inf if self.audit is None else self.audit.mean_width

    @property
    def realised(self) -> float:
        """Share of the rows that the audit's intervals cover."""
        return 1.0 if self.audit is None else self.audit.coverage


@dataclass(frozen=True, repr=False, eq=False)
class CrossCalibration(Record):
    """Scores of training rows by K forests, each of which knows nothing of its rows.

    Parameters
    ----------
    levels : tuple of k CrossLevel
        Coverage ascends.
    scores : tuple of K (n_fold, k) arrays
        Conformal scores of the rows held out of each fold, ascending along the first axis.
    finish : Finish
    grouped : bool
        Whether folds kept groups of rows together.
    method : {"cv+", "jackknife+"}
        Whether each forest was fitted without a fold of rows, or is made of the trees that did not
        draw one row.
    """

    levels: tuple[CrossLevel, ...]
    scores: tuple[Array, ...]
    finish: Finish
    grouped: bool = False
    method: str = "cv+"

    def __post_init__(self) -> None:
        check_name("method", self.method, METHODS)
        self._check_coverages()
        k = len(self.levels)
        if len(self.scores) < 2:
            raise ValueError("scores must be those of two folds or more")
        for scores in self.scores:
            if scores.ndim != 2 or scores.shape[1] != k:
                raise ValueError(f"scores of each fold must be of {k} coverages")
            if not np.isfinite(scores).all() or (np.diff(scores, axis=0) < 0).any():
                raise ValueError("scores must be finite and ascend")

    @property
    def n(self) -> int:
        """Number of rows that gave scores."""
        return sum(map(len, self.scores))

    @property
    def guarantee(self) -> str:
        """What is promised of one interval of each coverage c, in words."""
        if self.grouped:
            return (
                "No guarantee is known for single rows of new groups, whose rows depend on each "
                "other: pads come from groups that no tree of their forest saw, so the audit "
                "shows what to expect of new groups."
            )
        clipped = f", less {2 / (self.n + 1):.2g} for the clipping" if self.finish.clip else ""
        if self.method == "jackknife+":
            return (
                f"At least with probability 2c - 1 a new row is covered{clipped}, if it is "
                "exchangeable with the training rows and the number of trees was drawn from a "
                "binomial distribution; a given number comes close, and the audit shows what to "
                "expect."
            )
        return (
            f"At least with probability 2c - 1 - {self._loss():.2g} a new row is covered{clipped}, "
            f"if it is exchangeable with the {self.n} training rows and folds are of one size; the "
            "audit shows what to expect."
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
            Finished and nested: each coverage contains the lower ones. NaN where an end is.

        Notes
        -----
        The upper end is the ceil((n + 1) c)-th smallest of u_i + e_i over the training rows i with
        score e_i, where u_i is the upper end by the forest that was fitted without the fold of row
        i; the lower end likewise (Barber, Candes, Ramdas and Tibshirani 2021, eq. 8, with the
        scores of Romano, Patterson and Candes 2019). O(K log n) for each row and coverage.
        """
        result = np.empty(ends.shape[1:])
        for j, level in enumerate(self.levels):
            scores = [own[:, j] for own in self.scores]
            k = rank(self.n, level.coverage)
            result[:, 0, j] = -kth_shifted(-ends[:, :, 0, j], scores, k)
            result[:, 1, j] = kth_shifted(ends[:, :, 1, j], scores, k)
        lower, upper = self.finish.apply(result[:, 0], result[:, 1])
        return nested(np.stack([lower, upper], axis=1))

    def _chosen(self, position: int) -> str:  # noqa: ARG002 (each fold chose its own)
        what = "folds" if self.method == "cv+" else "rows"
        return f"by {len(self.scores)} {what}"


def cross_calibration(
    ends: Sequence[Array],
    y: Sequence[Array],
    coverages: Sequence[float],
    finish: Finish,
    *,
    grouped: bool = False,
    method: str = "cv+",
) -> CrossCalibration:
    """Score the rows of each fold by the forest that was fitted without them.

    Parameters
    ----------
    ends : sequence of K (n_fold, 2, k) arrays
        Finite ends of the rows held out of each fold, by the forest fitted without them.
    y : sequence of K (n_fold,) arrays
        Their targets.
    coverages : sequence of k floats
        Above 0 and below 1, ascending.
    finish : Finish
    grouped : bool, default=False
        Whether folds kept groups of rows together.
    method : {"cv+", "jackknife+"}, default="cv+"

    Warns
    -----
    UserWarning
        If some intervals are infinite; it gives the number of rows needed.

    Notes
    -----
    The audit pads the intervals of each fold by the scores of the others.
    """
    scores = [conformity_scores(own, targets, finish) for own, targets in zip(ends, y, strict=True)]
    audited = []
    for fold, own in enumerate(ends):
        others = np.concatenate([s for f, s in enumerate(scores) if f != fold])
        pads = [float(pad(others[:, j], c)) for j, c in enumerate(coverages)]
        audited.append(nested(padded(own, pads, finish)))
    intervals, targets = np.concatenate(audited), np.concatenate(list(y))
    infinite = [c for c in coverages if rank(len(targets), c) > len(targets)]
    warn_of_infinite(infinite, len(targets), stacklevel=2)
    return CrossCalibration(
        levels=tuple(
            CrossLevel(c, measure(targets, intervals[..., j])) for j, c in enumerate(coverages)
        ),
        scores=tuple(np.sort(own, axis=0) for own in scores),
        finish=finish,
        grouped=grouped,
        method=method,
    )


def kth_shifted(shifts: Array, scores: Sequence[Array], k: int) -> Array:
    """Return the k-th smallest of all shifts[f] + score, for each column of the shifts.

    Parameters
    ----------
    shifts : (K, n) array
    scores : sequence of K ascending arrays
    k : int
        From 1 on.

    Returns
    -------
    (n,) float64
        Infinite if there are fewer scores, and NaN where a shift is. Larger than the k-th smallest
        by the rounding of a few additions at most.

    Notes
    -----
    Bisection between the least and the largest shift plus the k-th score: O(K log n) a step, and
    as many steps as a float has bits. O(n K) if each f has one score.
    """
    together = np.concatenate(scores)
    if k > len(together):
        return np.full(shifts.shape[1], np.inf)
    middle = np.partition(together, k - 1)[k - 1]
    rounding = 4 * np.finfo(np.float64).eps * (np.abs(shifts).max(axis=0) + np.abs(middle))
    if all(len(own) == 1 for own in scores):
        shifted = shifts + together[:, np.newaxis]
        return np.asarray(np.partition(shifted, k - 1, axis=0)[k - 1] + rounding)
    lower = shifts.min(axis=0) + middle - rounding
    upper = shifts.max(axis=0) + middle + rounding
    # Each column stops by itself, so that no result depends on the others.
    while (unsure := upper - lower > 2 * rounding).any():
        centre = lower / 2 + upper / 2
        reached = sum(
            np.searchsorted(own, centre - shift, side="right")
            for own, shift in zip(scores, shifts, strict=True)
        )
        lower = np.where(unsure & (reached < k), centre, lower)
        upper = np.where(unsure & (reached >= k), centre, upper)
    return np.asarray(upper + rounding)
