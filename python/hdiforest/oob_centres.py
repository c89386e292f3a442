"""Out-of-bag means of the training rows, and centred intervals in which no row takes part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdicore import Forest, LeafIndex, centred_oob_intervals
from hdiforest.centred import CentredForest
from hdiforest.conditional import Kind
from hdiforest.fitted import TrainingRows


@dataclass(frozen=True)
class OutOfBagCentres:
    """Means of the training rows, each from the trees that did not draw the row."""

    centres: NDArray[np.float64]  # (n,); 0 for rows that every tree drew
    n_trees: NDArray[np.intp]  # (n,) trees that did not draw a row
    leaf_means: NDArray[np.float64]  # (n_leaves.sum(),) of the rows drawn; 0 if there are none
    leaf_weight: NDArray[np.float64]  # (n_leaves.sum(),) of the rows drawn

    @classmethod
    def of(cls, rows: TrainingRows, leaves: NDArray[np.int32], forest: Forest) -> OutOfBagCentres:
        """Sum up tree after tree. O(n * n_trees)."""
        counts = rows.counts
        if counts is None:
            raise ValueError("every tree was fitted on all rows, so none is out of bag")
        sums = np.zeros(len(leaves))
        means, totals = [], []
        for tree, n_leaves in enumerate(forest.n_leaves):
            drawn = rows.in_bag_weights(tree)
            total = np.bincount(leaves[:, tree], drawn, n_leaves)
            sum_y = np.bincount(leaves[:, tree], drawn * rows.y, n_leaves)
            mean = sum_y / np.where(total > 0, total, 1)
            out = counts[:, tree] == 0
            sums[out] += mean[leaves[out, tree]]
            means.append(mean)
            totals.append(total)
        n_trees = (counts == 0).sum(axis=1)
        if not np.isfinite(sums).all():
            raise ValueError("the targets of the training rows are too large to be averaged")
        return cls(
            sums / np.maximum(n_trees, 1), n_trees, np.concatenate(means), np.concatenate(totals)
        )

    def row_weights(self, rows: TrainingRows) -> NDArray[np.float64] | None:
        """Weights of the rows, (n,): none for those without a centre. None if all weigh 1."""
        if self.n_trees.all():
            return rows.sample_weight
        weights = np.ones(len(rows.y)) if rows.sample_weight is None else rows.sample_weight.copy()
        weights[self.n_trees == 0] = 0
        return weights

    def forest_of(
        self, rows: TrainingRows, leaves: NDArray[np.int32], forest: Forest, n_threads: int
    ) -> CentredForest:
        """Index the residuals of all rows by leaf."""
        residuals = LeafIndex(
            leaves,
            rows.y - self.centres,
            sample_weight=self.row_weights(rows),
            n_leaves=forest.n_leaves,
            n_threads=n_threads,
        )
        return CentredForest(residuals, self.leaf_means)

    def intervals(
        self,
        rows: TrainingRows,
        leaves: NDArray[np.int32],
        forest: Forest,
        chosen: NDArray[np.intp],
        coverage: Sequence[float],
        kinds: Sequence[Kind],
        n_threads: int,
    ) -> NDArray[np.float64]:
        """Intervals of some training rows, none of which sees itself, (kinds, rows, 2, levels)."""
        index = LeafIndex(
            leaves,
            np.arange(len(leaves), dtype=np.float64),
            sample_weight=self.row_weights(rows),
            n_leaves=forest.n_leaves,
            keep_row_weights=True,
            n_threads=n_threads,
        )
        return centred_oob_intervals(
            index,
            leaves,
            rows.counts,  # type: ignore[arg-type]  # `of` has refused None
            rows.y,
            self.centres,
            self.leaf_weight,
            chosen,
            coverage,
            kinds,
            draw_weight=rows.sample_weight if rows.counts_are_weighted else None,
            n_threads=n_threads,
        )
