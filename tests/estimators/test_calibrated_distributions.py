"""Calibrated quantiles, distribution functions, draws and one-sided bounds of whole models."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor, PITDisplay, from_leaves
from hdiforest.calibration import CVPlus, JackknifePlus
from hdiforest.metrics import crps_score, make_crps_scorer, pit_values
from hdiforest.serving import BatchScorer

from ..oracle import families

RNG = np.random.default_rng(11)
LEVELS = np.linspace(0, 1, 21)


def rows(n, rng=RNG):
    X = rng.normal(size=(n, 4)).astype(np.float32)
    y = X[:, 0] + np.abs(X[:, 1]) * rng.normal(size=n)
    return X, y


X, Y = rows(400)
X_NEW, Y_NEW = rows(500)
FOREST = RandomForestRegressor(80, min_samples_leaf=3, random_state=0, max_features=0.5).fit(X, Y)


def raw_model(forest=FOREST, X=X, y=Y, **options):
    return HDIForestRegressor.from_forest(forest, X, y, **options)


@pytest.fixture(scope="module")
def calibrated():
    return raw_model().calibrate()


@pytest.fixture(scope="module")
def split():
    return raw_model().calibrate(*rows(200, np.random.default_rng(12)))


@pytest.fixture(scope="module")
def leaves():
    return from_leaves(FOREST.apply, X, Y).calibrate(*rows(200, np.random.default_rng(13)))


@pytest.fixture(scope="module", params=["calibrated", "split", "leaves"])
def model(request):
    return request.getfixturevalue(request.param)


def test_the_usual_distribution_is_the_calibrated_one(model):
    usual = model.predict_quantiles(X_NEW, LEVELS)
    assert_array_equal(usual, model.predict_quantiles(X_NEW, LEVELS, kind="calibrated"))
    cdf = model.predict_cdf(X_NEW, Y_NEW)
    assert_array_equal(cdf, model.predict_cdf(X_NEW, Y_NEW, kind="calibrated"))
    assert (cdf != model.predict_cdf(X_NEW, Y_NEW, kind="raw")).any()


def test_quantiles_ascend_within_the_range_and_have_their_levels(model):
    quantiles = model.predict_quantiles(X_NEW, LEVELS)
    assert (np.diff(quantiles, axis=1) >= 0).all()
    assert_array_equal(quantiles[:, 0], Y.min())
    assert_array_equal(quantiles[:, -1], Y.max())
    assert (model.predict_cdf(X_NEW, quantiles) >= LEVELS - 1e-12).all()
    assert_array_equal(model.predict_quantiles(X_NEW, 0.5), quantiles[:, 10])
    outside = np.tile([Y.min() - 1, Y.max(), Y.max() + 1], (len(X_NEW), 1))
    assert_array_equal(model.predict_cdf(X_NEW, outside)[0], [0, 1, 1])


def test_the_raw_distribution_and_the_mean_stay():
    model = raw_model().calibrate()
    raw = raw_model()
    assert_array_equal(model.predict(X_NEW), raw.predict(X_NEW))
    for kind in (None, "raw"):
        assert_array_equal(
            raw.predict_quantiles(X_NEW, LEVELS, kind=kind),
            model.predict_quantiles(X_NEW, LEVELS, kind="raw"),
        )
    assert_array_equal(raw.predict_cdf(X_NEW, Y_NEW), model.predict_cdf(X_NEW, Y_NEW, kind="raw"))
    assert_array_equal(raw.sample(X_NEW, 3, 0), model.sample(X_NEW, 3, 0, kind="raw"))
    assert_array_equal(
        raw.predict_quantiles(X_NEW, 0.3, interpolation="linear"),
        model.predict_quantiles(X_NEW, 0.3, kind="raw", interpolation="linear"),
    )


def test_one_sided_bounds_are_quantiles_nested_and_cover(model):
    coverages = [0.5, 0.77, 0.9, 0.95, 1]
    upper = model.predict_interval(X_NEW, coverages, kind="upper")
    lower = model.predict_interval(X_NEW, coverages, kind="lower")
    assert_array_equal(upper[:, 1], model.predict_quantiles(X_NEW, coverages))
    assert (upper[:, 0] == -np.inf).all()
    assert (lower[:, 1] == np.inf).all()
    assert (np.diff(upper[:, 1], axis=1) >= 0).all()
    assert (np.diff(lower[:, 0], axis=1) <= 0).all()
    assert_array_equal(lower[:, 0, -1], Y.min())
    assert_array_equal(model.predict_interval(X_NEW, 0.9, kind="upper"), upper[..., 2])
    for j in (0, 2):
        error = np.sqrt(0.25 / 200 + 0.25 / 500)
        assert abs((upper[:, 1, j] >= Y_NEW).mean() - coverages[j]) < 4 * error
        assert abs((lower[:, 0, j] <= Y_NEW).mean() - coverages[j]) < 4 * error


def test_wrong_arguments(calibrated):
    with pytest.raises(ValueError, match=r"interpolation must be None for calibrated quantiles, "):
        calibrated.predict_quantiles(X_NEW, 0.5, interpolation="linear")
    with pytest.raises(ValueError, match="kind must be 'calibrated', 'raw' or None, got 'hdi'"):
        calibrated.predict_quantiles(X_NEW, 0.5, kind="hdi")
    with pytest.raises(ValueError, match="quantiles must be from 0 to 1, got 2"):
        calibrated.predict_quantiles(X_NEW, [0.5, 2])
    with pytest.raises(ValueError, match="y must have 500 rows"):
        calibrated.predict_cdf(X_NEW, Y_NEW[:-1])
    with pytest.raises(ValueError, match="without NaN"):
        calibrated.predict_cdf(X_NEW, np.full(500, np.nan))
    for points in (np.full(500, "a"), np.zeros((500, 2, 2))):
        with pytest.raises(ValueError, match="y must"):
            calibrated.predict_cdf(X_NEW, points)
    for coverage in (0, [0.5, 1.1], [[0.9]]):
        with pytest.raises(ValueError, match="coverage must be"):
            calibrated.predict_interval(X_NEW, coverage, kind="lower")
    with pytest.raises(ValueError, match="inclusive must be True or False"):
        calibrated.predict_cdf(X_NEW, Y_NEW, inclusive="yes")
    with pytest.raises(AttributeError, match="this model has no calibration_"):
        raw_model().predict_cdf(X_NEW, Y_NEW, kind="calibrated")
    with pytest.raises(AttributeError, match="this model has no calibration_"):
        raw_model().sample(X_NEW, kind="calibrated")


@pytest.mark.parametrize("method", [CVPlus(2), JackknifePlus(60)], ids=lambda each: each.name)
def test_calibrations_by_folds_have_no_distribution(method):
    model = raw_model().calibrate(coverage=0.8, method=method)
    message = f"calibrated by method 'oob' or 'split', and the model was by '{method.name[:-1]}"
    with pytest.raises(ValueError, match=message):
        model.predict_interval(X_NEW, 0.8, kind="upper")
    with pytest.raises(ValueError, match=message):
        model.predict_quantiles(X_NEW, 0.8, kind="calibrated")
    raw = raw_model().predict_quantiles(X_NEW, 0.8)
    assert_array_equal(model.predict_quantiles(X_NEW, 0.8), raw)


def test_draws_have_the_distribution(calibrated):
    draws = calibrated.sample(X_NEW[:5], 4000, random_state=0)
    assert_array_equal(draws, calibrated.sample(X_NEW[:5], 4000, random_state=0))
    quantiles = calibrated.predict_quantiles(X_NEW[:5], LEVELS)
    up_to = (draws[:, :, None] <= quantiles[:, None]).mean(1)
    below = (draws[:, :, None] < quantiles[:, None]).mean(1)  # less where several draws are equal
    assert (up_to[:, 1:-1] > LEVELS[1:-1] - 0.05).all()
    assert (below[:, 1:-1] < LEVELS[1:-1] + 0.05).all()


def test_out_of_bag_distributions(calibrated):
    quantiles = calibrated.oob_.quantiles(LEVELS)
    assert (np.diff(quantiles, axis=1) >= 0).all()
    cdf = calibrated.oob_.cdf()
    assert abs(cdf.mean() - 0.5) < 0.02
    for level in (0.1, 0.5, 0.9):
        assert abs((calibrated.oob_.quantiles(level) >= Y).mean() - level) < 0.01
    upper = calibrated.oob_.interval(0.9, kind="upper")
    assert_array_equal(upper[:, 1], calibrated.oob_.quantiles(0.9))
    assert (cdf != calibrated.oob_.cdf(kind="raw")).any()
    assert (calibrated.oob_.cdf(quantiles) >= LEVELS - 1e-12).all()
    raw = raw_model()
    assert_array_equal(raw.oob_.cdf(), raw.oob_.cdf(kind="raw"))


def test_another_mean_has_no_calibrated_distributions_out_of_bag():
    with families("stacked"):
        model = raw_model().calibrate(mean="boosting", random_state=0)
    assert_array_equal(model.oob_.cdf(), model.oob_.cdf(kind="raw"))
    with pytest.raises(ValueError, match="kind must not be 'calibrated' out of bag"):
        model.oob_.quantiles(0.5, kind="calibrated")
    with pytest.raises(ValueError, match="kind must not be 'calibrated' out of bag"):
        model.oob_.interval(0.5, kind="upper")
    quantiles = model.predict_quantiles(X_NEW, LEVELS)
    assert (model.predict_cdf(X_NEW, quantiles) >= LEVELS - 1e-12).all()


def test_a_lattice_of_targets():
    y = np.maximum(np.round(2 * Y) / 2, 0)
    forest = RandomForestRegressor(80, random_state=0).fit(X, y)
    model = raw_model(forest, y=y).calibrate()
    quantiles = model.predict_quantiles(X_NEW, LEVELS)
    assert np.isin(quantiles, np.unique(y)).all()
    assert (model.predict_cdf(X_NEW, quantiles) >= LEVELS - 1e-12).all()
    target = np.maximum(np.round(2 * Y_NEW) / 2, 0)
    pit = pit_values(
        model.predict_cdf(X_NEW, target), model.predict_cdf(X_NEW, target, inclusive=False)
    )
    assert np.abs(np.histogram(pit, 5, (0, 1))[0] / 500 - 0.2).max() < 0.08


def test_monotonic_models_stay_monotonic():
    forest = RandomForestRegressor(
        80, min_samples_leaf=3, monotonic_cst=[1, 0, 0, 0], random_state=0
    ).fit(X, Y)
    model = raw_model(forest, weights="monotonic").calibrate()
    low = X_NEW.copy()
    high = low + np.float32([1, 0, 0, 0])
    for levels in (LEVELS, 0.9):
        below, above = (model.predict_quantiles(each, levels) for each in (low, high))
        assert (below <= above + 1e-9).all()
    assert (model.predict_cdf(low, Y_NEW) >= model.predict_cdf(high, Y_NEW) - 1e-9).all()


@pytest.mark.parametrize("weights", ["all", "oob"])
def test_weights_of_rows_and_rows_without_a_distribution(weights):
    sample_weight = np.where(X[:, 0] > 0, 1.5, 1.0)
    forest = RandomForestRegressor(200, random_state=0).fit(X, Y, sample_weight)
    model = HDIForestRegressor.from_forest(
        forest, X, Y, sample_weight=sample_weight, weights=weights
    ).calibrate()
    quantiles = model.predict_quantiles(X_NEW, LEVELS)
    assert (np.diff(quantiles, axis=1) >= 0).all()
    share = np.average(model.oob_.quantiles(0.8) >= Y, weights=sample_weight)
    assert abs(share - 0.8) < 0.02


def test_files_pickles_and_batches(tmp_path, calibrated, split, leaves):
    for name, model in {"oob": calibrated, "split": split}.items():
        path = tmp_path / f"{name}.hdi"
        model.save(path)
        loaded = HDIForestRegressor.load(path)
        for other in (loaded, pickle.loads(pickle.dumps(model))):
            assert_array_equal(
                other.predict_quantiles(X_NEW, LEVELS), model.predict_quantiles(X_NEW, LEVELS)
            )
        assert_array_equal(loaded.oob_.cdf(), model.oob_.cdf())
        batch = {f"x{j}": X_NEW[:, j] for j in range(4)}
        found = BatchScorer(path, [0.9, 0.85], kind="upper")(batch)
        ends = model.predict_interval(X_NEW, [0.9, 0.85], kind="upper")[:, 1]
        assert_array_equal(found["one_sided_upper_0.9"], ends[:, 0])
        assert_array_equal(found["one_sided_upper_0.85"], ends[:, 1])
        assert_array_equal(found["prediction"], model.predict(X_NEW))
    leaves.save(tmp_path / "leaves.hdi")
    loaded = type(leaves).load(tmp_path / "leaves.hdi", FOREST.apply)
    assert_array_equal(loaded.predict_cdf(X_NEW, Y_NEW), leaves.predict_cdf(X_NEW, Y_NEW))


def test_crps_and_pit_of_calibrated_distributions(calibrated):
    levels = calibrated.calibration_.distribution.levels
    atoms = calibrated.predict_quantiles(X_NEW, levels)
    score = crps_score(Y_NEW, atoms, np.diff(levels, prepend=0))
    assert make_crps_scorer()(calibrated, X_NEW, Y_NEW) == pytest.approx(-score)
    raw = make_crps_scorer("raw")(calibrated, X_NEW, Y_NEW)
    assert raw != pytest.approx(-score)
    assert make_crps_scorer()(raw_model(), X_NEW, Y_NEW) < 0
    with pytest.raises(AttributeError, match="no calibration_"):
        make_crps_scorer("calibrated")(raw_model(), X_NEW, Y_NEW)
    pytest.importorskip("matplotlib").use("agg")
    new = PITDisplay.from_estimator(calibrated, X_NEW, Y_NEW, bins=5)
    pit = pit_values(
        calibrated.predict_cdf(X_NEW, Y_NEW), calibrated.predict_cdf(X_NEW, Y_NEW, inclusive=False)
    )
    assert_array_equal(new.shares_, np.histogram(pit, 5, (0, 1))[0] / 500)
    own = PITDisplay.from_out_of_bag(calibrated, bins=5)
    assert np.abs(own.shares_ - 0.2).max() < 0.02


def test_without_clipping_the_outer_quantiles_are_infinite():
    forest = RandomForestRegressor(80, min_samples_leaf=3, random_state=0).fit(X[:199], Y[:199])
    model = raw_model(forest, X[:199], Y[:199]).calibrate()  # below 200 rows nothing is clipped
    outer = model.predict_quantiles(X_NEW, [0, 1])
    assert_array_equal(outer[0], [-np.inf, np.inf])
    assert np.isfinite(model.sample(X_NEW, 100, random_state=0)).all()
