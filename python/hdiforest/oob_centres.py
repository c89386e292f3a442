"""Out-of-bag means of the training rows, and centred intervals in which no row takes part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hdicore import Forest, LeafIndex, Scorer, centred_oob_intervals
from hdiforest._utils.typing import Array, Kind
from hdiforest.centred import CentredForest
from hdiforest.fitted import TrainingRows
from hdiforest.stacked import Stacking


@dataclass(frozen=True, eq=False)
class OutOfBagCentres:
    """Means of the training rows, each from the trees that did not draw the row."""

    rows: TrainingRows
    forest: Forest
    leaves: NDArray[np.int32]  # (n, n_trees) of the rows
    counts: NDArray[np.unsignedinteger]  # (n, n_trees) of the rows
    centres: Array  # (n,); 0 for rows that every tree drew
    n_trees: NDArray[np.intp]  # (n,) trees that did not draw a row
    leaf_means: Array  # (n_leaves.sum(),) of the rows drawn; 0 if there are none
    leaf_weight: Array  # (n_leaves.sum(),) of the rows drawn

    @classmethod
    def of(
        cls,
        rows: TrainingRows,
        leaves: NDArray[np.int32],
        counts: NDArray[np.unsignedinteger] | None,
        forest: Forest,
    ) -> OutOfBagCentres:
        """Sum up tree after tree; `counts` (n, n_trees) are of the rows. O(n * n_trees)."""
        if counts is None:
            raise ValueError("every tree was fitted on all rows, so none is out of bag")
        sums = np.zeros(len(leaves))
        means, totals = [], []
        with np.errstate(over="ignore", invalid="ignore"):  # seen in the sums
            for tree, n_leaves in enumerate(forest.n_leaves):
                drawn = rows.in_bag_weights(counts[:, tree])
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
        centres = sums / np.maximum(n_trees, 1)
        leaf_means = np.concatenate(means)
        leaf_weight: Array = np.concatenate(totals, dtype=np.float64)
        return cls(rows, forest, leaves, counts, centres, n_trees, leaf_means, leaf_weight)

    @cached_property
    def row_weights(self) -> Array | None:
        """Weights of the rows, (n,): none for those without a centre. None if all weigh 1."""
        given = self.rows.sample_weight
        if self.n_trees.all():
            return given
        weights = np.ones(len(self.rows.y)) if given is None else given.copy()
        weights[self.n_trees == 0] = 0
        return weights

    def forest_of(self, stacking: Stacking | None, n_threads: int) -> CentredForest:
        """Index the residuals of all rows by leaf."""
        scale, offsets = _scale_and_offsets(stacking)
        centres = self.centres if offsets is None else scale * self.centres + offsets
        residuals = LeafIndex(
            self.leaves,
            self.rows.y - centres,
            sample_weight=self.row_weights,
            n_leaves=self.forest.n_leaves,
            n_threads=n_threads,
        )
        scorer = Scorer(self.forest, residuals)
        if stacking is None:
            return CentredForest(scorer, self.leaf_means)
        return CentredForest(scorer, self.leaf_means, stacking.mean, stacking.share)

    def intervals(
        self,
        chosen: NDArray[np.intp],
        coverage: Sequence[float],
        kinds: Sequence[Kind],
        stacking: Stacking | None,
        n_threads: int,
    ) -> Array:
        """Intervals of some training rows, none of which sees itself, (kinds, rows, 2, levels)."""
        index = LeafIndex(
            self.leaves,
            np.arange(len(self.leaves), dtype=np.float64),
            sample_weight=self.row_weights,
            n_leaves=self.forest.n_leaves,
            keep_row_weights=True,
            n_threads=n_threads,
        )
        scale, offsets = _scale_and_offsets(stacking)
        return centred_oob_intervals(
            index,
            self.leaves,
            self.counts,
            self.rows.y,
            self.centres,
            self.leaf_weight,
            chosen,
            coverage,
            kinds,
            draw_weight=self.rows.sample_weight if self.rows.counts_are_weighted else None,
            scale=scale,
            offsets=offsets,
            n_threads=n_threads,
        )


def _scale_and_offsets(stacking: Stacking | None) -> tuple[float, Array | None]:
    """How the forest's centres become stacked ones: scale times them, plus offsets."""
    if stacking is None:
        return 1.0, None
    return 1 - stacking.share, stacking.share * stacking.out_of_fold
