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
    begins = np.split(arrays["leaf_begin"], np.cumsum(n_leaves + 1)[:-1])
    sizes = np.concatenate(list(map(np.diff, begins))).astype(np.float64)
    vectors = arrays.get("vector_ranks", np.arange(index.atoms().size)).reshape(-1, index.n_outputs)
    leaf, n = np.repeat(np.arange(len(sizes)), sizes.astype(np.int64)), len(sizes)
    units = arrays["units"] if "units" in arrays else np.ones(len(leaf))
    total = np.bincount(leaf, units, n)
    gains = []
    for output in range(index.n_outputs):
        targets = index.atoms(output)[vectors[arrays["ranks"], output]]
        with np.errstate(invalid="ignore"):  # 0 without rows
            means = np.nan_to_num(np.bincount(leaf, units * targets, n) / total)
        gains.append(scorer.forest.split_gains(sizes, means))
    shares = np.sum([own / (own.sum() or 1) for own in gains], axis=0)
    return shares / shares.sum() if shares.any() else np.full(len(shares), 1 / len(shares))
