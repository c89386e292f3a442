"""CrossIntervals: what CV+ and the jackknife+ share, intervals by K forests together."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hdiforest._model.fitted import Calibrated, IntervalQuery
from hdiforest._utils import Array
from hdiforest.calibration._result import CrossCalibration

WEIGHTED_SCORES = (
    "No guarantee is known for rows with weights: conformal quantiles are weighted, and the "
    "cross-check shows what to expect of rows that are drawn by these weights."
)


def less_for_clipping(calibration: CrossCalibration) -> str:
    """Say what clipping takes from a guarantee; empty: nothing."""
    loss = 2 / (calibration.n + 1)
    return f", less {loss:.2g} for the clipping" if calibration.postprocess.clip else ""


@dataclass(frozen=True, eq=False)
class CrossIntervals(Calibrated):
    """Intervals by K forests together, widened by the scores of the rows that each did not see."""

    result: CrossCalibration
    max_ends: ClassVar[int]  # intervals that all forests make together, so that memory stays flat

    @abstractmethod
    def _ends(self, query: IntervalQuery, part: slice) -> Array:
        """Return the intervals of some of the rows by each forest, (K, rows, 2, k)."""

    def intervals(self, query: IntervalQuery) -> Array:
        """Return the intervals of all forests, widened by the scores of all rows."""
        X, positions, n_threads, *_ = query
        query.fill_mean(self.forest)
        intervals = np.empty((len(X), 2, *positions.shape))
        at_once = max(1, self.max_ends // len(self.result.scores))
        for begin in range(0, len(X), at_once):
            part = slice(begin, begin + at_once)
            ends = self._ends(query, part)
            intervals[part] = self.result.engine.widen(ends, positions, n_threads=n_threads)
        return intervals
