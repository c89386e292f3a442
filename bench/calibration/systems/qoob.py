"""QOOB: cross-conformal intervals from the out-of-bag quantiles of a quantile regression forest.

Gupta, Kuchibhotla, Ramdas, "Nested conformal prediction and quantile out-of-bag ensemble methods",
Pattern Recognition 127 (2022), arXiv 1910.10562, section 5. Written from the paper. The nominal
quantiles are those that the authors recommend, 2 alpha and 1 - 2 alpha. The authors' prediction set
may have gaps; here it is its hull, which holds it. The number of trees is fixed (their
theorem asks for a random one). The untuned forest has the usual settings of quantile regression
forests: at least five rows to a leaf, a third of the features at a split.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from .interface import Intervals, System, Training, split_quantile, stacked

USUAL_SETTINGS = {"min_samples_leaf": 5, "max_features": 1 / 3}
GRID = [
    {"min_samples_leaf": leaf, "max_features": share}
    for leaf, share in product((1, 5), (1 / 3, 1.0))
]
_TUNED_FOR = 0.9
_ROUNDING = 1e-5  # of sums of float32 weights


class OutOfBagQuantiles:
    """Quantiles for a row from those trees alone that did not draw a given training row."""

    def __init__(self, training: Training, settings: dict[str, float]) -> None:
        """Fit the forest and sort the rows that its trees drew by leaf."""
        forest = RandomForestRegressor(**training.forest_options(), **settings)
        self._forest = forest.fit(training.X, training.y)
        n = len(training.y)
        self._values, self._value_of = np.unique(training.y, return_inverse=True)
        self._leaves = []
        unused = []
        for tree, drawn in zip(forest.estimators_, forest.estimators_samples_, strict=True):
            leaves = tree.apply(training.X[drawn])
            order = np.argsort(leaves, kind="stable")
            ends = np.searchsorted(leaves[order], np.arange(tree.tree_.node_count + 1))
            self._leaves.append((self._value_of[drawn[order]], ends))
            unused.append(np.bincount(drawn, minlength=n) == 0)
        self.unused = np.stack(unused, axis=1)  # (n, n_trees)

    def leaves_of(self, X: np.ndarray) -> np.ndarray:
        """Return the leaf of every row in every tree, (n, n_trees)."""
        return self._forest.apply(X)

    def read(self, leaves: np.ndarray, trees: np.ndarray, quantiles: np.ndarray) -> np.ndarray:
        """Return quantiles (n_subsets, k) of one row by each subset of trees.

        Parameters
        ----------
        leaves : (n_trees,) array
            Leaves of the row.
        trees : (n_subsets, n_trees) array of bool
            No subset is empty.
        quantiles : (k,) array
        """
        targets = [
            values[ends[leaf] : ends[leaf + 1]]
            for leaf, (values, ends) in zip(leaves, self._leaves, strict=True)
        ]
        sizes = np.array([len(found) for found in targets])
        atoms, at = np.unique(np.concatenate(targets), return_inverse=True)
        mass = np.zeros((len(targets), len(atoms)), dtype=np.float32)
        np.add.at(mass, (np.repeat(np.arange(len(sizes)), sizes), at), np.repeat(1 / sizes, sizes))
        shares = trees.astype(np.float32) / trees.sum(axis=1, keepdims=True).astype(np.float32)
        distribution = shares @ mass.cumsum(axis=1)
        found = [
            np.count_nonzero(distribution < quantile - _ROUNDING, axis=1) for quantile in quantiles
        ]
        return self._values[atoms[np.minimum(np.stack(found, axis=1), len(atoms) - 1)]]


def nominal(coverage: float) -> tuple[float, float]:
    """Return the lower and the upper quantile for a coverage."""
    alpha = 1 - coverage
    return 2 * alpha, 1 - 2 * alpha


def scores(
    model: OutOfBagQuantiles, training: Training, coverages: tuple[float, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the intervals of the training rows (n, 2, k), and how far y lies outside, (n, k).

    A row that every tree drew has NaN.
    """
    quantiles = np.concatenate([nominal(coverage) for coverage in coverages])
    ends = np.full((len(training.y), len(quantiles)), np.nan)
    leaves = model.leaves_of(training.X)
    for row in np.flatnonzero(model.unused.any(axis=1)):
        ends[row] = model.read(leaves[row], model.unused[row : row + 1], quantiles)[0]
    intervals = ends.reshape(len(ends), -1, 2).transpose(0, 2, 1)
    y = training.y[:, None]
    return intervals, np.maximum(intervals[:, 0] - y, y - intervals[:, 1])


