"""Scorers in cross-validation and searches, against other libraries' metrics."""

import pickle
import sys

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hdiforest import HDIForestRegressor, from_leaves
from hdiforest.metrics import (
    crps_score,
    make_coverage_scorer,
    make_crps_scorer,
    make_interval_scorer,
    make_pinball_scorer,
)

from ..oracle import run_python

SCORERS = [
    make_interval_scorer(0.8),
    make_coverage_scorer(0.8),
    make_crps_scorer(),
    make_pinball_scorer([0.2, 0.7]),
]
names = pytest.mark.parametrize("scorer", SCORERS, ids=repr)


@pytest.fixture(scope="module")
def rows():
    X, y = make_friedman1(300, 5, noise=1, random_state=0)
    return X[:200], y[:200], X[200:], y[200:]


def new_model(leaf=5):
    forest = RandomForestRegressor(20, min_samples_leaf=leaf, random_state=0)
    return HDIForestRegressor(forest, calibration=False)


@pytest.fixture(scope="module")
def model(rows):
    return new_model().fit(*rows[:2])


def test_the_coverage_scorer_is_greatest_where_coverage_is_nominal(rows):
    class Fixed:
        def predict_interval(self, X, coverage, **_):
            return np.tile([0.0, 1.0], (len(X), 1))

    X = np.zeros((10, 1))
    found = [
        make_coverage_scorer(0.8)(Fixed(), X, np.repeat([0.5, 2], [k, 10 - k])) for k in (7, 8, 10)
    ]
    assert found == pytest.approx([-0.1, 0, -0.2], abs=1e-12)


def test_the_crps_is_that_of_the_weights(model, rows):
    _, y_train, X, y = rows
    expected = crps_score(y, y_train, model.predict_weights(X))
    assert make_crps_scorer()(model, X, y) == pytest.approx(-expected, rel=1e-9)


@pytest.mark.peers
def test_scores_are_those_of_scoringrules(model, rows):
    peer = pytest.importorskip("scoringrules")
    _, y_train, X, y = rows
    sample, weights = np.tile(y_train, (len(y), 1)), model.predict_weights(X).toarray()
    ends, quantile = model.predict_interval(X, 0.8).T, model.predict_quantiles(X, 0.2)
    for scorer, expected in (
        (make_interval_scorer(0.8), peer.interval_score(y, *ends, 0.2)),
        (
            make_crps_scorer(),
            peer.crps_ensemble(y, sample, ens_w=weights, estimator="nrg", backend="numpy"),
        ),
        (make_pinball_scorer(0.2), peer.quantile_score(y, quantile, 0.2)),
    ):
        assert scorer(model, X, y) == pytest.approx(-np.mean(expected), rel=1e-9)


def test_pinball_losses_are_averaged(model, rows):
    X, y = rows[2:]
    losses = [mean_pinball_loss(y, model.predict_quantiles(X, q), alpha=q) for q in (0.2, 0.7)]
    found = make_pinball_scorer([0.2, 0.7])(model, X, y)
    assert found == pytest.approx(-np.mean(losses), rel=1e-12)
    assert make_pinball_scorer(0.2)(model, X, y) == pytest.approx(-losses[0], rel=1e-12)


@names
def test_whole_weights_are_repetitions_of_rows(model, rows, scorer):
    X, y = rows[2:]
    repeats = np.random.default_rng(0).integers(0, 3, len(y))
    found = scorer(model, X, y, sample_weight=repeats)
    assert found == pytest.approx(scorer(model, X.repeat(repeats, 0), y.repeat(repeats)), rel=1e-9)


@names
def test_pipelines_searches_and_frozen_models_score_as_the_model_inside(rows, scorer):
    X_train, y_train, X, y = rows
    pipeline = make_pipeline(StandardScaler(), new_model()).fit(X_train, y_train)
    scaled = pipeline[:-1].transform(X)
    expected = scorer(pipeline[-1], scaled, y)
    assert scorer(pipeline, X, y) == expected
    assert scorer(FrozenEstimator(pipeline), X, y) == expected
    search = GridSearchCV(new_model(), {"n_jobs": [1]}, cv=2, scoring=scorer).fit(X_train, y_train)
    assert scorer(search, X, y) == scorer(search.best_estimator_, X, y)
    nested = make_pipeline(StandardScaler(), search)
    nested.fit(X_train, y_train)
    assert np.isfinite(scorer(nested, X, y))


