"""A forest of scikit-learn that keeps samples in its leaves: fit, pickles and leaves of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.ensemble._forest import ForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import _num_samples

from hdicore import LeafIndex, Scorer
from hdiforest._model.leaf_blocks import BLOCK_IDS
from hdiforest._model.sklearn_forest import forest_and_bags
from hdiforest._model.training_rows import TrainingRows, leaf_bounds
from hdiforest._tables.frames import frame_of
from hdiforest._utils.threads import thread_count
from hdiforest._utils.typing import Array
from hdiforest.adapters.quantile_forest._checks import quantile_levels, tree_mask
from hdiforest.adapters.quantile_forest._leaf_samples import LeafSamples, Source, leaf_limit
from hdiforest.serving._serialization import (
    IndexedLeaves,
    Parts,
    leaves_from_arrays,
    leaves_to_arrays,
)

Duplicates = Iterable[Sequence[int]] | None


class SampledForest(ForestRegressor):
    """A forest whose leaves keep samples of the training targets.

    Stands before a forest of scikit-learn among the bases of a class.
    """

    sample_weight_: Array | None
    _samples: LeafSamples

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        sparse_pickle: bool = False,  # noqa: ARG002
    ) -> Self:
        """Fit the forest and index the targets in its leaves.

        Parameters
        ----------
        X : (n, n_features) array, table or sparse matrix
            The training rows. A copy is kept, as a dense float32 array.
        y : (n,) or (n, n_outputs) array
            Their targets.
        sample_weight : (n,) array, optional
            Passed to the forest. Rows without a positive weight are in no leaf, the others count
            alike in their leaves.
        sparse_pickle : bool, default=False
            Changes nothing: pickles hold no padded arrays.

        Returns
        -------
        estimator
            The forest itself.

        Raises
        ------
        ValueError
            If an argument or parameter is out of range, or ``monotonic_cst`` is given and leaves
            may keep more than one sample.
        """
        quantile_levels(self.default_quantiles, "default_quantiles")
        limit = leaf_limit(self.max_samples_leaf, _num_samples(X))
        if self.monotonic_cst is not None and limit != 1:
            raise ValueError(
                "monotonic_cst needs leaves of one sample, so max_samples_leaf=1, got "
                f"{self.max_samples_leaf!r}"
            )
        self.__dict__.pop("_samples", None)  # of an earlier fit
        super().fit(X, y, sample_weight)
        rows = self._validate_X_predict(X)
        rows = rows.toarray() if issparse(rows) else np.array(rows, order="C")
        targets = np.array(y, dtype=np.float64)
        if targets.ndim == 2 and targets.shape[1] == 1:
            targets = targets[:, 0]
        self.sample_weight_ = None
        if sample_weight is not None:
            weights = np.asarray(sample_weight, dtype=np.float64)
            self.sample_weight_ = np.array(np.broadcast_to(weights, len(rows)))
        samples = self._leaf_samples(rows, targets, limit)
        samples.index("samples", self._n_threads())
        self._samples = samples
        return self

    def _leaf_samples(self, X: NDArray[np.float32], y: Array, limit: int | None) -> LeafSamples:
        """Compile the forest that was fitted on these rows."""
        forest, bags = forest_and_bags(self, len(X), self._n_threads())
        bounds = None
        if self.monotonic_cst is not None:
            nodes = np.split(forest.leaf_nodes, np.cumsum(forest.n_leaves)[:-1])
            bounds = [
                leaf_bounds(tree.tree_, self.monotonic_cst, leaves)
                for tree, leaves in zip(self.estimators_, nodes, strict=True)
            ]
        seeds = [tree.random_state for tree in self.estimators_]
        rows = TrainingRows(X, y, self.sample_weight_, bags, counts_are_weighted=False)
        return LeafSamples(forest, rows, limit, seeds, bounds)

    def _blocks(
        self,
        X: Any,
        index: LeafIndex,
        oob_score: bool,
        indices: ArrayLike | None,
        duplicates: Duplicates,
        *,
        by_leaf: bool = False,
    ) -> Iterator[tuple[slice, Source, NDArray[Any]]]:
        """Return some rows at a time, with what answers queries about them.

        Either a scorer and the rows, or the index and their leaves: always that if `by_leaf`, and
        where some trees must not be asked.
        """
        samples, n_threads = self._samples, self._n_threads()
        rows = self._validate_X_predict(X)
        mask = None
        if oob_score:
            mask = tree_mask(samples.rows, rows.shape[0], indices, duplicates)
        scorer = Scorer(samples.forest, index)

        def blocks() -> Iterator[tuple[slice, Source, NDArray[Any]]]:
            widest = max(samples.forest.n_trees, samples.forest.n_features)
            for part, block in frame_of(rows).blocks(max(1, BLOCK_IDS // widest)):
                dense = block.native.toarray() if issparse(rows) else block.native
                if mask is None and not by_leaf:
                    yield part, scorer, dense
                    continue
                leaves = samples.forest.leaves(dense, n_threads=n_threads)
                yield part, index, leaves if mask is None else np.where(mask[part], leaves, -1)

        return blocks()

    def _require_fitted(self) -> LeafSamples:
        try:
            return self._samples
        except AttributeError:
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet; call fit first"
            ) from None

    def _n_threads(self) -> int:
        return thread_count(self.n_jobs)

    def __copy__(self) -> Self:
        # By pickling, which is the default, a copy would get arrays of its own.
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        if "_samples" in state:
            samples = state["_samples"]
            index = samples.index("samples", self._n_threads())
            state["_samples"] = {
                "X": samples.rows.X,
                "y": samples.rows.y,
                "limit": samples.limit,
                "index": leaves_to_arrays(IndexedLeaves(index)).state(),
            }
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        stored = state.pop("_samples", None)
        super().__setstate__(state)
        if stored is not None:
            samples = self._leaf_samples(stored["X"], stored["y"], stored["limit"])
            leaves = leaves_from_arrays(Parts(**stored["index"]))
            samples.indexes["samples"] = leaves.index
            self._samples = samples
