"""Forests that several files ask: with leaves of many sizes, and of any shape."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from hdicore import Forest, LeafIndex, Scorer

from ..oracle import as_forest, random_tree


@pytest.fixture(scope="session", params=[1, 6, 50, 500])
def scorer_of_sizes(request):
    """Trees with such leaves, and rows to score."""
    rng = np.random.default_rng(request.param)
    X = rng.random((2000, 3), dtype=np.float32)
    y = 10 * X[:, 0] + rng.gamma(1, 3, 2000) + np.where(rng.random(2000) < 0.4, 12, 0)
    y = np.round(y, 1 if request.param == 6 else 9)
    trees = ExtraTreesRegressor(5, min_samples_leaf=request.param, random_state=0).fit(X, y)
    forest = as_forest(trees)
    index = LeafIndex(forest.leaves(X), y, n_leaves=forest.n_leaves)
    return Scorer(forest, index), rng.random((500, 3), dtype=np.float32)


@pytest.fixture(scope="session")
def scorer():
    """Trees of 60 random splits on three features."""
    rng = np.random.default_rng(0)
    trees = [random_tree(rng, 60, 3, rng.random(100)) for _ in range(40)]
    fields = [np.concatenate(columns) for columns in zip(*trees, strict=True)]
    forest = Forest(*fields, np.cumsum([0, *(len(tree[0]) for tree in trees)]), 3)
    X = rng.random((500, 3))
    return Scorer(forest, LeafIndex(forest.leaves(X), X[:, 0].round(2), n_leaves=forest.n_leaves))
