"""Forest.prune: every bit as if built from the pruned trees."""

import numpy as np
import pytest

from hdicore import Forest

from .. import reference
from ..oracle import TREE_FIELDS, random_tree, tree_of_nested

N = 90
ANY_M = (1, 2, 3, 5, 8, 15, 40, N, N + 1, 2**62)


def forest_of(trees, n_features=3):
    arrays = [dict(zip(TREE_FIELDS, tree, strict=True)) for tree in trees]
    return Forest.from_trees(arrays, n_features)


def parts_of(forest, values):
    """Values of leaves, tree after tree, as one array for each tree."""
    return np.split(np.asarray(values), np.cumsum(forest.n_leaves)[:-1])


def pruned_by_definition(trees, sizes, m):
    """The arrays of the pruned trees, and the new leaf of each old one."""
    pruned, new_leaves = [], []
    for (left, right, *columns), of_leaves in zip(trees, sizes, strict=True):
        found = reference.prune_tree(left, right, of_leaves, m)
        children = [np.array(found.children_left), np.array(found.children_right)]
        pruned.append([*children, *(column[found.nodes] for column in columns)])
        new_leaves += found.new_leaves
    return pruned, new_leaves


def assert_same_arrays(found, expected, but=()):
    assert found.arrays().keys() == expected.arrays().keys()
    for name, array in expected.arrays().items():
        if name not in but:
            assert found.arrays()[name].dtype == array.dtype
            np.testing.assert_array_equal(found.arrays()[name], array, err_msg=name)
    assert found.nbytes == expected.nbytes


def chain(n_inner, side):
    """A tree that splits off one leaf at a time, to one side."""
    nested = None
    for k in range(n_inner):
        children = (None, nested) if side == "left" else (nested, None)
        nested = (k % 3, k / n_inner, False, *children)
    return tree_of_nested(nested)


def balanced(depth):
    below = balanced(depth - 1) if depth else None
    return (depth % 3, 0.1 * depth, depth % 2 == 1, below, below) if depth else None


def random_trees(rng, n_trees=4):
    thresholds = rng.normal(size=7).round(1)
    return [random_tree(rng, int(rng.integers(0, 40)), 3, thresholds) for _ in range(n_trees)]


TREES = {
    "random": random_trees(np.random.default_rng(0)),
    "many random": random_trees(np.random.default_rng(1), 60),
    "one leaf": [tree_of_nested(None)],
    "stumps": [tree_of_nested((0, 0.0, True, None, None))] * 3,
    "to the left": [chain(50, "left")],
    "to the right": [chain(50, "right")],
    "balanced": [tree_of_nested(balanced(6))],
    "all kinds": [chain(30, "left"), tree_of_nested(None), tree_of_nested(balanced(3))],
}


def rows(rng, n=N):
    X = rng.normal(size=(n, 3)).round(1)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


@pytest.mark.parametrize("kind", TREES)
@pytest.mark.parametrize("m", ANY_M)
def test_a_pruned_forest_is_built_from_pruned_trees(kind, m):
    trees, rng = TREES[kind], np.random.default_rng(1)
    forest = forest_of(trees)
    sizes = [rng.integers(0, 7, n) for n in forest.n_leaves]
    pruned, new_leaves = pruned_by_definition(trees, sizes, m)
    expected, X = forest_of(pruned), rows(rng)
    for n_threads in (1, 3):
        found, numbers = forest.prune(np.concatenate(sizes), m, n_threads=n_threads)
        kept = [old.size == new[0].size for (old, *_), new in zip(trees, pruned, strict=True)]
        # Trees that stay whole keep their node ids, which need not be those of depth-first order.
        assert_same_arrays(found, expected, but=("leaf_nodes",))
        ids = zip(*(parts_of(f, f.leaf_nodes) for f in (found, expected)), strict=True)
        for tree, (own, other) in enumerate(ids):
            if kept[tree]:
                other = parts_of(forest, forest.leaf_nodes)[tree]
            np.testing.assert_array_equal(own, other)
        np.testing.assert_array_equal(numbers, new_leaves)
        assert numbers.dtype == np.int32
        before = forest.leaves(X) + np.cumsum([0, *forest.n_leaves[:-1]])
        np.testing.assert_array_equal(found.leaves(X), numbers[before])


def test_a_wide_forest_may_become_narrow():
    n_features = 3
    thresholds = np.linspace(0, 1, 2**20 + 1)  # of a tree that is too large for narrow nodes
    n_inner = len(thresholds)
    inner = np.arange(n_inner)
    left = np.concatenate([n_inner + inner, np.full(n_inner + 1, -1)])
    right = np.concatenate([inner + 1, np.full(n_inner + 1, -1)])
    right[n_inner - 1] = 2 * n_inner
    feature, missing = np.zeros(len(left), dtype=np.int64), np.zeros(len(left), dtype=np.uint8)
    tree = [left, right, feature, np.concatenate([thresholds, np.zeros(n_inner + 1)]), missing]
    forest = forest_of([tree], n_features)
    assert forest.arrays()["nodes"].shape[1] == 4
    found, new_leaves = forest.prune(np.arange(n_inner + 1)[::-1] < 1, 1)
    assert found.arrays()["nodes"].shape == (1, 2)
    assert not new_leaves.any()
    whole, _ = forest.prune(np.ones(n_inner + 1), 1)
    assert_same_arrays(whole, forest)


@pytest.mark.parametrize(
    ("sizes", "m", "message"),
    [
        ([1, 2], 1, r"leaf_sizes must have 3 elements, one for each leaf of the forest, got 2"),
        ([1, -1, 3], 1, r"leaf_sizes\[1\] must not be negative, got -1"),
        ([[1, 2, 3]], 1, "leaf_sizes must have 1 dimensions"),
        ([1, 0.5, 3], 1, "leaf_sizes must hold whole numbers"),
        ([1, np.nan, 3], 1, "leaf_sizes must hold whole numbers"),
        ([1, 2, 3], 0, "min_samples_leaf must be a whole number in"),
        ([1, 2, 3], 1.5, "min_samples_leaf must be a whole number in"),
        ([1, 2, 3], 2**62 + 1, "min_samples_leaf must be a whole number in"),
    ],
)
def test_hostile_arguments_of_prune_are_refused(sizes, m, message):
    forest = forest_of([chain(2, "left")])
    with pytest.raises(ValueError, match=message):
        forest.prune(sizes, m)


def test_sizes_of_any_magnitude_do_not_overflow():
    forest = forest_of([tree_of_nested(balanced(6))])
    whole, _ = forest.prune(np.full(64, 2**63 - 1), 2**62)
    assert_same_arrays(whole, forest)


def test_a_forest_that_is_checked_lazily_is_checked_before():
    forest = forest_of(TREES["random"])
    arrays = {name: array.copy() for name, array in forest.arrays().items()}
    sizes = np.ones(forest.n_leaves.sum())
    lazy = Forest.from_arrays(arrays, 3, lazy=True)
    assert_same_arrays(lazy.prune(sizes, 2)[0], forest.prune(sizes, 2)[0])
    arrays["nodes"][0, 1] = 2**32 - 1
    with pytest.raises(ValueError, match="tree 0 is damaged"):
        Forest.from_arrays(arrays, 3, lazy=True).prune(sizes, 2)
