"""The samples that leaves keep: at most some draws of each, and the indexes that answer from them.

A sample is a draw of a training row by a tree, so a row that was drawn twice is two samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hdicore import Forest, LeafIndex
from hdiforest._model.training_rows import Bounds, TrainingRows, TreeBlock, clipped_index
from hdiforest.adapters.quantile_forest._checks import INTEGERS, NUMBERS

Counts = NDArray[np.unsignedinteger]


# "samples": all samples of a query weigh alike. "leaves": all leaves of a query do, whatever their
# size. "rows": the targets are positions of training rows.
Weighing = Literal["samples", "leaves", "rows"]


def leaf_limit(max_samples_leaf: Any, n: int) -> int | None:
    """Return how many samples a leaf keeps in a forest of n rows; None: all.

    Raises
    ------
    ValueError
        If `max_samples_leaf` is out of range.
    """
    if max_samples_leaf is None:
        return None
    if isinstance(max_samples_leaf, INTEGERS) and max_samples_leaf >= 1:
        return int(max_samples_leaf)
    if isinstance(max_samples_leaf, NUMBERS) and 0 < max_samples_leaf <= 1:
        return ceil(float(max_samples_leaf) * n)
    raise ValueError(
        "max_samples_leaf must be an integer from 1, a share in (0, 1] or None, got "
        f"{max_samples_leaf!r}"
    )


@dataclass(eq=False)
class LeafSamples:
    """A compiled forest, the rows of its fit, and the samples that its leaves keep."""

    forest: Forest
    rows: TrainingRows
    limit: int | None  # samples of a leaf; None: all
    seeds: list[int]  # of each tree, for the choice of its samples
    bounds: list[Bounds] | None  # of the targets in the leaves of each tree; None: none
    # Filled by `index` when the first query needs one.
    indexes: dict[Weighing, LeafIndex] = field(default_factory=dict)

    def index(self, weighing: Weighing, n_threads: int) -> LeafIndex:
        """Return the index that weighs samples in a certain way, which the first call makes."""
        if weighing == "leaves" and self.limit == 1:
            weighing = "samples"  # the same: no leaf has more than one
        if weighing not in self.indexes:
            self.indexes[weighing] = self._new_index(weighing, n_threads)
        return self.indexes[weighing]

    def _new_index(self, weighing: Weighing, n_threads: int) -> LeafIndex:
        y = self.rows.y
        if weighing == "rows":
            y = np.arange(len(y), dtype=np.float64)
        elif self.bounds is not None:
            return clipped_index(
                self.forest, y, self.limited_counts(n_threads), self.bounds, n_threads, pooled=True
            )

        def blocks() -> Iterator[tuple[NDArray[np.int32], Counts]]:
            return ((block.leaves, counts) for block, counts in self.limited_counts(n_threads))

        return LeafIndex.from_blocks(
            blocks, y, self.forest.n_leaves, pooled=weighing == "samples", n_threads=n_threads
        )

    def limited_counts(self, n_threads: int) -> Iterator[tuple[TreeBlock, Counts]]:
        """Yield some trees at a time, and how often their leaves keep each row, (n, k).

        The same at every call.
        """
        for block in self.rows.blocks(self.forest, n_threads=n_threads):
            counts = self.rows.drawn(block)
            if self.limit is not None:
                seeds = self.seeds[block.first :]
                counts = _limit_counts(block.leaves, counts, self.limit, seeds)
            yield block, counts


def _limit_counts(
    leaves: NDArray[np.int32], counts: Counts, limit: int, seeds: list[int]
) -> Counts:
    """Choose at random which samples of each leaf are kept, as many as the limit allows."""
    n = len(leaves)
    limited = np.empty_like(counts)
    for k in range(counts.shape[1]):
        samples = np.repeat(np.arange(n), counts[:, k])
        np.random.default_rng(seeds[k]).shuffle(samples)
        leaf = leaves[samples, k]
        order = np.argsort(leaf, kind="stable")
        leaf = leaf[order]
        begins = np.flatnonzero(np.diff(leaf, prepend=-1))  # of each leaf
        place = np.arange(len(leaf)) - np.repeat(begins, np.diff(begins, append=len(leaf)))
        limited[:, k] = np.bincount(samples[order[place < limit]], minlength=n)
    return limited
