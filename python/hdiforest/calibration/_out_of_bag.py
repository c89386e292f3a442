"""OutOfBag: the training rows calibrate, each predicted by the trees that did not draw it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hdiforest._model import bases as of_forest
from hdiforest._model.bases import Base
from hdiforest._model.fitted import Calibrated, FittedForest
from hdiforest._model.out_of_bag import OutOfBagIntervals
from hdiforest._model.training_rows import draw_rows
from hdiforest._utils import Array, BaseKind
from hdiforest._utils.checks import CallError, check_choice, check_whole_number
from hdiforest._utils.hints import steps
from hdiforest.calibration import _selection as select
from hdiforest.calibration._calibrate import CrossFit, calibrate_oob
from hdiforest.calibration._candidates import LEVELS, Candidates
from hdiforest.calibration._later import check_later_rows, order_of_rows, warn_of_later_rows
from hdiforest.calibration._method import (
    Method,
    Request,
    ignore_infinite_intervals,
    require_out_of_bag,
)
from hdiforest.calibration._outputs import OutputIntervals
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._quantiles import rows_needed
from hdiforest.calibration._result import USUAL_COVERAGE, with_distribution
from hdiforest.calibration._widened import WidenedIntervals

_GUARANTEE = (
    "No guarantee holds for every distribution: conformal quantiles come from the training rows, "
    "each by trees that did not draw it; the cross-check shows what to expect of rows mixed with "
    "these, not of later ones, of new groups or of another population."
)

# Of the trees that are compared: as they grew, and with larger leaves.
LEAF_SIZES = (1, 5)

Found = tuple[WidenedIntervals, NDArray[np.intp], CrossFit]  # with the rows of the cross-fit


@dataclass(frozen=True, eq=False)
class OutOfBag(Method):
    """Calibrate by the training rows, each predicted by the trees that did not draw it.

    No new rows are needed. No guarantee holds for every distribution.

    Parameters
    ----------
    max_rows : int, default=10000
        Largest number of training rows to use. With 10,000 rows the standard error of a coverage is
        0.3 %.
    objective : {"balanced", "width", "interval_score"}, default="balanced"
        The measure that chooses one of eleven levels to widen, from 500 calibration rows on.
        "width" is the mean width W at equal coverage. "interval_score" is the mean interval score
        S. "balanced" is log W + 1.5 log S.
    order : str, int or (n_training_rows,) array, optional
        The order of the training rows, such as their time: a column, or an array of numbers or
        dates, perhaps as text. `calibration_` then shows the coverage of the later half of the
        rows, in four blocks, each by a forest of the rows before it.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest import HDIForestRegressor
    >>> from hdiforest.calibration import OutOfBag
    >>> X, y = make_regression(n_samples=200, n_features=4, noise=10, random_state=0)
    >>> model = HDIForestRegressor(calibration=False, random_state=0).fit(X, y)
    >>> method = OutOfBag(objective="width")
    >>> model.calibrate(coverage=[0.5, 0.9], method=method).calibration_.coverages
    (0.5, 0.9)
    """

    name: ClassVar[str] = "oob"
    takes_groups: ClassVar[bool] = True
    takes_several_outputs: ClassVar[bool] = True
    max_rows: int = 10_000
    objective: select.Objective = "balanced"
    order: Any = None

    def __post_init__(self) -> None:
        check_whole_number("max_rows", self.max_rows, 1)
        check_choice("objective", self.objective, select.OBJECTIVES)

    def fit(self, forest: FittedForest, request: Request) -> Calibrated:
        """Select and widen intervals on the training rows. See `cross_fit`.

        Parameters
        ----------
        forest : FittedForest
            The fitted forest, with its training rows. It stays as it is.
        request : Request
            The coverages, and the options that all methods share.

        Returns
        -------
        Calibrated
            The calibration, with the intervals that it gives.

        Raises
        ------
        ValueError
            If an option is refused, or too few trees leave rows out.
        """
        if request.by is not None:
            request.by.labels(forest.require_training_rows().X)  # raises before any work is done
        if self.order is None:
            return self._fit(forest, request)
        if forest.n_outputs > 1:
            raise ValueError(
                f"order must be None for a model of several targets, this has {forest.n_outputs}"
            )
        order = order_of_rows(forest, self.order)
        refit = request.refitting("order")
        calibrated = self.cross_fit(forest, request)[0]
        before = replace(self, order=None).cross_fit
        later = check_later_rows(before, forest, order, refit, request)
        result = calibrated.result.with_checks("later", later)
        warn_of_later_rows(result)
        return replace(calibrated, result=result)

    def _fit(self, forest: FittedForest, request: Request) -> Calibrated:
        if forest.n_outputs == 1:
            return self.cross_fit(forest, request)[0]
        training = forest.require_training_rows()
        if not request.blocks:
            blocks = training.blocks(forest.scorer.forest, None, request.n_threads)
            request = request._replace(blocks=list(blocks))
        parts = [forest.of_output(j, request.n_threads) for j in range(forest.n_outputs)]
        fitted = [self.cross_fit(part, request) for part in parts]
        rows = fitted[0][1]
        for _, usable, _ in fitted[1:]:
            rows = np.intersect1d(rows, usable)
        fits = [fit.of_rows(np.searchsorted(usable, rows)) for _, usable, fit in fitted]
        bases = [(fit.candidates, fit.selected) for fit in fits]
        forests = [
            part.with_calibration(calibrated)
            for part, (calibrated, _, _) in zip(parts, fitted, strict=True)
        ]
        return OutputIntervals.of(forest, forests, bases, fits[0].in_first)

    def fit_finite(self, forest: FittedForest, request: Request) -> Calibrated:
        """Select and widen intervals as `fit` does, at the coverages that have enough rows.

        Parameters
        ----------
        forest : FittedForest
            The fitted forest, with its training rows. It stays as it is.
        request : Request
            The coverages, and the options that all methods share.

        Returns
        -------
        Calibrated
            The calibration of the coverages with finite intervals.

        Raises
        ------
        ValueError
            If there are too few rows for the coverage 0.9, or too few trees leave rows out.
        """
        with ignore_infinite_intervals():
            calibrated = self._fit(forest, request)
            finite = calibrated.result.finite_coverages
            if USUAL_COVERAGE not in finite:
                raise ValueError(
                    f"coverage {USUAL_COVERAGE:g} needs {rows_needed(USUAL_COVERAGE)} calibration "
                    f"rows, and there are {calibrated.result.n}"
                )
            if len(finite) < len(request.coverages):
                calibrated = self._fit(forest, request._replace(coverages=finite))
        return calibrated

    def fit_if_possible(self, forest: FittedForest, request: Request) -> WidenedIntervals | None:
        """Select and widen intervals as `fit` does, without warnings and a distribution.

        Parameters
        ----------
        forest : FittedForest
            The fitted forest, with its training rows. It stays as it is.
        request : Request
            The coverages, and the options that all methods share.

        Returns
        -------
        WidenedIntervals or None
            The calibration, or None if too few trees leave rows out.

        Raises
        ------
        ValueError
            If too few trees leave rows out and the request has another mean.
        """
        source = request.source(forest)
        if (shortage := source.shortage) is not None:
            if request.mean is not None:
                why = f"because another one needs {shortage}"
                raise CallError(f"{{no_mean}}, {why}", no_mean="mean must be None")
            return None
        with ignore_infinite_intervals():
            return self._select(source, request, intervals_alone=True)[0]

    def cross_fit(self, forest: FittedForest, request: Request) -> Found:
        """Calibrate a forest of one target, and keep the cross-fit of its rows.

        Parameters
        ----------
        forest : FittedForest
            The fitted forest, with its training rows. It stays as it is.
        request : Request
            The coverages, and the options that all methods share.

        Returns
        -------
        calibrated : WidenedIntervals
            The calibration.
        rows : (m,) intp
            Positions of the training rows of the cross-fit.
        fit : CrossFit
            The cross-fit: intervals of each half of the rows by the selection of the other half.

        Raises
        ------
        ValueError
            If too few trees leave rows out.
        """
        source = request.source(forest)
        require_out_of_bag(self.name, source)
        return self._select(source, request)

    def _select(
        self, source: OutOfBagIntervals, request: Request, *, intervals_alone: bool = False
    ) -> Found:
        """Return what is selected and widened on the rows of a source."""
        drawn = draw_rows(source.usable, self.max_rows, request.random_state)
        # Of many rows some select, and the others find the quantiles.
        is_divided = len(drawn) >= 2 * select.MAX_ROWS_TO_SELECT
        n_compared = select.MAX_ROWS_TO_SELECT if is_divided else len(drawn)
        compared = draw_rows(drawn, n_compared, request.random_state)
        # Bounds of leaves cannot be merged, and of the kinds this one alone is monotonic.
        is_monotonic = source.fitted.facts.weights == "monotonic"
        sizes = (1,) if is_monotonic else LEAF_SIZES
        kind: BaseKind = "equal_tailed" if is_monotonic else "averaged"
        sources = {m: source.pruned(m) for m in sizes}
        bases = [
            [Base(f, kind, level, m) for f in source.families for level in LEVELS] for m in sizes
        ]
        pairs = steps("calibrating by leaf size", list(zip(sizes, bases, strict=True)))
        parts = [_ends_and_quantiles(sources[m], compared, some) for m, some in pairs]
        every = tuple(base for some in bases for base in some)
        rows, candidates = _candidates(source, compared, every, parts)
        rule = select.rule_for(len(rows), self.objective)
        if is_divided:
            selected = rule(candidates, request.coverages)
            rule = select.reselected(selected)
            every = tuple(dict.fromkeys(each.base for each in selected))
            others = np.setdiff1d(drawn, compared)
            parts = [_ends_and_quantiles(sources[every[0].min_samples_leaf], others, every)]
            rows, candidates = _candidates(source, others, every, parts)
        # The same halves for all forests of so many training rows.
        in_first = select.first_half(len(source.rows.y))[rows]
        labels = None if request.by is None else request.by.labels(source.rows.X)[rows]
        calibration, fit = calibrate_oob(candidates, request.coverages, rule, in_first, labels)
        calibration = replace(calibration, guarantee=_GUARANTEE)
        base = calibration.bases[0]
        if not intervals_alone:
            quantiles = candidates.quantiles[base.group]
            calibration = with_distribution(
                calibration, quantiles, candidates.y, candidates.weights
            )
        best, least = sources[base.min_samples_leaf], base.min_samples_leaf
        larger = f"leaves of at least {least} rows, for predict, too"
        for kept in steps(f"keeping {'trees as they grew' if least == 1 else larger}", [best]):
            calibrated = WidenedIntervals(
                kept.fitted.without_rows(),
                calibration.by_feature(request.by),
                centred=None if base.family == "raw" else kept.centred_forest(base.family),
                by=request.by,
                grown=None if kept is source else source.fitted.without_rows(),
            )
        return calibrated, rows, fit


EndsAndQuantiles = tuple[Array, dict[of_forest.Group, Array]]


def _ends_and_quantiles(
    source: OutOfBagIntervals, rows: NDArray[np.intp], bases: Sequence[Base]
) -> EndsAndQuantiles:
    """Return the ends of bases (n, 2, m), and the quantiles (n, 19) of each distribution."""
    first = {base.group: base for base in reversed(bases)}
    columns = [each for base in first.values() for each in base.quantiles()]
    ends = source.intervals(rows, [*bases, *columns])
    quantiles = np.split(ends[:, 1, len(bases) :], len(first), axis=1)
    return ends[..., : len(bases)], dict(zip(first, quantiles, strict=True))


def _candidates(
    source: OutOfBagIntervals,
    rows: NDArray[np.intp],
    bases: tuple[Base, ...],
    parts: Sequence[EndsAndQuantiles],
) -> tuple[NDArray[np.intp], Candidates]:
    """Return the rows of which all is finite, and their candidates."""
    ends = np.concatenate([some for some, _ in parts], axis=-1)
    quantiles = {group: each for _, some in parts for group, each in some.items()}
    finite = np.isfinite(ends).all(axis=(1, 2))
    for each in quantiles.values():
        finite &= np.isfinite(each).all(axis=1)
    rows, of_rows = rows[finite], {group: each[finite] for group, each in quantiles.items()}
    postprocess = PostProcess.from_targets(source.rows.weighted_targets)
    targets, weights = source.rows.y[rows], source.weights_of(rows)
    return rows, Candidates.checked(bases, ends[finite], targets, postprocess, weights, of_rows)
