"""Forests of every kind are imported exactly, and rows that are not their own are refused."""

import copy
import re

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

from hdiforest import HDIForestRegressor

from ..oracle import SKLEARN_ROUTES_NAN_AS_IT_TRAINED

N = 240
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 5))
Y = np.abs(X[:, 0] * 3 + X[:, 1] ** 2 + RNG.normal(size=N)).round(1)
WEIGHT = np.where(RNG.random(N) < 0.1, 0.0, RNG.random(N) + 0.1)

FORESTS = {
    "forest": RandomForestRegressor(20, random_state=0),
    "no bootstrap": RandomForestRegressor(20, bootstrap=False, max_features=0.5, random_state=0),
    "max_samples": RandomForestRegressor(20, max_samples=0.4, random_state=0),
    "absolute_error": RandomForestRegressor(8, criterion="absolute_error", random_state=0),
    "poisson": RandomForestRegressor(20, criterion="poisson", random_state=0),
    "monotonic": RandomForestRegressor(20, monotonic_cst=[1, 0, 0, 0, -1], random_state=0),
    "random state object": RandomForestRegressor(5, random_state=np.random.RandomState(3)),
    "extra trees": ExtraTreesRegressor(20, random_state=0),
    "bootstrapped extra trees": ExtraTreesRegressor(20, bootstrap=True, random_state=0),
    "tree": DecisionTreeRegressor(min_samples_leaf=4, random_state=0),
    "extra tree": ExtraTreeRegressor(random_state=0),
    "one leaf": RandomForestRegressor(3, min_samples_leaf=N, random_state=0),
    "monotonic absolute_error": RandomForestRegressor(
        5, criterion="absolute_error", monotonic_cst=[1, 0, 0, 0, 0], random_state=0
    ),
    "monotonic poisson": RandomForestRegressor(
        5, criterion="poisson", monotonic_cst=[1, 0, 0, 0, 0], random_state=0
    ),
    "pruned": RandomForestRegressor(20, ccp_alpha=0.1, max_leaf_nodes=15, random_state=0),
    "bagging": BaggingRegressor(DecisionTreeRegressor(), 20, random_state=0),
    "bagged features": BaggingRegressor(
        ExtraTreeRegressor(),
        20,
        max_features=0.6,
        bootstrap_features=True,
        max_samples=0.7,
        random_state=0,
    ),
    "bagging without replacement": BaggingRegressor(
        DecisionTreeRegressor(), 20, max_samples=0.7, bootstrap=False, random_state=0
    ),
}
pytestmark = [
    # scikit-learn warns about sample_weight in bagging without replacement.
    pytest.mark.filterwarnings("ignore:When fitting BaggingRegressor with sample_weight"),
    pytest.mark.filterwarnings("ignore:the forest (has monotonic|averages the medians)"),
]
PREDICTS_MEANS = [
    name for name in FORESTS if "monotonic" not in name and "absolute_error" not in name
]


def fitted(name, y=Y, sample_weight=None):
    return copy.deepcopy(FORESTS[name]).fit(X, y, sample_weight=sample_weight)