def hull(lower: np.ndarray, upper: np.ndarray, coverage: float) -> tuple[float, float]:
    """Return the least interval around all y that enough of the padded intervals hold.

    The set is {y : #{i : y outside [lower_i, upper_i]} < coverage (n + 1)}, of all numbers if n is
    too small. Intervals whose ends cross hold nothing. An empty set becomes the median middle.
    """
    needed = int(np.floor((1 - coverage) * (len(lower) + 1) + 1e-9))
    if needed < 1:
        return -np.inf, np.inf
    holding = lower <= upper
    starts, stops = np.sort(lower[holding]), np.sort(upper[holding])
    # At a start this and all earlier intervals have begun; those that stopped before hold no more.
    begun = np.arange(1, len(starts) + 1)
    at_starts = begun - np.searchsorted(stops, starts, side="left")
    at_stops = np.searchsorted(starts, stops, side="right") - np.arange(len(stops))
    first, last = np.flatnonzero(at_starts >= needed), np.flatnonzero(at_stops >= needed)
    if len(first) == 0:
        middle = float(np.median((lower + upper) / 2))
        return middle, middle
    return float(starts[first[0]]), float(stops[last[-1]])


def _intervals(model: OutOfBagQuantiles, training: Training) -> Intervals:
    _, pads = scores(model, training, training.coverages)
    used = np.flatnonzero(model.unused.any(axis=1))
    trees, pads = model.unused[used], pads[used]
    quantiles = np.concatenate([nominal(coverage) for coverage in training.coverages])

    def intervals(X: np.ndarray) -> np.ndarray:
        found = np.empty((len(X), 2, len(training.coverages)))
        for row, leaves in enumerate(model.leaves_of(X)):
            ends = model.read(leaves, trees, quantiles)
            for j, coverage in enumerate(training.coverages):
                lower, upper = ends[:, 2 * j] - pads[:, j], ends[:, 2 * j + 1] + pads[:, j]
                found[row, :, j] = hull(lower, upper, coverage)
        return found

    return intervals


def qoob(training: Training) -> Intervals:
    return _intervals(OutOfBagQuantiles(training, USUAL_SETTINGS), training)


def tuned_qoob(training: Training) -> Intervals:
    """Take the forest whose padded out-of-bag intervals are narrowest."""
    return _intervals(_narrowest(training), training)


def tuned_qoob_of_one_pad(training: Training) -> Intervals:
    """Add one quantile of the out-of-bag scores to the intervals of the whole forest."""
    model = _narrowest(training)
    _, missed_by = scores(model, training, training.coverages)
    usable = ~np.isnan(missed_by[:, 0])
    pads = [split_quantile(missed_by[usable, j], c) for j, c in enumerate(training.coverages)]
    quantiles = np.concatenate([nominal(coverage) for coverage in training.coverages])
    all_trees = np.ones((1, model.unused.shape[1]), dtype=bool)

    def intervals(X: np.ndarray) -> np.ndarray:
        ends = np.array(
            [model.read(leaves, all_trees, quantiles)[0] for leaves in model.leaves_of(X)]
        )
        padded = ends.reshape(len(X), -1, 2) + np.array([-1.0, 1.0]) * np.array(pads)[:, None]
        return stacked(list(np.moveaxis(padded, 1, 0)))

    return intervals


def _narrowest(training: Training) -> OutOfBagQuantiles:
    models = [OutOfBagQuantiles(training, settings) for settings in GRID]

    def padded_width(model: OutOfBagQuantiles) -> float:
        intervals, pads = scores(model, training, (_TUNED_FOR,))
        kept = ~np.isnan(pads[:, 0])
        width = intervals[kept, 1, 0] - intervals[kept, 0, 0]
        return float(np.maximum(width + 2 * split_quantile(pads[kept, 0], _TUNED_FOR), 0).mean())

    return min(models, key=padded_width)


SYSTEMS = (
    System("QOOB", 1, qoob),
    System("QOOB, tuned", 1, tuned_qoob),
    System("QOOB, tuned, one quantile", 1, tuned_qoob_of_one_pad),
)
