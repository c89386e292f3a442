"""Importance of features: what the splits of a forest explain of the targets of an index."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdicore._core import LeafIndex, Scorer

Array = NDArray[np.float64]


def importance_of(scorer: Scorer) -> Array:
    """Return shares of the features in what splits explain: a mean over outputs. O(entries)."""
    index, n_leaves = scorer.index, scorer.forest.n_leaves
    # What a mapped file holds is checked here.
    arrays = LeafIndex.from_arrays(index.arrays(), index.scalar_output, copy=False).arrays()
    begins = np.split(arrays["leaf_begin"], np.cumsum(np.tile(n_leaves + 1, index.n_outputs)))
    sizes = np.concatenate(list(map(np.diff, begins[: index.n_trees]))).astype(np.float64)
    means = []  # of the leaves of each tree; 0 without rows
    for i, first in enumerate(arrays["tree_begin"][:-1]):
        entries = slice(first, first + begins[i][-1])
        targets = index.atoms(i // index.n_trees)[arrays["ranks"][entries]]
        units = arrays["units"][entries] if "units" in arrays else np.ones(len(targets))
        leaf = np.repeat(np.arange(len(begins[i]) - 1), np.diff(begins[i]))
        sums = [np.bincount(leaf, w, len(begins[i]) - 1) for w in (units * targets, units)]
        with np.errstate(invalid="ignore"):
            means.append(np.nan_to_num(sums[0] / sums[1]))
    of_outputs = np.concatenate(means).reshape(index.n_outputs, -1)
    gains = [scorer.forest.split_gains(sizes, own) for own in of_outputs]
    shares = np.sum([own / (own.sum() or 1) for own in gains], axis=0)
    return shares / shares.sum() if shares.any() else np.full(len(shares), 1 / len(shares))
