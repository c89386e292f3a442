"""Intervals from a fitted forest of any library that can say in which leaves rows lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdicore import LeafIndex
from hdiforest.distributions import ConditionalDistributions
from hdiforest.threads import thread_count


class LeafModel(ConditionalDistributions):
    """Conditional distributions from the leaves that a fitted forest puts rows in.

    Made by `from_leaves`. It can be pickled if `apply` can.

    Attributes
    ----------
    apply : callable
        The forest's own function from rows to leaf ids.
    index : hdicore.LeafIndex
        The training rows by leaf.
    n_jobs : int or None
    """

    def __init__(self, apply: Callable[[Any], ArrayLike], index: LeafIndex, n_jobs: int | None):
        self.apply = apply
        self.index = index
        self.n_jobs = n_jobs

    def _given(self, X: ArrayLike) -> tuple[LeafIndex, NDArray[Any], int]:
        return self.index, _leaves(self.apply, X), thread_count(self.n_jobs)


def from_leaves(
    apply: Callable[[Any], ArrayLike],
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    n_leaves: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> LeafModel:
    """Use a fitted forest of any library, without fitting anything.

    Parameters
    ----------
    apply : callable
        Takes rows and returns the leaf of each in each tree, (n, n_trees), as whole numbers from 0
        and below 2**28 of any type: ``lambda X: booster.predict(X, pred_leaf=True)``. A forest of
        one tree may return (n,). Memory grows with the largest id of each tree.
    X : rows, as `apply` takes them
        Training rows of the forest, or any others whose targets are to be shown.
    y : (n,) or (n, n_outputs) array
        Their targets. Every row counts in each of its leaves (the paper's definition).
    sample_weight : (n,) array, optional
        What rows weigh in their leaves.
    n_leaves : (n_trees,) int array, optional
        Leaves of each tree, if trees have leaves in which no row of X lies, as symmetric trees do:
        they are then silent for new rows there. By default such leaves are errors.
    n_jobs : int, default=None
        Threads for the intervals; `apply` has its own. None means 1, or what
        ``joblib.parallel_config`` says; -1 all processors.

    Returns
    -------
    LeafModel
        With `predict`, `predict_interval`, `predict_quantiles` and `predict_cdf` of
        `HDIForestRegressor`.

    Raises
    ------
    ValueError
        If leaves, y or sample_weight are out of range or of different lengths. Later, if a new row
        lies in a leaf that no row of X lies in: then X are not the rows of the fit, or the trees
        are of a kind that needs `n_leaves`.

    Notes
    -----
    Trees that were fitted one after the other on residuals (boosting) share leaves among rows that
    they treat alike, but that is a similarity and no estimate of a distribution by the paper's
    argument: check its coverage.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> from hdiforest import from_leaves
    >>> X = np.arange(40.0)[:, None]
    >>> forest = RandomForestRegressor(10, max_depth=2, random_state=0).fit(X, X.ravel())
    >>> model = from_leaves(forest.apply, X, X.ravel())
    >>> lower, upper = model.predict_interval([[3.0], [33.0]], coverage=0.9).T
    >>> bool((lower <= [3, 33]).all() and (upper >= [3, 33]).all())
    True
    """
    leaves = _leaves(apply, X)
    n_threads = thread_count(n_jobs)
    if n_leaves is None:
        index = LeafIndex.from_leaves(leaves, y, sample_weight=sample_weight, n_threads=n_threads)
    else:
        index = LeafIndex(
            leaves, y, sample_weight=sample_weight, n_leaves=n_leaves, n_threads=n_threads
        )
    return LeafModel(apply, index, n_jobs)


def _leaves(apply: Callable[[Any], ArrayLike], X: Any) -> NDArray[Any]:
    leaves = np.asarray(apply(X))
    return leaves[:, None] if leaves.ndim == 1 else leaves
