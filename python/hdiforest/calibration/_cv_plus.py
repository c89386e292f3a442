"""CVPlus: the forest is fitted again without each fold of the training rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._model.bases import FIXED_RAW
from hdiforest._model.fitted import Calibrated, FittedForest, IntervalQuery, Rows
from hdiforest._model.training_rows import TrainingRows
from hdiforest._utils import Array
from hdiforest._utils.checks import check_choice, check_one_for_each, check_whole_number
from hdiforest._utils.hints import steps
from hdiforest.calibration import _selection as select
from hdiforest.calibration._calibrate import calibrate_cross
from hdiforest.calibration._cross import WEIGHTED_SCORES, CrossIntervals, less_for_clipping
from hdiforest.calibration._groups import divide, missing_rows
from hdiforest.calibration._method import Method, Request
from hdiforest.calibration._out_of_bag import OutOfBag
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._result import CrossCalibration

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]  # rows to fit on and rows held out


@dataclass(frozen=True, eq=False)
class CVPlus(Method):
    """Fit the forest again without each fold of the training rows, and predict with all fits.

    Steps and searches of an estimator are fitted again, too. For each coverage c, about 2c - 1 is
    guaranteed, and c is usual.

    Parameters
    ----------
    n_folds : int, default=10
        Number of folds. Fitting and scoring take as many times as long.
    groups : (n_training_rows,) array, optional
        Groups of the training rows, such as persons or sites. Rows of one group share a fold, so
        that the intervals are valid for new groups.
    objective : {"balanced", "width", "interval_score"}, default="balanced"
        The measure that chooses a level, out of bag, for the forest of each fold. See `OutOfBag`.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from sklearn.ensemble import ExtraTreesRegressor
    >>> from hdiforest import HDIForestRegressor
    >>> from hdiforest.calibration import CVPlus
    >>> X, y = make_regression(n_samples=200, n_features=4, noise=10, random_state=0)
    >>> forest = ExtraTreesRegressor(50, bootstrap=True, random_state=0)
    >>> model = HDIForestRegressor(forest, calibration=False).fit(X, y)
    >>> model.calibrate(coverage=0.8, method=CVPlus(n_folds=3)).calibration_.method
    'cv+'
    """

    name: ClassVar[str] = "cv+"
    has_forests: ClassVar[bool] = True
    n_folds: int = 10
    groups: ArrayLike | None = None
    objective: select.Objective = "balanced"

    def __post_init__(self) -> None:
        check_whole_number("n_folds", self.n_folds, 2)
        check_choice("objective", self.objective, select.OBJECTIVES)

    def fit(self, forest: FittedForest, request: Request) -> Calibrated:
        """Fit and score each fold.

        The scores belong to the calibrated intervals of each fold. The rows held out took no part
        in them, so the guarantee of CV+ holds. Scores of folds with different bases are comparable.

        Parameters
        ----------
        forest : FittedForest
            The fitted forest, with its training rows. It stays as it is.
        request : Request
            The coverages, and the options that all methods share.

        Returns
        -------
        FoldIntervals
            The forests of all folds, and the scores of their rows.

        Raises
        ------
        ValueError
            If an option is refused, or the forest cannot be fitted again.
        """
        refit, training = request.refitting("method='cv+'"), forest.require_training_rows()
        n_coverages, out_of_bag = len(request.coverages), OutOfBag(objective=self.objective)
        of_fold = request._replace(blocks=())
        forests, ends, targets, row_weights = [], [], [], []
        # All at once, so that what is refused is so before any work is done.
        folds = list(self._split(training, request.random_state))
        for fit, held_out in steps("fitting and calibrating folds", folds):
            fold, scored = refit(fit, held_out)
            calibrated = out_of_bag.fit_if_possible(fold, of_fold)
            if calibrated and len(calibrated.result.finite_coverages) == n_coverages:
                # No distribution is asked of a fold.
                intervals = replace(calibrated.result, distribution=None)
                fold = fold.with_calibration(replace(calibrated, result=intervals, grown=None))
            forests.append(replace(fold, training_rows=None))
            fold_ends = _of_fold(forests[-1], scored, n_coverages, request.n_threads)
            finite = np.isfinite(fold_ends).all(axis=(1, 2))
            if not finite.any():
                raise ValueError(
                    "n_folds must be smaller: a fold holds out no row with an interval"
                )
            ends.append(fold_ends[finite])
            targets.append(training.y[held_out[finite]])
            if (weights := training.weights_of(held_out[finite])) is not None:
                row_weights.append(weights)
        result = calibrate_cross(
            ends,
            targets,
            request.coverages,
            PostProcess.from_targets(training.weighted_targets),
            grouped=self.groups is not None,
            weights=row_weights or None,
        )
        result = replace(result, guarantee=self._guarantee(result))
        return FoldIntervals(forest.without_rows(), result, tuple(forests))

    def _guarantee(self, result: CrossCalibration) -> str:
        """Say what is promised (Barber, Candes, Ramdas, Tibshirani 2021, theorem 4)."""
        if result.weights is not None:
            return WEIGHTED_SCORES
        if result.grouped:
            return (
                "No guarantee is known for single rows of new groups, whose rows depend on each "
                "other: conformal quantiles come from groups that no tree of their forest saw, so "
                "the cross-check shows what to expect of new groups."
            )
        n, folds = result.n, len(result.scores)
        loss = min(2 * (1 - 1 / folds) / (n / folds + 1), (1 - folds / n) / (folds + 1))
        return (
            f"At least with probability 2c - 1 - {loss:.2g} a new row is covered"
            f"{less_for_clipping(result)}, if it is exchangeable with the {n} training rows and "
            "folds are of one size; the cross-check shows what to expect."
        )

    def _split(self, rows: TrainingRows, random_state: int | None) -> Iterator[Fold]:
        """Yield folds of the rows with weight; ValueError if there are too few rows or groups."""
        from sklearn.model_selection import GroupKFold, KFold  # which scoring does not load

        weighted = np.flatnonzero(rows.has_weight)
        n, n_folds = len(weighted), self.n_folds
        options: Any = {"shuffle": True, "random_state": random_state}
        if self.groups is None:
            if n < n_folds:
                most = f"the number of training rows, {n}"
                raise ValueError(f"n_folds must be at most {most}, got {n_folds}")
            splits = KFold(n_folds, **options).split(weighted)
        else:
            numbers = _group_numbers(self.groups, len(rows.y))[weighted]
            if (n := len(np.unique(numbers))) < n_folds:
                least = f"{n_folds} or more, as many as n_folds"
                raise ValueError(f"groups must be {least}, got {n}")
            splits = GroupKFold(n_folds, **options).split(weighted, groups=numbers)
        for fit, held_out in splits:
            yield weighted[fit], weighted[held_out]


def _group_numbers(groups: ArrayLike, n: int) -> NDArray[np.intp]:
    """Return a number for each of n rows, the same for rows of one group."""
    names = np.asarray(groups).astype(object)
    check_one_for_each("groups", names.shape, n)
    if missing := missing_rows(names):
        name = names[missing[0]]
        must = "groups must name a group for every row"
        raise ValueError(f"{must}, and row {missing[0]} has {name!r}")
    return divide(names)[1]


@dataclass(frozen=True, eq=False)
class FoldIntervals(CrossIntervals):
    """Intervals by the forests of all folds together."""

    max_ends: ClassVar[int] = 1 << 20
    folds: tuple[FittedForest, ...] = ()  # calibrated, without training rows

    def __post_init__(self) -> None:
        n, n_outputs = len(self.result.scores), self.forest.n_outputs
        of_folds = {fold.calibration.coverages for fold in self.folds if fold.calibrated}
        if (
            len(self.folds) != n
            or any(fold.n_outputs != n_outputs for fold in self.folds)
            or not of_folds <= {self.result.coverages}
        ):
            raise ValueError("the calibration does not fit the folds of the model")

    def _ends(self, query: IntervalQuery, part: slice) -> Array:
        k = int(query.positions.max()) + 1
        pairs = zip(self.folds, query.of_folds or [query.X] * len(self.folds), strict=True)
        return np.stack([_of_fold(fold, rows[part], k, query.n_threads) for fold, rows in pairs])


def _of_fold(fold: FittedForest, X: Rows, k: int, n_threads: int) -> Array:
    """Return the intervals of the k lowest coverages, (n, 2, k), by the forest of one fold."""
    if fold.calibrated is None:
        ends = fold.base_intervals(X, [FIXED_RAW], n_threads)
        return np.broadcast_to(ends, (len(X), 2, k))
    return fold.calibrated.intervals(IntervalQuery(X, np.arange(k), n_threads))
