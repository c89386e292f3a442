"""Split: rows that took no part in the fit calibrate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from hdiforest._model.bases import FIXED_RAW
from hdiforest._model.fitted import Calibrated, FittedForest
from hdiforest._utils import Array
from hdiforest._utils.checks import (
    CallError,
    check_choice,
    check_no_interval_is_empty,
    one_share,
)
from hdiforest.calibration import _selection as select
from hdiforest.calibration._calibrate import calibrate
from hdiforest.calibration._candidates import Candidates
from hdiforest.calibration._method import LabelledRows, Method, Request
from hdiforest.calibration._out_of_bag import OutOfBag
from hdiforest.calibration._outputs import OfOutput, OutputIntervals
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._result import Calibration
from hdiforest.calibration._selection import Selected
from hdiforest.calibration._widened import WidenedIntervals


@dataclass(frozen=True)
class Split(Method):
    """Calibrate by rows X, y that took no part in the fit.

    The coverage is guaranteed on average over such rows.

    Parameters
    ----------
    confidence : float, optional
        The probability, over sets of calibration rows, that the intervals have at least the
        coverage, above 0 and below 1. Without it they have the coverage on average.
    objective : {"balanced", "width", "interval_score"}, default="balanced"
        The measure that chooses, out of bag, the level to widen. See `OutOfBag`.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest import HDIForestRegressor
    >>> from hdiforest.calibration import Split
    >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
    >>> model = HDIForestRegressor(calibration=False, random_state=0).fit(X[:200], y[:200])
    >>> split = Split(confidence=0.95)
    >>> model.calibrate(X[200:], y[200:], coverage=0.8, method=split).calibration_.confidence
    0.95
    """

    name: ClassVar[str] = "split"
    needs_rows: ClassVar[bool] = True
    confidence: float | None = None
    objective: select.Objective = "balanced"

    def __post_init__(self) -> None:
        if self.confidence is not None:
            one_share("confidence", self.confidence)
        check_choice("objective", self.objective, select.OBJECTIVES)

    def promised(self, calibration: Calibration) -> Calibration:
        """Return the calibration with the guarantee of its intervals.

        Parameters
        ----------
        calibration : Calibration
            A calibration by the method.

        Returns
        -------
        Calibration
            A copy with `guarantee`.
        """
        n = calibration.n
        guarantee = (
            f"At least with probability c a new row is covered, if it is exchangeable with the {n} "
            f"calibration rows; at most with c + 1 / {n + 1} if moreover no scores tie, before "
            "intervals are nested."
        )
        if self.confidence is not None:
            guarantee = (
                f"With a confidence of {self.confidence:g} in the draw of the {n} calibration "
                "rows, at least the share c of all new rows is covered, if calibration and new "
                "rows are drawn independently from one distribution."
            )
        return replace(calibration, guarantee=guarantee)

    def fit(self, forest: FittedForest, request: Request) -> Calibrated:
        """Select bases out of bag, if trees leave rows out, and widen them by new rows.

        Parameters
        ----------
        forest : FittedForest
            The fitted forest. It stays as it is.
        request : Request
            The coverages, the new rows, and the options that all methods share.

        Returns
        -------
        Calibrated
            The calibration, with the intervals that it gives.

        Raises
        ------
        ValueError
            If an option is refused, or the rows are rows of the fit.
        """
        X, y = cast("LabelledRows", request.rows)
        if request.by is not None:
            request.by.labels(X)  # raises before any work is done
        training = forest.require_training_rows()
        refuse_training_rows(X, y, training.X, training.y)
        if forest.n_outputs == 1:
            return self._fit(forest, (X, y), request)[0]
        parts = [forest.of_output(j, request.n_threads) for j in range(forest.n_outputs)]
        pairs = zip(parts, y.T.copy(), strict=True)
        fitted = [self._fit(part, (X, targets), request) for part, targets in pairs]
        calibrated, bases = zip(*fitted, strict=True)
        return OutputIntervals.of(forest, parts, calibrated, bases, select.first_half(len(y)))

    def _fit(
        self, forest: FittedForest, rows: LabelledRows, request: Request
    ) -> tuple[WidenedIntervals, OfOutput]:
        """Return the calibration of one target, and what boxes are made of."""
        (X, y), n_threads, by = rows, request.n_threads, request.by
        y_train = forest.require_training_rows().weighted_targets
        without_groups = request._replace(by=None)
        chosen = OutOfBag(objective=self.objective).fit_if_possible(forest, without_groups)
        postprocess = PostProcess.from_targets(y_train)
        scale = partial(select.scale_of, postprocess=postprocess)
        selected = [Selected(FIXED_RAW, c, 0.0, scale(0.0)) for c in request.coverages]
        centred, grown = None, None
        if chosen is not None:
            levels = chosen.result.levels
            selected = [Selected(e.base, e.coverage, e.q_hat, scale(e.mean_width)) for e in levels]
            forest, centred, grown = forest.with_calibration(chosen), chosen.centred, chosen.grown
        bases = list(dict.fromkeys(each.base for each in selected))
        ends = forest.base_intervals(X, [*bases, *bases[0].quantiles()], n_threads)
        check_no_interval_is_empty(ends)
        quantiles = {bases[0].group: ends[:, 1, len(bases) :]}
        candidates = Candidates(bases, ends[..., : len(bases)], y, postprocess, quantiles)
        calibration, _ = calibrate(
            self.name,
            candidates,
            request.coverages,
            select.reselected(selected, self.confidence),
            labels=None if by is None else by.labels(X),
            feature=None if by is None else by.feature,
            confidence=self.confidence,
        )
        calibrated = WidenedIntervals(
            forest.without_rows(), self.promised(calibration), centred, by, grown
        )
        return calibrated, (candidates, [selected] * 3)


def refuse_training_rows(X: NDArray[Any], y: Array, X_train: NDArray[Any], y_train: Array) -> None:
    """Raise ValueError if more than half of the rows are training rows, targets included."""

    def keys(rows: NDArray[Any], targets: Array) -> Iterator[bytes]:
        floats = np.ascontiguousarray(rows, dtype=np.float32)
        return (row.tobytes() + t.tobytes() for row, t in zip(floats, targets, strict=True))

    n_training = len(set(keys(X, y)).intersection(keys(X_train, y_train)))
    if 2 * n_training > len(y):
        raise CallError(
            f"{{rows}} rows that took no part in the fit; {n_training} of {len(y)} are "
            "training rows",
            rows="X and y must be",
        )
