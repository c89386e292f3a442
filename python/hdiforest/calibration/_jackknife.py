"""JackknifePlus: each training row makes a forest of the trees that did not draw it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from hdicore import LeafIndex
from hdiforest._model.bases import FIXED_RAW
from hdiforest._model.fitted import Calibrated, FittedForest, IntervalQuery
from hdiforest._model.training_rows import draw_rows
from hdiforest._utils import Array
from hdiforest._utils.checks import check_whole_number
from hdiforest.calibration._calibrate import calibrate_cross
from hdiforest.calibration._cross import WEIGHTED_SCORES, CrossIntervals, less_for_clipping
from hdiforest.calibration._method import Method, Request, require_out_of_bag
from hdiforest.calibration._postprocess import PostProcess


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

    max_ends: ClassVar[int] = 1 << 16  # which bounds the leaf ids
    index: LeafIndex  # of the rows as the trees drew them
    drawn: NDArray[np.bool_]  # (m, n_trees) whether a tree drew the row

    def __post_init__(self) -> None:
        trees = self.forest.scorer.forest
        if self.index.n_outputs != 1 or list(self.index.n_leaves) != list(trees.n_leaves):
            raise ValueError("the index of the jackknife must be of the forest and one target")
        shape = len(self.result.scores), trees.n_trees
        if self.drawn.dtype != np.bool_ or self.drawn.shape != shape:
            raise ValueError(f"drawn must be bool of shape {shape}")

    def _ends(self, query: IntervalQuery, part: slice) -> Array:
        leaves = self.forest.scorer.forest.leaves(query.X[part], n_threads=query.n_threads)
        masked = np.where(self.drawn[:, np.newaxis], np.int32(-1), leaves)
        ends = _read(self.index, masked.reshape(-1, masked.shape[2]), query.n_threads)
        return ends.reshape(len(self.drawn), -1, 2, 1)


def _read(index: LeafIndex, leaves: NDArray[np.int32], n_threads: int) -> Array:
    """Return the base intervals of rows in given leaves, -1 in trees left out, (n, 2)."""
    return index.intervals(leaves, FIXED_RAW.level, FIXED_RAW.kind, n_threads=n_threads)
