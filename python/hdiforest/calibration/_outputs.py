"""OutputIntervals: several targets, each with a calibration of its own, and boxes of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdicore import intervals_of_outputs
from hdiforest._model.fitted import Calibrated, FittedForest, IntervalQuery, Rows
from hdiforest._utils import Array
from hdiforest.calibration._candidates import Candidates
from hdiforest.calibration._joint import calibrate_jointly
from hdiforest.calibration._result import Calibration, JointCalibration
from hdiforest.calibration._selection import Selected
from hdiforest.calibration._widened import WidenedIntervals

OfOutput = tuple[Candidates, Sequence[list[Selected]]]  # what boxes are made of


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
        boxes = zip(self._parts, self.result.boxes, strict=True)
        sides = [replace(part, result=side) for part, side in boxes]
        pairs = zip(self.outputs, sides, strict=True)
        outputs = tuple(replace(part, calibrated=side) for part, side in pairs)
        result = replace(self.result, outputs=self.result.boxes)
        return replace(self, outputs=outputs, result=result)

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
