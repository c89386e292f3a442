"""OutOfBag: the training rows calibrate, each predicted by the trees that did not draw it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hdiforest._model.bases import Base, Group
from hdiforest._model.fitted import Calibrated, FittedForest
from hdiforest._model.out_of_bag import OutOfBagIntervals
from hdiforest._model.training_rows import draw_rows
from hdiforest._utils import Array, BaseKind
from hdiforest._utils.checks import CallError, check_choice, check_whole_number
from hdiforest._utils.hints import steps
from hdiforest.calibration import _selection as select
from hdiforest.calibration._calibrate import CrossFit, calibrate
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
from hdiforest.calibration._result import USUAL_COVERAGE
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
        found = [self.cross_fit(part, request) for part in parts]
        calibrated, usable, _ = zip(*found, strict=True)
        rows = reduce(np.intersect1d, usable)
        fits = [fit.of_rows(np.searchsorted(own, rows)) for _, own, fit in found]
        bases = [(fit.candidates, fit.selected) for fit in fits]
        return OutputIntervals.of(forest, parts, calibrated, bases, fits[0].in_first)

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
        """Select and widen intervals as `fit` does, without warnings.

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
            return self._select(source, request)[0]

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

    def _select(self, source: OutOfBagIntervals, request: Request) -> Found:
        """Return what is selected and widened on the rows of a source."""
        drawn = draw_rows(source.usable, self.max_rows, request.random_state)
        # Of many rows some select, and the others find the quantiles.
        is_divided = len(drawn) >= 2 * select.MAX_ROWS_TO_SELECT
        n_compared = select.MAX_ROWS_TO_SELECT if is_divided else len(drawn)
        compared = draw_rows(drawn, n_compared, request.random_state)
        # Bounds of leaves cannot be merged, and of the kinds this one alone is monotonic.
        is_monotonic = source.fitted.facts.weights == "monotonic"
        kind: BaseKind = "equal_tailed" if is_monotonic else "averaged"
        sources = {m: source.pruned(m) for m in ((1,) if is_monotonic else LEAF_SIZES)}
        groups = [(m, family) for m in sources for family in source.families]
        bases = [Base(family, kind, level, m) for m, family in groups for level in LEVELS]
        stages = steps("calibrating by leaf size", list(sources.items()))
        rows, candidates = _candidates(source, stages, compared, bases)
        rule = select.rule_for(len(rows), self.objective)
        if is_divided:
            selected = rule(candidates, request.coverages)
            rule = select.reselected(selected)
            others = np.setdiff1d(drawn, compared)
            bases = list(dict.fromkeys(each.base for each in selected))
            size = bases[0].min_samples_leaf
            rows, candidates = _candidates(source, [(size, sources[size])], others, bases)
        # The same halves for all forests of so many training rows.
        in_first, by = select.first_half(len(source.rows.y))[rows], request.by
        calibration, fit = calibrate(
            self.name,
            candidates,
            request.coverages,
            rule,
            in_first=in_first,
            labels=None if by is None else by.labels(source.rows.X)[rows],
            feature=None if by is None else by.feature,
        )
        base = calibration.bases[0]
        best, least = sources[base.min_samples_leaf], base.min_samples_leaf
        larger = f"leaves of at least {least} rows, for predict, too"
        for kept in steps(f"keeping {'trees as they grew' if least == 1 else larger}", [best]):
            calibrated = WidenedIntervals(
                kept.fitted.without_rows(),
                replace(calibration, guarantee=_GUARANTEE),
                centred=None if base.family == "raw" else kept.centred_forest(base.family),
                by=by,
                grown=None if kept is source else source.fitted.without_rows(),
            )
        return calibrated, rows, fit


def _candidates(
    source: OutOfBagIntervals,
    by_size: Iterable[tuple[int, OutOfBagIntervals]],
    rows: NDArray[np.intp],
    bases: Sequence[Base],
) -> tuple[NDArray[np.intp], Candidates]:
    """Return the rows of which all is finite, and their bases by the sources of each leaf size."""
    ends: list[Array] = []
    quantiles: dict[Group, Array] = {}
    for size, pruned in by_size:
        own = [base for base in bases if base.min_samples_leaf == size]
        of_groups = {base.group: base.quantiles() for base in own}
        found = pruned.intervals(rows, [*own, *chain.from_iterable(of_groups.values())])
        ends.append(found[..., : len(own)])
        parts = np.split(found[:, 1, len(own) :], len(of_groups), axis=1)
        quantiles |= dict(zip(of_groups, parts, strict=True))
    together = np.concatenate(ends, axis=-1)
    read = np.hstack([together[:, 0], together[:, 1], *quantiles.values()])
    finite = np.flatnonzero(np.isfinite(read).all(axis=1))
    postprocess = PostProcess.from_targets(source.rows.weighted_targets)
    targets, weights = source.rows.y[rows], source.weights_of(rows)
    of_all = Candidates(bases, together, targets, postprocess, quantiles, weights)
    return rows[finite], of_all.rows(finite)
