"""Regions of models: raw and calibrated, as tables, on lattices, of several targets, and stored."""

import re

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from hdicore.regions import Regions
from hdiforest import HDIForestRegressor, from_leaves

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

COVERAGE = 0.9


@pytest.fixture(scope="module")
def data():
    """Targets of two modes, 6 apart, whose place depends on a feature."""
    rng = np.random.default_rng(0)
    X = rng.random((1500, 2))
    y = 3 * X[:, 0] + rng.choice([-3, 3], 1500) + 0.3 * rng.normal(size=1500)
    return X, y


def forest():
    return ExtraTreesRegressor(60, bootstrap=True, min_samples_leaf=3, random_state=0)


@pytest.fixture
def model(data):
    return HDIForestRegressor(forest(), calibration=False).fit(data[0][:900], data[1][:900])


@pytest.fixture(scope="module")
def calibrated(data):
    own = HDIForestRegressor(forest(), calibration=False).fit(data[0][:900], data[1][:900])
    return own.calibrate_region(coverage=COVERAGE)


def test_regions_of_atoms_are_those_of_the_engine(model, data):
    rows = data[0][900:]
    found = model.predict_region(rows, 0.8, max_pieces=3, gap=0.2, bandwidth=0)
    assert isinstance(found, Regions)
    unit = model.scorer_.index.atoms().std()
    offsets, ends, bounds = model.scorer_.regions(rows, 0.8, 3, 0.2 * unit)
    np.testing.assert_array_equal(found.offsets, offsets)
    np.testing.assert_array_equal(found.bound, bounds)
    assert (found.bound <= found.length + 0.2 * unit * (found.n_pieces - 1) + 1e-9).all()
    np.testing.assert_array_equal(np.stack([found.lower, found.upper], axis=1), ends)


def test_two_modes_are_two_pieces_and_shorter(model, data):
    rows = data[0][900:]
    found = model.predict_region(rows, 0.9)
    assert (found.n_pieces == 2).mean() > 0.95
    interval = model.predict_interval(rows, 0.9, kind="hdi")
    assert found.length.mean() < 0.6 * np.diff(interval).mean()
    one = model.predict_region(rows, 0.9, max_pieces=1)
    assert (one.n_pieces == 1).all()


def test_calibrated_out_of_bag(calibrated, data):
    X, y = data
    known = calibrated.region_calibration_
    assert (known.coverage, known.method, known.shape.max_pieces) == (COVERAGE, "oob", 2)
    found = calibrated.predict_region(X[900:], COVERAGE)
    assert found.contains(y[900:]).mean() == pytest.approx(COVERAGE, abs=0.04)
    assert found.length.mean() == pytest.approx(known.mean_length, rel=0.05)
    low, high = y[:900].min(), y[:900].max()
    assert low <= found.lower.min()
    assert found.upper.max() <= high
    raw = calibrated.predict_region(X[900:], COVERAGE, kind="raw")
    assert raw.length.mean() > found.length.mean()


def test_split_is_a_quantile_of_distances(model, data):
    X, y = data
    model.calibrate_region(X[900:1200], y[900:1200], coverage=0.8)
    known = model.region_calibration_
    assert (known.method, known.n) == ("split", 300)
    grid = (*model.scorer_.index.atoms()[[0, -1]], 100, known.shape.bandwidth)
    offsets, ends, _ = model.scorer_.regions(
        X[900:1200], known.shape.level, 2, known.shape.gap, grid=grid
    )
    scores = np.sort(Regions(offsets, *ends.T).distance(y[900:1200]))
    assert known.q_hat == scores[int(np.ceil(0.8 * 301)) - 1]
    share = model.predict_region(X[1200:], 0.8).contains(y[1200:]).mean()
    assert share == pytest.approx(0.8, abs=0.08)


def test_without_rows_out_of_bag_split_alone(data):
    X, y = data
    few = HDIForestRegressor(ExtraTreesRegressor(3, random_state=0), calibration=False)
    few.fit(X[:900], y[:900])
    with pytest.raises(ValueError, match=r"calibrate_region needs .* calibrate_region\(X, y\)"):
        few.calibrate_region()
    few.calibrate_region(X[900:], y[900:])
    assert few.region_calibration_.shape.level == 0.9


def test_a_stored_model_gives_the_same(calibrated, data, tmp_path):
    pytest.importorskip("safetensors")
    calibrated.save(tmp_path / "m.hdi")
    loaded = HDIForestRegressor.load(tmp_path / "m.hdi")
    assert loaded.region_calibration_ == calibrated.region_calibration_
    expected, found = (m.predict_region(data[0][900:]) for m in (calibrated, loaded))
    np.testing.assert_array_equal(found.lower, expected.lower)


