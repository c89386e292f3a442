"""Several outputs calibrated: each by itself, and boxes that hold all targets of a row together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdiforest._utils import Array
from hdiforest._utils.checks import significant
from hdiforest.calibration._bases import Candidates
from hdiforest.calibration._calibrate import CrossFit, measure_cross_check
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._quantiles import conformal_quantile
from hdiforest.calibration._result import Calibration, CalibrationResult, Level
from hdiforest.calibration._selection import Selected, calibrated_intervals, shifted_scores
from hdiforest.metrics._intervals import coverage_score, mean_width_score

# Of n rows the boxes of k coverages for d outputs, as one interval each, and the targets likewise.
_Measured = tuple[Array, Array]


@dataclass(frozen=True, repr=False, eq=False)
class JointCalibration(CalibrationResult):
    """Calibrations of d outputs, and of boxes that cover all targets of a row together.

    A sequence of the calibrations of single outputs. What it says of coverages itself is of boxes.

    Parameters
    ----------
    outputs : tuple of d Calibration
        Of the same rows and coverages.
    levels : tuple of k Level
        Of boxes; widths are geometric means over the outputs.
    q_hat : (k, d) array
        Conformal quantiles of boxes, by which the base intervals of each output are widened.
    names : tuple of d str
        Of the outputs.
    group_q_hat : (g, k, d) array, optional
        Of the groups of the first output. NaN: too few rows.

    Notes
    -----
    The interval of each output is widened by ``location + t * scale``, with one t for all outputs:
    the conformal quantile of the largest of a row's standardised scores, (score - location) / scale
    (Diquigiovanni, Fontana, Vantini, "Conformal prediction bands for multivariate functional data",
    Journal of Multivariate Analysis 189, 2022, standardise so). Location is the output's own
    quantile, and scale half the mean width of its own intervals. With "split" both are those out of
    bag, and the guarantee is that of split conformal prediction.
    """

    outputs: tuple[Calibration, ...]
    levels: tuple[Level, ...]
    q_hat: Array
    names: tuple[str, ...]
    group_q_hat: Array | None = None

    def __post_init__(self) -> None:
        self._check_coverages()
        shape = len(self.levels), len(self.outputs)
        if len(self.names) != shape[1] or any(
            each.coverages != self.coverages for each in self.outputs
        ):
            raise ValueError(f"the calibrations must be of {shape[1]} outputs and one's coverages")
        if self.q_hat.shape != shape or not (self.q_hat > -np.inf).all():
            raise ValueError(f"the quantiles of boxes must be numbers or infinite, {shape}")
        groups, own = self.outputs[0].groups, self.group_q_hat
        if (groups is None) != (own is None) or (
            own is not None
            and groups is not None
            and (own.shape != (len(groups.labels), *shape) or np.isinf(own).any())
        ):
            raise ValueError("the quantiles of boxes do not fit the groups of the calibration")

    @property
    def method(self) -> str:  # type: ignore[override]
        """As of each output."""
        return self.outputs[0].method

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of calibration rows of an output."""
        return self.outputs[0].n

    @property
    def guarantee(self) -> str:
        """What is promised of one interval of each coverage c, or of one box, in words."""
        return self.outputs[0].guarantee

    @property
    def n_finite(self) -> int:
        """How many coverages, the lowest ones, have finite intervals and boxes."""
        return min(each.n_finite for each in (*self.outputs, *self.boxes))

    @cached_property
    def boxes(self) -> tuple[Calibration, ...]:
        """Calibrations of single outputs whose intervals are the sides of boxes."""

        def side(output: int, own: Calibration) -> Calibration:
            quantiles = self.q_hat[:, output].tolist()
            levels = [replace(e, q_hat=q) for e, q in zip(own.levels, quantiles, strict=True)]
            groups = self.outputs[0].groups
            if groups is not None and self.group_q_hat is not None:
                groups = replace(groups, q_hat=self.group_q_hat[..., output])
            return replace(own, levels=tuple(levels), groups=groups)

        return tuple(side(output, own) for output, own in enumerate(self.outputs))

    def __len__(self) -> int:
        return len(self.outputs)

    def __getitem__(self, output: int) -> Calibration:
        return self.outputs[output]

    def __iter__(self) -> Iterator[Calibration]:
        return iter(self.outputs)

    def _of_first(self, k: int) -> dict[str, Any]:
        own = self.group_q_hat
        return super()._of_first(k) | {
            "outputs": tuple(each.first(k) for each in self.outputs),
            "q_hat": self.q_hat[:k],
            "group_q_hat": None if own is None else own[:, :k],
        }

    def __repr__(self) -> str:
        own = zip(self.names, self.outputs, strict=True)
        tables = [f"{name}:\n{each._table()}" for name, each in own]
        together = f"All together, joint=True:\n{self._table()}"
        return "\n".join([self.outputs[0]._title(), *tables, together, self.guarantee])

    def _repr_html_(self) -> str:
        own = zip(self.names, self.outputs, strict=True)
        tables = [each._html_table(f"{name}: {each._title()}") for name, each in own]
        together = self._html_table("All together, joint=True")
        return f"{''.join(tables)}{together}<p>{escape(self.guarantee)}</p>"

    def _describe(self, level: Level) -> str:
        return f"q_hat {', '.join(map(significant, self.q_hat[self.levels.index(level)].tolist()))}"