@pytest.mark.parametrize("name", FORESTS)
@pytest.mark.parametrize("sample_weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_leaves_are_scikit_learns(name, sample_weight):
    forest = fitted(name, sample_weight=sample_weight)
    model = HDIForestRegressor.from_forest(forest, X, Y, sample_weight=sample_weight)
    features = getattr(forest, "estimators_features_", [slice(None)] * 1000)
    members = getattr(forest, "estimators_", [forest])
    expected = [
        tree.apply(X[:, own].astype(np.float32))
        for tree, own in zip(members, features, strict=False)
    ]
    np.testing.assert_array_equal(model.scorer_.forest.apply(X), np.transpose(expected))


@pytest.mark.parametrize("name", PREDICTS_MEANS)
@pytest.mark.parametrize("sample_weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_in_bag_mean_is_the_forests_prediction(name, sample_weight):
    forest = fitted(name, sample_weight=sample_weight)
    model = HDIForestRegressor.from_forest(
        forest, X, Y, sample_weight=sample_weight, weights="inbag"
    )
    tolerance = 2.0**-31 * np.ptp(Y) + 1e-12 * np.abs(Y).max()
    np.testing.assert_allclose(model.predict(X), forest.predict(X), rtol=0, atol=tolerance)


@pytest.mark.skipif(
    not SKLEARN_ROUTES_NAN_AS_IT_TRAINED,
    reason="before scikit-learn 1.8, forests contradict their own record of missing values",
)
def test_missing_values_go_where_the_forest_sends_them():
    holes = np.where(RNG.random(X.shape) < 0.15, np.nan, X)
    forest = RandomForestRegressor(20, random_state=0).fit(holes, Y)
    model = HDIForestRegressor.from_forest(forest, holes, Y)
    np.testing.assert_array_equal(model.scorer_.forest.apply(holes), forest.apply(holes))


def test_weights_that_sum_to_the_number_of_rows():
    """The weight of a single leaf cannot tell weighted rows from counted ones; its mean can."""
    weight = np.tile([0.5, 1.5], N // 2)
    tree = DecisionTreeRegressor(max_depth=1, min_samples_leaf=N).fit(X, Y, sample_weight=weight)
    model = HDIForestRegressor.from_forest(tree, X, Y, sample_weight=weight, weights="inbag")
    np.testing.assert_allclose(model.predict(X), tree.predict(X), atol=1e-7)


@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor])
@pytest.mark.parametrize("weight", [0.3, 7.0])
def test_weighted_bags_that_hold_each_row_once(kind, weight):
    """Since scikit-learn 1.9 the weights decide what is drawn and leave no trace in the leaves."""
    forest = kind(3, bootstrap=True, random_state=0)
    rows = X[:1], Y[:1], np.array([weight])
    model = HDIForestRegressor.from_forest(forest.fit(*rows), *rows[:2], sample_weight=rows[2])
    np.testing.assert_allclose(model.predict(X[:1]), Y[:1])


def test_warm_start_is_imported_as_it_stands():
    forest = RandomForestRegressor(5, warm_start=True, random_state=0).fit(X, Y)
    forest.set_params(n_estimators=9).fit(X, Y)
    model = HDIForestRegressor.from_forest(forest, X, Y)
    assert model.scorer_.forest.n_trees == 9


def test_several_outputs():
    targets = np.column_stack([Y, -2 * Y, RNG.normal(size=N)])
    forest = fitted("forest", y=targets)
    model = HDIForestRegressor.from_forest(forest, X, targets, weights="inbag")
    np.testing.assert_allclose(model.predict(X), forest.predict(X), atol=1e-7)
    targets[:, 2] = RNG.permutation(targets[:, 2])
    with pytest.raises(ValueError, match="y is not the target"):
        HDIForestRegressor.from_forest(forest, X, targets)


def test_forest_pickled_before_weights_were_drawing_probabilities():
    forest = fitted("forest")
    if not hasattr(forest, "_sample_weight"):
        pytest.skip("this scikit-learn does not draw by weight")
    del forest._sample_weight
    HDIForestRegressor.from_forest(forest, X, Y)


@pytest.mark.parametrize("name", sorted(set(FORESTS) - {"one leaf"}))
def test_other_rows_are_refused(name):
    with pytest.raises(ValueError, match=r"not the (rows|target) this forest was fitted on"):
        HDIForestRegressor.from_forest(fitted(name), RNG.permutation(X), Y)


@pytest.mark.parametrize("name", FORESTS)
def test_forgotten_sample_weight_is_refused(name):
    with pytest.raises(ValueError, match="sample_weight"):
        HDIForestRegressor.from_forest(fitted(name, sample_weight=WEIGHT), X, Y)


@pytest.mark.parametrize("name", FORESTS)
def test_sample_weight_that_the_forest_did_not_see_is_refused(name):
    forest = fitted(name)
    if hasattr(forest, "estimators_samples_") and not hasattr(forest, "_sample_weight"):
        pytest.skip("before scikit-learn 1.9 bootstrapped forests kept no record of weights")
    with pytest.raises(ValueError, match="sample_weight"):
        HDIForestRegressor.from_forest(forest, X, Y, sample_weight=WEIGHT)


def test_other_numbers_of_outputs_are_refused():
    both = np.column_stack([Y, Y])
    with pytest.raises(ValueError, match="y has 2 outputs, but the forest was fitted on 1"):
        HDIForestRegressor.from_forest(fitted("forest"), X, both)
    with pytest.raises(ValueError, match="y has 1 outputs, but the forest was fitted on 2"):
        HDIForestRegressor.from_forest(fitted("forest", y=both), X, Y)


def test_refitted_forest_is_refused():
    forest = fitted("forest")
    forest.fit(X[::-1], Y)
    with pytest.raises(ValueError, match="last fit"):
        HDIForestRegressor.from_forest(forest, X, Y)


@pytest.mark.parametrize("name", ["forest", "no bootstrap", "tree", "bagging without replacement"])
@pytest.mark.parametrize("sample_weight", [None, WEIGHT + 0.1], ids=["plain", "weighted"])
@pytest.mark.parametrize("n", [1, N - 1, N + 1])
def test_other_numbers_of_rows_are_refused(name, sample_weight, n):
    """Rows that no tree drew, such as test rows, leave no trace in the leaves."""
    rows = np.arange(n) % N
    weight = None if sample_weight is None else sample_weight[rows]
    with pytest.raises(ValueError, match=rf"X has {n} rows.* was fitted on {N};"):
        HDIForestRegressor.from_forest(
            fitted(name, sample_weight=sample_weight), X[rows], Y[rows], sample_weight=weight
        )


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(2),
        AdaBoostRegressor(n_estimators=2),
        LinearRegression(),
        BaggingRegressor(LinearRegression(), 2),
        IsolationForest(n_estimators=2),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_estimators_of_other_kinds_are_refused(estimator):
    target = Y > 1 if isinstance(estimator, RandomForestClassifier) else Y
    with pytest.raises(ValueError, match="estimator must be a fitted RandomForestRegressor"):
        HDIForestRegressor.from_forest(estimator.fit(X, target), X, target)


@pytest.mark.parametrize("kind", [GradientBoostingRegressor, HistGradientBoostingRegressor])
def test_boosters_are_told_what_takes_them(kind):
    told = rf"got the booster {kind.__name__}; call .*calibrate\(mean=booster\)"
    booster = kind(random_state=0)
    for estimator in (booster, make_pipeline(booster), make_pipeline(StandardScaler(), booster)):
        with pytest.raises(ValueError, match=told):
            HDIForestRegressor(estimator).fit(X, Y)


def test_unfitted_forests_are_refused():
    with pytest.raises(NotFittedError, match="RandomForestRegressor"):
        HDIForestRegressor.from_forest(RandomForestRegressor(), X, Y)


def test_out_of_bag_weights_need_bags():
    with pytest.raises(ValueError, match="weights='oob' needs a forest whose trees leave rows out"):
        HDIForestRegressor.from_forest(fitted("extra trees"), X, Y, weights="oob")


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.where(np.arange(N) == 3, np.nan, Y), "NaN"),
        (np.where(np.arange(N) == 3, np.inf, Y), "infinity"),
        (Y[:-1], "inconsistent numbers of samples"),
    ],
)
def test_bad_targets_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        HDIForestRegressor.from_forest(fitted("forest"), X, y)


