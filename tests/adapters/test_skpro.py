"""HDIForestProba passes skpro's own checks, holds a model's distributions, and works in sktime."""

import pickle
import sys
from importlib import import_module

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from hdiforest import HDIForestRegressor

from ..oracle import not_installed


def forest(n_trees=20, **options):
    return RandomForestRegressor(n_trees, min_samples_leaf=5, random_state=0, **options)


@pytest.fixture(scope="module")
def proba():
    """The class, if skpro is installed."""
    pytest.importorskip("skpro", reason="needs the extra [skpro]")
    from hdiforest.adapters.skpro import HDIForestProba

    return HDIForestProba


@pytest.fixture(scope="module")
def rows():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((260, 3)), columns=["a", "b", "c"])
    y = (X[["a"]] + rng.exponential(0.3, (260, 1))).round(2)
    y.columns = ["t"]
    return X[:200], y[:200], X[200:], y[200:]


@pytest.fixture(scope="module")
def fitted(proba, rows):
    X, y, *_ = rows
    return proba(forest()).fit(X, y)


def test_without_skpro_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "hdiforest.adapters.skpro", raising=False)
    told = r"^hdiforest.adapters.skpro needs skpro: pip install 'hdicore\[skpro\]'$"
    with not_installed("skpro"), pytest.raises(ImportError, match=told):
        import_module("hdiforest.adapters.skpro")


def test_all_checks_of_skpro_pass(proba):
    from skpro.utils import check_estimator

    results = check_estimator(proba, raise_exceptions=False, verbose=False)
    assert {name: error for name, error in results.items() if error != "PASSED"} == {}
    assert len(results) > 60


def test_intervals_are_the_shortest_and_quantiles_stay_quantiles(fitted, rows):
    X, y, X_new, _ = rows
    model = HDIForestRegressor(forest(), calibration=False).fit(X, y["t"])
    found = fitted.predict_interval(X_new, coverage=[0.9, 0.5])
    assert list(found.columns) == [("t", c, end) for c in (0.9, 0.5) for end in ("lower", "upper")]
    assert found.index.equals(X_new.index)
    expected = model.predict_interval(X_new, [0.9, 0.5])
    for k, coverage in enumerate([0.9, 0.5]):
        np.testing.assert_array_equal(found["t"][coverage], expected[:, :, k])
    quantiles = fitted.predict_quantiles(X_new, alpha=[0.95, 0.05])
    assert list(quantiles.columns) == [("t", 0.95), ("t", 0.05)]
    np.testing.assert_array_equal(quantiles, model.predict_quantiles(X_new, [0.95, 0.05]))
    widths = quantiles["t"][0.95] - quantiles["t"][0.05]
    assert np.all(np.diff(expected[:, :, 0])[:, 0] <= widths + 1e-12)
    np.testing.assert_array_equal(fitted.predict(X_new)["t"], model.predict(X_new))


def test_distributions_have_the_weights_of_the_training_rows(fitted, rows):
    _, y, X_new, y_new = rows
    model, found = fitted.model_, fitted.predict_proba(X_new)
    weights = model.predict_weights(X_new).toarray()
    at = X_new.index[7]
    atoms = found.spl["t"].xs(at, level=1)
    held = found.weights.xs(at, level=1).groupby(atoms.to_numpy()).sum()
    np.testing.assert_allclose(
        held, [weights[7, (y["t"] == atom).to_numpy()].sum() for atom in held.index], atol=1e-12
    )
    np.testing.assert_allclose(found.mean(), fitted.predict(X_new), atol=1e-6)
    np.testing.assert_allclose(found.var(), fitted.predict_var(X_new), rtol=1e-6)
    expected = model.predict_cdf(X_new, y_new["t"])
    np.testing.assert_allclose(found.cdf(y_new)["t"], expected, atol=1e-6)
    np.testing.assert_array_equal(found.ppf(0.3)["t"], model.predict_quantiles(X_new, 0.3))
    drawn = found.sample(3)
    assert drawn.shape == (3 * len(X_new), 1)
    assert set(drawn["t"]) <= set(y["t"])


def test_intervals_are_calibrated_where_that_is_asked_for(proba, rows):
    X, y, X_new, _ = rows
    regressor = proba(forest(60), calibration=[0.5, 0.8]).fit(X, y)
    model = (
        HDIForestRegressor(forest(60), calibration=False)
        .fit(X, y["t"])
        .calibrate(coverage=[0.5, 0.8])
    )
    found = regressor.predict_interval(X_new, coverage=[0.5, 0.8])
    expected = np.moveaxis(model.predict_interval(X_new, [0.5, 0.8]), 1, 2).reshape(len(X_new), 4)
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match=r"coverage must be one that was calibrated: 0.5, 0.8"):
        regressor.predict_interval(X_new, coverage=0.7)
    default = proba(HDIForestRegressor(forest(60))).fit(X, y)
    assert not hasattr(default.model_, "calibration_")
    own = proba(HDIForestRegressor(forest(60), calibration=[0.6])).fit(X, y)
    assert own.model_.calibration_.coverages == (0.6,)


