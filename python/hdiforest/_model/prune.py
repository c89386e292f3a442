"""Larger leaves from the trees of a fitted forest, without a new fit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hdicore import Forest, Scorer
from hdiforest._model.fitted import FittedForest
from hdiforest._model.training_rows import TrainingRows, TreeBlock
from hdiforest._utils.checks import check_whole_number

Leaves = NDArray[np.int32]  # (n, n_trees)


def leaf_sizes(
    forest: Forest, rows: TrainingRows, blocks: Iterable[TreeBlock]
) -> NDArray[np.int64]:
    """Count the rows of each leaf that its tree drew, (n_leaves.sum(),).

    A row counts once, however often it was drawn, if it has a weight: so do `n_node_samples` and
    `min_samples_leaf` of scikit-learn. The `blocks` are of all trees, in their order.
    """
    n_leaves, sizes = iter(forest.n_leaves), []
    for block in blocks:
        for leaves, drawn in zip(block.leaves.T, rows.drawn(block).T > 0, strict=True):
            sizes.append(np.bincount(leaves, drawn, next(n_leaves)))
    return np.concatenate(sizes).astype(np.int64)


def check_prunable(fitted: FittedForest) -> TrainingRows:
    """Return the training rows of a forest; raise ValueError if it cannot be pruned."""
    if fitted.facts.weights == "monotonic":
        raise ValueError(
            "pruning needs weights='all', 'inbag' or 'oob', got 'monotonic': larger leaves have "
            "other bounds, which the model does not know; fit the forest with a larger "
            "min_samples_leaf"
        )
    return fitted.require_training_rows()


def prune(fitted: FittedForest, min_samples_leaf: int, n_threads: int = 0) -> FittedForest:
    """Return a smaller forest: a node is a leaf if one of its children holds too few drawn rows.

    The forest answers in every bit as one of the pruned scikit-learn trees, and has no calibration.
    """
    rows = check_prunable(fitted)
    blocks = rows.blocks(fitted.scorer.forest, n_threads=n_threads)
    sizes = leaf_sizes(fitted.scorer.forest, rows, blocks)
    return prune_to(fitted, min_samples_leaf, sizes, n_threads=n_threads)[0]


def prune_to(
    fitted: FittedForest,
    min_samples_leaf: int,
    sizes: NDArray[np.int64],
    leaves: Leaves | None = None,
    n_threads: int = 0,
) -> tuple[FittedForest, Leaves | None]:
    """Do as `prune`, where `sizes` of leaves are known; return new leaves of all rows, too.

    These are known if the old `leaves` are given; else the rows are routed to index them.
    """
    rows, before, n_leaves = check_prunable(fitted), fitted.scorer, fitted.scorer.forest.n_leaves
    # Above the sum of all sizes every tree is one leaf.
    least = min(check_whole_number("min_samples_leaf", min_samples_leaf), int(sizes.sum()) + 1)
    forest, new_leaves = before.forest.prune(sizes, least, n_threads=n_threads)
    if leaves is not None:
        of_trees, old_leaves = np.split(new_leaves, np.cumsum(n_leaves)[:-1]), leaves.T
        leaves = np.empty(old_leaves.shape, dtype=np.int32).T
        for tree, old in enumerate(old_leaves):
            np.take(of_trees[tree], old, out=leaves[:, tree], mode="clip")  # the fastest mode
    index = rows.index(forest, leaves, fitted.facts.weights, n_threads=n_threads)
    matches = fitted.facts.matches_forest and bool(forest.n_leaves.sum() == n_leaves.sum())
    facts = fitted.facts._replace(matches_forest=matches)
    smaller = replace(fitted, scorer=Scorer(forest, index), facts=facts, calibrated=None)
    return smaller, leaves
