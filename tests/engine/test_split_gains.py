"""The gains of splits against their definition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import RandomForestRegressor

from hdicore import Forest

from .. import reference
from ..oracle import TREE_FIELDS, as_forest, random_tree


def some_tree(rng):
    return random_tree(rng, int(rng.integers(0, 12)), 3, [0.25, 0.5, 0.75])


@pytest.mark.parametrize("seed", range(8))
def test_gains_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    trees = [some_tree(rng) for _ in range(4)]
    forest = Forest.from_trees([dict(zip(TREE_FIELDS, t, strict=True)) for t in trees], 3)
    n = forest.n_leaves.sum()
    weights, means = rng.integers(0, 3, n), rng.normal(size=n)
    expected = np.zeros(3)
    ends = np.cumsum(forest.n_leaves)[:-1]
    parts = zip(trees, np.split(weights, ends), np.split(means, ends), strict=True)
    for tree, w, m in parts:
        expected += reference.split_gains(*tree[:3], 3, w, m)
    assert_allclose(forest.split_gains(weights, means), expected, atol=1e-12)


def test_gains_of_a_fit_are_importances():
    rng = np.random.default_rng(0)
    X = rng.random((300, 4)).astype(np.float32)
    y = 3 * X[:, 0] + X[:, 1] + rng.normal(size=300)
    tree = RandomForestRegressor(1, bootstrap=False, random_state=0).fit(X, y).estimators_[0]
    forest = as_forest(tree)
    leaves = forest.leaves(X)[:, 0]
    weights = np.bincount(leaves)
    gains = forest.split_gains(weights, np.bincount(leaves, y) / weights)
    assert_allclose(gains / gains.sum(), tree.feature_importances_, atol=1e-9)


def test_gains_need_a_value_for_each_leaf():
    forest = Forest.from_trees(
        [dict(zip(TREE_FIELDS, some_tree(np.random.default_rng(0)), strict=True))], 3
    )
    with pytest.raises(ValueError, match="leaf_weights must have shape"):
        forest.split_gains([1.0], np.zeros(forest.n_leaves.sum()))
    with pytest.raises(ValueError, match="leaf_means must have shape"):
        forest.split_gains(np.zeros(forest.n_leaves.sum()), [])
