"""Forest: its leaves are scikit-learn's and the reference's, and it refuses what is no forest."""

import pickle

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

from hdicore import Forest, LeafIndex

from .. import reference
from ..oracle import as_forest, damaged, random_tree, renumbered, tree_of_nested

STUMP = [[1, -1, -1], [2, -1, -1], [0, -2, -2], [0.5, -2.0, -2.0], [0, 0, 0]]
NAMES = ("children_left", "children_right", "feature", "threshold", "missing_go_to_left")
TREE = dict(zip(NAMES, STUMP, strict=True))
FLOAT32_MAX = float(np.finfo(np.float32).max)


def stump(**changes):
    return Forest(**(TREE | {"tree_offsets": [0, 3], "n_features": 1} | changes))


def sklearn_apply(estimator, X):
    return estimator.apply(X).reshape(len(X), -1)


def rows_at_thresholds(rng, estimator, X, n):
    """Rows whose values lie exactly at, just below and just above thresholds of the trees."""
    members = getattr(estimator, "estimators_", [estimator])
    features = np.concatenate([m.tree_.feature for m in members])
    thresholds = np.concatenate([m.tree_.threshold for m in members])
    splits = rng.choice(np.flatnonzero(features >= 0), n)
    rows = X[rng.integers(len(X), size=3 * n)].astype(np.float64)
    for k, toward in enumerate((0, -np.inf, np.inf)):
        values = thresholds[splits].astype(np.float32)
        if toward:
            values = np.nextafter(values, np.float32(toward))
        # A split of the missing from the others has the threshold inf.
        rows[k * n + np.arange(n), features[splits]] = values.clip(-FLOAT32_MAX, FLOAT32_MAX)
    return rows


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor])
@pytest.mark.parametrize("missing", ["never", "at fit", "at predict"])
def test_apply_equals_scikit_learn_for_random_forests(kind, seed, missing):
    rng = np.random.default_rng(seed)
    n, n_features = int(rng.integers(20, 150)), int(rng.integers(1, 6))
    X = rng.normal(size=(n, n_features)).round(int(rng.integers(1, 9)))
    y = X[:, 0] + rng.normal(size=n)
    if missing == "at fit":
        X[rng.random(X.shape) < 0.1] = np.nan
    depth = [None, 1, 3][seed % 3]
    estimator = kind(40, max_depth=depth, min_samples_leaf=1 + seed % 4, random_state=seed)
    estimator.fit(X, y)
    query = np.concatenate([X, rng.normal(size=(50, n_features))])
    if np.any(estimator.estimators_[0].tree_.feature >= 0):
        query = np.concatenate([query, rows_at_thresholds(rng, estimator, X, 60)])
    if missing == "at predict":
        query[rng.random(query.shape) < 0.1] = np.nan
    forest = as_forest(estimator)
    expected = sklearn_apply(estimator, query)
    np.testing.assert_array_equal(forest.apply(query), expected)

    leaves = forest.leaves(query)
    first = np.cumsum([0, *forest.n_leaves[:-1]])
    np.testing.assert_array_equal(forest.leaf_nodes[first + leaves], expected)
    assert forest.n_trees == 40
    assert forest.n_leaves.tolist() == [m.tree_.n_leaves for m in estimator.estimators_]


@pytest.mark.parametrize("kind", [DecisionTreeRegressor, ExtraTreeRegressor])
def test_apply_equals_scikit_learn_for_single_trees(kind):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 6, size=(30, 2)) / 3
        if seed % 2:
            X[rng.random(X.shape) < 0.1] = np.nan
        estimator = kind(max_depth=1 + seed % 7, random_state=seed).fit(X, rng.normal(size=30))
        query = np.concatenate([X, rng.random((20, 2)), rows_at_thresholds(rng, estimator, X, 10)])
        np.testing.assert_array_equal(
            as_forest(estimator).apply(query, n_threads=1), sklearn_apply(estimator, query)
        )


