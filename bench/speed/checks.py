"""Answers are checked before anything is timed: against scikit-learn and the slow reference."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor

sys.path.append(str(Path(__file__).parents[2] / "tests"))
import reference

LEVELS = [0.5, 0.8, 0.9, 0.95, 0.99]
QUANTILES = [0.05, 0.95]
N_ROUTED = 1000  # queries whose leaves are compared
N_SCORED = 3  # queries whose distributions are compared
WIDEST = 200  # atoms that the reference enumerates in good time


def check_answers(
    model: HDIForestRegressor,
    forest: RandomForestRegressor,
    X: np.ndarray,
    y: np.ndarray,
    queries: np.ndarray,
) -> None:
    """Raise AssertionError unless leaves, intervals, quantiles and means are as defined."""
    routed = queries[:N_ROUTED]
    np.testing.assert_array_equal(model.scorer_.forest.apply(routed), forest.apply(routed))

    scored = queries[:N_SCORED]
    one_level = model.predict_interval(scored, 0.9)
    np.testing.assert_array_equal(model.predict_interval(scored, LEVELS)[..., 2], one_level)
    targets = y.reshape(len(y), -1)
    shape = (len(scored), targets.shape[1])
    intervals = model.predict_interval(scored, LEVELS).reshape(*shape, 2, len(LEVELS))
    quantiles = model.predict_quantiles(scored, QUANTILES).reshape(*shape, len(QUANTILES))
    means = model.predict(scored).reshape(shape)
    leaves = forest.apply(X)
    for i, query in enumerate(forest.apply(scored)):
        near = (leaves == query).any(axis=1)  # the others weigh nothing
        for output, target in enumerate(targets.T):
            atoms = reference.merge(leaves[near], target[near], query)
            expected = [hdi(atoms, level) for level in LEVELS]
            np.testing.assert_array_equal(intervals[i, output].T, expected)
            expected = [reference.quantile(atoms, level) for level in QUANTILES]
            np.testing.assert_array_equal(quantiles[i, output], expected)
            shares = np.array(atoms.masses) / atoms.total
            tolerance = 1e-12 * np.abs(atoms.values).max()
            np.testing.assert_allclose(
                means[i, output], shares @ atoms.values, rtol=0, atol=tolerance
            )


def hdi(atoms: reference.Atoms, level: float) -> tuple[float, float]:
    """Shortest interval: the reference's own, or where that takes minutes, by running sums."""
    return (reference.hdi if len(atoms.values) <= WIDEST else swept_hdi)(atoms, level)


def swept_hdi(atoms: reference.Atoms, level: float) -> tuple[float, float]:
    """Find what `reference.hdi` finds, in O(n log n)."""
    values = atoms.values
    upto = np.concatenate([[0], np.cumsum(atoms.masses)])
    ends = np.searchsorted(upto, upto[:-1] + reference.needed(atoms, level))
    first = np.flatnonzero(ends < len(upto))
    last = ends[first] - 1
    widths = values[last] - values[first]
    masses = upto[last + 1] - upto[first]
    kept = widths <= widths.min() + np.abs(values).max() * 2.0**-48
    kept &= masses >= masses[kept].max() - 2 * atoms.n_trees
    first, last = first[kept], last[kept]
    off_centre = np.abs(values[first] / 2 + values[last] / 2 - reference.quantile(atoms, 0.5))
    best = np.argmin(off_centre)  # of equal ones the first
    return float(values[first[best]]), float(values[last[best]])
