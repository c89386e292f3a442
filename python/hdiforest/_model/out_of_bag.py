"""Out-of-bag means and base intervals of the training rows of a FittedForest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hdicore import Forest, LeafIndex, OutOfBagScorer, Scorer
from hdicore.monotonic import Counts
from hdiforest._model.bases import Base
from hdiforest._model.fitted import FittedForest
from hdiforest._model.prune import Leaves, leaf_sizes, prune_to
from hdiforest._model.residuals import CentredForest, Stacking
from hdiforest._model.training_rows import IN_BAG, TrainingRows, TreeBlock
from hdiforest._utils import Array, BaseKind
from hdiforest._utils.checks import CallError

# A training row with fewer such trees has a distribution unlike that of a new row.
MIN_OOB_TREES = 20
LEAST_CHANCE = 0.05  # that a weight is divided by, so that no single row outweighs all
MIN_SHARE_OF_WEIGHT = 0.9  # that usable rows have, relative to their share of the rows


class OutOfBagIntervals:
    """Base intervals of training rows, in none of which the row itself takes part."""

    def __init__(
        self,
        fitted: FittedForest,
        n_threads: int,
        mean: object = None,
        random_state: int | None = None,
        blocks: Sequence[TreeBlock] = (),
    ) -> None:
        """`blocks` are all leaves and draws of the training rows, if they are at hand."""
        self.fitted = fitted
        self._forest: Forest = fitted.scorer.forest
        self._weights = fitted.facts.weights
        self.rows: TrainingRows = fitted.require_training_rows()
        self._n_threads, self._mean, self._random_state = n_threads, mean, random_state
        self._grown = self  # of trees that are not pruned
        self._blocks = blocks

    def pruned(self, min_samples_leaf: int) -> OutOfBagIntervals:
        """Return the same of trees with larger leaves; nothing is fitted or routed again."""
        if min_samples_leaf == 1:
            return self
        grown = self._leaf_sizes, self.leaves
        fitted, leaves = prune_to(self.fitted, min_samples_leaf, *grown, self._n_threads)
        other = OutOfBagIntervals(fitted, self._n_threads, self._mean, self._random_state)
        other._grown = self
        other._block = self._block._replace(leaves=cast("Leaves", leaves))
        return other

    @cached_property
    def _leaf_sizes(self) -> NDArray[np.int64]:
        blocks = [TreeBlock(0, self.leaves, self.counts)]
        return leaf_sizes(self._forest, self.rows, blocks)

    @cached_property
    def _block(self) -> TreeBlock:
        """Leaves and draws of all trees, (n, n_trees), in Fortran order."""
        blocks = self._blocks or list(self.rows.blocks(self._forest, None, self._n_threads))
        self._blocks = ()
        leaves = np.concatenate([block.leaves.T for block in blocks]).T
        counts = [block.counts.T for block in blocks if block.counts is not None]
        return TreeBlock(0, leaves, np.concatenate(counts).T if counts else None)

    @property
    def leaves(self) -> Leaves:
        """Leaves of the training rows, (n, n_trees)."""
        return self._block.leaves

    @property
    def counts(self) -> Counts | None:
        """How often each tree drew each row, (n, n_trees); None: always once."""
        return None if self.rows.bags is None else self._block.counts

    @property
    def families(self) -> tuple[str, ...]:
        """What there is of `FAMILIES`: centres count all rows of a leaf, or those drawn."""
        if self._weights != "all":
            return ("raw",)
        return ("raw", "centred") if self._mean is None else ("raw", "centred", "stacked")

    @cached_property
    def usable(self) -> NDArray[np.intp]:
        """Training rows that enough trees did not draw. May be empty."""
        if self.counts is None:
            return np.empty(0, dtype=np.intp)
        n_trees = (self.counts.T == 0).sum(axis=0)
        return np.flatnonzero((n_trees >= MIN_OOB_TREES) & self.rows.has_weight)

    def weights_of(self, rows: NDArray[np.intp]) -> Array | None:
        """Return weights by which some usable rows stand for all; None if all weigh alike.

        Trees that drew rows by their weights leave the heavy ones out less often, so fewer of those
        are usable: each row has its sample_weight, divided by the chance that it is.
        """
        weights, counts = self.rows.weights_of(rows), self.counts
        if weights is None or counts is None or self.rows.counts_are_weighted:
            return weights
        from scipy.stats import binom

        share = weights / cast("Array", self.rows.sample_weight).sum()
        left_out = (1 - share) ** int(counts[:, 0].sum())
        chance = binom.sf(MIN_OOB_TREES - 1, counts.shape[1], left_out)
        return cast("Array", weights / np.maximum(chance, LEAST_CHANCE))

    @property
    def shortage(self) -> str | None:
        """Why the usable rows cannot stand for all; None if they can."""
        n, weight = int(self.rows.has_weight.sum()), self.rows.sample_weight
        counted = f"{len(self.usable):,} of {len(self.rows.y):,} training rows"
        if 2 * len(self.usable) < n:
            why = "every tree was fitted on all rows (bootstrap=False)"
            if self.counts is not None:
                n_out = np.count_nonzero(self.counts.T == 0) / len(self.rows.y)
                why = f"a row is left out by {n_out:.3g} of {self._forest.n_trees} trees on average"
            return (
                f"at least {MIN_OOB_TREES} trees that did not draw a row, and {counted} have so "
                f"many, because {why}"
            )
        # Bootstraps that draw rows by their weights leave heavy rows out too seldom.
        share = 1.0 if weight is None else weight[self.usable].sum() / weight.sum()
        if share < MIN_SHARE_OF_WEIGHT * len(self.usable) / n:
            return (
                f"rows of all weights that {MIN_OOB_TREES} trees did not draw, and those that so "
                f"many did not draw are {counted}, but have {share:.0%} of their weight"
            )
        return None

    def require_rows(self, what: str, instead: str, data: str = "", **words: str) -> None:
        """Raise ValueError unless the usable rows can stand for all."""
        if self.shortage is not None:
            needs = f"{what} needs {self.shortage}; fit more trees that draw their rows"
            raise CallError(f"{needs}, or {instead}", data, **words)

    @cached_property
    def means(self) -> OutOfBagScorer:
        """Out-of-bag means of all training rows, and what their intervals need."""
        if self.counts is None:
            raise ValueError("every tree was fitted on all rows, so none is out of bag")
        return OutOfBagScorer(
            self.fitted.scorer.index,
            self.leaves,
            self.counts,
            self.rows.y,
            sample_weight=self.rows.sample_weight,
            draw_weight=self.rows.draw_weight,
            n_threads=self._n_threads,
        )

    @property
    def row_weights(self) -> Array | None:
        """Weights of the rows, (n,): none for those without a centre. None if all weigh 1."""
        sample_weight, has_centre = self.rows.sample_weight, self.means.n_oob > 0
        if has_centre.all():
            return sample_weight
        return np.where(has_centre, 1.0 if sample_weight is None else sample_weight, 0)

    @cached_property
    def stacking(self) -> Stacking | None:
        """The other regressor's mean in the centres, if there is one."""
        if self._mean is None:
            return None
        from hdiforest._model.stacking import best_share, stacked  # scikit-learn's

        if self._grown is self:
            return stacked(self._mean, self.rows, self.means, self._random_state)
        of_grown = cast("Stacking", self._grown.stacking)
        return of_grown._replace(share=best_share(of_grown.out_of_fold, self.rows, self.means))

    def _scale_and_offsets(self, family: str) -> tuple[float, Array | None]:
        """How the forest's centres become those of a family: scale times them, plus offsets."""
        if family != "stacked":
            return 1.0, None
        stacking = cast("Stacking", self.stacking)
        return 1 - stacking.share, stacking.share * stacking.out_of_fold

    def residuals(self, family: str) -> Array:
        """Return the targets of all rows less their centres, centred or stacked, (n,)."""
        scale, offsets = self._scale_and_offsets(family)
        centres = self.means.centres if offsets is None else scale * self.means.centres + offsets
        return self.rows.y - centres

    def centred_forest(self, family: str = "centred") -> CentredForest:
        """Return what predicts centred or stacked intervals of other rows."""
        rows = replace(self.rows, sample_weight=self.row_weights)
        targets = self.residuals(family)
        index = rows.index(
            self._forest, self.leaves, "all", targets=targets, n_threads=self._n_threads
        )
        stacking = self.stacking if family == "stacked" else None
        other_mean = () if stacking is None else (stacking.mean, stacking.share)
        return CentredForest(Scorer(self._forest, index), self.means.leaf_means, *other_mean)

    def intervals(self, rows: NDArray[np.intp], bases: Sequence[Base]) -> Array:
        """Return intervals of some training rows by each of k bases, (rows, 2, k)."""
        families = list(dict.fromkeys(base.family for base in bases))
        if "raw" in families and (self._weights != "all" or not self.means.has_raw):
            families.remove("raw")
        parts = list(dict.fromkeys((base.kind, base.level) for base in bases))
        ends: dict[str, Array] = {}
        while families:  # one merge serves raw and centred intervals, or stacked ones
            together = [f for f in families if f == "raw" or f == families[-1]]
            families = [f for f in families if f not in together]
            ends |= zip(together, self._merged_intervals(rows, together, parts), strict=True)
        if "raw" not in ends and any(base.family == "raw" for base in bases):
            kinds, levels = zip(*parts, strict=True)
            ends["raw"] = self.query_raw(LeafIndex.intervals, rows, levels, kinds)
        columns = [ends[b.family][..., parts.index((b.kind, b.level))] for b in bases]
        return np.stack(columns, axis=-1)

    def _merged_intervals(
        self, rows: NDArray[np.intp], families: list[str], parts: list[tuple[BaseKind, float]]
    ) -> Array:
        """Return k intervals from one merge of a row's leaves, (families, rows, 2, k)."""
        scale, offsets = self._scale_and_offsets(families[-1])
        return self.means.intervals(
            rows,
            [level for _, level in parts],
            [kind for kind, _ in parts],
            ["raw" if family == "raw" else "centred" for family in families],
            scale=scale,
            offsets=offsets,
            n_threads=self._n_threads,
        )

    def leaves_without(self, rows: NDArray[np.intp]) -> Leaves:
        """Return the leaves of some training rows, -1 in trees that drew them."""
        drawn = cast("Counts", self.counts)[rows] > 0
        return np.where(drawn, np.int32(-1), self.leaves[rows])

    def query_raw(
        self,
        query: Callable[..., Any],
        rows: NDArray[np.intp],
        *args: Any,
        targets: Array | None = None,
        **options: Any,
    ) -> Any:
        """Call a query of the model's index, or of other targets, for rows that are left out.

        It gets the index, leaves, the arguments, and the keywords ``leave_out`` and ``n_threads``.
        """
        leaves = self.leaves_without(rows)
        # Where leaves count drawn rows only, none of a tree that did not draw a row counts it.
        left_out = None if self._weights in IN_BAG else rows
        options |= {"leave_out": left_out, "n_threads": self._n_threads}
        index = self._raw_index if targets is None else self._index_of(targets)
        return query(index, leaves, *args, **options)

    @cached_property
    def _raw_index(self) -> LeafIndex:
        """The model's index, in a form that rows can be left out of, if leaves count them."""
        return self.fitted.scorer.index if self._weights in IN_BAG else self._index_of(None)

    def _index_of(self, targets: Array | None) -> LeafIndex:
        leaves = self._forest, self.leaves, self._weights
        options: Any = {"targets": targets, "keep_row_weights": self._weights not in IN_BAG}
        return self.rows.index(*leaves, **options, n_threads=self._n_threads)