def output_names(names: Sequence[str] | None, n: int) -> tuple[str, ...]:
    """Return names of n outputs, by default y0, y1, ..."""
    return tuple(names or (f"y{output}" for output in range(n)))


class Standard(NamedTuple):
    """How the scores of an output are standardised, for k coverages."""

    location: Array  # (k,)
    scale: Array  # (k,); 0: of a constant output

    @classmethod
    def of_intervals(cls, known: Iterable[tuple[float, float]], y: Array) -> Standard:
        """Return what intervals of these quantiles and mean widths give.

        Where widths are 0 or infinite, the scale is the mean deviation of the training targets y.
        """
        location, scale = np.array(list(known), np.float64).T * [[1.0], [0.5]]
        known = np.isfinite(location) & np.isfinite(scale)
        scale = np.where(known & (scale > 0), scale, spread(y))
        return cls(np.where(known, location, 0.0), scale)


def spread(y: Array) -> float:
    """Return the mean deviation of targets from their median; 0 of a constant alone."""
    return float(np.abs(y - np.median(y)).mean()) if y.min() < y.max() else 0.0


@dataclass(frozen=True, eq=False)
class OutputRows:
    """The calibration rows of one output, and what was selected for k coverages."""

    candidates: Candidates
    selected: Sequence[Selected]
    postprocess: PostProcess
    standard: Standard

    def of_rows(self, rows: NDArray[Any]) -> OutputRows:
        """Return some of the rows."""
        return replace(self, candidates=self.candidates.rows(np.flatnonzero(rows)))

    def scores(self, j: int, inner: Array | None) -> Array:
        """Return the standardised scores (n,) of a coverage; minus infinity: covered anyhow."""
        rows, (location, scale) = replace(self.candidates, inner=inner), self.standard
        scores = shifted_scores(rows, self.selected[j], self.postprocess)
        if scale[j] > 0:
            return np.asarray((scores - location[j]) / scale[j])
        return np.where(scores > location[j], np.inf, -np.inf)

    def quantiles(self, t: Array) -> Array:
        """Return the quantiles (..., k) of standardised ones, of the lowest k coverages."""
        location, scale = (each[: t.shape[-1]] for each in self.standard)
        steps = np.zeros_like(t)
        np.multiply(t, scale, out=steps, where=scale > 0)
        return location + steps

    def intervals(self, t: Array) -> Array:
        """Return the sides of boxes, (n, 2, k), by t (k,) or (n, k)."""
        q_hat = np.broadcast_to(self.quantiles(t), (len(self.candidates.y), t.shape[-1]))
        selected = self.selected[: t.shape[-1]]
        return calibrated_intervals(self.candidates, selected, self.postprocess, q_hat)


def split_rows(calibration: Calibration, candidates: Candidates, standard: Standard) -> OutputRows:
    """Return the rows of an output that only widen what was selected before."""
    selected = [
        Selected(e.base, e.q_hat, e.slope, e.unit, coverage=e.coverage) for e in calibration.levels
    ]
    return OutputRows(candidates, selected, calibration.postprocess, standard)


def output_rows(calibration: Calibration, fit: CrossFit, y_train: Array) -> list[OutputRows]:
    """Return the rows of an output with what they selected out of bag: all, and either half."""
    widths = [[level.mean_width for level in calibration.levels], *fit.widths.tolist()]
    return [
        OutputRows(
            fit.candidates,
            selected,
            calibration.postprocess,
            Standard.of_intervals(
                zip((each.q_hat for each in selected), of_these, strict=True), y_train
            ),
        )
        for selected, of_these in zip(fit.selected, widths, strict=True)
    ]


