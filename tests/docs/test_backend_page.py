"""Recipes in docs/backend.md run as they stand, and answer as the library they are for."""

import pickle
import re
import sys
from types import ModuleType

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from ..oracle import ROOT

PAGE = (ROOT / "docs" / "backend.md").read_text(encoding="utf-8")
SECTIONS = re.split(r"^##+ ", PAGE, flags=re.M)[1:]
RECIPES = {
    section.partition("\n")[0]: code[1]
    for section in SECTIONS
    if (code := re.search(r"```python\n(.*?)```", section, re.S))
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.random((1500, 5))
    y = np.sin(6 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(1500)
    return {"X_train": X[:1000], "y_train": y[:1000], "X_new": X[1000:], "y_new": y[1000:]}


@pytest.fixture
def recipe(monkeypatch):
    """The module that a recipe is run in, so that its functions and classes can be pickled."""
    module = ModuleType("recipe")
    monkeypatch.setitem(sys.modules, "recipe", module)
    return module


def run_recipe(title, rows, recipe):
    names = vars(recipe)
    names.update(rows)
    library = re.findall(r"^import (lightgbm|xgboost|catboost|treelite)", RECIPES[title], re.M)
    for name in library:
        pytest.importorskip(name)
    with threadpool_limits(1):  # their threads spin for minutes where the processors are busy
        exec(RECIPES[title], names)
    return names


def test_the_example_in_cython_is_shown_as_it_is():
    (shown,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.M | re.S)
    file = (ROOT / "examples" / "cython" / "pyproject.toml").read_text(encoding="utf-8")
    assert file.endswith(shown)


def test_there_is_a_recipe_for_each_library():
    assert list(RECIPES) == [
        "LightGBM",
        "XGBoost",
        "CatBoost",
        "scikit-learn's gradient boosting",
        "treelite",
        "quantile-forest, from what it stores",
        "Larger leaves from the same trees",
        "Intervals of the training rows",
        "Calibrated intervals",
        "Intervals at a price",
        "Regions of several pieces",
        "Instructions of the processor",
    ]


@pytest.mark.filterwarnings("ignore::UserWarning")  # their own about names of features
@pytest.mark.parametrize("title", list(RECIPES)[:5])
def test_recipes_give_intervals_and_models_that_can_be_pickled(title, rows, recipe):
    names = run_recipe(title, rows, recipe)
    lower, upper = np.moveaxis(names["intervals"], 1, 0)
    assert names["intervals"].shape == (500, 2, 2)
    assert np.all(lower <= upper)
    with threadpool_limits(1):
        loaded = pickle.loads(pickle.dumps(names["model"]))
        found = loaded.predict_interval(names["X_new"], coverage=[0.8, 0.9])
    np.testing.assert_array_equal(found, names["intervals"])
    coverage = np.mean((lower <= names["y_new"][:, None]) & (names["y_new"][:, None] <= upper), 0)
    assert coverage[0] < coverage[1]
    if "forest" not in names:  # boosted trees promise nothing
        return
    # Where leaves predict the mean of all training rows in them, so do we.
    expected = names["forest"].predict(names["X_new"])
    np.testing.assert_allclose(names["model"].predict(names["X_new"]), expected, atol=2e-6)
    assert np.all(np.abs(coverage - [0.8, 0.9]) < 0.1)


def test_one_boosted_tree_predicts_the_mean_of_its_leaves(rows):
    from sklearn.ensemble import GradientBoostingRegressor

    from hdiforest import from_leaves

    X, y, X_new = rows["X_train"], rows["y_train"], rows["X_new"]
    tree = GradientBoostingRegressor(n_estimators=1, learning_rate=1.0).fit(X, y)
    model = from_leaves(tree.apply, X, y)
    np.testing.assert_allclose(model.predict(X_new), tree.predict(X_new), atol=1e-8)
    catboost = pytest.importorskip("catboost")
    options = {"l2_leaf_reg": 0, "bootstrap_type": "No", "leaf_estimation_iterations": 1}
    tree = catboost.CatBoostRegressor(
        iterations=1, learning_rate=1, verbose=False, allow_writing_files=False, **options
    ).fit(X, y)
    model = from_leaves(tree.calc_leaf_indexes, X, y)
    np.testing.assert_allclose(model.predict(X_new), tree.predict(X_new), atol=1e-6)


@pytest.mark.parametrize("most", [1, None])
def test_quantile_forest_from_its_stored_leaves(most, rows, recipe):
    quantile_forest = pytest.importorskip("quantile_forest")
    X, y, X_new = rows["X_train"], rows["y_train"], rows["X_new"]
    forest = quantile_forest.RandomForestQuantileRegressor(
        50, min_samples_leaf=5, max_samples_leaf=most, random_state=0
    ).fit(X, y)
    names = run_recipe("quantile-forest, from what it stores", rows, recipe)
    predictor = names["Predictor"](forest)
    levels = [0.05, 0.31, 0.5, 0.95]
    for interpolation in ("linear", "lower", "higher", "midpoint"):
        own = forest.predict(X_new, levels, interpolation=interpolation, weighted_leaves=True)
        found = predictor.predict(X_new, levels, interpolation)
        # Its weights are floats, so that a level may fall on the other side of a step, and where
        # rows weigh unequally its quantiles of this family are defined in another way.
        equal = np.isclose(found, own, rtol=0, atol=1e-9)
        assert np.mean(equal) > (0.97 if most == 1 else 0.8)
        assert np.mean(np.abs(found - own)) < 0.003 * y.std()
    intervals = predictor.predict_interval(X_new)
    wider = np.diff(forest.predict(X_new, [0.05, 0.95], interpolation="midpoint"))
    assert np.diff(intervals).mean() < wider.mean() * 1.02


def test_larger_leaves_are_those_shown(rows, recipe):
    names = run_recipe("Larger leaves from the same trees", rows, recipe)
    assert names["larger"].n_leaves.tolist() == [2]


def test_rows_in_leaves_of_other_rows_are_an_error(rows):
    from sklearn.ensemble import RandomForestRegressor

    from hdiforest import from_leaves

    X, y = rows["X_train"], rows["y_train"]
    forest = RandomForestRegressor(5, min_samples_leaf=20, random_state=0).fit(X, y)
    model = from_leaves(forest.apply, X[X[:, 0] < 0.2], y[X[:, 0] < 0.2])
    with pytest.raises(ValueError, match="a leaf of tree 0, in which a training row lies"):
        model.predict_interval(X[X[:, 0] > 0.8])


def test_a_forest_of_one_tree_may_return_one_column(rows):
    from sklearn.tree import DecisionTreeRegressor

    from hdiforest import from_leaves

    X, y = rows["X_train"], rows["y_train"]
    tree = DecisionTreeRegressor(min_samples_leaf=20).fit(X, y)
    model = from_leaves(tree.apply, X, y, n_jobs=-1)
    np.testing.assert_allclose(model.predict(X), tree.predict(X), atol=1e-9)
    quantiles, cdf = model.predict_quantiles(X, 0.5), model.predict_cdf(X, y)
    assert np.all(model.predict_cdf(X, quantiles) >= 0.5)
    assert cdf.shape == (len(X),)
