"""LeafSamples: the samples that leaves keep, which trees are asked about a row, and their answers.

A sample is a draw of a training row by a tree, so a row that was drawn twice is two samples.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdicore import Forest, LeafIndex, Scorer
from hdiforest._model.training_rows import Bounds, TrainingRows, TreeBlock, clipped_index
from hdiforest._utils import Array
from hdiforest._utils.hints import callers_level

NUMBERS = (int, float, np.integer, np.floating)
Duplicates = Iterable[Sequence[int]] | None  # rows that are the same, group by group
Counts = NDArray[np.unsignedinteger]
Source = LeafIndex | Scorer  # whose methods take leaves, or rows
Leaves = NDArray[np.int32]  # (n, n_trees), -1 for a tree that is not asked
RankKind = Literal["rank", "weak", "strict", "mean"]
RANK_KINDS: tuple[RankKind, ...] = get_args(RankKind)

# "samples": all samples of a query weigh alike. "leaves": all leaves of a query do, whatever their
# size. "rows": the targets are positions of training rows.
Weighing = Literal["samples", "leaves", "rows"]


def leaf_limit(max_samples_leaf: Any, n: int) -> int | None:
    """Return how many of its samples a leaf keeps, None for all; n is the number of rows."""
    if max_samples_leaf is None:
        return None
    if isinstance(max_samples_leaf, int | np.integer) and max_samples_leaf >= 1:
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
        """Yield some trees at a time, and how often their leaves keep each row, (n, k)."""
        for block in self.rows.blocks(self.forest, n_threads=n_threads):
            counts = self.rows.drawn(block)
            if self.limit is not None:
                trees = zip(block.leaves.T, counts.T, self.seeds[block.first :], strict=False)
                counts = np.stack([_limited(*tree, self.limit) for tree in trees], axis=1)
            yield block, counts


def _limited(leaves: NDArray[np.int32], counts: Counts, seed: int, limit: int) -> Counts:
    """Choose at random which samples of each leaf of a tree are kept, within the limit, (n,)."""
    samples = np.repeat(np.arange(len(counts)), counts)
    np.random.default_rng(seed).shuffle(samples)
    order = np.argsort(leaves[samples], kind="stable")
    leaf = leaves[samples[order]]
    place = np.arange(len(leaf)) - np.searchsorted(leaf, leaf)  # within its leaf
    kept = np.bincount(samples[order[place < limit]], minlength=len(counts))
    return kept.astype(counts.dtype)


def ranks(source: Source, rows: NDArray[Any], y: Array, kind: RankKind, n_threads: int) -> Array:
    """Quantile ranks as `scipy.stats.percentileofscore`, by rows, or by leaves of an index."""
    if kind in ("weak", "strict"):
        return source.cdf(rows, y, inclusive=kind == "weak", n_threads=n_threads)
    weak, strict = (source.cdf(rows, y, inclusive=i, n_threads=n_threads) for i in (True, False))
    mean = (weak + strict) / 2
    if kind == "mean":
        return mean
    # The mean rank of tied values, counted from 1, lies half an observation higher.
    half = 0.5 / np.maximum(source.n_samples(rows, n_threads=n_threads), 1)
    return np.asarray(mean + ((weak > strict).T * half).T)


def mean_over_trees(answers: Iterable[Array]) -> Array:
    """Return the mean of what each tree answers alone; NaN is no answer, and does not count."""
    total, count = np.zeros(()), np.zeros(())
    for answer in answers:
        count = count + ~np.isnan(answer)
        total = total + np.nan_to_num(answer)
    mean: Array = np.full(np.shape(total), np.nan)
    return np.divide(total, count, where=count > 0, out=mean)


def of_one_tree(leaf: NDArray[np.int32], tree: int, n_trees: int) -> Leaves:
    """Return leaves (m,) of one tree as leaves (m, n_trees), so that no other tree is asked."""
    leaves = np.full((len(leaf), n_trees), -1, dtype=np.int32)
    leaves[:, tree] = leaf
    return leaves


def pairs(
    csr: tuple[NDArray[Any], ...], most: int | None, by_count: bool
) -> list[list[tuple[int, int]]]:
    """Return (column, count) of each row of a CSR matrix, at `most` those of highest counts."""
    indptr, columns, counts = csr
    entries = list(zip(columns.tolist(), counts.tolist(), strict=True))
    found = [entries[begin:end] for begin, end in pairwise(indptr.tolist())]
    if by_count or most is not None:
        found = [sorted(row, key=lambda pair: (-pair[1], pair[0]))[:most] for row in found]
    return found if by_count else [sorted(row) for row in found]


def out_of_bag_mask(rows: TrainingRows, duplicates: Duplicates) -> NDArray[np.bool_]:
    """Say which trees saw neither a training row nor its `duplicates`, (n, n_trees)."""
    if rows.bags is None:
        raise ValueError(
            "oob_score=True needs trees that leave rows out; every tree of this forest saw all, "
            "so fit it with bootstrap=True"
        )
    mask: NDArray[np.bool_] = rows.bags.matrix() == 0
    mask[~rows.has_weight] = True
    for group in duplicates or ():
        alike = _positions(group, "duplicates", 0, len(mask))
        mask[alike] = mask[alike].all(axis=0)
    return mask


def tree_mask(
    rows: TrainingRows, n: int, indices: ArrayLike | None, duplicates: Duplicates
) -> NDArray[np.bool_]:
    """Say which trees may be asked about n rows, (n, n_trees); see `QuantileForest.predict`."""
    mask = out_of_bag_mask(rows, duplicates)
    if indices is not None:
        position = _positions(indices, "indices", -1, len(mask))
        if position.shape != (n,):
            raise ValueError(
                f"indices must name a training row for each of the {n} rows of X, got shape "
                f"{position.shape}"
            )
        mask = mask[position] | (position == -1)[:, None]
    elif n != len(mask):
        raise ValueError(
            f"X must have the {len(mask)} rows of the fit if oob_score=True comes without "
            f"indices, got {n} rows"
        )
    if not mask.any(axis=1).all():
        warnings.warn(
            "Some rows were seen by every tree, so their out-of-bag answers are empty; use more "
            "trees.",
            stacklevel=callers_level(),
        )
    return mask


def _positions(rows: ArrayLike, name: str, lowest: int, n: int) -> NDArray[np.intp]:
    """Return row numbers, which may be whole numbers of any type, after checking them."""
    numbers = np.asarray(rows)
    if numbers.size and (numbers.dtype.kind not in "iuf" or (numbers != np.trunc(numbers)).any()):
        raise ValueError(f"{name} must hold whole numbers, got {rows!r}")
    outside = numbers[(numbers < lowest) | (numbers >= n)]
    if outside.size:
        raise ValueError(f"{name} must hold numbers from {lowest} to {n - 1}, got {outside[0]}")
    return numbers.astype(np.intp)
