"""A model's ends and median as regressors, conformalized by MAPIE and by crepes."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError

from hdiforest import HDIForestRegressor, from_leaves, quantile_views
from hdiforest.metrics import coverage_score

KINDS = ("equal_tailed", "hdi")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.random((2500, 4))
    y = np.sin(6 * X[:, 0]) + (0.2 + X[:, 1]) * rng.gumbel(size=2500)
    return X, y


@pytest.fixture(scope="module")
def model(rows):
    X, y = (part[:500] for part in rows)
    forest = RandomForestRegressor(40, min_samples_leaf=2, random_state=0).fit(X, y)
    return HDIForestRegressor.from_forest(forest, X, y)


@pytest.mark.parametrize("kind", KINDS)
def test_views_are_the_ends_and_the_median(kind, model, rows):
    X = rows[0][500:600]
    lower, upper, median = quantile_views(model, 0.8, kind=kind)
    ends = model.predict_interval(X, 0.8, kind=kind)
    np.testing.assert_array_equal(np.column_stack([lower.predict(X), upper.predict(X)]), ends)
    np.testing.assert_array_equal(median.predict(X), model.predict_quantiles(X, 0.5))
    if kind == "equal_tailed":
        quantiles = model.predict_quantiles(X, [0.1, 0.9])
        np.testing.assert_array_equal(ends, quantiles)
    leaves = from_leaves(model.estimator_.apply, *(part[:500] for part in rows))
    np.testing.assert_array_equal(quantile_views(leaves, 0.8, kind=kind)[0].predict(X), ends[:, 0])
    assert clone(lower) is lower
    assert lower.fit(X, rows[1][500:600]) is lower
    assert not hasattr(model, "calibration_")


@pytest.mark.peers
@pytest.mark.parametrize(("kind", "symmetric"), [("equal_tailed", True), ("hdi", False)])
def test_mapie_conformalizes_the_views_without_a_warning(kind, symmetric, model, rows, capfd):
    regression = pytest.importorskip("mapie.regression")
    X, y = rows
    views = quantile_views(model, 0.9, kind=kind)
    conformal = regression.ConformalizedQuantileRegressor(views, confidence_level=0.9, prefit=True)
    conformal.conformalize(X[500:1500], y[500:1500])
    medians, found = conformal.predict_interval(X[1500:], symmetric_correction=symmetric)
    loaded = pickle.loads(pickle.dumps(conformal))
    again = loaded.predict_interval(X[1500:], symmetric_correction=symmetric)[1]
    np.testing.assert_array_equal(again, found)
    np.testing.assert_array_equal(medians, model.predict_quantiles(X[1500:], 0.5))
    # Three standard errors of a share of 1000 rows, and of the 1000 that the constant is from.
    assert abs(coverage_score(y[1500:], found[:, :, 0]) - 0.9) < 0.04
    assert coverage_score(y[1500:], model.predict_interval(X[1500:], 0.9)) < 0.85
    if kind == "equal_tailed":  # the median of others may lie outside, of which MAPIE tells
        assert capfd.readouterr() == ("", "")


def test_what_cannot_be_viewed_is_refused(model, rows):
    X, y = (part[:100] for part in rows)
    with pytest.raises(TypeError, match="model must be an HDIForestRegressor or a LeafModel, such"):
        quantile_views(RandomForestRegressor())
    with pytest.raises(NotFittedError):
        quantile_views(HDIForestRegressor())
    two = HDIForestRegressor(RandomForestRegressor(3), calibration=False).fit(
        X, np.column_stack([y, y])
    )
    with pytest.raises(ValueError, match="model must have one target, got one with 2"):
        quantile_views(two)
    with pytest.raises(ValueError, match=r"above 0 and below 1, got 90 \(did you mean 0.9\?\)"):
        quantile_views(model, 90)
    with pytest.raises(ValueError, match=r"kind must be 'equal_tailed'.*'hdi'.* got 'calibrated'"):
        quantile_views(model, kind="calibrated")


@pytest.mark.peers
def test_crepes_covers_with_half_the_width_as_the_difficulty(model, rows):
    crepes = pytest.importorskip("crepes")
    from crepes.extras import DifficultyEstimator

    X, y = rows

    def half_width(rows):
        return np.diff(model.predict_interval(rows, 0.9))[:, 0] / 2

    difficulty = DifficultyEstimator()
    difficulty.fit(f=half_width)
    wrapped = crepes.WrapRegressor(model)
    wrapped.calibrate(X[500:1500], y[500:1500], de=difficulty)
    found = wrapped.predict_int(X[1500:], confidence=0.9)
    assert abs(coverage_score(y[1500:], found) - 0.9) < 0.04
    # A width in proportion to that of the model, but for the constant that crepes adds.
    np.testing.assert_allclose(
        np.diff(found)[:, 0] / (half_width(X[1500:]) + 0.01),
        np.ptp(found[0]) / (half_width(X[1500:1501]) + 0.01)[0],
    )