@pytest.mark.parametrize(
    "weight", [WEIGHT[:-1], np.full(N, np.nan), -WEIGHT, np.zeros(N), np.ones((N, 1))]
)
def test_bad_sample_weights_are_refused(weight):
    with pytest.raises(ValueError, match=re.escape("sample_weight must")):
        HDIForestRegressor.from_forest(fitted("forest"), X, Y, sample_weight=weight)


class Committee(RegressorMixin, BaseEstimator):
    """Trees that were each fitted on all rows: a kind of forest that is not in the table."""

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        self.trees_ = [DecisionTreeRegressor(max_depth=depth).fit(X, y) for depth in (2, 3)]
        return self


def test_forests_that_are_not_in_the_table_are_told_what_takes_them():
    committee = Committee().fit(X, Y)
    with pytest.raises(ValueError, match="got Committee; forests of other kinds"):
        HDIForestRegressor.from_forest(committee, X, Y)


@pytest.mark.parametrize(
    ("attributes", "refused"),
    [
        ({"categorical_features": [0]}, True),
        ({"categorical_features": "from_dtype"}, True),
        ({"categorical_features": np.array([True, False, False])}, True),
        ({"categorical_features": np.zeros(3, dtype=bool)}, False),
        ({"categorical_features": "from_dtype", "is_categorical_": None}, False),
        ({"categorical_features": None}, False),
    ],
)
def test_trees_that_split_on_categories_are_refused(attributes, refused):
    """The attributes are those of scikit-learn's coming trees."""
    tree = DecisionTreeRegressor(max_depth=3).fit(X, Y)
    vars(tree).update(attributes)
    if refused:
        with pytest.raises(ValueError, match="categorical splits, which are not understood"):
            HDIForestRegressor.from_forest(tree, X, Y)
    else:
        HDIForestRegressor.from_forest(tree, X, Y)
