"""WidenedIntervals: base intervals of a forest, widened by one conformal quantile a coverage."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdicore import CalibratedScorer
from hdiforest._model.bases import Base
from hdiforest._model.fitted import Calibrated, FittedForest, IntervalQuery, Rows
from hdiforest._model.residuals import CentredForest
from hdiforest._utils import Array
from hdiforest.calibration._groups import Groups, GroupSource
from hdiforest.calibration._result import Calibration


@dataclass(frozen=True, eq=False)
class WidenedIntervals(Calibrated):
    """A calibration of one target by "oob" or "split"."""

    result: Calibration
    centred: CentredForest | None = None
    by: GroupSource | None = None  # a file keeps none but a feature
    grown: FittedForest | None = None

    def __post_init__(self) -> None:
        if self.forest.n_outputs > 1:
            raise ValueError("the calibration does not fit the outputs of the model")
        families = {base.family for base in self.result.bases} - {"raw"}
        if families != ({self.centred.family} if self.centred else set()):
            raise ValueError("the calibration does not fit the residuals of the model")
        if self.groups is not None and (self.groups.feature or 0) >= self.forest.n_features:
            raise ValueError("the groups of the calibration must be those of a feature")

    def intervals(self, query: IntervalQuery) -> Array:
        """Return the widened base intervals of rows."""
        q_hat, shifts = self.of_rows(query)
        options: dict[str, Any] = {"q_hat": q_hat, "shifts": shifts, "n_threads": query.n_threads}
        if query.mean is not None and self.centred is None:
            options["mean"] = query.mean.reshape(-1)
        elif query.mean is not None:
            query.fill_mean(self.forest)
        try:
            return self.engine.intervals(query.X, query.positions, **options)
        except ValueError:
            self.check_leaf_means()
            raise

    def of_rows(self, query: IntervalQuery) -> tuple[Array | None, Array | None]:
        """Return quantiles of rows by their groups, and shifts by another mean; None: none."""
        groups, centred, q_hat, shifts = self.result.groups, self.centred, None, None
        if groups is not None and query.codes is not None:
            q_hat = groups.quantiles(query.codes, self.result.q_hat)
        if centred is not None and centred.mean is not None:
            shifts = centred.shifts(query.X, query.n_threads)
        return q_hat, shifts

    def check_leaf_means(self) -> None:
        """Raise ValueError that names the leaf means of a file, if these were refused."""
        if self.centred is not None:
            self.centred.check_leaf_means()

    @cached_property
    def engine(self) -> CalibratedScorer:
        """The compiled object that widens intervals in the pass that reads them."""
        levels, centred = self.result.levels, self.centred
        return CalibratedScorer(
            self.forest.scorer if centred is None else centred.scorer,
            [level.base.kind for level in levels],
            [level.base.level for level in levels],
            [level.q_hat for level in levels],
            self.result.postprocess.engine,
            centres=None if centred is None else centred.centres,
        )

    def bases(self, coverage: float) -> tuple[Base, ...]:
        """Return the bases of the coverages up to a coverage."""
        return self.result.bases[: int(self.result.positions(coverage)) + 1]

    def group_codes(self, X: Rows, labels: ArrayLike | None = None) -> NDArray[np.intp] | None:
        """Return the groups of rows X; None if there are none. ValueError unless `labels` fit."""
        groups = self.groups
        if groups is None:
            return super().group_codes(X, labels)
        source = self.by or GroupSource(groups.feature)
        if labels is not None:
            source = GroupSource(array=np.asarray(labels))
        elif self.needs_labels:
            raise ValueError(
                "by must be the groups of the rows, which the calibration was made by, and which "
                "are no column of X"
            )
        return groups.codes(source.labels(X))

    @property
    def needs_labels(self) -> bool:
        """Whether the groups of new rows must be given, because no column of X holds them."""
        is_told = self.by is not None and self.by.function is not None
        return self.groups is not None and self.groups.feature is None and not is_told

    @cached_property
    def groups(self) -> Groups | None:
        """The groups of rows that have quantiles of their own, if there are some."""
        return self.result.groups

    @property
    def why_not_out_of_bag(self) -> str | None:
        """Why the calibration has no intervals of training rows; None if it has."""
        if self.centred is not None and self.centred.mean is not None:
            return "what the other mean predicts out of fold is not kept"
        return None
