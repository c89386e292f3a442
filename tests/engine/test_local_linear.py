"""Local linear regressions and the gains of splits against their definitions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestRegressor

from hdicore import Forest, LeafIndex, Scorer, _reference

from ..oracle import TREE_FIELDS, as_forest, random_tree

PENALTIES = [1e-4, 0.01, 1.0, 1e9]


def some_tree(rng):
    return random_tree(rng, int(rng.integers(0, 12)), 3, [0.25, 0.5, 0.75])


def dense_weights(index, leaves):
    indptr, indices, data = index.weights(leaves)
    rows = np.repeat(np.arange(len(leaves)), np.diff(indptr))
    weights = np.zeros((len(leaves), len(index.atoms(0))))
    weights[rows, indices] = data
    return weights


class Rows:
    """Training rows in random leaves, and rows to regress around."""

    def __init__(self, seed, q=3, n=60, n_trees=8, n_leaves=5, ties=False, weighted=False):
        rng = np.random.default_rng(seed)
        self.leaves = rng.integers(0, n_leaves, (n, n_trees))
        self.features = rng.normal(size=(n, q))
        if ties:
            self.features = np.round(self.features)
            self.features[:, 0] = 1
        self.y = rng.normal(size=n)
        weight = rng.random(n) if weighted else None
        self.index = LeafIndex(self.leaves, np.arange(n, dtype=float), sample_weight=weight)
        self.new_leaves = self.leaves[rng.permutation(n)][:20]
        self.at = 2 * rng.normal(size=(20, q))

    def values(self, penalties=PENALTIES, **options):
        given = (self.new_leaves, self.at, self.features, self.y, penalties)
        return self.index.local_linear(*given, **options)


def one_leaf(weights):
    """An index of one leaf whose rows have given weights."""
    n = len(weights)
    return LeafIndex(np.zeros((n, 1), int), np.arange(float(n)), sample_weight=weights)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("q", [1, 3, 6])
def test_values_are_those_of_the_definition(q, ties, weighted):
    rows = Rows(q, q, ties=ties, weighted=weighted)
    found = rows.values()
    weights = dense_weights(rows.index, rows.new_leaves)
    for i, at in enumerate(rows.at):
        for k, penalty in enumerate(PENALTIES):
            expected = _reference.local_linear(weights[i], at, rows.features, rows.y, penalty)
            assert_allclose(found[i, k], expected, rtol=0, atol=1e-7)


def test_known_values():
    index, x, y = one_leaf([0.1, 0.2, 0.3, 0.4]), np.arange(4.0)[:, None], [0, 2, 4, 7]
    found = index.local_linear([[0]], [[4.0]], x, y, [0, 0.1, 1, 1e12])
    assert_allclose(found, [[9.2, 7.6, 5.2, 4.4]], atol=1e-9)


def test_a_linear_target_is_met_anywhere():
    rows = Rows(1)
    rows.y = 2 + rows.features @ [1.0, -3.0, 0.5]
    rows.at *= 10
    assert_allclose(rows.values([0])[:, 0], 2 + rows.at @ [1.0, -3.0, 0.5], atol=1e-9)


def test_units_of_all_features_together_change_nothing():
    rows = Rows(2)
    before = rows.values()
    rows.features, rows.at = 1000 * rows.features + 5, 1000 * rows.at + 5
    assert_allclose(rows.values(), before, atol=1e-7)


def test_without_spread_the_mean_is_left():
    index = one_leaf([1.0, 0.0, 3.0])
    y = np.array([1.0, 50.0, 5.0])
    same = np.ones((3, 2))
    for at in ([[1.0, 1.0]], [[7.0, 1.0]]):  # at the rows, and away from them
        assert_allclose(index.local_linear([[0]], at, same, y, [0, 0.1]), 4)
    alone = one_leaf([0.0, 1.0])
    found = alone.local_linear([[0]], [[3.0]], [[0.0], [1.0]], [2, 9.0], [0, 1.0])
    assert_array_equal(found, [[9, 9]])


def test_what_is_no_number_becomes_the_mean():
    index, y = one_leaf([1.0, 1.0]), [0.0, 2.0]
    for at in (1e308, np.inf, np.nan):
        found = index.local_linear([[0]], [[at]], [[0.0], [1e308]], y, [0.01])
        assert np.isfinite(found).all()


def test_rows_without_leaves_have_no_value():
    rows = Rows(3)
    fits = np.zeros((1, 4, 2 + 6 + 9))
    empty = np.full((1, 8), -1)
    found = rows.index.local_linear(empty, rows.at[:1], rows.features, rows.y, PENALTIES, fits=fits)
    assert np.isnan(found).all()
    assert np.isnan(fits[:, :, :2]).all()


def test_threads_blocks_and_penalties_change_no_bit(set_block_rows):
    rows = Rows(4, n=3000, n_trees=30, n_leaves=200)
    rows.new_leaves = rows.leaves
    rows.at = rows.features
    found = rows.values(n_threads=1)
    assert_array_equal(rows.values(n_threads=3), found)
    assert_array_equal(rows.values(PENALTIES[2:3])[:, 0], found[:, 2])
    for block_rows in (1, 7, 100_000):
        set_block_rows(block_rows)
        assert_array_equal(rows.values(n_threads=2), found)


def test_a_scorer_gives_what_the_leaves_give():
    rng = np.random.default_rng(0)
    X = rng.random((200, 4)).astype(np.float32)
    trees = RandomForestRegressor(10, min_samples_leaf=5, random_state=0).fit(X, X[:, 0])
    forest = as_forest(trees)
    index = LeafIndex(forest.leaves(X), np.arange(200.0), n_leaves=forest.n_leaves)
    given = (X[:, :2], X[:, :2], X[:, 0], [0.1])
    expected = index.local_linear(forest.leaves(X), *given)
    assert_array_equal(Scorer(forest, index).local_linear(X, *given), expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"at": np.zeros((19, 3))}, "at must have shape"),
        ({"at": np.zeros((20, 2))}, "at must have shape"),
        ({"features": np.zeros((59, 3))}, "features must have shape"),
        ({"features": np.zeros(60)}, "features must have 2 dimensions"),
        ({"features": np.zeros((60, 0)), "at": np.zeros((20, 0))}, "features"),
        ({"targets": np.zeros(3)}, "targets must have shape"),
        ({"penalties": 0.1}, "penalties must have 1 dimension"),
        ({"penalties": [-1.0]}, "penalties must be finite and not negative"),
        ({"penalties": [np.nan]}, "penalties must be finite"),
        ({"fits": np.zeros((20, 1, 3))}, "fits must have shape"),
        ({"fits": np.zeros((20, 1, 17), np.float32)}, "fits"),
        ({"leaves": np.full((20, 8), 99)}, "must be a leaf of tree 0"),
    ],
)
def test_refused_arguments(change, message):
    rows = Rows(5)
    given = {"leaves": rows.new_leaves, "at": rows.at, "features": rows.features}
    given |= {"targets": rows.y, "penalties": [1.0]}
    with pytest.raises((ValueError, TypeError), match=message):
        rows.index.local_linear(**given | change)


def test_several_outputs_are_refused():
    index = LeafIndex(np.zeros((4, 1), int), np.arange(8.0).reshape(4, 2))
    with pytest.raises(ValueError, match="needs an index of one output"):
        index.local_linear([[0]], [[0.0]], np.zeros((4, 1)), np.zeros(4), [1.0])


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
        expected += _reference.split_gains(*tree[:3], 3, w, m)
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
