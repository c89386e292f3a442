"""Several targets: each with a calibration of its own, and boxes that hold all of a row together.

Boxes are widened by one quantile of standardised scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdicore import intervals_of_outputs
from hdiforest._model.fitted import Calibrated, FittedForest, IntervalQuery, Rows
from hdiforest._tables.names import names_of_targets
from hdiforest._utils import Array
from hdiforest.calibration._calibrate import measure_cross_check
from hdiforest.calibration._candidates import Candidates
from hdiforest.calibration._quantiles import conformal_quantile
from hdiforest.calibration._result import Calibration, JointCalibration, Level
from hdiforest.calibration._selection import Selected, calibrated_intervals, scores_of
from hdiforest.calibration._widened import WidenedIntervals
from hdiforest.metrics._intervals import coverage_score, mean_width_score

OfOutput = tuple[Candidates, Sequence[list[Selected]]]  # what boxes are made of


@dataclass(frozen=True, eq=False)
class OutputRows:
    """Calibration rows of one output, and the selection for k coverages.

    The selection standardises the scores. It must not depend on rows that are to be covered.
    """

    candidates: Candidates
    selected: Sequence[Selected]

    def standard(self, j: int) -> tuple[float, float]:
        """Return location and scale of the scores of a coverage."""
        q = self.selected[j].q_hat
        return q if np.isfinite(q) else 0.0, self.selected[j].scale

    def of_rows(self, rows: NDArray[np.bool_]) -> Self:
        """Return some of the rows."""
        return replace(self, candidates=self.candidates.rows(rows))

    def scores(self, j: int) -> Array:
        """Return the standardised scores (n,) of a coverage. Minus infinity is always covered."""
        location, scale = self.standard(j)
        scores = scores_of(self.candidates, self.selected[j]) - location
        return scores / scale if scale > 0 else np.where(scores > 0, np.inf, -np.inf)

    def quantiles(self, t: Sequence[float]) -> list[float]:
        """Return the quantiles of all k coverages, from quantiles of standardised scores."""
        standards = map(self.standard, range(len(t)))
        return [a + (b * each if b > 0 else 0.0) for (a, b), each in zip(standards, t, strict=True)]

    def intervals(self, t: Sequence[float]) -> Array:
        """Return the sides of boxes of all k coverages, (n, 2, k)."""
        chosen = zip(self.selected, self.quantiles(t), strict=True)
        selected = [each._replace(q_hat=q_hat) for each, q_hat in chosen]
        return calibrated_intervals(self.candidates, selected)


def calibrate_jointly(
    calibrations: Sequence[Calibration],
    bases: Sequence[tuple[Candidates, Sequence[Sequence[Selected]]]],
    in_first: NDArray[np.bool_],
    names: Sequence[str] | None,
) -> JointCalibration:
    """Return the calibrations of d outputs together with the calibration of boxes.

    For each output `bases` has the candidates of the same n rows, the selection of all rows, and
    the selection of each half for the cross-check. O(n d) time and memory per coverage.
    """
    method, confidence = calibrations[0].method, calibrations[0].confidence
    rows = [[OutputRows(of, each) for each in selected] for of, selected in bases]
    outputs, *by_half = zip(*rows, strict=True)
    t = joint_quantiles(outputs, confidence)
    y, ends = _as_intervals(outputs, t)
    y_checked, checked = np.empty_like(y), np.full_like(ends, np.inf)
    for of_half, in_half in zip(by_half, (in_first, ~in_first), strict=True):
        if in_half.any():
            in_rows, others = ([e.of_rows(part) for e in of_half] for part in (in_half, ~in_half))
            by_others = joint_quantiles(in_rows, confidence)
            y_checked[~in_half], checked[~in_half] = _as_intervals(others, by_others)
    weights = outputs[0].candidates.weights
    levels = []
    for j, coverage in enumerate(calibrations[0].coverages):
        width = float(mean_width_score(ends[..., j], sample_weight=weights))
        covered = float(coverage_score(y[:, j], ends[..., j], sample_weight=weights))
        check = measure_cross_check(y_checked[:, j], checked[..., j], weights)
        levels.append(Level(coverage, width, covered, check))
    q_hat = np.array([each.quantiles(t) for each in outputs]).T
    named, n = names_of_targets(names, len(outputs)), calibrations[0].n
    return JointCalibration(tuple(calibrations), tuple(levels), q_hat, named, method, n)


def joint_quantiles(outputs: Sequence[OutputRows], confidence: float | None = None) -> list[float]:
    """Return the conformal quantiles (k,) of the largest standardised scores of each row."""
    weights, quantiles = outputs[0].candidates.weights, []
    for j, each in enumerate(outputs[0].selected):
        scores = np.max([output.scores(j) for output in outputs], axis=0)
        t = conformal_quantile(scores, each.coverage, weights=weights, confidence=confidence)
        quantiles.append(float(t))
    return quantiles


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


@dataclass(frozen=True, eq=False)
class OutputIntervals(Calibrated):
    """The calibration of several targets of a row."""

    result: JointCalibration
    outputs: tuple[FittedForest, ...] = ()

    def __post_init__(self) -> None:
        sizes = [(part.n_outputs, part.n_features) for part in self.outputs]
        expected = [(1, self.forest.n_features)] * self.forest.n_outputs
        calibrations = tuple(part.calibration for part in self.outputs)
        if sizes != expected or calibrations != self.result.outputs:
            raise ValueError("the calibration does not fit the outputs of the model")

    @classmethod
    def of(
        cls,
        forest: FittedForest,
        parts: Sequence[FittedForest],
        calibrated: Sequence[WidenedIntervals],
        bases: Sequence[OfOutput],
        in_first: NDArray[np.bool_],
    ) -> Self:
        """Return the calibrations of single outputs together, with their boxes."""
        results = [each.result for each in calibrated]
        joint = calibrate_jointly(results, bases, in_first, forest.facts.target_names)
        outputs = map(FittedForest.with_calibration, parts, calibrated)
        return cls(forest.without_rows(), joint, tuple(outputs))

    def intervals(self, query: IntervalQuery) -> Array:
        """Return intervals (n, n_outputs, 2) or (n, n_outputs, 2, k) of rows."""
        query.fill_mean(self.forest)
        engines = [part.engine for part in self._parts]
        q_hat, shifts = zip(*(part.of_rows(query) for part in self._parts), strict=True)
        options: Any = {"q_hat": q_hat, "shifts": shifts, "n_threads": query.n_threads}
        try:
            return intervals_of_outputs(engines, query.X, query.positions, **options)
        except ValueError:
            for part in self._parts:
                part.check_leaf_means()
            raise

    @cached_property
    def _parts(self) -> list[WidenedIntervals]:
        return [cast("WidenedIntervals", part.calibrated) for part in self.outputs]  # by methods

    @cached_property
    def boxes(self) -> OutputIntervals:
        """The calibration with the sides of boxes, each of which holds all targets of a row."""
        boxes = self.result.boxes
        sides = [replace(part, result=box) for part, box in zip(self._parts, boxes, strict=True)]
        outputs = map(FittedForest.with_calibration, self.outputs, sides)
        result = replace(self.result, outputs=boxes)
        return replace(self, outputs=tuple(outputs), result=result)

    def group_codes(self, X: Rows, labels: ArrayLike | None = None) -> NDArray[np.intp] | None:
        """Return the groups of rows, which are the same for all targets."""
        return self._parts[0].group_codes(X, labels)

    @property
    def groups(self) -> Any:
        """The groups of rows that have quantiles of their own, if there are some."""
        return self.result.outputs[0].groups

    @property
    def needs_labels(self) -> bool:
        """Whether the groups of new rows must be given, because no column of X holds them."""
        return self._parts[0].needs_labels

    @property
    def why_not_out_of_bag(self) -> str | None:
        """Why the calibration has no intervals of training rows; None if it has."""
        return next(filter(None, (part.why_not_out_of_bag for part in self._parts)), None)


def calibrations_of(calibration: Any) -> list[Calibration]:
    """Return the calibrations of one or several targets; none if they are by folds."""
    if isinstance(calibration, JointCalibration):
        return list(calibration.outputs)
    return [calibration] if isinstance(calibration, Calibration) else []
