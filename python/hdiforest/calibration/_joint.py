"""Several outputs calibrated: each by itself, and boxes that hold all targets of a row together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hdiforest._utils import Array
from hdiforest._utils.checks import significant
from hdiforest.calibration._bases import Candidates
from hdiforest.calibration._calibrate import measure_cross_check
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._quantiles import conformal_quantile
from hdiforest.calibration._result import Calibration, CalibrationResult, Level
from hdiforest.calibration._selection import Selected, calibrated_intervals, shifted_scores
from hdiforest.metrics._intervals import coverage_score, mean_width_score


@dataclass(frozen=True, repr=False, eq=False)
class JointCalibration(CalibrationResult):
    """Calibrations of d outputs, and of boxes that cover all targets of a row together.

    Parameters
    ----------
    outputs : tuple of d Calibration
        Of the same rows and coverages.
    levels : tuple of k Level
        Of boxes; the width of a box is the geometric mean of its sides.
    q_hat : (k, d) array
        Conformal quantiles of boxes, by which the base intervals of each output are widened.
    names, method, n : tuple of d str, str and int
        Names of the outputs, and what all calibrations have in common.

    Notes
    -----
    The quantile of an output is ``location + t * scale``, with one t for all outputs: the conformal
    quantile of the rows' largest standardised scores, (score - location) / scale (as Diquigiovanni,
    Fontana, Vantini, "Conformal prediction bands for multivariate functional data", Journal of
    Multivariate Analysis 189, 2022). Location is the output's own quantile, so that boxes are its
    own intervals, each widened; scale is their mean half width without a slope, and 0 of constant
    targets. With "split" both are those out of bag, so that the guarantee of one score holds.
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
        if (self.q_hat.shape, len(self.names)) != (shape, shape[1]) or np.isnan(self.q_hat).any():
            raise ValueError(f"the quantiles of boxes must be {shape} numbers")

    @property
    def n_finite(self) -> int:
        """How many coverages, the lowest ones, have finite intervals and boxes."""
        n_boxes = int(np.isfinite(self.q_hat).all(axis=1).sum())
        return min(n_boxes, *(each.n_finite for each in self.outputs))

    @property
    def guarantee(self) -> str:
        """What is promised of one interval, or one box, of each coverage c, in words."""
        return self.outputs[0].guarantee

    @cached_property
    def boxes(self) -> tuple[Calibration, ...]:
        """Calibrations of single outputs whose intervals are the sides of boxes."""
        if self.outputs[0].groups is not None:
            raise ValueError("joint must be False: the calibration was made by groups")
        sides = []
        for own, q_hat in zip(self.outputs, self.q_hat.T.tolist(), strict=True):
            pairs = zip(own.levels, q_hat, strict=True)
            levels = tuple(replace(level, q_hat=q) for level, q in pairs)
            sides.append(replace(own, levels=levels))
        return tuple(sides)

    def _of_first(self, k: int) -> dict[str, Any]:
        outputs = tuple(each.first(k) for each in self.outputs)
        return super()._of_first(k) | {"outputs": outputs, "q_hat": self.q_hat[:k]}

    def _rows(self) -> list[tuple[str, ...]]:
        head, *together = super()._rows()
        tables = [*(each._rows()[1:] for each in self.outputs), together]
        named = zip((*self.names, "all together"), tables, strict=True)
        return [("output", *head), *((name, *row) for name, table in named for row in table)]

    def _describe(self, level: Level) -> str:
        return f"q_hat {', '.join(map(significant, self.q_hat[self.levels.index(level)].tolist()))}"


def output_names(names: Sequence[str] | None, n: int) -> tuple[str, ...]:
    """Return names of n outputs, by default y0, y1, ..."""
    return tuple(names or (f"y{output}" for output in range(n)))


@dataclass(frozen=True, eq=False)
class OutputRows:
    """Calibration rows of one output, and what was selected for k coverages.

    What was selected standardises the scores: it must not depend on rows that are to be covered.
    """

    candidates: Candidates
    selected: Sequence[Selected]
    postprocess: PostProcess

    def standard(self, j: int) -> tuple[float, float]:
        """Return location and scale of the scores of a coverage."""
        q, unit = self.selected[j].q_hat, self.selected[j].unit
        location = q if np.isfinite(q) else 0.0
        if self.postprocess.low == self.postprocess.high:
            return location, 0.0
        return location, location + unit if location > -unit else unit

    def of_rows(self, rows: NDArray[np.bool_]) -> Self:
        """Return some of the rows."""
        return replace(self, candidates=self.candidates.rows(np.flatnonzero(rows)))

    def scores(self, j: int, inner: Array | None) -> Array:
        """Return the standardised scores (n,) of a coverage; minus infinity: covered anyhow."""
        location, scale = self.standard(j)
        rows = replace(self.candidates, inner=inner)
        scores = shifted_scores(rows, self.selected[j], self.postprocess) - location
        return scores / scale if scale > 0 else np.where(scores > 0, np.inf, -np.inf)

    def quantiles(self, t: Sequence[float]) -> list[float]:
        """Return the quantiles of the lowest k coverages by those of standardised scores."""
        standards = map(self.standard, range(len(t)))
        return [a + (b * each if b > 0 else 0.0) for (a, b), each in zip(standards, t, strict=True)]

    def intervals(self, t: Sequence[float]) -> Array:
        """Return the sides of boxes of the lowest k coverages, (n, 2, k)."""
        chosen = zip(self.selected, self.quantiles(t), strict=False)
        selected = [each._replace(q_hat=q_hat) for each, q_hat in chosen]
        return calibrated_intervals(self.candidates, selected, self.postprocess)