def test_a_single_leaf_takes_every_row():
    estimator = RandomForestRegressor(3).fit(np.zeros((5, 2)), np.zeros(5))
    forest = as_forest(estimator)
    assert forest.n_leaves.tolist() == [1, 1, 1]
    X = np.array([[0.0, np.nan], [np.nan, -FLOAT32_MAX], [1e-45, FLOAT32_MAX]])
    np.testing.assert_array_equal(forest.apply(X), np.zeros((3, 3)))


def test_a_tree_of_more_than_100000_nodes():
    rng = np.random.default_rng(0)
    X = rng.random((60_000, 2), dtype=np.float32)
    estimator = DecisionTreeRegressor(random_state=0).fit(X, rng.random(60_000))
    assert estimator.tree_.node_count >= 100_000
    np.testing.assert_array_equal(as_forest(estimator).apply(X), sklearn_apply(estimator, X))


def test_a_chain_of_20000_splits():
    depth = 20_000
    inner = np.arange(depth)
    # Node k splits at k: left is leaf depth + k, right the next split; the last leaf ends it.
    left = np.concatenate([depth + inner, np.full(depth + 1, -1)])
    right = np.concatenate([inner[1:], [2 * depth], np.full(depth + 1, -1)])
    threshold = np.concatenate([inner, np.zeros(depth + 1)])
    zeros = np.zeros(2 * depth + 1, dtype=int)
    forest = Forest(left, right, zeros, threshold, zeros, [0, 2 * depth + 1], 1)
    x = np.array([-1.0, 0, 0.5, 77, depth - 1, depth, 1e30])
    expected = depth + np.clip(np.ceil(x), 0, depth)
    np.testing.assert_array_equal(forest.apply(x[:, None])[:, 0], expected)


def test_extreme_thresholds_and_values_follow_the_reference():
    rng = np.random.default_rng(1)
    tiny = 2.0**-149  # smallest float32 above 0
    edge = float(np.nextafter(np.float32(1), np.float32(2)))
    values = [0.0, -0.0, tiny, -tiny, 1.0, edge, -1.0, FLOAT32_MAX, -FLOAT32_MAX, 2.0**-126, np.nan]
    thresholds = [v for v in values if v == v]
    thresholds += [np.inf, -np.inf, 1e39, -1e39, 1e308, -1e308, 5e-324, -5e-324, 1e-300]
    thresholds += [(1 + edge) / 2, 1 + 2**-50, 1 - 2**-50, tiny / 2, -tiny / 2, tiny * 1.5]
    thresholds += [FLOAT32_MAX * (1 - 2**-30), FLOAT32_MAX * (1 + 2**-30)]
    trees = [random_tree(rng, int(rng.integers(0, 30)), 3, thresholds) for _ in range(150)]
    fields = [np.concatenate(columns) for columns in zip(*trees, strict=True)]
    forest = Forest(*fields, np.cumsum([0, *(len(tree[0]) for tree in trees)]), 3)
    X = rng.choice(np.array(values, dtype=np.float32), (200, 3))
    expected = np.stack([reference.apply_tree(*tree, X) for tree in trees], axis=1)
    np.testing.assert_array_equal(forest.apply(X), expected)
    np.testing.assert_array_equal(forest.apply(X.astype(np.float64)), expected)


def test_float64_input_is_rounded_to_float32_as_scikit_learn_rounds():
    rng = np.random.default_rng(2)
    X = rng.random((200, 3))
    estimator = RandomForestRegressor(20, random_state=0).fit(X, X[:, 0])
    query = rows_at_thresholds(rng, estimator, X, 200)
    query *= 1 + rng.choice([-1, 0, 1], query.shape) * 2.0**-26
    np.testing.assert_array_equal(as_forest(estimator).apply(query), estimator.apply(query))


