"""CV+ and jackknife+: intervals from the forests that did not see a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from hdiforest._utils.checks import check_name
from hdiforest._utils.typing import Array
from hdiforest.calibration._postprocess import Finish, nested, padded
from hdiforest.calibration._result import Audit, Record, measure
from hdiforest.calibration._scores import (
    conformity_scores,
    pad,
    rank,
    warn_of_infinite,
    weight_needed,
)

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
    weights : tuple of K (n_fold, k) arrays, or None
        Positive weights of the rows with these scores; None if all weigh alike.
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
    weights: tuple[Array, ...] | None = None

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
        if self.weights is not None:
            if [own.shape for own in self.weights] != [own.shape for own in self.scores]:
                raise ValueError("weights must be as many as scores in each fold")
            if not all(((own > 0) & np.isfinite(own)).all() for own in self.weights):
                raise ValueError("weights must be finite and positive")

    @property
    def n(self) -> int:
        """Number of rows that gave scores."""
        return sum(map(len, self.scores))

    @property
    def guarantee(self) -> str:
        """What is promised of one interval of each coverage c, in words."""
        if self.weights is not None:
            return (
                "No guarantee is known for rows with weights: pads are weighted quantiles, and the "
                "audit shows what to expect of rows that are drawn by these weights."
            )
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
            Finished and nested: each coverage contains the lower ones. NaN where an end is.

        Notes
        -----
        The upper end is the ceil((n + 1) c)-th smallest of u_i + e_i over the training rows i with
        score e_i, where u_i is the upper end by the forest that was fitted without the fold of row
        i; the lower end likewise (Barber, Candes, Ramdas and Tibshirani 2021, eq. 8, with the
        scores of Romano, Patterson and Candes 2019). With weights, the rows up to that one have the
        share c of the total weight, as by `pad`. O(K log n) for each row and coverage.
        """
        result = np.empty(ends.shape[1:])
        for j, level in enumerate(self.levels):
            scores = [own[:, j] for own in self.scores]
            k: float = rank(self.n, level.coverage)
            weights = self.weights and [own[:, j] for own in self.weights]
            if weights is not None:
                k = weight_needed(np.concatenate(weights), level.coverage)
            result[:, 0, j] = -kth_shifted(-ends[:, :, 0, j], scores, k, weights)
            result[:, 1, j] = kth_shifted(ends[:, :, 1, j], scores, k, weights)
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
    weights: Sequence[Array] | None = None,
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
    weights : sequence of K (n_fold,) arrays, optional
        Positive weights of the rows.

    Warns
    -----
    UserWarning
        If some intervals are infinite; it gives the number of rows needed.

    Notes
    -----
    The audit pads the intervals of each fold by the scores of the others.
    """
    scores = [conformity_scores(own, targets, finish) for own, targets in zip(ends, y, strict=True)]

    def without(fold: int, parts: Sequence[Array]) -> Array:
        return np.concatenate([part for f, part in enumerate(parts) if f != fold])

    audited = []
    for fold, own in enumerate(ends):
        others = without(fold, scores)
        weigh = None if weights is None else without(fold, weights)
        pads = [float(pad(others[:, j], c, weights=weigh)) for j, c in enumerate(coverages)]
        audited.append(nested(padded(own, pads, finish)))
    intervals, targets = np.concatenate(audited), np.concatenate(list(y))
    together = None if weights is None else np.concatenate(list(weights))
    zeros = np.zeros(len(targets))
    infinite = [c for c in coverages if np.isinf(pad(zeros, c, weights=together))]
    warn_of_infinite(infinite, len(targets))
    orders = [np.argsort(own, axis=0, kind="stable") for own in scores]
    return CrossCalibration(
        levels=tuple(
            CrossLevel(c, measure(targets, intervals[..., j], together))
            for j, c in enumerate(coverages)
        ),
        scores=tuple(
            np.take_along_axis(own, order, axis=0)
            for own, order in zip(scores, orders, strict=True)
        ),
        finish=finish,
        grouped=grouped,
        method=method,
        weights=None
        if weights is None
        else tuple(own[order] for own, order in zip(weights, orders, strict=True)),
    )


def kth_shifted(
    shifts: Array, scores: Sequence[Array], k: float, weights: Sequence[Array] | None = None
) -> Array:
    """Return the k-th smallest of all shifts[f] + score, for each column of the shifts.

    With weights, the least such sum up to which the scores weigh k or more.

    Parameters
    ----------
    shifts : (K, n) array
    scores : sequence of K ascending arrays
    k : float
        From 1 on; above 0 with weights.
    weights : sequence of K arrays, optional
        Positive weights of the scores.

    Returns
    -------
    (n,) float64
        Infinite if there are fewer scores, or less weight, and NaN where a shift is. Too large by
        the rounding of a few additions at most.

    Notes
    -----
    Bisection between the least and the largest shift plus the k-th score: O(K log n) a step, and
    no more steps than a float has bits. O(n K) if each f has one score.
    """
    if weights is None:
        weights = [np.ones(len(own)) for own in scores]
    together, weigh = np.concatenate(scores), np.concatenate(weights)
    if k > weigh.sum():
        return np.full(shifts.shape[1], np.inf)
    middle = _quantile(together[:, np.newaxis], weigh, k)[0]
    rounding = 4 * np.finfo(np.float64).eps * (np.abs(shifts).max(axis=0) + np.abs(middle))
    if all(len(own) == 1 for own in scores):
        return np.asarray(_quantile(shifts + together[:, np.newaxis], weigh, k) + rounding)
    lower = shifts.min(axis=0) + middle - rounding
    upper = shifts.max(axis=0) + middle + rounding
    reached_at = [np.concatenate([[0], np.cumsum(own)]) for own in weights]
    # A step halves the difference, which begins below 2^54 times that at which it is small enough.
    for _ in range(54):
        # Each column stops by itself, so that no result depends on the others.
        if not (unsure := upper - lower > 2 * rounding).any():
            break
        centre = lower / 2 + upper / 2
        reached = sum(
            total[np.searchsorted(own, centre - shift, side="right")]
            for own, shift, total in zip(scores, shifts, reached_at, strict=True)
        )
        lower = np.where(unsure & (reached < k), centre, lower)
        upper = np.where(unsure & (reached >= k), centre, upper)
    return np.asarray(upper + rounding)


def _quantile(values: Array, weights: Array, k: float) -> Array:
    """Return the least value of each column (n,) up to which the rows weigh k or more, of all."""
    order = np.argsort(values, axis=0)
    position = np.count_nonzero(np.cumsum(weights[order], axis=0) < k, axis=0)
    # The sum of weights depends on their order in its last bits.
    last = np.minimum(position, len(values) - 1)
    return np.asarray(np.take_along_axis(values, order, axis=0)[last, np.arange(values.shape[1])])