def test_another_calibration_may_prune_and_drops_that_of_regions(model, data):
    model.calibrate_region()
    model.calibrate(coverage=0.9)
    assert not hasattr(model, "region_calibration_")


def test_tables_hold_lists(calibrated, data):
    rows = data[0][900:903]
    expected = calibrated.predict_region(rows)
    frame = calibrated.predict_region(pd.DataFrame(rows, index=[7, 8, 9]), output="pandas")
    assert list(frame.index) == [7, 8, 9]
    for cell, own in zip(frame["region"], expected, strict=True):
        np.testing.assert_array_equal(cell, own)
    for table in (
        calibrated.predict_region(rows, output="pyarrow"),
        calibrated.predict_region(rows, output="polars"),
    ):
        assert isinstance(table, pa.Table | pl.DataFrame)
        column = table["region"]
        lists = column.to_pylist() if isinstance(table, pa.Table) else column.to_list()
        assert [len(each) for each in lists] == expected.n_pieces.tolist()
        assert lists[0][0] == {"lower": expected.lower[0], "upper": expected.upper[0]}


def test_on_a_lattice_pieces_are_points(data):
    X = data[0]
    rng = np.random.default_rng(1)
    y = rng.choice([0, 1, 8, 9], len(X), p=[0.3, 0.2, 0.3, 0.2])
    model = HDIForestRegressor(forest(), calibration=False).fit(X[:900], y[:900])
    found = model.predict_region(X[900:], 0.9)
    # Without counting, four single points would cost nothing.
    assert (found.n_pieces == 2).mean() > 0.9
    assert set(np.unique([found.lower, found.upper])) <= {0, 1, 8, 9}
    with pytest.warns(UserWarning, match="targets lie on a lattice of step 1: bandwidth is not"):
        model.predict_region(X[900:], bandwidth=0.2)
    model.calibrate_region()
    widened = model.predict_region(X[900:])
    assert widened.contains(y[900:]).mean() >= 0.87
    np.testing.assert_array_equal(widened.lower, np.round(widened.lower))


def test_several_targets_have_regions_each(data):
    X, y = data
    both = np.stack([y, 10 * y], axis=1)
    model = HDIForestRegressor(forest(), calibration=False).fit(X[:900], both[:900])
    first, second = model.predict_region(X[900:950])
    np.testing.assert_allclose(second.lower, 10 * first.lower)
    table = model.predict_region(X[900:950], output="pandas")
    assert list(table) == ["y0_region", "y1_region"]
    with pytest.raises(ValueError, match="calibrate_region needs a model of one target, got 2"):
        model.calibrate_region()


def test_models_of_leaves_have_raw_regions(model, data):
    X, y = data
    of_leaves = from_leaves(model.estimator_.apply, X[:900], y[:900])
    found = of_leaves.predict_region(X[900:].astype(np.float32), 0.8)
    assert (found.n_pieces == 2).mean() > 0.9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coverage": 1.0}, "coverage must be above 0 and below 1, got 1"),
        ({"coverage": [0.5]}, "coverage must be one number"),
        ({"max_pieces": 0}, "max_pieces must be a whole number from 1 on, got 0"),
        ({"max_pieces": 50}, "max_pieces must be at most 8, got 50"),
        ({"gap": -1}, "gap must be a number from 0 on and finite, got -1"),
        ({"gap": [1, 2]}, "gap must be a number from 0 on and finite, got [1, 2]"),
        ({"bandwidth": np.inf}, "bandwidth must be a number from 0 on and finite, got inf"),
        ({"bandwidth": "wide"}, "bandwidth must hold numbers"),
        ({"kind": "hdi"}, "kind must be 'calibrated', 'raw' or None, got 'hdi'"),
    ],
)
def test_bad_input_is_refused(model, data, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        model.predict_region(data[0][:2], **options)


def test_what_is_calibrated_is_not_asked_for_again(calibrated, model, data):
    with pytest.raises(ValueError, match=r"coverage must be 0\.9, as calibrated, got 0\.8"):
        calibrated.predict_region(data[0][:2], 0.8)
    with pytest.raises(ValueError, match="kind must be 'raw' with max_pieces, gap or bandwidth"):
        calibrated.predict_region(data[0][:2], max_pieces=1)
    with pytest.raises(AttributeError, match="no region_calibration_; call calibrate_region"):
        model.predict_region(data[0][:2], kind="calibrated")
    with pytest.raises(ValueError, match="X and y must be given together, or neither"):
        model.calibrate_region(data[0])
    with pytest.raises(ValueError, match="max_pieces must be at most 8, got 9"):
        model.calibrate_region(max_pieces=9)
    with pytest.raises(ValueError, match="X and y must be rows that took no part in the fit"):
        model.calibrate_region(data[0][:900], data[1][:900])