def layouts(X):
    readonly = X.copy()
    readonly.flags.writeable = False
    memory = np.zeros(X.nbytes + 1, dtype=np.uint8)
    unaligned = memory[1:].view(X.dtype).reshape(X.shape)
    unaligned[...] = X
    assert not unaligned.flags.aligned
    wide = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)
    return {
        "Fortran": np.asfortranarray(X),
        "strided": wide[::2, ::3],
        "reversed": X[::-1, ::-1].copy()[::-1, ::-1],
        "read-only": readonly,
        "unaligned": unaligned,
        "big-endian": X.astype(X.dtype.newbyteorder(">")),
        "list": X.tolist(),
        "unpickled": pickle.loads(pickle.dumps(X)),
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_memory_layout_gives_the_same_leaves(dtype):
    rng = np.random.default_rng(3)
    X = rng.random((60, 4)).astype(dtype)
    estimator = RandomForestRegressor(5, random_state=0).fit(X, X[:, 0])
    forest = as_forest(estimator)
    for name, same in layouts(X).items():
        np.testing.assert_array_equal(forest.apply(same), estimator.apply(X), err_msg=name)


def test_out_is_filled_and_returned():
    out = np.full((2, 1), -7, dtype=np.int32)
    assert stump().apply([[0.0], [1.0]], out=out) is out
    assert out.tolist() == [[1], [2]]


READ_ONLY = np.zeros((2, 1), dtype=np.int32)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    "out",
    [
        np.zeros((2, 1)),
        np.zeros((2, 2), dtype=np.int32),
        np.zeros((2, 2), dtype=np.int32)[:, :1],
        READ_ONLY,
        [[0], [0]],
    ],
)
def test_an_out_that_does_not_fit_is_refused(out):
    with pytest.raises(ValueError, match="out must"):
        stump().apply([[0.0], [1.0]], out=out)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, 1e39, -1e39, float.fromhex("0x1.ffffffp127")])
def test_infinity_is_refused_with_its_position(bad):
    X = np.zeros((50, 1))
    X[41, 0] = bad
    with pytest.raises(ValueError, match=r"X\[41, 0\] is infinite or too large for float32"):
        stump().apply(X)
    X[41, 0] = float.fromhex("0x1.fffffefffffffp127")  # rounds to a finite one
    assert stump().apply(X)[41] == 2
    X = X.astype(np.float32)
    X[41, 0] = np.inf
    with pytest.raises(ValueError, match=r"X\[41, 0\]"):
        stump().apply(X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([1.0], "X must have 2 dimensions"),
        ([[1.0, 2.0]], "X has 2 features, but the forest expects 1"),
        ([["a"]], "X must be an array of numbers"),
        ([[1j]], "X must be an array of numbers"),
        ([[1.0], [2.0, 3.0]], "inhomogeneous"),
    ],
)
def test_rows_that_are_no_matrix_of_numbers_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        stump().apply(X)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"children_left": [3, -1, -1]}, "child 3"),
        ({"children_left": [2**40, -1, -1]}, "child"),
        ({"children_left": [0, -1, -1]}, "two ways"),
        ({"children_left": [2, -1, -1]}, "two ways"),
        ({"children_left": [-1, -1, -1]}, "child -1"),
        ({"children_left": [-1, -1, -1], "children_right": [-1, -1, -1]}, "no path reaches"),
        ({"feature": [1, -2, -2]}, "feature 1 of 1"),
        ({"feature": [-1, -2, -2]}, "feature -1"),
        ({"threshold": [np.nan, 0, 0]}, "NaN"),
        ({"threshold": [0.5, 0]}, "threshold must have as many"),
        ({"feature": [0, 0, 0, 0]}, "feature must have as many"),
        ({"tree_offsets": [0, 2]}, "tree_offsets"),
        ({"tree_offsets": [0, 0, 3]}, "tree_offsets"),
        ({"tree_offsets": [0, 4, 3]}, "tree"),
        ({"tree_offsets": []}, "at least one tree"),
        ({"n_features": 0}, "n_features"),
        ({"n_features": 2**31}, "n_features"),
        ({"children_left": [0.5, -1, -1]}, "children_left must hold whole numbers"),
        ({"children_left": ["1", "-1", "-1"]}, "children_left must be an array of numbers"),
    ],
)
def test_what_is_no_forest_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        stump(**changes)


