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
    "constrained poisson": RandomForestRegressor(
        5, criterion="poisson", monotonic_cst=[1, -1, 0, 0], random_state=0
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
    "pruned": RandomForestRegressor(5, ccp_alpha=0.01, random_state=0),
    "bags": BaggingRegressor(DecisionTreeRegressor(), 5, max_features=0.5, random_state=0),
}
TARGETS = {
    "plain": BASE,
    "far": 1e9 + BASE,
    "farther": 1e12 + BASE,
    "far below": -1e9 + BASE,
    "small": 1e-300 * BASE,
    "subnormal": 1e-310 * BASE,
    "large": 1e150 * BASE,
    "squares overflow": 1e200 * BASE,
    "outlier": outlier(1e10),
    "far outlier": outlier(1e15),
    "two outliers": np.concatenate([[1e30, -1e30], BASE[2:]]),
    "heavy tails": RNG.pareto(0.2, N) * np.sign(BASE),
    "constant": np.full(N, 0.1),
    "ties": np.round(BASE),
}


def fitted(name, y, sample_weight=None):
    return copy.deepcopy(FORESTS[name]).fit(X, y, sample_weight=sample_weight)


# scikit-learn's own sums of squares overflow.
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("weight", [None, WEIGHT, 1e-200 * WEIGHT], ids=["", "weighted", "light"])
@pytest.mark.parametrize("scale", TARGETS)
@pytest.mark.parametrize("name", FORESTS)
def test_right_rows_are_accepted(name, scale, weight):
    y = TARGETS[scale]
    if "poisson" in name:
        y = np.abs(y)
    try:
        forest = fitted(name, y, weight)
    except ValueError:  # Poisson deviance needs a positive sum
        assert "poisson" in name
        assert np.average(y, weights=weight) < 1e-290
        return
    HDIForestRegressor.from_forest(forest, X, y, sample_weight=weight)


@pytest.mark.parametrize("scale", ["plain", "far", "farther", "outlier", "far outlier"])
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


@pytest.mark.parametrize("name", ["means", "constrained", "medians"])
def test_two_swapped_targets_are_refused(name):
    y = BASE.copy()
    y[[0, 1]] = y[[1, 0]]
    with pytest.raises(ValueError, match=REFUSED):
        HDIForestRegressor.from_forest(fitted(name, BASE), X, y)


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error", "poisson"])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_targets_with_the_same_means_or_medians_are_refused(criterion, n_outputs):
    """The leaves' values are those of the forest, their spread is not."""
    y = np.column_stack([np.exp(BASE)] * n_outputs).squeeze()
    tree = DecisionTreeRegressor(criterion=criterion, min_samples_leaf=20, random_state=0)
    predicted = tree.fit(X, y).predict(X)
    with pytest.raises(ValueError, match=REFUSED):
        HDIForestRegressor.from_forest(tree, X, predicted)


def test_permutations_within_leaves_are_harmless():
    tree = DecisionTreeRegressor(min_samples_leaf=20, random_state=0).fit(X, BASE)
    leaves = tree.apply(X)
    y = BASE.copy()
    for leaf in np.unique(leaves):
        y[leaves == leaf] = y[leaves == leaf][::-1]
    expected = HDIForestRegressor.from_forest(tree, X, BASE).predict_interval(X)
    found = HDIForestRegressor.from_forest(tree, X, y).predict_interval(X)
    np.testing.assert_array_equal(found, expected)
