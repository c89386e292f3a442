"""What answers of a forest rest on: features, the atoms of a row, and the rows in its leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdicore._core import LeafIndex, Scorer

__all__ = ["feature_importances", "heaviest_atoms", "intervals_without_each"]

Array = NDArray[np.float64]

_TIED = 2.0**-29  # weights that differ by rounding alone differ by less
_ROWS_AT_ONCE = 1000
_CELLS_AT_ONCE = 1 << 22  # of leaves of rows that are left out


def feature_importances(scorer: Scorer) -> Array:
    """Return the share of each feature in what splits explain of the targets of the index.

    Parameters
    ----------
    scorer : Scorer
        A forest and its index.

    Returns
    -------
    (n_features,) float64
        Shares that sum to 1, the mean over outputs.

    Notes
    -----
    O(entries).
    """
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


def heaviest_atoms(
    scorer: Scorer, X: NDArray[Any], k: int, n_threads: int = 0
) -> tuple[NDArray[np.intp], Array]:
    """Return the k heaviest atoms of each row.

    Parameters
    ----------
    scorer : Scorer
        A forest and its index.
    X : (n, n_features) float32 or float64
        Rows to explain.
    k : int
        Number of atoms.
    n_threads : int, default=0
        Number of threads. 0 means all that the process may use.

    Returns
    -------
    atoms : (n, k) int
        Positions in ``scorer.index.atoms()``, the heaviest first. Of atoms with equal weight the
        lower position comes first. -1 if there are fewer atoms.
    weights : (n, k) float64
        Weights of the atoms. 0 if there are fewer atoms.
    """
    atoms, weights = np.full((len(X), k), -1, dtype=np.intp), np.zeros((len(X), k))
    for begin in range(0, len(X), _ROWS_AT_ONCE):
        part = X[begin : begin + _ROWS_AT_ONCE]
        indptr, indices, data = scorer.weights(part, n_threads=n_threads)
        row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        order = np.lexsort((-data, row))
        is_less = np.diff(data[order], prepend=np.inf) < -_TIED
        rank = np.cumsum(is_less | (np.diff(row, prepend=-1) > 0))
        order = order[np.lexsort((indices[order], rank))]
        place = np.arange(len(row)) - indptr[row]  # among the entries of its row
        order, row, place = order[place < k], begin + row[place < k], place[place < k]
        atoms[row, place], weights[row, place] = indices[order], data[order]
    return atoms, weights


def intervals_without_each(
    counts: NDArray[np.unsignedinteger],
    targets: Array,
    weights: Array | None,
    levels: Sequence[float],
    kinds: Sequence[Any],
    n_threads: int = 0,
) -> Array:
    """Return intervals of the leaves of one row, with all rows and without each row in turn.

    Parameters
    ----------
    counts : (s, n_trees) unsigned int
        How often the leaf of each tree counts each training row.
    targets : (s,) float64
        Targets of the training rows.
    weights : (s,) float64, optional
        Weights of the training rows. None means equal weights.
    levels : sequence of k floats
        Shares in (0, 1].
    kinds : sequence of k str
        Kind of interval of each level. See `hdicore.LeafIndex.intervals`.
    n_threads : int, default=0
        Number of threads. 0 means all that the process may use.

    Returns
    -------
    (1 + s, 2, k) float64
        Lower and upper ends. The first intervals are the ones of all rows.
    """
    # A leaf without one of its rows is one tree more, which stands in for the whole leaf where that
    # row is left out.
    n, n_trees = counts.shape
    if n == 0:
        return np.full((1, 2, len(levels)), np.nan)
    n_cells = n * np.cumsum(np.count_nonzero(counts, axis=1))
    ends = []
    for out in np.split(np.arange(n), 1 + np.flatnonzero(np.diff(n_cells // _CELLS_AT_ONCE))):
        at, tree = np.nonzero(counts[out])
        more = n_trees + np.arange(len(at))
        of_trees = np.concatenate([counts, counts[:, tree]], axis=1)
        of_trees[out[at], more] = 0
        options: dict[str, Any] = {"counts": of_trees, "sample_weight": weights}
        options["n_leaves"] = np.ones(of_trees.shape[1], dtype=np.int64)  # some are empty
        leaves = np.zeros(of_trees.shape, dtype=np.int32)
        index = LeafIndex(leaves, targets, **options, n_threads=n_threads)
        query = np.full((1 + len(out), of_trees.shape[1]), -1, dtype=np.int32)
        query[0, :n_trees] = 0
        query[1:, :n_trees] = np.where(counts[out] > 0, -1, 0)
        query[1 + at, more] = 0
        ends.append(index.intervals(query, levels, kinds, n_threads=n_threads))
    return np.concatenate([ends[0][:1], *(each[1:] for each in ends)])