def test_random_changes_of_children_are_refused_or_still_a_proper_tree():
    rng = np.random.default_rng(4)
    accepted = 0
    for _ in range(400):
        left, right, *rest = random_tree(rng, 6, 2, [0.0, 1.0])
        both = [left, right]
        both[rng.integers(2)][rng.integers(13)] = rng.integers(-2, 14)
        try:
            forest = Forest(*both, *rest, [0, 13], 2)
        except ValueError:
            continue
        accepted += 1
        X = rng.choice([-1, 0.5, 2, np.nan], (5, 2))
        np.testing.assert_array_equal(
            forest.apply(X, n_threads=1)[:, 0], reference.apply_tree(*both, *rest, X)
        )
    assert 0 < accepted < 200


def test_the_order_of_node_numbers_does_not_matter():
    nested = (0, 0.5, 1, (1, 2.0, 0, None, None), (1, -1.0, 1, (0, 3.0, 0, None, None), None))
    fields = tree_of_nested(nested)
    rng = np.random.default_rng(5)
    X = rng.choice([-2, 0, 1, 2.5, 4, np.nan], (100, 2))
    expected = Forest(*fields, [0, 9], 2).leaves(X)
    for _ in range(20):
        shuffled = renumbered(list(zip(*fields, strict=True)), [0, *(1 + rng.permutation(8))])
        np.testing.assert_array_equal(Forest(*shuffled, [0, 9], 2).leaves(X), expected)


@pytest.fixture(scope="module")
def small_forest():
    rng = np.random.default_rng(6)
    X = rng.random((40, 3))
    return as_forest(RandomForestRegressor(3, max_leaf_nodes=6, random_state=0).fit(X, X[:, 0]))


def test_arrays_make_the_same_forest_without_a_copy(small_forest):
    arrays = small_forest.arrays()
    again = Forest.from_arrays(arrays, 3, copy=False)
    X = np.random.default_rng(7).random((30, 3))
    np.testing.assert_array_equal(again.apply(X), small_forest.apply(X))
    for name, array in again.arrays().items():
        assert np.shares_memory(array, arrays[name])
        assert not array.flags.writeable
    assert again.nbytes == sum(array.nbytes for array in arrays.values())
    copied = Forest.from_arrays(arrays, 3).arrays()
    assert not any(np.shares_memory(array, arrays[name]) for name, array in copied.items())


def test_arrays_that_were_never_handed_out_are_refused(small_forest):
    X = np.zeros((5, 3))
    index = LeafIndex(small_forest.leaves(X), np.arange(5.0))
    for made, more in ((small_forest, {"n_features": 3}), (index, {"scalar_output": True})):
        for name in ("weights", "node", 3):
            with pytest.raises(ValueError, match=r"must hold what arrays\(\) returned, got '?"):
                type(made).from_arrays(made.arrays() | {name: np.zeros(3)}, **more)


def test_views_outlive_their_forest(small_forest):
    arrays = Forest.from_arrays(small_forest.arrays(), 3).arrays()
    copies = {name: array.copy() for name, array in small_forest.arrays().items()}
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, copies[name])


def test_hundreds_of_damaged_arrays_are_refused_or_route_safely(small_forest):
    rng = np.random.default_rng(8)
    X = rng.choice([-1, 0.3, 0.7, 5, np.nan], (20, 3))
    refused = 0
    for _ in range(800):
        arrays = damaged(rng, small_forest.arrays())
        try:
            forest = Forest.from_arrays(arrays, 3)
        except ValueError:
            refused += 1
            continue
        leaves = forest.leaves(X, n_threads=1)
        assert np.all((leaves >= 0) & (leaves < forest.n_leaves))
        assert np.all(forest.apply(X, n_threads=1) >= 0)
    assert 400 < refused < 800


@pytest.mark.parametrize("name", ["nodes", "tree_offsets", "leaf_nodes"])
def test_missing_or_mistyped_arrays_are_refused(small_forest, name):
    arrays = dict(small_forest.arrays())
    with pytest.raises(ValueError, match=f"{name} must have"):
        Forest.from_arrays(arrays | {name: arrays[name].astype(np.float32)}, 3)
    del arrays[name]
    with pytest.raises(ValueError, match=f"must contain '{name}'"):
        Forest.from_arrays(arrays, 3)


