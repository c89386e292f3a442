"""Answers of trees, pooled or each alone: ranks, means of trees, and pairs of near rows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hdicore import LeafIndex, Scorer
from hdiforest._model.leaf_blocks import BLOCK_IDS
from hdiforest._utils.typing import Array

Source = LeafIndex | Scorer  # whose methods take leaves, or rows


Leaves = NDArray[np.int32]  # (n, n_trees), -1 for a tree that is not asked


RankKind = Literal["rank", "weak", "strict", "mean"]


KINDS: tuple[RankKind, ...] = get_args(RankKind)


def ranks(source: Source, rows: NDArray[Any], y: Array, kind: RankKind, n_threads: int) -> Array:
    """Quantile ranks of y in the distributions of rows, as `scipy.stats.percentileofscore`.

    `rows` are leaves if `source` is an index.
    """

    def share(inclusive: bool) -> Array:
        return source.cdf(rows, y, inclusive=inclusive, n_threads=n_threads)

    if kind in ("weak", "strict"):
        return share(kind == "weak")
    weak, strict = share(True), share(False)
    mean = (weak + strict) / 2
    if kind == "mean":
        return mean
    # The mean rank of tied values, counted from 1, lies half an observation higher.
    half = 0.5 / np.maximum(source.n_samples(rows, n_threads=n_threads), 1)
    rank: Array = mean + ((weak > strict).T * half).T
    return rank


def mean_over_trees(
    ask: Callable[[Leaves], Array], leaves: Leaves, n_leaves: NDArray[np.int64]
) -> Array:
    """Return the mean over trees of what each answers alone; trees without an answer do not count.

    `ask` answers from the leaves of rows, (m, n_trees). It is asked once about each leaf.
    """
    n, n_trees = leaves.shape
    first = np.concatenate([[0], np.cumsum(n_leaves)[:-1]])  # leaf of each tree, over all trees
    is_asked = leaves >= 0
    number = np.where(is_asked, leaves + first, 0)
    wanted = np.zeros(int(np.sum(n_leaves)), dtype=bool)
    wanted[number[is_asked]] = True
    place = np.cumsum(wanted) - 1  # of a leaf among the wanted ones
    leaf = np.flatnonzero(wanted)
    tree = np.searchsorted(first, leaf, side="right") - 1
    step = max(1, BLOCK_IDS // n_trees)
    parts = [
        ask(_alone(tree[part], leaf[part] - first[tree[part]], n_trees))
        for part in (slice(begin, begin + step) for begin in range(0, max(1, len(leaf)), step))
    ]
    answers = np.concatenate(parts)
    total, count = np.zeros((n, *answers.shape[1:])), np.zeros((n, *answers.shape[1:]))
    for t in range(n_trees):
        rows = np.flatnonzero(is_asked[:, t])
        answer = answers[place[number[rows, t]]]
        count[rows] += ~np.isnan(answer)
        total[rows] += np.nan_to_num(answer, copy=False)
    return _divided(total, count)


def mean_rank_over_trees(ask: Callable[[Leaves], Array], leaves: Leaves, like: Array) -> Array:
    """Return the mean over trees of the ranks by each alone, of the shape of `like`.

    `ask` answers from the leaves of all rows at once.
    """
    total, count = np.zeros_like(like), np.zeros_like(like)
    for t in range(leaves.shape[1]):
        alone = np.full_like(leaves, -1)
        alone[:, t] = leaves[:, t]
        answer = ask(alone)
        count += ~np.isnan(answer)
        total += np.nan_to_num(answer, copy=False)
    return _divided(total, count)


def pairs(
    csr: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]],
    most: int | None,
    by_count: bool,
) -> list[list[tuple[int, int]]]:
    """Return for each row of a CSR matrix its (column, count), by count or by column.

    `most` is how many a row may have; it then keeps those of the highest counts.
    """
    indptr, columns, counts = csr
    row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    if by_count or most is not None:
        order = np.lexsort((columns, -counts, row))
        if most is not None:
            order = order[np.arange(len(order)) - indptr[row] < most]
            indptr = np.concatenate([[0], np.cumsum(np.minimum(np.diff(indptr), most))])
        if not by_count:
            order = order[np.lexsort((columns[order], row[order]))]
        columns, counts = columns[order], counts[order]
    entries = list(zip(columns.tolist(), counts.tolist(), strict=True))
    return [entries[begin:end] for begin, end in pairwise(indptr.tolist())]


def _alone(tree: NDArray[np.intp], leaf: NDArray[np.intp], n_trees: int) -> Leaves:
    """Leaves of queries that ask one tree each, (m, n_trees)."""
    leaves = np.full((len(tree), n_trees), -1, dtype=np.int32)
    leaves[np.arange(len(tree)), tree] = leaf
    return leaves


def _divided(total: Array, count: Array) -> Array:
    result: Array = np.full(total.shape, np.nan)
    return np.divide(total, count, where=count > 0, out=result)
