"""Functions of `hdiforest.inspection`: which models they take, and how they refuse others."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hdiforest import ForestSearchOOB, HDIForestRegressor, from_leaves, inspection

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = X[:, 0] + RNG.normal(size=200)
NEW = RNG.normal(size=(4, 3))
FOREST = RandomForestRegressor(60, min_samples_leaf=5, random_state=0)

ASKED = {
    "diagnose": lambda model, rows: inspection.diagnose(model, rows, 0.5)["mass_outside"],
    "explain": lambda model, rows: inspection.explain(model, rows, 0.5, random_state=0).interval,
    "nearest_rows": lambda model, rows: inspection.nearest_rows(model, rows).rows,
    "predict_matches_forest": lambda model, _: inspection.predict_matches_forest(model),
    "preprocessing_steps": lambda model, _: inspection.preprocessing_steps(model),
}


def test_every_function_is_asked():
    functions = {name for name in inspection.__all__ if name[0].islower()}
    assert functions == set(ASKED)


@pytest.fixture(scope="module")
def model():
    return HDIForestRegressor(FOREST).fit(StandardScaler().fit_transform(X), Y)


@pytest.mark.parametrize("name", ASKED)
def test_models_inside_others_are_found(name, model):
    """Oracle: the model itself, and rows that are scaled by hand."""
    scaler = StandardScaler().fit(X)
    expected = ASKED[name](model, scaler.transform(NEW))
    search = ForestSearchOOB([FOREST], coverage=0.5, random_state=0)
    search.fit(scaler.transform(X), Y).best_estimator_ = model
    frozen = make_pipeline(FrozenEstimator(scaler), FrozenEstimator(model))
    for outer, rows in (
        (FrozenEstimator(model), scaler.transform(NEW)),
        (search, scaler.transform(NEW)),
        (frozen, NEW),
        (GridSearchCV(frozen, {}, cv=2).fit(X, Y), NEW),
    ):
        np.testing.assert_array_equal(ASKED[name](outer, rows), expected)


@pytest.mark.parametrize("name", ASKED)
def test_other_models_are_refused_by_their_class(name):
    leaves = from_leaves(FOREST.fit(X, Y).apply, X, Y)
    for other in (leaves, FOREST, make_pipeline(StandardScaler(), FOREST).fit(X, Y)):
        inner = other[-1] if hasattr(other, "steps") else other
        message = (
            rf"model must be, or end in, .* such as HDIForestRegressor.* {type(inner).__name__}"
        )
        with pytest.raises(ValueError, match=message):
            ASKED[name](other, NEW)


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("made", [HDIForestRegressor, ForestSearchOOB])
def test_models_that_are_not_fitted_are_named(name, made):
    with pytest.raises(NotFittedError, match=made.__name__):
        ASKED[name](made(), NEW)


def test_the_model_stays_as_it_is(model):
    before = model.__dict__.copy()
    for ask in ASKED.values():
        ask(model, NEW)
    assert model.__dict__ == before