def columns_of(estimator):
    """The columns of each tree, where scikit-learn keeps them."""
    return [{name: getattr(m.tree_, name) for name in NAMES} for m in estimator.estimators_]


def assert_same(forest, other):
    for name, array in forest.arrays().items():
        np.testing.assert_array_equal(array, other.arrays()[name])


@pytest.mark.parametrize("n_features", [3, 300])
def test_trees_are_read_where_they_are(n_features):
    X = np.random.default_rng(0).normal(size=(200, n_features))
    estimator = RandomForestRegressor(5, random_state=0).fit(X, X[:, 0])
    columns = columns_of(estimator)
    assert columns[0]["children_left"].strides == (64,)
    expected = as_forest(estimator)
    assert_same(Forest.from_trees(columns, n_features), expected)
    as_other = [
        {name: np.asarray(c, dtype="f4" if name == "threshold" else "i2") for name, c in t.items()}
        for t in columns
    ]
    as_other[0]["threshold"] = columns[0]["threshold"]  # those of float32 would be others
    first = Forest.from_trees(columns[:1], n_features)
    assert_same(Forest.from_trees(as_other[:1], n_features), first)
    backwards = [{name: c[::-1].copy()[::-1] for name, c in tree.items()} for tree in columns]
    assert_same(Forest.from_trees(backwards, n_features, n_threads=1), expected)
    in_other_order = [dict(reversed(tree.items())) | {"value": None} for tree in columns]
    assert_same(Forest.from_trees(in_other_order, n_features), expected)
    # Not aligned.
    dtype = {"names": ["at", *NAMES], "formats": ["i1", "i8", "i8", "i8", "f8", "u1"]}
    packed = np.zeros(len(columns[0]["threshold"]), dtype=dtype)
    for name, column in columns[0].items():
        packed[name] = column
    assert_same(Forest.from_trees([packed], n_features), first)


@pytest.mark.parametrize(
    ("trees", "message"),
    [
        ([], "a forest needs at least one tree"),
        ([STUMP], "a tree must have its arrays by name, such as 'children_left', got"),
        ([{"threshold": [0.5]}], "a tree must have its arrays by name, such as 'children_left'"),
        ([{key: [] for key in NAMES}], "tree 0 has no nodes"),
        ([TREE, TREE | {"threshold": [0.5]}], r"threshold must have shape \(3,\), got \(1,\)"),
        ([TREE | {"children_left": [STUMP[0]]}], "children_left must have 1 dimensions"),
        ([TREE | {"children_left": ["x"] * 3}], "children_left must be an array of numbers"),
        ([TREE, TREE | {"children_left": [1, -1, 7], "feature": [0] * 3}], "tree 1 node 2 has chi"),
    ],
)
def test_columns_that_are_no_trees_are_refused(trees, message):
    with pytest.raises(ValueError, match=message):
        Forest.from_trees(trees, 1)


@pytest.mark.parametrize("source", [None, "file"])
@pytest.mark.parametrize("lazy", [False, True])
def test_damage_is_told_at_once_or_when_it_is_met_and_names_its_source(small_forest, source, lazy):
    arrays = {name: array.copy() for name, array in small_forest.arrays().items()}
    arrays["nodes"][0] = 2**32 - 1
    message = "tree 0 is damaged at node 0" if source is None else "file: tree 0 is damaged"
    with pytest.raises(ValueError, match=f"^{message}"):
        Forest.from_arrays(arrays, 3, source=source, lazy=lazy).leaves(np.zeros((1, 3)))
    if lazy:
        assert Forest.from_arrays(arrays, 3, source=source, lazy=True).n_trees
    arrays["leaf_nodes"] = arrays["leaf_nodes"][1:]
    with pytest.raises(ValueError, match="^leaf_nodes must" if source is None else "^file: leaf_n"):
        Forest.from_arrays(arrays, 3, source=source, lazy=lazy)