@names
def test_models_of_leaves(rows, scorer):
    X_train, y_train, X, y = rows
    forest = RandomForestRegressor(20, min_samples_leaf=5, random_state=0).fit(X_train, y_train)
    model = HDIForestRegressor.from_forest(forest, X_train, y_train)
    leaves = from_leaves(forest.apply, X_train, y_train)
    assert scorer(leaves, X, y) == pytest.approx(scorer(model, X, y), rel=1e-12)


@names
def test_cross_validation_scores_each_fold(rows, scorer):
    X, y = rows[:2]
    found = cross_val_score(new_model(), X, y, scoring=scorer, cv=2)
    model = new_model().fit(X[100:], y[100:])
    assert found[0] == scorer(model, X[:100], y[:100])
    both = cross_validate(new_model(), X, y, scoring={"own": scorer, "r2": "r2"}, cv=2)
    np.testing.assert_array_equal(both["test_own"], found)


def test_a_search_chooses_by_the_scorer(rows):
    X, y = rows[:2]
    sizes = {"estimator__min_samples_leaf": [2, 60]}
    search = GridSearchCV(new_model(), sizes, scoring=make_interval_scorer(), cv=2).fit(X, y)
    assert search.best_params_ == {"estimator__min_samples_leaf": 2}
    assert clone(search).scoring._options["coverage"] == 0.9


@names
def test_pickles_and_reprs(model, rows, scorer):
    X, y = rows[2:]
    again = pickle.loads(pickle.dumps(scorer))
    assert repr(again) == repr(scorer)
    assert again(model, X, y) == scorer(model, X, y)
    assert repr(eval(repr(scorer))) == repr(scorer)


def test_metadata_routing_passes_weights_that_were_asked_for(rows):
    X, y = rows[:2]
    weights = np.random.default_rng(0).integers(1, 5, len(y)).astype(float)
    with config_context(enable_metadata_routing=True):
        scorer = make_interval_scorer(0.8).set_score_request(sample_weight=True)
        forest = RandomForestRegressor(10, random_state=0).set_fit_request(sample_weight=False)
        model = HDIForestRegressor(forest, calibration=False).set_fit_request(sample_weight=False)
        found = cross_val_score(
            model, X, y, scoring=scorer, cv=2, params={"sample_weight": weights}
        )
        model.fit(X[100:], y[100:])
        expected = scorer(model, X[:100], y[:100], sample_weight=weights[:100])
    assert found[0] == expected
    assert expected != scorer(model, X[:100], y[:100])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: make_interval_scorer(90), r"coverage must be .* got 90 \(did you mean 0.9\?\)"),
        (lambda: make_interval_scorer("most"), "coverage must be one number .* got 'most'"),
        (lambda: make_interval_scorer(0.9, kind="upper"), "kind must be .* got 'upper'"),
        (lambda: make_coverage_scorer(0.9, kind="shortest"), "kind must be .* got 'shortest'"),
        (lambda: make_pinball_scorer([0.5, 1]), "quantiles must be above 0 and below 1, got 1"),
        (lambda: make_pinball_scorer([]), "quantiles must be a number or a list"),
    ],
)
def test_wrong_arguments_are_refused_when_the_scorer_is_made(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_other_estimators_and_several_targets_are_refused(model, rows):
    X, y = rows[2:]
    linear = LinearRegression().fit(X, y)
    with pytest.raises(ValueError, match=r"has predict_interval, .*, got LinearRegression"):
        make_interval_scorer()(linear, X, y)
    with pytest.raises(ValueError, match=r"needs one target, y of shape \(n,\), got .* \(100, 2\)"):
        make_crps_scorer()(model, X, np.stack([y, y], axis=1))


def test_importing_metrics_loads_no_scikit_learn(tmp_path):
    code = "import sys, hdiforest.metrics; print('sklearn' in sys.modules, 'scipy' in sys.modules)"
    assert run_python(code, cwd=tmp_path).split() == ["False", "False"]
    assert "sklearn" in sys.modules