def calibrate_jointly(
    calibrations: Sequence[Calibration],
    rows: Sequence[Sequence[OutputRows]],
    in_first: NDArray[np.bool_],
    names: Sequence[str],
    labels: NDArray[Any] | None = None,
) -> JointCalibration:
    """Return the calibrations of d outputs with that of boxes.

    Of each output there are the same n rows three times: with what all selected, and what either
    half did. `labels` (n,) name the groups of the rows. O(n d) time and memory per coverage.
    """
    method, confidence = calibrations[0].method, calibrations[0].confidence
    own, *by_half = zip(*rows, strict=True)
    t = joint_quantiles(own, method, confidence)
    of_rows, group_q_hat, groups = t, None, calibrations[0].groups
    if groups is not None and labels is not None:
        codes = groups.codes(labels)
        of_groups = np.array(
            [
                joint_quantiles([each.of_rows(codes == g) for each in own], method, confidence, t)
                for g in range(len(groups.labels))
            ]
        )
        group_q_hat = np.stack([each.quantiles(of_groups) for each in own], axis=-1)
        of_rows = np.where(np.isnan(of_groups), t, of_groups)[codes]
    y, ends = _measured(own, of_rows)
    of_halves_y, of_halves = np.empty_like(y), np.full_like(ends, np.inf)
    for half, in_half in zip(by_half, (in_first, ~in_first), strict=True):
        if in_half.any() and not in_half.all():
            of_half = joint_quantiles([each.of_rows(in_half) for each in half], method, confidence)
            others = [each.of_rows(~in_half) for each in half]
            of_halves_y[~in_half], of_halves[~in_half] = _measured(others, of_half)
    weights = own[0].candidates.weights
    levels = tuple(
        Level(
            coverage,
            float(mean_width_score(ends[..., j], sample_weight=weights)),
            float(coverage_score(y[:, j], ends[..., j], sample_weight=weights)),
            measure_cross_check(of_halves_y[:, j], of_halves[..., j], weights),
        )
        for j, coverage in enumerate(calibrations[0].coverages)
    )
    q_hat = np.stack([each.quantiles(t) for each in own], axis=-1)
    return JointCalibration(tuple(calibrations), levels, q_hat, tuple(names), group_q_hat)


def joint_quantiles(
    outputs: Sequence[OutputRows],
    method: str,
    confidence: float | None = None,
    common: Array | None = None,
) -> Array:
    """Return the conformal quantiles (k,) of the largest standardised scores of each row.

    Out of bag, rows that boxes of lower coverages hold widen nothing, and of levels that allow for
    the optimism of the selection the largest counts. Where `common` quantiles (k,) are given,
    infinite ones are NaN.
    """
    k = len(outputs[0].selected)
    inner: list[Array | None] = [None] * len(outputs)
    found, used = np.empty(k), np.empty(k)
    for j in range(k):
        scores = np.max([each.scores(j, i) for each, i in zip(outputs, inner, strict=True)], axis=0)
        held = np.isneginf(scores)
        scores[held] = scores[~held].min(initial=0.0)
        level = max(each.selected[j].coverage for each in outputs)
        weights = outputs[0].candidates.weights
        t = float(conformal_quantile(scores, level, weights=weights, confidence=confidence))
        found[j] = used[j] = t
        if common is not None and not np.isfinite(t):
            found[j], used[j] = np.nan, common[j]
        if method == "oob":
            inner = [each.intervals(used[: j + 1])[..., -1] for each in outputs]
    return found


def _measured(outputs: Sequence[OutputRows], t: Array) -> _Measured:
    """Return boxes as intervals (n, 2, k) around 0, and targets (n, k) that are in them or not.

    An interval is as wide as the geometric mean of the box's sides; the target is 0 if all targets
    of the row are in the box.
    """
    sides = np.array([each.intervals(t) for each in outputs])  # (d, n, 2, k)
    y = np.array([each.candidates.y for each in outputs])[..., np.newaxis]
    covered = ((sides[:, :, 0] <= y) & (y <= sides[:, :, 1])).all(axis=0)
    widths = sides[:, :, 1] - sides[:, :, 0]
    with np.errstate(divide="ignore", invalid="ignore"):  # points
        means = np.exp(np.log(widths).mean(axis=0))
    means = np.where(np.isinf(widths).any(axis=0), np.inf, means)
    return np.where(covered, 0.0, means + 1), np.stack([-means / 2, means / 2], axis=1)