def calibrate_jointly(
    calibrations: Sequence[Calibration],
    known: Sequence[tuple[Candidates, Sequence[Sequence[Selected]]]],
    in_first: NDArray[np.bool_],
    names: Sequence[str] | None,
) -> JointCalibration:
    """Return the calibrations of d outputs with that of boxes.

    Of each output the bases of the same n rows are `known`, and what all of them selected and what
    either half did, which the cross-check is of. O(n d) time and memory per coverage.
    """
    method, confidence = calibrations[0].method, calibrations[0].confidence
    rows = [
        [OutputRows(candidates, selected, each.postprocess) for selected in by_all_and_halves]
        for each, (candidates, by_all_and_halves) in zip(calibrations, known, strict=True)
    ]
    own, *by_half = zip(*rows, strict=True)
    t = joint_quantiles(own, method, confidence)
    y, ends = _as_intervals(own, t)
    y_checked, checked = np.empty_like(y), np.full_like(ends, np.inf)
    for of_half, in_half in zip(by_half, (in_first, ~in_first), strict=True):
        if in_half.any():
            in_rows, others = ([e.of_rows(part) for e in of_half] for part in (in_half, ~in_half))
            by_others = joint_quantiles(in_rows, method, confidence)
            y_checked[~in_half], checked[~in_half] = _as_intervals(others, by_others)
    weights = own[0].candidates.weights
    levels = tuple(
        Level(
            coverage,
            float(mean_width_score(ends[..., j], sample_weight=weights)),
            float(coverage_score(y[:, j], ends[..., j], sample_weight=weights)),
            measure_cross_check(y_checked[:, j], checked[..., j], weights),
        )
        for j, coverage in enumerate(calibrations[0].coverages)
    )
    q_hat = np.array([each.quantiles(t) for each in own]).T
    named, n = output_names(names, len(own)), calibrations[0].n
    return JointCalibration(tuple(calibrations), levels, q_hat, named, method, n)


def joint_quantiles(
    outputs: Sequence[OutputRows], method: str, confidence: float | None = None
) -> list[float]:
    """Return the conformal quantiles (k,) of the largest standardised scores of each row.

    Out of bag, rows that boxes of lower coverages hold widen nothing; and where levels allow for
    the optimism of the selection, the largest counts.
    """
    found: list[float] = []
    inner: list[Array | None] = [None] * len(outputs)
    for j in range(len(outputs[0].selected)):
        scores = np.max([each.scores(j, i) for each, i in zip(outputs, inner, strict=True)], axis=0)
        held = np.isneginf(scores)
        scores[held] = scores[~held].min(initial=0.0)
        level = max(each.selected[j].coverage for each in outputs)
        weights = outputs[0].candidates.weights
        found.append(
            float(conformal_quantile(scores, level, weights=weights, confidence=confidence))
        )
        if method == "oob":
            inner = [each.intervals(found)[..., -1] for each in outputs]
    return found


def _as_intervals(outputs: Sequence[OutputRows], t: Sequence[float]) -> tuple[Array, Array]:
    """Return targets (n, k) and intervals (n, 2, k) that stand for those of rows and their boxes.

    An interval is around 0 and as wide as the geometric mean of the sides. It holds the target if
    and only if the box holds all.
    """
    sides = np.array([each.intervals(t) for each in outputs])  # (d, n, 2, k)
    y = np.array([each.candidates.y for each in outputs])[..., np.newaxis]
    covered = ((sides[:, :, 0] <= y) & (y <= sides[:, :, 1])).all(axis=0)
    widths = sides[:, :, 1] - sides[:, :, 0]
    with np.errstate(divide="ignore", invalid="ignore"):  # points
        means = np.exp(np.log(widths).mean(axis=0))
    means = np.where(np.isinf(widths).any(axis=0), np.inf, means)
    return np.where(covered, 0.0, means + 1), np.stack([-means / 2, means / 2], axis=1)
