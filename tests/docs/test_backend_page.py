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
FIRST, *SECTIONS = re.split(r"^##+ ", PAGE, flags=re.M)
CODE = re.compile(r"```python\n(.*?)```", re.S)
RECIPES = {
    section.partition("\n")[0]: code[1] for section in SECTIONS if (code := CODE.search(section))
}
# Calls of the table of libraries, and a forest for each.
CALLS = dict(re.findall(r"^\| ([\w-]+) \| `(from_leaves\(.*?\))` \|", PAGE, re.M))
FORESTS = {
    "LightGBM": (
        "lightgbm",
        "LGBMRegressor(boosting_type='rf', colsample_bytree=0.7, min_child_samples=5, verbose=-1)",
    ),
    "XGBoost": (
        "xgboost",
        "XGBRFRegressor(max_depth=8, subsample=1, colsample_bynode=0.5, reg_lambda=0,"
        " min_child_weight=5)",
    ),
    "CatBoost": (
        "catboost",
        "CatBoostRegressor(iterations=100, verbose=False, allow_writing_files=False)",
    ),
    "scikit-learn": ("sklearn.ensemble", "GradientBoostingRegressor(max_depth=4, random_state=0)"),
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


def run(code, rows, recipe):
    names = vars(recipe)
    names.update(rows)
    for library in re.findall(r"^import (lightgbm|treelite)", code, re.M):
        pytest.importorskip(library)
    with threadpool_limits(1):  # their threads spin for minutes where the processors are busy
        exec(code, names)
    return names


def test_the_example_in_cython_is_shown_as_it_is():
    (shown,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.M | re.S)
    file = (ROOT / "examples" / "cython" / "pyproject.toml").read_text(encoding="utf-8")
    assert file.endswith(shown)


def check_intervals(names):
    """Check what a recipe leaves: intervals of a model that can be pickled."""
    lower, upper = np.moveaxis(names["intervals"], 1, 0)
    assert names["intervals"].shape == (500, 2, 2)
    assert np.all(lower <= upper)
    with threadpool_limits(1):
        loaded = pickle.loads(pickle.dumps(names["model"]))
        found = loaded.predict_interval(names["X_new"], coverage=[0.8, 0.9])
    np.testing.assert_array_equal(found, names["intervals"])
    coverage = np.mean((lower <= names["y_new"][:, None]) & (names["y_new"][:, None] <= upper), 0)
    assert coverage[0] < coverage[1]
    return coverage


def check_forest(names):
    """Check that leaves which predict the mean of all training rows in them do so here."""
    coverage = check_intervals(names)
    expected = names["forest"].predict(names["X_new"])
    np.testing.assert_allclose(names["model"].predict(names["X_new"]), expected, atol=2e-6)
    assert np.all(np.abs(coverage - [0.8, 0.9]) < 0.1)


@pytest.mark.filterwarnings("ignore::UserWarning")  # their own about names of features
@pytest.mark.parametrize("library", list(FORESTS))
def test_calls_give_intervals_and_models_that_can_be_pickled(library, rows, recipe):
    module, forest = FORESTS[library]
    pytest.importorskip(module)
    code = f"""
from functools import partial
import {module} as library
from hdiforest import from_leaves
forest = library.{forest}.fit(X_train, y_train)
model = {CALLS[library]}
intervals = model.predict_interval(X_new, coverage=[0.8, 0.9])
"""
    names = run(code, rows, recipe)
    if library in ("LightGBM", "XGBoost"):  # boosted trees promise nothing
        check_forest(names)
    else:
        check_intervals(names)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("code", [CODE.search(FIRST)[1], RECIPES["Any library with leaves"]])
def test_recipes_give_intervals_and_models_that_can_be_pickled(code, rows, recipe):
    check_forest(run(code, rows, recipe))


@pytest.mark.parametrize("most", [1, None])
def test_quantile_forest_from_its_stored_leaves(most, rows, recipe):
    quantile_forest = pytest.importorskip("quantile_forest")
    X, y, X_new = rows["X_train"], rows["y_train"], rows["X_new"]
    forest = quantile_forest.RandomForestQuantileRegressor(
        50, min_samples_leaf=5, max_samples_leaf=most, random_state=0
    ).fit(X, y)
    names = run(RECIPES["quantile-forest"], rows, recipe)
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


def test_code_of_the_engine_runs_in_order():
    names = {}
    for section in SECTIONS[SECTIONS.index(next(s for s in SECTIONS if s.startswith("Larger"))) :]:
        for code in CODE.findall(section):
            exec(code, names)
    assert names["larger"].n_leaves.tolist() == [2]


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