def test_several_targets_have_joint_atoms(proba, rows):
    X, y, X_new, _ = rows
    both = y.assign(u=-2 * y["t"])
    regressor = proba(forest()).fit(X, both)
    found = regressor.predict_interval(X_new, coverage=[0.5, 0.9])
    model = HDIForestRegressor(forest(), calibration=False).fit(X, both.to_numpy())
    expected = model.predict_interval(X_new, [0.5, 0.9])
    np.testing.assert_array_equal(found["u"][0.9], expected[:, 1, :, 1])
    np.testing.assert_array_equal(found["t"][0.5], expected[:, 0, :, 0])
    quantiles = regressor.predict_quantiles(X_new, alpha=[0.1, 0.9])
    np.testing.assert_array_equal(quantiles["u"], model.predict_quantiles(X_new, [0.1, 0.9])[:, 1])
    atoms = regressor.predict_proba(X_new).spl
    np.testing.assert_array_equal(atoms["u"], -2 * atoms["t"])
    variances = regressor.predict_var(X_new)
    np.testing.assert_allclose(variances["u"], 4 * variances["t"])


def test_a_fitted_forest_is_kept(proba, rows):
    X, y, X_new, _ = rows
    for given in (X, X.to_numpy()):  # one fitted with names, and one without
        grown = forest().fit(given, y["t"])
        model = HDIForestRegressor.from_forest(grown, given, y["t"], weights="inbag")
        regressor = proba(model).fit(X, y)
        assert regressor.model_.estimator_ is grown
        own = X_new if given is X else X_new.to_numpy()
        np.testing.assert_array_equal(regressor.predict(X_new)["t"], model.predict(own))
        with pytest.raises(ValueError, match="X has 150 rows, but the forest was fitted on 200"):
            clone(regressor).fit(X[:150], y[:150])


def test_the_index_of_rows_is_kept(fitted, rows):
    import pandas as pd

    X_new = rows[2][:4]
    times = pd.date_range("2026-01-01", periods=4, freq="h", tz="Europe/Berlin")
    two_levels = pd.MultiIndex.from_product([["x", "y"], [3, 1]], names=["site", None])
    for index in (times, two_levels, times.tz_localize(None).to_period("h")):
        given = X_new.set_axis(index, axis=0)
        distributions = fitted.predict_proba(given)
        assert distributions.index.equals(index)
        np.testing.assert_allclose(distributions.mean(), fitted.predict(X_new), atol=1e-6)
        np.testing.assert_array_equal(
            distributions.ppf(0.5), fitted.predict_quantiles(X_new, alpha=0.5)
        )
        assert fitted.predict_interval(given).index.equals(index)
    twice = X_new.set_axis([0, 1, 1, 2], axis=0)
    assert list(fitted.predict_interval(twice).index) == [0, 1, 1, 2]
    with pytest.raises(ValueError, match="the index of X must name each row once, because skpro's"):
        fitted.predict_proba(twice)


def test_rows_in_empty_leaves_have_no_numbers(proba, rows):
    X, y, X_new, _ = rows
    one_tree = HDIForestRegressor(
        RandomForestRegressor(1, random_state=0), weights="oob", calibration=False
    )
    regressor = proba(one_tree).fit(X, y)
    means = regressor.predict(X_new)["t"]
    empty = np.isnan(means)
    assert 0 < empty.sum() < len(X_new)
    medians = regressor.predict_quantiles(X_new, alpha=0.5)
    np.testing.assert_array_equal(regressor.predict_proba(X_new).ppf(0.5), medians)
    np.testing.assert_array_equal(np.isnan(medians["t"][0.5]), empty)
    np.testing.assert_array_equal(np.isnan(regressor.predict_var(X_new)["t"]), empty)


def test_tags_copies_and_refusals(proba, rows, fitted):
    X, y, X_new, _ = rows
    assert fitted.get_tag("capability:missing")
    powers = proba(make_pipeline(PolynomialFeatures(), forest()))
    assert not powers.get_tag("capability:missing")
    loaded = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(loaded.predict_interval(X_new), fitted.predict_interval(X_new))
    assert not hasattr(fitted.estimator, "estimators_")  # the given one is not fitted
    with pytest.raises(ValueError, match="estimator must be a forest"):
        proba("forest").fit(X, y)


@pytest.mark.filterwarnings("ignore:The default of config:FutureWarning")  # of sktime, its own
def test_forecasters_of_sktime_give_its_intervals(proba):
    pytest.importorskip("sktime", reason="sktime is not installed")
    from sktime.datasets import load_airline, load_longley
    from sktime.forecasting.compose import YfromX, make_reduction

    y, X = load_longley()
    forecaster = YfromX(proba(forest())).fit(y[:12], X=X[:12], fh=[1, 2, 3, 4])
    found = forecaster.predict_interval(X=X[12:], coverage=[0.5, 0.8])
    model = HDIForestRegressor(forest(), calibration=False).fit(X[:12], y[:12])
    expected = np.moveaxis(model.predict_interval(X[12:], [0.5, 0.8]), 1, 2)
    np.testing.assert_array_equal(found, expected.reshape(4, 4))
    assert list(found.index) == list(y.index[12:])

    y = load_airline()
    reduced = make_reduction(proba(forest()), strategy="direct", window_length=12)
    reduced.fit(y[:132], fh=[1, 2])
    past = np.lib.stride_tricks.sliding_window_view(y.to_numpy(), 12)
    for step in (1, 2):
        model = HDIForestRegressor(forest(), calibration=False).fit(
            past[:119], y[11 + step : 130 + step]
        )
        expected = model.predict_quantiles(past[120:121], [0.1, 0.9])
        found = reduced.predict_interval(coverage=0.8).iloc[[step - 1]]
        np.testing.assert_array_equal(found, expected)
