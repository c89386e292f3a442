"""CVPlus and JackknifePlus: training rows calibrate, each by a forest that did not see it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdicore import LeafIndex
from hdiforest._model.bases import FIXED_RAW
from hdiforest._model.fitted import Calibrated, FittedForest, IntervalQuery, Rows
from hdiforest._model.training_rows import TrainingRows, draw_rows
from hdiforest._utils import Array
from hdiforest._utils.checks import check_choice, check_one_for_each, check_whole_number
from hdiforest._utils.hints import steps
from hdiforest.calibration import _selection as select
from hdiforest.calibration._calibrate import calibrate_cross
from hdiforest.calibration._groups import divide, missing_rows
from hdiforest.calibration._method import Method, Request, require_out_of_bag
from hdiforest.calibration._out_of_bag import OutOfBag
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._result import CrossCalibration

_ENDS_AT_ONCE = 1 << 20  # of the forests of all folds, so that memory stays flat
_MERGES_AT_ONCE = 1 << 16  # of those of the jackknife: bounds the leaf ids

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]  # rows to fit on and rows held out

WEIGHTED_SCORES = (
    "No guarantee is known for rows with weights: conformal quantiles are weighted, and the "
    "cross-check shows what to expect of rows that are drawn by these weights."
)


def less_for_clipping(calibration: CrossCalibration) -> str:
    """Say what clipping takes from a guarantee; empty: nothing."""
    loss = 2 / (calibration.n + 1)
    return f", less {loss:.2g} for the clipping" if calibration.postprocess.clip else ""


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
        refit, training = request.refit("method='cv+'"), forest.require_training_rows()
        n_coverages, out_of_bag = len(request.coverages), OutOfBag(objective=self.objective)
        of_fold = request._replace(blocks=())
        forests, ends, targets, row_weights = [], [], [], []
        # All at once, so that what is refused is so before any work is done.
        folds = list(self._split(training, request.random_state))
        for fit, held_out in steps("fitting and calibrating folds", folds):
            fold, scored = refit(fit, held_out)
            calibrated = out_of_bag.fit_if_possible(fold, of_fold)
            if calibrated and len(calibrated.result.finite_coverages) == n_coverages:
                intervals = replace(
                    calibrated.result, distribution=None
                )  # which alone are asked for
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
class CrossIntervals(Calibrated):
    """Intervals by K forests together, widened by the scores of the rows that each did not see."""

    result: CrossCalibration

    @abstractmethod
    def _ends(self, query: IntervalQuery, part: slice) -> Array:
        """Return the intervals of some of the rows by each forest, (K, rows, 2, k)."""

    @property
    @abstractmethod
    def _at_once(self) -> int:
        """How many rows are asked of all forests together."""

    def intervals(self, query: IntervalQuery) -> Array:
        """Return the intervals of all forests, widened by the scores of all rows."""
        X, positions, n_threads, *_ = query
        query.fill_mean(self.forest)
        intervals = np.empty((len(X), 2, *positions.shape))
        for begin in range(0, len(X), self._at_once):
            part = slice(begin, begin + self._at_once)
            ends = self._ends(query, part)
            intervals[part] = self.result.engine.widen(ends, positions, n_threads=n_threads)
        return intervals


@dataclass(frozen=True, eq=False)
class FoldIntervals(CrossIntervals):
    """Intervals by the forests of all folds together."""

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

    @property
    def _at_once(self) -> int:
        return max(1, _ENDS_AT_ONCE // len(self.folds))

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


@dataclass(frozen=True)
class JackknifePlus(Method):
    """Calibrate by training rows, each predicted by a forest of the trees that did not draw it.

    Every prediction merges all of the forests. The guarantee is nearly the same as of `CVPlus`,
    without another fit (Kim, Xu and Barber, "Predictive inference is free with the
    jackknife+-after-bootstrap", NeurIPS 2020).

    Parameters
    ----------
    max_rows : int, default=1000
        Largest number of training rows to use. Each training row costs a merge for each row to
        predict.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest import HDIForestRegressor
    >>> from hdiforest.calibration import JackknifePlus
    >>> X, y = make_regression(n_samples=200, n_features=4, noise=10, random_state=0)
    >>> model = HDIForestRegressor(calibration=False, random_state=0).fit(X, y)
    >>> model.calibrate(coverage=0.8, method=JackknifePlus(max_rows=100)).calibration_.n
    100
    """

    name: ClassVar[str] = "jackknife+"
    has_forests: ClassVar[bool] = True
    max_rows: int = 1000

    def __post_init__(self) -> None:
        check_whole_number("max_rows", self.max_rows, 1)

    def fit(self, forest: FittedForest, request: Request) -> Calibrated:
        """Score training rows, each by the trees that did not draw it.

        The rows do not choose the base. Leaves count rows as often as the trees drew them, so that
        a row takes no part in the forest that predicts it.

        Parameters
        ----------
        forest : FittedForest
            The fitted forest, with its training rows. It stays as it is.
        request : Request
            The coverages, and the options that all methods share.

        Returns
        -------
        JackknifeIntervals
            The index of the training rows, and their scores.

        Raises
        ------
        ValueError
            If an option is refused, or too few trees leave rows out.
        """
        if forest.facts.weights == "monotonic":
            raise ValueError(
                "method must not be 'jackknife+' with weights='monotonic'; 'cv+' may be"
            )
        if request.mean is not None:
            raise ValueError("mean must be None with method='jackknife+', which fits no centres")
        source = request.source(forest)
        require_out_of_bag(self.name, source)
        training, counts = source.rows, cast("NDArray[Any]", source.counts)
        scored = draw_rows(source.usable, self.max_rows, request.random_state)
        trees, drawn = forest.scorer.forest, np.asarray(counts[scored] > 0)
        index = training.index(trees, source.leaves, "inbag", n_threads=request.n_threads)
        ends = _read(index, np.where(drawn, np.int32(-1), source.leaves[scored]), request.n_threads)
        weights = source.weights_of(scored)
        result = calibrate_cross(
            list(np.repeat(ends[:, np.newaxis, :, np.newaxis], len(request.coverages), axis=3)),
            list(training.y[scored, np.newaxis]),
            request.coverages,
            PostProcess.from_targets(training.weighted_targets),
            method=self.name,
            weights=None if weights is None else list(weights[:, np.newaxis]),
        )
        guarantee = (
            f"At least with probability 2c - 1 a new row is covered{less_for_clipping(result)}, if "
            "it is exchangeable with the training rows and the number of trees was drawn from a "
            "binomial distribution; a given number comes close, and the cross-check shows what to "
            "expect."
        )
        result = replace(result, guarantee=guarantee if weights is None else WEIGHTED_SCORES)
        return JackknifeIntervals(forest.without_rows(), result, index, drawn)


@dataclass(frozen=True, eq=False)
class JackknifeIntervals(CrossIntervals):
    """Intervals by the forests of m training rows together."""

    index: LeafIndex  # of the rows as the trees drew them
    drawn: NDArray[np.bool_]  # (m, n_trees) whether a tree drew the row

    def __post_init__(self) -> None:
        trees = self.forest.scorer.forest
        if self.index.n_outputs != 1 or list(self.index.n_leaves) != list(trees.n_leaves):
            raise ValueError("the index of the jackknife must be of the forest and one target")
        shape = len(self.result.scores), trees.n_trees
        if self.drawn.dtype != np.bool_ or self.drawn.shape != shape:
            raise ValueError(f"drawn must be bool of shape {shape}")

    @property
    def _at_once(self) -> int:
        return max(1, _MERGES_AT_ONCE // len(self.drawn))

    def _ends(self, query: IntervalQuery, part: slice) -> Array:
        leaves = self.forest.scorer.forest.leaves(query.X[part], n_threads=query.n_threads)
        masked = np.where(self.drawn[:, np.newaxis], np.int32(-1), leaves)
        ends = _read(self.index, masked.reshape(-1, masked.shape[2]), query.n_threads)
        return ends.reshape(len(self.drawn), -1, 2, 1)


def _read(index: LeafIndex, leaves: NDArray[np.int32], n_threads: int) -> Array:
    """Return the base intervals of rows in given leaves, -1 in trees left out, (n, 2)."""
    return index.intervals(leaves, FIXED_RAW.level, FIXED_RAW.kind, n_threads=n_threads)
