"""Forest.prune and LeafIndex.merge_leaves: every bit as if built from the pruned trees."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from hdicore import Forest, LeafIndex, Scorer, _reference

from ..oracle import TREE_FIELDS, as_forest, bag_counts, random_tree, tree_of_nested

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
        found = _reference.prune_tree(left, right, of_leaves, m)
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


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 2**32 - 1), st.sampled_from(ANY_M))
def test_random_trees_are_pruned_by_the_definition(seed, m):
    rng = np.random.default_rng(seed)
    trees = random_trees(rng, int(rng.integers(1, 4)))
    forest = forest_of(trees)
    sizes = [rng.integers(0, 2 ** int(rng.integers(1, 8)), n) for n in forest.n_leaves]
    pruned, new_leaves = pruned_by_definition(trees, sizes, m)
    found, numbers = forest.prune(np.concatenate(sizes), m)
    assert_same_arrays(found, forest_of(pruned), but=("leaf_nodes",))
    np.testing.assert_array_equal(numbers, new_leaves)


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


def test_pruning_in_steps_is_pruning_at_once():
    forest = forest_of(TREES["random"])
    sizes = np.random.default_rng(0).integers(1, 6, forest.n_leaves.sum())
    few, new_leaves = forest.prune(sizes, 5)
    offsets = np.repeat(np.cumsum([0, *few.n_leaves[:-1]]), forest.n_leaves)
    few_sizes = np.bincount(offsets + new_leaves, sizes).astype(int)
    assert few_sizes.min() >= 5 or (few.n_leaves == 1).any()
    in_steps, further = few.prune(few_sizes, 15)
    at_once, numbers = forest.prune(sizes, 15)
    assert_same_arrays(in_steps, at_once)
    np.testing.assert_array_equal(further[offsets + new_leaves], numbers)


@pytest.mark.parametrize("cls", [RandomForestRegressor, ExtraTreesRegressor])
@pytest.mark.parametrize("max_leaf_nodes", [None, 40])
def test_leaves_hold_no_fewer_drawn_rows(cls, max_leaf_nodes):
    X, y = rows(np.random.default_rng(0), 300), np.random.default_rng(1).normal(size=300)
    X = np.nan_to_num(X)
    fitted = cls(10, bootstrap=True, max_leaf_nodes=max_leaf_nodes, random_state=0).fit(X, y)
    forest, drawn = as_forest(fitted), bag_counts(fitted, 300) > 0
    sizes = [tree.tree_.n_node_samples[tree.tree_.children_left < 0] for tree in fitted]
    if max_leaf_nodes is None:  # then leaves stand from left to right
        found = [np.bincount(leaf, d) for leaf, d in zip(forest.leaves(X).T, drawn.T, strict=True)]
        np.testing.assert_array_equal(np.concatenate(sizes), np.concatenate(found))
    counted = np.concatenate(
        [np.bincount(leaf, d) for leaf, d in zip(forest.leaves(X).T, drawn.T, strict=True)]
    )
    unpruned, numbers = forest.prune(counted, 1)
    assert_same_arrays(unpruned, forest)
    np.testing.assert_array_equal(numbers, np.concatenate([np.arange(k) for k in forest.n_leaves]))
    pruned, _ = forest.prune(counted, 5)
    for leaf, d in zip(pruned.leaves(X).T, drawn.T, strict=True):
        assert np.bincount(leaf, d).min() >= 5


@pytest.mark.parametrize(
    ("sizes", "m", "message"),
    [
        ([1, 2], 1, r"leaf_sizes must have 3 elements, one for each leaf of the forest, got 2"),
        ([1, 2, 3, 4], 1, "leaf_sizes must have 3 elements"),
        ([1, -1, 3], 1, r"leaf_sizes\[1\] must not be negative, got -1"),
        ([[1, 2, 3]], 1, "leaf_sizes must have 1 dimensions"),
        ([1, 0.5, 3], 1, "leaf_sizes must hold whole numbers"),
        (["a", "b", "c"], 1, "leaf_sizes must be an array of numbers"),
        ([1, np.nan, 3], 1, "leaf_sizes must hold whole numbers"),
        ([1, 2, 3], 0, "min_samples_leaf must be a whole number in"),
        ([1, 2, 3], -1, "min_samples_leaf must be a whole number in"),
        ([1, 2, 3], 1.5, "min_samples_leaf must be a whole number in"),
        ([1, 2, 3], 2**62 + 1, "min_samples_leaf must be a whole number in"),
        ([1, 2, 3], None, "min_samples_leaf must be a whole number in"),
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


N_TREES = 5
RNG = np.random.default_rng(0)
N_LEAVES = np.array([9, 1, 12, 30, 2])
LEAVES = np.stack([RNG.integers(0, n, N) for n in N_LEAVES], axis=1).astype(np.int32)
COUNTS = RNG.poisson(1, (N, N_TREES))
WEIGHT = RNG.random(N)
WEIGHT[::9] = 0
TARGETS = {
    "distinct": RNG.normal(size=N),
    "tied": RNG.integers(0, 3, N) / 2,
    "two outputs": RNG.integers(0, 20, (N, 2)).astype(float),
}


def new_numbers(rng, n_leaves=N_LEAVES, share=0.3):
    """A random number for each leaf, tree after tree, that rises by 0 or 1."""
    return [np.cumsum(np.r_[0, rng.random(n - 1) < share]) for n in n_leaves]


def renamed(leaves, numbers):
    return np.stack([new[leaf] for new, leaf in zip(numbers, leaves.T, strict=True)], axis=1)


def assert_merged(index, numbers, y, **options):
    """Merging the leaves of an index is building it from rows in the new leaves."""
    n_leaves = [int(new[-1]) + 1 for new in numbers]
    leaves = renamed(LEAVES, numbers)
    for n_threads in (1, 3):
        expected = LeafIndex(leaves, y, n_leaves=n_leaves, **options)
        found = index.merge_leaves(np.concatenate(numbers), n_threads=n_threads)
        assert_same_arrays(found, expected)
        assert found.scalar_output == expected.scalar_output
        for read in ("mean", "intervals"):
            ours, theirs = (getattr(each, read)(leaves) for each in (found, expected))
            np.testing.assert_array_equal(ours, theirs)
    return found, expected, leaves


@pytest.mark.parametrize("targets", TARGETS)
@pytest.mark.parametrize("counts", [None, COUNTS, COUNTS == 0, COUNTS * 300])
@pytest.mark.parametrize("options", [{}, {"keep_row_weights": True}], ids=["bare", "kept"])
def test_merged_leaves_are_those_of_rows_in_them(targets, counts, options):
    y, rng = TARGETS[targets], np.random.default_rng(2)
    weights = (None, WEIGHT, 10.0 ** rng.integers(-12, 9, N)) if options else (None,)
    for sample_weight, pooled, share in itertools.product(weights, (False, True), (0, 0.3, 1)):
        common = {"counts": counts, "sample_weight": sample_weight, "pooled": pooled, **options}
        index = LeafIndex(LEAVES, y, n_leaves=N_LEAVES, **common)
        if "units" in index.arrays() and not options:
            with pytest.raises(ValueError, match="build it with keep_row_weights=True"):
                index.merge_leaves(np.zeros(len(N_LEAVES)))
            continue
        found, expected, leaves = assert_merged(index, new_numbers(rng, share=share), y, **common)
        if options and counts is None:
            assert_leaves_out(found, expected, leaves, y, common)


def assert_leaves_out(found, expected, leaves, y, options):
    """A row left out of merged leaves is as if it had never been there."""
    every = np.arange(N)
    for read in ("mean", "intervals"):
        ours = getattr(found, read)(leaves, leave_out=every)
        np.testing.assert_array_equal(ours, getattr(expected, read)(leaves, leave_out=every))
    if options["pooled"] or y.ndim == 2:
        return
    for row in range(0, N, 15):
        atoms = _reference.merge(
            leaves, y, leaves[row], sample_weight=options["sample_weight"], leave_out=row
        )
        ours = found.intervals(leaves[[row]], 0.8, leave_out=[row])[0]
        np.testing.assert_array_equal(ours, _reference.hdi(atoms, 0.8))


def test_an_index_of_units_without_row_weights_is_refused():
    for options in ({"sample_weight": WEIGHT}, {"pooled": True}):
        index = LeafIndex(LEAVES, TARGETS["distinct"], n_leaves=N_LEAVES, **options)
        with pytest.raises(ValueError, match="build it with keep_row_weights=True"):
            index.merge_leaves(np.zeros(N_LEAVES.sum()))
    kept = LeafIndex(LEAVES, TARGETS["tied"], n_leaves=N_LEAVES, keep_row_weights=True)
    with pytest.raises(ValueError, match="build it with keep_row_weights=True"):
        pickle.loads(pickle.dumps(kept)).merge_leaves(np.zeros(N_LEAVES.sum()))


def test_the_same_leaves_are_the_same_index():
    numbers = np.concatenate([np.arange(n) for n in N_LEAVES])
    for y, kept in itertools.product(TARGETS.values(), (False, True)):
        index = LeafIndex(LEAVES, y, n_leaves=N_LEAVES, keep_row_weights=kept)
        if kept or "units" not in index.arrays():
            assert_same_arrays(index.merge_leaves(numbers), index)


@pytest.mark.parametrize("n_targets", [300, 40_000, 70_000])
def test_large_leaves_get_units_and_small_ones_are_sorted_by_digits(n_targets):
    """Leaves of every size, of ranks of one, two and three bytes; the largest need units."""
    rng, n = np.random.default_rng(0), 70_000
    y = rng.permutation(n) % n_targets + 0.0
    leaves = rng.integers(0, n // 3, (n, 2)).astype(np.int32)
    n_leaves = [n // 3] * 2
    sizes = np.array([1, 5, 90, 300, 2000, n // 3 - 2396])
    for numbers in (np.repeat(np.arange(6), sizes), np.zeros(n // 3, dtype=int)):
        index = LeafIndex(leaves, y, n_leaves=n_leaves)
        if "units" in index.arrays():
            index = LeafIndex(leaves, y, n_leaves=n_leaves, keep_row_weights=True)
        kept = "units" in index.arrays()
        found = index.merge_leaves(np.tile(numbers, 2), n_threads=2)
        expected = LeafIndex(
            numbers[leaves], y, n_leaves=[numbers[-1] + 1] * 2, keep_row_weights=kept
        )
        assert_same_arrays(found, expected)


def test_known_leaves_are_known_together():
    ids = LEAVES * 2
    numbers = [np.arange(2 * n - 1) // 4 for n in ids.max(axis=0) // 2 + 1]
    index = LeafIndex.from_leaves(ids, TARGETS["distinct"])
    found = index.merge_leaves(np.concatenate(numbers))
    assert_same_arrays(found, LeafIndex.from_leaves(ids // 4, TARGETS["distinct"]))


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([0, 0, 0, 0], "new_leaves must have 5 elements, one for each leaf of the index, got 4"),
        ([1, 1, 1, 0, 0], "rise by 0 or 1, got 1 for leaf 0 of tree 0"),
        ([0, 2, 2, 0, 0], "rise by 0 or 1, got 2 for leaf 1 of tree 0"),
        ([0, 1, 0, 0, 0], "rise by 0 or 1, got 0 for leaf 2 of tree 0"),
        ([0, 1, -1, 0, 0], "rise by 0 or 1, got -1 for leaf 2 of tree 0"),
        ([0, 1, 2, 3, 4], "rise by 0 or 1, got 3 for leaf 0 of tree 1"),
        ([-1, 0, 0, 0, 0], "rise by 0 or 1, got -1 for leaf 0 of tree 0"),
        ([0, 0, 0, 0, 2**31 - 1], "rise by 0 or 1, got 2147483647 for leaf 1 of tree 1"),
        ([0, 0, 0, 0, 2**31], "new_leaves must hold whole numbers"),
        ([0, 0.5, 1, 0, 0], "new_leaves must hold whole numbers"),
        ([[0, 0, 0, 0, 0]], "new_leaves must have 1 dimensions"),
        (["a"] * 5, "new_leaves must be an array of numbers"),
    ],
)
def test_hostile_numbers_of_leaves_are_refused(numbers, message):
    index = LeafIndex([[0, 0], [1, 1], [2, 0]], [0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match=message):
        index.merge_leaves(numbers)


def test_an_index_that_is_checked_lazily_is_checked_before():
    index = LeafIndex(LEAVES, TARGETS["distinct"], n_leaves=N_LEAVES)
    arrays = {name: array.copy() for name, array in index.arrays().items()}
    numbers = np.concatenate(new_numbers(np.random.default_rng(0)))
    lazy = LeafIndex.from_arrays(arrays, scalar_output=True, lazy=True)
    assert_same_arrays(lazy.merge_leaves(numbers), index.merge_leaves(numbers))
    arrays["leaf_begin"][3] = 2**32 - 1
    with pytest.raises(ValueError, match="damaged"):
        LeafIndex.from_arrays(arrays, scalar_output=True, lazy=True).merge_leaves(numbers)


def test_outputs_of_damaged_sizes_do_not_leave_their_arrays():
    """Arrays from outside may have outputs of other entries than a build would make."""
    y = np.arange(8.0).reshape(4, 2)
    index = LeafIndex([[0], [0], [1], [1]], y)
    arrays = {name: array.copy() for name, array in index.arrays().items()}
    arrays["tree_begin"] = np.array([0, 1, 8])
    arrays["leaf_begin"] = np.array([0, 0, 1, 0, 3, 7], dtype=np.uint32)
    arrays["ranks"] = np.array([2, 1, 2, 3, 0, 1, 2, 3], dtype=np.uint16)
    odd = LeafIndex.from_arrays(arrays, scalar_output=False)
    found = odd.merge_leaves([0, 0]).arrays()
    np.testing.assert_array_equal(found["ranks"], [2, 0, 1, 1, 2, 2, 3, 3])
    np.testing.assert_array_equal(found["leaf_begin"], [0, 1, 0, 7])


def test_a_scorer_of_the_pruned_parts_is_one_built_from_pruned_trees():
    X = np.nan_to_num(rows(np.random.default_rng(0), 300))
    y = X[:, 0] + np.random.default_rng(1).normal(size=300)
    fitted = ExtraTreesRegressor(10, random_state=0).fit(X, y)
    forest = as_forest(fitted)
    index = LeafIndex(forest.leaves(X), y, n_leaves=forest.n_leaves)
    sizes = np.concatenate([np.bincount(leaf) for leaf in forest.leaves(X).T])
    pruned, numbers = forest.prune(sizes, 4)
    found = Scorer(pruned, index.merge_leaves(numbers))
    expected = LeafIndex(pruned.leaves(X), y, n_leaves=pruned.n_leaves)
    assert_same_arrays(found.index, expected)
    np.testing.assert_array_equal(found.intervals(X), Scorer(pruned, expected).intervals(X))
