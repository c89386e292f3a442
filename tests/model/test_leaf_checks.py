"""Wrong rows are distinguished from right ones by each leaf's own record, at every scale of y."""

import copy

import numpy as np
import pytest
from sklearn.ensemble import BaggingRegressor, ExtraTreesRegressor, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

from hdiforest import HDIForestRegressor

N = 300
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4)).astype(np.float32)
BASE = X[:, 0] + 0.3 * RNG.normal(size=N)
WEIGHT = np.where(RNG.random(N) < 0.1, 0.0, np.exp(2 * RNG.normal(size=N)))
ORDER = np.append(0, 1 + RNG.permutation(N - 1))  # the first row stays where it is
REFUSED = "y is not the target this forest was fitted on"

pytestmark = pytest.mark.filterwarnings("ignore:the forest (has monotonic|averages the medians)")


def outlier(size):
    return np.append(size, BASE[1:])


FORESTS = {
    "means": RandomForestRegressor(5, min_samples_leaf=5, random_state=0),
    "no bootstrap": ExtraTreesRegressor(5, min_samples_leaf=5, random_state=0),
    "poisson": RandomForestRegressor(5, criterion="poisson", min_samples_leaf=5, random_state=0),
    "medians": RandomForestRegressor(
        3, criterion="absolute_error", min_samples_leaf=5, random_state=0
    ),
    "constrained": RandomForestRegressor(
        5, min_samples_leaf=2, monotonic_cst=[1, -1, 0, 0], random_state=0
    ),
    "constrained medians": RandomForestRegressor(
        3,
        criterion="absolute_error",
        min_samples_leaf=5,
        monotonic_cst=[1, -1, 0, 0],
        random_state=0,
    ),
    "constrained, best first": RandomForestRegressor(
        5, max_leaf_nodes=40, monotonic_cst=[1, -1, 0, 0], random_state=0
    ),
    "single leaves": ExtraTreesRegressor(5, bootstrap=True, random_state=0),
    "bags": BaggingRegressor(DecisionTreeRegressor(), 5, max_features=0.5, random_state=0),
}
TARGETS = {
    "plain": BASE,
    "farther": 1e12 + BASE,
    "far outlier": outlier(1e15),
}


def fitted(name, y, sample_weight=None):
    return copy.deepcopy(FORESTS[name]).fit(X, y, sample_weight=sample_weight)


@pytest.mark.parametrize("scale", TARGETS)
@pytest.mark.parametrize("name", FORESTS)
def test_shuffled_targets_are_refused_at_every_scale(name, scale):
    y = TARGETS[scale]
    if "poisson" in name:
        y = np.exp(BASE) if scale == "plain" else np.abs(y)
    with pytest.raises(ValueError, match=REFUSED):
        HDIForestRegressor.from_forest(fitted(name, y), X, y[ORDER])


def test_shuffled_target_beside_another_is_refused():
    y = np.column_stack([outlier(1e15), BASE])
    shuffled = np.column_stack([outlier(1e15), BASE[ORDER]])
    with pytest.raises(ValueError, match=REFUSED):
        HDIForestRegressor.from_forest(fitted("means", y), X, shuffled)


@pytest.mark.parametrize("change", [1e-9, 0.1, -3.0])
@pytest.mark.parametrize("row", [0, 150, 299])
def test_one_other_target_is_refused(change, row):
    y = BASE.copy()
    y[row] += change
    for name in ("means", "poisson", "bags"):
        fit = np.exp(BASE) if name == "poisson" else BASE
        other = np.exp(y) if name == "poisson" else y
        with pytest.raises(ValueError, match=REFUSED):
            HDIForestRegressor.from_forest(fitted(name, fit), X, other)


@pytest.mark.parametrize("name", ["means", "medians", "constrained", "bags"])
def test_other_weights_rows_and_draws_are_refused(name):
    forest, shuffled = fitted(name, BASE), X[ORDER]
    one_other = np.vstack([X[:-1], -10 * X[-1:]])
    for rows, weight in ((shuffled, None), (one_other, None), (X, np.full(N, 1.5)), (X, WEIGHT)):
        with pytest.raises(ValueError, match=r"not the rows|was not used"):
            HDIForestRegressor.from_forest(forest, rows, BASE, sample_weight=weight)
    seeds = forest._seeds if name == "bags" else forest.estimators_
    seeds[0], seeds[1] = seeds[1], seeds[0]
    for tree, seed in enumerate((5, 6)) if name != "bags" else ():
        forest.estimators_[tree].random_state = seed
    with pytest.raises(ValueError, match="not the rows"):
        HDIForestRegressor.from_forest(forest, X, BASE)


@pytest.mark.parametrize("by", [1 + 1e-12, 1 + 1e-6, 2.0])
def test_weights_count_to_the_last_digits(by):
    tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, BASE, sample_weight=WEIGHT)
    heaviest, other = WEIGHT.argmax(), WEIGHT.copy()
    HDIForestRegressor.from_forest(tree, X, BASE, sample_weight=WEIGHT)
    other[heaviest] *= by
    with pytest.raises(ValueError, match="not the rows"):
        HDIForestRegressor.from_forest(tree, X, BASE, sample_weight=other)


def test_permutations_within_leaves_are_harmless():
    tree = DecisionTreeRegressor(min_samples_leaf=20, random_state=0).fit(X, BASE)
    leaves = tree.apply(X)
    y = BASE.copy()
    for leaf in np.unique(leaves):
        y[leaves == leaf] = y[leaves == leaf][::-1]
    expected = HDIForestRegressor.from_forest(tree, X, BASE).predict_interval(X)
    found = HDIForestRegressor.from_forest(tree, X, y).predict_interval(X)
    np.testing.assert_array_equal(found, expected)
