"""Whether rows are those of a fit: the kernel says of every record what its definition says."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from hdicore import find_mismatch
from hdicore.monotonic import bounds_of_leaves

from .. import reference
from ..oracle import as_forest, bag_counts

N = 60
CRITERIA = ("squared_error", "poisson", "absolute_error")
SCALES = {
    "plain": (1.0, 0.0),
    "far": (1.0, 1e12),
    "tiny": (1e-310, 0.0),
    "huge": (1e200, 0.0),
    "overflow": (1e308, 0.0),
    "constant": (0.0, 0.1),
}
WEIGHTS = {
    "none": lambda rng: None,
    "zero": lambda rng: (rng.random(N) < 0.7) * 1.0,
    "few": lambda rng: rng.integers(1, 4, N) * 1.0,
    "tiny": lambda rng: rng.random(N) * 1e-300,
    "huge": lambda rng: rng.random(N) * 1e300,
    "uneven": lambda rng: np.exp(20 * rng.normal(size=N)),
}

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def record(member, nodes):
    tree, bounds = member.tree_, None
    if member.monotonic_cst is not None:
        arrays = tree.children_left, tree.children_right, tree.feature, tree.value[:, 0, 0]
        bounds = bounds_of_leaves(*arrays, np.asarray(member.monotonic_cst), nodes)
    return {
        "weight": tree.weighted_n_node_samples[nodes],
        "value": tree.value[nodes, :, 0],
        "bounds": bounds,
        "medians": member.criterion == "absolute_error",
    }


def defined(trees, leaves, targets, *, counts=None, sample_weight=None, in_float32=False):
    """The first difference by the definition."""
    for k, (tree, own) in enumerate(zip(trees, leaves, strict=True)):
        drawn = np.ones(leaves.shape[1]) if counts is None else counts[k].astype(float)
        weights = drawn if sample_weight is None else drawn * sample_weight
        if in_float32:
            weights = weights.astype(np.float32).astype(float)
        difference = reference.find_mismatch(tree, own, drawn, weights, targets)
        if difference is not None:
            return k, difference
    return None


def assert_as_defined(trees, leaves, targets, **rows):
    expected = defined(trees, leaves, targets, **rows)
    for n_threads in (1, 3):
        assert find_mismatch(trees, leaves, targets, n_threads=n_threads, **rows) == expected
    return expected


class Fit:
    """A forest fitted on random rows, and how it weighed them."""

    def __init__(self, seed, criterion, *, scale=(1.0, 0.0), weight="none", n_outputs=1, **options):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(N, 3)).round(1)
        factor, offset = scale
        y = np.exp(X[:, :n_outputs] + rng.normal(size=(N, n_outputs))).round(2)
        if criterion != "poisson":
            y -= 1
        y = np.clip(y, -1.7, 1.7) * factor + offset
        self.sample_weight = WEIGHTS[weight](rng)
        options = {"bootstrap": True, "random_state": seed} | options
        kind = ExtraTreesRegressor if seed % 2 else RandomForestRegressor
        self.forest = kind(3, criterion=criterion, **options)
        self.forest.fit(X, y.squeeze(), sample_weight=self.sample_weight)
        self.targets = y.T.copy()
        compiled = as_forest(self.forest)
        self.leaves = compiled.leaves(X).T
        self.counts = bag_counts(self.forest, N).T if self.forest.bootstrap else None
        nodes = np.split(compiled.leaf_nodes, np.cumsum(compiled.n_leaves)[:-1])
        self.trees = list(map(record, self.forest.estimators_, nodes))

    def rows(self):
        drawn_by_weight = hasattr(self.forest, "_sample_weight") and self.forest.bootstrap
        weight = None if drawn_by_weight else self.sample_weight
        return {"counts": self.counts, "sample_weight": weight}


def fitted(*args, **options):
    try:
        return Fit(*args, **options)
    except ValueError as error:  # scikit-learn refuses what overflows, and sums of 0 for Poisson
        pytest.skip(str(error))


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(
    ("scale", "weight"),
    [*(("plain", w) for w in WEIGHTS), *((s, "none") for s in SCALES), ("far", "uneven")],
)
def test_the_rows_of_a_fit_are_accepted_and_others_judged_as_defined(criterion, scale, weight):
    scale = SCALES[scale]
    for min_samples_leaf, bootstrap in ((1, True), (6, False), (6, True)):
        options = {"bootstrap": bootstrap, "min_samples_leaf": min_samples_leaf}
        fit = fitted(min_samples_leaf, criterion, scale=scale, weight=weight, **options)
        trees, leaves, targets, rows = fit.trees, fit.leaves, fit.targets, fit.rows()
        assert assert_as_defined(trees, leaves, targets, **rows) is None
        swapped = targets.copy()
        swapped[:, [0, 1]] = swapped[:, [1, 0]]
        for other in (swapped, targets[:, ::-1], targets * 1.01, targets * (1 + 1e-11)):
            assert_as_defined(trees, leaves, other, **rows)
        assert_as_defined(trees, leaves[:, ::-1], targets, **rows)
        assert_as_defined(trees, leaves, targets, **rows | {"counts": None})


@pytest.mark.parametrize("criterion", CRITERIA)
def test_one_other_row_is_told(criterion):
    fit = fitted(2, criterion)
    rows = {"counts": fit.counts.copy()}
    rows["counts"][1, 5] += 1
    assert assert_as_defined(fit.trees, fit.leaves, fit.targets, **rows) == (1, "weights")
    other = fit.targets.copy()
    other[0, np.flatnonzero(fit.counts[0] == 0)] = 7  # rows that the first tree did not draw
    expected = assert_as_defined(fit.trees, fit.leaves, other, **fit.rows())
    assert expected == (1, "targets")


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(
    "options",
    [
        {"monotonic_cst": [1, -1, 0]},
        {"monotonic_cst": [1, -1, 1], "max_leaf_nodes": 9},
        {"monotonic_cst": [0, 0, 0]},
        {"ccp_alpha": 0.05},
        {"max_depth": 1},
    ],
    ids=str,
)
def test_constrained_and_small_trees(criterion, options):
    for seed, weight in ((0, "none"), (1, "uneven")):
        fit = fitted(seed, criterion, weight=weight, **options)
        assert assert_as_defined(fit.trees, fit.leaves, fit.targets, **fit.rows()) is None
        for part in (1e-13, 1e-9, 0.01, 1):
            other = fit.targets + part * fit.targets[:, ::-1]
            assert_as_defined(fit.trees, fit.leaves, other, **fit.rows())
        for tree, size in itertools.product(fit.trees, (1e-9, 0.3)):
            tree["value"] = tree["value"] * (1 + size)
            assert_as_defined(fit.trees, fit.leaves, fit.targets, **fit.rows())


def test_weights_rounded_to_float32():
    rng = np.random.default_rng(0)
    fit = fitted(0, "squared_error", bootstrap=False)
    weight = rng.random(N).astype(np.float32).astype(float) / 3
    for tree, leaves in zip(fit.trees, fit.leaves, strict=True):
        tree["weight"] = np.bincount(leaves, weight.astype(np.float32).astype(float))
    rows = {"sample_weight": weight}
    assert assert_as_defined(fit.trees, fit.leaves, fit.targets, **rows) == (0, "weights")
    found = assert_as_defined(fit.trees, fit.leaves, fit.targets, **rows, in_float32=True)
    assert found != (0, "weights")


def leaf_of(y, value, weight=None, **record):
    """What differs in a tree of one leaf."""
    y, weight = np.atleast_2d(y), np.shape(y)[-1] if weight is None else weight
    tree = {"weight": [weight], "value": [[value]], "bounds": None, "medians": False} | record
    return assert_as_defined([tree], np.zeros(y.shape, dtype=int), y)


@pytest.mark.parametrize("scale", [1e-250, 1.0, 1e200])
def test_the_tolerance_is_of_the_leafs_own_targets(scale):
    y, unit = scale * np.array([1.0, -3.0, 5.0]), 2.0**-53
    size = np.abs(y).sum() / 3
    for sign in (-1, 1):
        assert leaf_of(y, scale + sign * 20 * unit * size) is None
        assert leaf_of(y, scale + sign * 40 * unit * size) == (0, "targets")


def test_weights_of_counted_rows_are_exact():
    y = np.zeros(10_000)
    for weight in (9_999, 10_000 - 1e-7, 10_001):
        assert leaf_of(y, 0, weight) == (0, "weights")
    assert leaf_of(y, 0) is None


@pytest.mark.parametrize("y", [[0.0, 0.0], [5e-324, 0.0], [1e-310, -1e-310], [1e-308, 3e-308]])
def test_sums_near_zero_need_not_agree_in_their_last_bits(y):
    for value in (0.0, 5e-324, 1e-309, -1e-310):
        assert leaf_of(y, np.mean(y) + value) is None
    assert leaf_of(y, 1e-300) == (0, "targets")


def test_bounds_excuse_values_on_their_side():
    y, free = [1.0, 2.0], np.inf
    for medians in (False, True):
        for value, lower, upper, expected in (
            (1.5, -free, free, None),
            (3.0, -free, free, (0, "targets")),
            (3.0, 3.0, free, None),
            (3.0, -free, 4.0, (0, "targets")),
            (0.0, -free, 0.0, None),
            (0.0, -1.0, free, (0, "targets")),
        ):
            bounds = np.array([[lower], [upper]])
            assert leaf_of(y, value, bounds=bounds, medians=medians) == expected


def test_medians():
    for y, low, high in (
        ([1.0, 2.0, 7.0], 2.0, 2.0),
        ([1.0, 2.0, 7.0, 9.0], 2.0, 7.0),
        ([1.0, 1.0, 1.0, 9.0], 1.0, 1.0),
    ):
        for value in (low, (low + high) / 2, high):
            assert leaf_of(y, value, medians=True) is None
        for value in (low - 1e-9, high + 1e-9):
            assert leaf_of(y, value, medians=True) == (0, "targets")


HOSTILE = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 1e-320, 1e-160, 1e160, -1e308, np.inf, np.nan])


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([0.0, 0.1, 1.0]))
def test_hostile_records_and_rows_are_judged_as_defined(seed, medians, share):
    rng = np.random.default_rng(seed)
    n_leaves, n, n_outputs = map(int, rng.integers(1, (9, 30, 3)))

    def hostile(values, pool=HOSTILE):
        return np.where(rng.random(values.shape) < share, rng.choice(pool, values.shape), values)

    leaves = rng.integers(0, n_leaves, (1, n))
    weight = rng.integers(0, 3, n) * 1.0
    targets = hostile(rng.integers(0, 4, (n_outputs, n)) * 1.0, HOSTILE[:8])  # finite, as y is
    sums = np.bincount(leaves[0], weight, n_leaves)
    tree = {
        "weight": sums if rng.random() < 0.8 else hostile(sums),
        "value": hostile(rng.integers(0, 4, (n_leaves, n_outputs)) * 1.0),
        "bounds": hostile(np.full((2, n_leaves), np.inf)) if rng.random() < 0.5 else None,
        "medians": medians,
    }
    weight = np.abs(weight if rng.random() < 0.5 else hostile(weight))
    assert_as_defined([tree], leaves, targets, sample_weight=weight)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"leaves": np.full((3, N), 99)}, "leaves must name leaves of the trees, got 99 in tree 0"),
        ({"leaves": np.full((3, N), -1)}, "leaves must name leaves of the trees, got -1 in tree 0"),
        ({"leaves": np.zeros((2, N))}, r"leaves must have shape \(3, 60\), got \(2, 60\)"),
        ({"targets": np.zeros((2, N))}, r"value must have shape \(\d+, 2\), got \(\d+, 1\)"),
        ({"targets": np.zeros(N)}, "targets must have 2 dimensions"),
        ({"counts": np.ones((3, 1))}, r"counts must have shape \(3, 60\), got \(3, 1\)"),
        ({"counts": np.full((3, N), -1)}, "counts must hold whole numbers"),
        ({"sample_weight": np.ones(1)}, r"sample_weight must have shape \(60,\), got \(1,\)"),
    ],
)
def test_bad_rows_are_refused(change, message):
    fit = fitted(0, "squared_error")
    given_rows = {"leaves": fit.leaves, "targets": fit.targets} | change
    with pytest.raises(ValueError, match=message):
        find_mismatch(fit.trees, **given_rows, n_threads=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight": np.zeros((3, 1))}, "weight must have 1 dimensions"),
        ({"value": np.zeros((2, 1))}, r"value must have shape \(3, 1\), got \(2, 1\)"),
        ({"bounds": np.zeros((2, 2))}, r"bounds must have shape \(2, 3\), got \(2, 2\)"),
        ({"bounds": np.zeros(3)}, "bounds must have shape"),
    ],
)
def test_bad_trees_are_refused(change, message):
    zeros = np.zeros(3)
    tree = {"weight": zeros, "value": zeros[:, None], "bounds": None, "medians": False}
    with pytest.raises(ValueError, match=message):
        find_mismatch([tree | change], np.zeros((1, 4)), np.zeros((1, 4)))


def test_no_trees_and_no_rows():
    assert find_mismatch([], np.zeros((0, 4)), np.zeros((1, 4))) is None
    with pytest.raises(ValueError, match="a tree must have its arrays by name, such as 'weight'"):
        find_mismatch([None], np.zeros((1, 4)), np.zeros((1, 4)))
