"""Rows that hold a mean share together, by models of all kinds."""

import re
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hdicore.batch import BatchIntervals
from hdiforest import HDIForestRegressor, from_leaves
from hdiforest.allocation import allocate_coverage

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X[:, 0] + np.exp(X[:, 1]) * rng.normal(size=400)
    return X, y, rng.normal(size=(150, 3))


@pytest.fixture(scope="module")
def model(data):
    forest = ExtraTreesRegressor(20, bootstrap=True, min_samples_leaf=5, random_state=0)
    return HDIForestRegressor(forest, calibration=False).fit(*data[:2])


def test_the_total_is_narrower_than_rows_that_hold_as_much_each(model, data):
    found = allocate_coverage(model, data[2], 0.9)
    assert isinstance(found, BatchIntervals)
    widths = found.interval[:, 1] - found.interval[:, 0]
    assert found.total_width == pytest.approx(widths.sum())
    assert found.bound <= found.total_width <= found.bound + widths.max()
    assert found.mass.mean() >= 0.9 - 1e-9
    assert found.mass.min() >= 0.5 - 1e-9
    hdi = model.predict_interval(data[2], 0.9, kind="hdi")
    assert found.total_width < 0.95 * (hdi[:, 1] - hdi[:, 0]).sum()
    ends, share = found.interval, found.mass
    inside = model.predict_cdf(data[2], ends[:, 1]) - model.predict_cdf(
        data[2], ends[:, 0], inclusive=False
    )
    np.testing.assert_allclose(share, inside, atol=1e-8)


def test_tables_give_what_arrays_give(model, data):
    rows = data[2]
    frame = pd.DataFrame(rows, index=np.arange(150) + 7)
    expected = allocate_coverage(model, rows)
    table = allocate_coverage(model, rows, output="polars").interval
    assert isinstance(table, pl.DataFrame)
    assert table.columns == ["lower", "upper", "mass"]
    np.testing.assert_array_equal(table["lower"], expected.interval[:, 0])
    indexed = allocate_coverage(model, frame, output="pandas").interval
    assert list(indexed.index) == list(frame.index)
    np.testing.assert_array_equal(indexed["mass"], expected.mass)


def test_models_of_leaves_do_the_same(model, data):
    X, y, rows = data
    of_leaves = from_leaves(model.estimator_.apply, X, y)
    expected = allocate_coverage(model, rows.astype(np.float32))
    found = allocate_coverage(of_leaves, rows.astype(np.float32))
    np.testing.assert_array_equal(found.interval, expected.interval)


def test_steps_before_the_model_come_first(model, data):
    X, y, rows = data
    scaler, forest = StandardScaler().fit(X), clone(model)
    pipeline = make_pipeline(scaler, forest.fit(scaler.transform(X), y))
    frame = pd.DataFrame(rows, index=np.arange(150) + 7)
    expected = allocate_coverage(forest, scaler.transform(rows), 0.85)
    found = allocate_coverage(pipeline, frame.to_numpy(), 0.85)
    np.testing.assert_array_equal(found.interval, expected.interval)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's, of names that the fit had not
        table = allocate_coverage(pipeline, frame, 0.85, output="pandas").interval
    assert list(table.index) == list(frame.index)
    search = GridSearchCV(model, {"weights": ["all"]}, cv=2).fit(X, y)
    found, expected = (allocate_coverage(m, rows) for m in (search, search.best_estimator_))
    np.testing.assert_array_equal(found.mass, expected.mass)


def test_a_floor_that_holds_enough_says_so(model, data):
    with pytest.warns(UserWarning, match=r"min_coverage=0\.9 alone holds 0\.9\d+ on average"):
        found = allocate_coverage(model, data[2], 0.8, min_coverage=0.9)
    hdi = model.predict_interval(data[2], 0.9, kind="hdi")
    np.testing.assert_allclose(found.total_width, (hdi[:, 1] - hdi[:, 0]).sum())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coverage": 1.0}, "coverage must be above 0 and below 1, got 1"),
        ({"coverage": [0.5, 0.9]}, "coverage must be one number above 0 and below 1"),
        ({"min_coverage": 1.0}, "min_coverage, if not 0, must be above 0 and below 1, got 1"),
        ({"min_coverage": -0.1}, "min_coverage, if not 0, must be above 0 and below 1, got -0.1"),
        ({"min_coverage": "half"}, "min_coverage, if not 0, must be one number"),
        ({"output": "excel"}, "output must be"),
    ],
)
def test_bad_input_is_refused(model, data, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        allocate_coverage(model, data[2], **options)


def test_several_targets_are_refused(data):
    X, y, rows = data
    forest = ExtraTreesRegressor(5, bootstrap=True, random_state=0)
    model = HDIForestRegressor(forest, calibration=False).fit(X, np.stack([y, y], axis=1))
    with pytest.raises(ValueError, match="allocate_coverage needs a model of one target, got 2"):
        allocate_coverage(model, rows)


def test_rows_without_a_distribution_stay_empty(data):
    X, y, rows = data
    forest = ExtraTreesRegressor(2, bootstrap=True, random_state=0)
    model = HDIForestRegressor(forest, weights="oob", calibration=False).fit(X, y)
    found = allocate_coverage(model, rows, 0.8, min_coverage=0)
    empty = np.isnan(model.predict(rows))
    assert empty.any()
    np.testing.assert_array_equal(np.isnan(found.mass), empty)
    assert np.nanmean(found.mass) >= 0.8 - 1e-9
