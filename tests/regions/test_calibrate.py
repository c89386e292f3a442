"""Calibrated regions: of which rows, of which model, and that nothing of them is in the model."""

import pickle
import re

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hdicore.regions import Regions
from hdiforest import ForestSearchOOB, HDIForestRegressor, from_leaves
from hdiforest.exceptions import InfiniteIntervalsWarning
from hdiforest.regions import RegionCalibration, calibrate_region, predict_region

from .two_modes import NEW, RNG, Y_NEW, X, Y, fitted, forest, model

COVERAGE = 0.9


@pytest.fixture(scope="module")
def calibrated():
    return calibrate_region(model(), coverage=COVERAGE)


def same(found, expected):
    np.testing.assert_array_equal(found.offsets, expected.offsets)
    np.testing.assert_array_equal(found.lower, expected.lower)
    np.testing.assert_array_equal(found.upper, expected.upper)


def test_calibrated_out_of_bag(calibrated):
    known = calibrated
    assert (known.coverage, known.method, known.shape.max_pieces) == (COVERAGE, "oob", 2)
    found = calibrated.predict(NEW)
    assert found.contains(Y_NEW).mean() == pytest.approx(COVERAGE, abs=0.04)
    assert found.length.mean() == pytest.approx(known.mean_length, rel=0.05)
    assert Y[:900].min() <= found.lower.min()
    assert found.upper.max() <= Y[:900].max()
    assert predict_region(model(), NEW, COVERAGE).length.mean() > found.length.mean()


@pytest.mark.parametrize("coverage", [0.8, 0.55])
def test_split_is_a_quantile_of_distances(coverage):
    known = calibrate_region(model(), NEW[:300], Y_NEW[:300], coverage=coverage)
    assert (known.method, known.n) == ("split", 300)
    scorer = model().scorer_
    grid = (*scorer.index.atoms()[[0, -1]], 100, known.shape.bandwidth)
    offsets, ends, _ = scorer.regions(NEW[:300], known.shape.level, 2, known.shape.gap, grid=grid)
    scores = np.sort(Regions(offsets, *ends.T).distance(Y_NEW[:300]))
    assert known.q_hat == scores[int(np.ceil(coverage * 301)) - 1]
    share = known.predict(NEW[300:]).contains(Y_NEW[300:]).mean()
    assert share == pytest.approx(coverage, abs=0.08)


def test_without_rows_out_of_bag_split_alone():
    few = HDIForestRegressor(ExtraTreesRegressor(3, random_state=0), calibration=False)
    few.fit(X[:900], Y[:900])
    message = r"calibrate_region needs .* calibrate_region\(model, X, y\)"
    with pytest.raises(ValueError, match=message):
        calibrate_region(few)
    known = calibrate_region(few, NEW, Y_NEW)
    assert (known.method, known.shape.level) == ("split", 0.9)


def test_too_few_rows_give_infinite_regions():
    with pytest.warns(InfiniteIntervalsWarning, match="coverage 0.95"):
        known = calibrate_region(model(), NEW[:9], Y_NEW[:9], coverage=0.95)
    assert known.q_hat == np.inf


def test_a_later_calibration_of_the_model_changes_nothing():
    own = fitted()
    known = calibrate_region(own)
    before = known.predict(NEW)
    own.calibrate(coverage=0.9)  # which may prune
    same(known.predict(NEW), before)
    own.fit(X[:300], Y[:300])
    same(known.predict(NEW), before)


def test_of_a_loaded_model_and_through_a_pickle(calibrated, tmp_path):
    pytest.importorskip("safetensors")
    model().save(tmp_path / "m.hdi")
    loaded = calibrate_region(HDIForestRegressor.load(tmp_path / "m.hdi"), coverage=COVERAGE)
    pickled = pickle.loads(pickle.dumps(calibrated))
    expected = calibrated.predict(NEW)
    for each in (loaded, pickled):
        assert isinstance(each, RegionCalibration)
        assert (each.shape, each.q_hat) == (calibrated.shape, calibrated.q_hat)
        same(each.predict(NEW), expected)


def test_tables_hold_lists(calibrated):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    expected = calibrated.predict(NEW[:3])
    frame = calibrated.predict(pd.DataFrame(NEW[:3], index=[7, 8, 9]), output="pandas")
    assert list(frame.index) == [7, 8, 9]
    for cell, own in zip(frame["region"], expected, strict=True):
        np.testing.assert_array_equal(cell, own)
    lists = calibrated.predict(NEW[:3], output="polars")
    assert isinstance(lists, pl.DataFrame)
    assert [len(each) for each in lists["region"].to_list()] == expected.n_pieces.tolist()
    with pytest.raises(ValueError, match="output must be"):
        calibrated.predict(NEW[:3], output="lists")


def test_on_a_lattice_ends_are_points():
    y = RNG.choice([0, 1, 8, 9], len(X), p=[0.3, 0.2, 0.3, 0.2])
    found = calibrate_region(fitted(y)).predict(NEW)
    assert found.contains(y[900:]).mean() >= 0.87
    np.testing.assert_array_equal(found.lower, np.round(found.lower))


def test_searches_and_pipelines_are_calibrated_like_their_model():
    search = ForestSearchOOB([forest()], random_state=0).fit(X[:900], Y[:900])
    found, expected = map(calibrate_region, (search, search.best_estimator_))
    assert found.q_hat == expected.q_hat
    scaler = StandardScaler().fit(X[:900])
    rows = scaler.transform(X[:900])
    own = HDIForestRegressor(forest(), calibration=False).fit(rows, Y[:900])
    pipeline = make_pipeline(scaler, own)
    found = calibrate_region(pipeline, NEW[:200], Y_NEW[:200])
    expected = calibrate_region(own, scaler.transform(NEW[:200]), Y_NEW[:200])
    assert found.q_hat == expected.q_hat
    same(found.predict(NEW), expected.predict(scaler.transform(NEW)))


def test_bad_input_is_refused():
    for given, options, message in (
        ((X,), {}, "X and y must be given together, or neither"),
        ((), {"max_pieces": 9}, "max_pieces must be at most 8, got 9"),
        ((), {"coverage": 1}, "coverage must be above 0 and below 1, got 1"),
        ((), {"coverage": [0.5, 0.9]}, "coverage must be one number above 0 and below 1"),
        ((X[:900], Y[:900]), {}, "X and y must be rows that took no part in the fit"),
        ((NEW, Y_NEW[:5]), {}, "y must have shape (600,), got (5,)"),
        ((NEW[:, :1], Y_NEW), {}, "X has 1 features"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            calibrate_region(model(), *given, **options)


def test_models_without_trees_or_of_several_targets_are_refused():
    of_leaves = from_leaves(model().estimator_.apply, X[:900], Y[:900])
    with pytest.raises(ValueError, match=r"^model must be, or end in, .*, got LeafModel"):
        calibrate_region(of_leaves)
    both = fitted(np.stack([Y, 10 * Y], axis=1))
    with pytest.raises(ValueError, match="calibrate_region needs a model of one target, got 2"):
        calibrate_region(both)
