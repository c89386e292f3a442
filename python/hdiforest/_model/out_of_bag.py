"""Out-of-bag means and base intervals of the training rows of a FittedForest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from hdicore import Forest, LeafIndex, Scorer
from hdicore._core import _centred_oob_intervals
from hdiforest._model.fitted import FittedForest
from hdiforest._model.prune import leaf_sizes, prune_to
from hdiforest._model.residuals import CentredForest, Stacking
from hdiforest._model.training_rows import IN_BAG, Counts, TrainingRows
from hdiforest._utils import Array, Kind
from hdiforest.calibration._bases import Base, read_bases

# A training row with fewer such trees has a distribution unlike that of a new row.
MIN_OOB_TREES = 20
MIN_SHARE_OF_WEIGHT = 0.9  # that usable rows have, relative to their share of the rows


class OutOfBagMeans(NamedTuple):
    """Means of n training rows, each from the trees that did not draw the row."""

    centres: Array  # (n,); 0 for rows that every tree drew
    n_trees: NDArray[np.intp]  # (n,) trees that did not draw a row
    leaf_means: Array  # (n_leaves.sum(),) of the rows drawn; 0 if there are none
    leaf_weight: Array  # (n_leaves.sum(),) of the rows drawn


def out_of_bag_means(
    rows: TrainingRows, leaves: NDArray[np.int32], counts: Counts | None, forest: Forest
) -> OutOfBagMeans:
    """Sum up tree after tree; leaves and counts (n, n_trees) are of the rows. O(n * n_trees)."""
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
    leaf_weight: Array = np.concatenate(totals, dtype=np.float64)
    return OutOfBagMeans(sums / np.maximum(n_trees, 1), n_trees, np.concatenate(means), leaf_weight)


class OutOfBagIntervals:
    """Base intervals of training rows, in none of which the row itself takes part."""

    def __init__(
        self,
        fitted: FittedForest,
        n_threads: int,
        mean: object = None,
        random_state: int | None = None,
    ) -> None:
        self.fitted = fitted
        self._forest: Forest = fitted.scorer.forest
        self._n_threads = n_threads
        self._mean = mean
        self._random_state = random_state
        self.rows: TrainingRows = fitted.require_training_rows()
        self._grown = self  # of trees that are not pruned

    def pruned(self, min_samples_leaf: int) -> OutOfBagIntervals:
        """Return the same of trees with larger leaves; nothing is fitted or routed again."""
        if min_samples_leaf == 1:
            return self
        sizes, leaves = self._leaf_sizes, self.leaves
        forest = prune_to(self.fitted, min_samples_leaf, sizes, leaves, self._n_threads)
        other = OutOfBagIntervals(forest.fitted, self._n_threads, self._mean, self._random_state)
        other.leaves, other.counts, other._grown = forest.leaves(leaves), self.counts, self
        return other

    @cached_property
    def _leaf_sizes(self) -> NDArray[np.int64]:
        return leaf_sizes(self._forest, self.rows, self.leaves, self._n_threads)

    @cached_property
    def leaves(self) -> NDArray[np.int32]:
        """Leaves of the training rows, (n, n_trees)."""
        return self._forest.leaves(self.rows.X, n_threads=self._n_threads)

    @cached_property
    def counts(self) -> Counts | None:
        """How often each tree drew each row, (n, n_trees); None: always once."""
        return None if self.rows.bags is None else self.rows.bags.matrix()

    @property
    def families(self) -> tuple[str, ...]:
        """What there is of `FAMILIES`: centres count all rows of a leaf, or those drawn."""
        if self.fitted.weights != "all":
            return ("raw",)
        if self._is_local:  # few rows take the first but raw
            return ("raw", "stacked", "centred")
        return ("raw", "centred" if self._mean is None else "stacked")

    @property
    def _is_local(self) -> bool:
        return isinstance(self._mean, str) and self._mean == "local_linear"

    @cached_property
    def usable(self) -> NDArray[np.intp]:
        """Training rows that enough trees did not draw. May be empty."""
        if self.counts is None:
            return np.empty(0, dtype=np.intp)
        n_trees = (self.counts == 0).sum(axis=1)
        return np.flatnonzero((n_trees >= MIN_OOB_TREES) & self.rows.has_weight)

    @property
    def shortage(self) -> str | None:
        """Why the usable rows cannot stand for all; None if they can.

        Bootstraps that draw rows by their weights leave heavy rows out too seldom.
        """
        n, weight = int(self.rows.has_weight.sum()), self.rows.sample_weight
        if 2 * len(self.usable) < n:
            return (
                f"at least {MIN_OOB_TREES} trees that did not draw a row, and {len(self.usable)} "
                f"of {len(self.rows.y)} training rows have so many"
            )
        share = 1.0 if weight is None else weight[self.usable].sum() / weight.sum()
        if share < MIN_SHARE_OF_WEIGHT * len(self.usable) / n:
            return (
                f"rows of all weights that {MIN_OOB_TREES} trees did not draw, and those that so "
                f"many did not draw are {len(self.usable)} of {len(self.rows.y)} training rows, "
                f"but have {share:.0%} of their weight"
            )
        return None

    @property
    def targets(self) -> Array:
        """Targets of the rows that weigh anything."""
        return self.rows.y[self.rows.has_weight]

    @cached_property
    def means(self) -> OutOfBagMeans:
        """Out-of-bag means of all training rows."""
        return out_of_bag_means(self.rows, self.leaves, self.counts, self._forest)

    @cached_property
    def row_weights(self) -> Array | None:
        """Weights of the rows, (n,): none for those without a centre. None if all weigh 1."""
        sample_weight, has_centre = self.rows.sample_weight, self.means.n_trees > 0
        if has_centre.all():
            return sample_weight
        return np.where(has_centre, 1.0 if sample_weight is None else sample_weight, 0)

    @cached_property
    def stacking(self) -> Stacking | None:
        """The other regressor's mean in the centres, if there is one."""
        if self._mean is None:
            return None
        from hdiforest._model.stacking import best_share, local_linear, stacked  # scikit-learn's

        centres, has_centre = self.means.centres, self.means.n_trees > 0
        if self._is_local:
            gains = self._forest.split_gains(self.means.leaf_weight, self.means.leaf_means)
            counts = cast("Counts", self.counts)
            return local_linear(
                self._forest, self.rows, self.leaves, counts, gains, centres, has_centre,
                self._n_threads,
            )  # fmt: skip
        if self._grown is self:
            return stacked(self._mean, self.rows, centres, has_centre, self._random_state)
        of_grown = cast("Stacking", self._grown.stacking)
        share = best_share(of_grown.out_of_fold, self.rows, centres, has_centre)
        return replace(of_grown, share=share)

    def _scale_and_offsets(self, family: str) -> tuple[float, Array | None]:
        """How the forest's centres become those of a family: scale times them, plus offsets."""
        if family != "stacked":
            return 1.0, None
        stacking = cast("Stacking", self.stacking)
        return 1 - stacking.share, stacking.share * stacking.out_of_fold

    def centred_forest(self, family: str = "centred") -> CentredForest:
        """Return what predicts centred or stacked intervals of other rows."""
        scale, offsets = self._scale_and_offsets(family)
        centres = self.means.centres if offsets is None else scale * self.means.centres + offsets
        residuals = self._index_by_row(self.rows.y - centres)
        scorer, leaf_means = Scorer(self._forest, residuals), self.means.leaf_means
        if family != "stacked":
            return CentredForest(scorer, leaf_means)
        stacking = cast("Stacking", self.stacking)
        return CentredForest(scorer, leaf_means, stacking.mean, stacking.share)

    def intervals(self, rows: NDArray[np.intp], bases: Sequence[Base]) -> Array:
        """Return intervals of some training rows by each of k bases, (rows, 2, k)."""

        def read(family: str, kinds: list[Kind], levels: list[float]) -> Array:
            if family == "raw":
                return self._raw_intervals(rows, kinds, levels)
            return self._centred_intervals(family, rows, kinds, levels)

        return read_bases(bases, len(rows), read)

    def _raw_intervals(
        self, rows: NDArray[np.intp], kinds: list[Kind], levels: list[float]
    ) -> Array:
        index: LeafIndex = self.fitted.scorer.index
        leaves_count_row = self.fitted.weights not in IN_BAG
        if leaves_count_row:
            index = self.rows.index(
                self._forest,
                self.leaves,
                self.fitted.weights,
                keep_row_weights=True,
                n_threads=self._n_threads,
            )
        leaves = self.leaves[rows]
        leaves[cast("Counts", self.counts)[rows] > 0] = -1
        return index.intervals(
            leaves,
            levels,
            kinds,
            leave_out=rows if leaves_count_row else None,
            n_threads=self._n_threads,
        )

    def _centred_intervals(
        self, family: str, rows: NDArray[np.intp], kinds: list[Kind], levels: list[float]
    ) -> Array:
        unique_kinds, unique_levels = list(dict.fromkeys(kinds)), list(dict.fromkeys(levels))
        positions = np.arange(len(self.leaves), dtype=np.float64)
        scale, offsets = self._scale_and_offsets(family)
        local = cast("Stacking", self.stacking).local() if family == "stacked" else {}
        ends = _centred_oob_intervals(  # (kinds, rows, 2, levels)
            self._index_by_row(positions, keep_row_weights=True),
            self.leaves,
            cast("Counts", self.counts),
            self.rows.y,
            self.means.centres,
            self.means.leaf_weight,
            rows,
            unique_levels,
            unique_kinds,
            draw_weight=self.rows.sample_weight if self.rows.counts_are_weighted else None,
            scale=scale,
            offsets=offsets,
            **local,
            n_threads=self._n_threads,
        )
        pairs = zip(kinds, levels, strict=True)
        columns = [ends[unique_kinds.index(k), ..., unique_levels.index(c)] for k, c in pairs]
        return np.stack(columns, axis=-1)

    def _index_by_row(self, values: Array, *, keep_row_weights: bool = False) -> LeafIndex:
        """Index values of all rows by leaf; rows without a centre weigh nothing."""
        return LeafIndex(
            self.leaves,
            values,
            sample_weight=self.row_weights,
            n_leaves=self._forest.n_leaves,
            keep_row_weights=keep_row_weights,
            n_threads=self._n_threads,
        )
