"""Calibration of forests with several outputs: each output, and boxes of all."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import LinearRegression

from hdiforest import HDIForestRegressor
from hdiforest.calibration import CVPlus, OutOfBag

RNG = np.random.default_rng(0)
N = 700
X = RNG.normal(size=(3 * N, 4))
NOISE = RNG.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], 3 * N)
Y = np.column_stack([X[:, 0] + NOISE[:, 0], 1000 * (X[:, 1] * X[:, 2] + NOISE[:, 1])])
TRAIN, OTHER, TEST = slice(N), slice(N, 2 * N), slice(2 * N, None)
COVERAGES = [0.5, 0.9]


def forest(**options):
    return ExtraTreesRegressor(40, bootstrap=True, max_samples=0.3, random_state=0, **options)


def fitted(targets=Y, **options):
    model = HDIForestRegressor(forest(), calibration=False, **options)
    return model.fit(X[TRAIN], targets[TRAIN])


@pytest.fixture(scope="module")
def model():
    return HDIForestRegressor(forest()).fit(X[TRAIN], Y[TRAIN])


@pytest.fixture
def raw(model):
    return HDIForestRegressor.from_forest(model.estimator_, X[TRAIN], Y[TRAIN])


def share_held(sides, targets=Y):
    y = targets[TEST]
    return ((sides[..., 0] <= y) & (y <= sides[..., 1])).all(axis=1).mean()


def test_a_fit_calibrates_each_output_and_boxes(model):
    calibration = model.calibration_
    assert calibration.coverages == (0.5, 0.8, 0.9, 0.95, 0.99)
    assert len(calibration.outputs) == 2
    text = repr(calibration)
    for words in ("y0 ", "y1 ", "all together", "Calibration, method oob, ", "No guarantee"):
        assert words in text
    assert "all together" in calibration._repr_html_()
    separate = model.predict_interval(X[TEST], COVERAGES)
    boxes = model.predict_interval(X[TEST], COVERAGES, joint=True)
    assert separate.shape == boxes.shape == (N, 2, 2, 2)
    for j, coverage in enumerate(COVERAGES):
        error = np.sqrt(coverage * (1 - coverage) * 2 / N)
        assert abs(share_held(boxes[..., j]) - coverage) < 4 * error
        assert share_held(separate[..., j]) < coverage - 0.03
    lower, upper = np.moveaxis(boxes, -2, 0)
    assert (lower[..., 1] <= lower[..., 0]).all()
    assert (upper[..., 0] <= upper[..., 1]).all()


def test_each_output_is_calibrated_as_if_it_were_alone():
    """With trees that split at random, whatever the targets are."""

    def of(targets):
        trees = forest(max_features=1, min_samples_leaf=3)
        model = HDIForestRegressor(trees, calibration=False).fit(X[:300], targets[:300])
        return model.calibrate(coverage=COVERAGES)

    raw = of(Y)
    for output, own in enumerate(raw.calibration_.outputs):
        alone = of(Y[:, output])
        assert_array_equal(alone.estimator_.apply(X), raw.estimator_.apply(X))
        assert repr(alone.calibration_) == repr(own)
        for own, expected in (
            (raw.predict_interval(X[-99:], COVERAGES), alone.predict_interval(X[-99:], COVERAGES)),
            (raw.oob_.interval(COVERAGES), alone.oob_.interval(COVERAGES)),
            (raw.predict_quantiles(X, [0.1, 0.9]), alone.predict_quantiles(X, [0.1, 0.9])),
            (raw.predict_quantiles(X[-99:], 0.1), alone.predict_quantiles(X[-99:], 0.1)),
            (raw.oob_.quantiles([0.2]), alone.oob_.quantiles([0.2])),
            (raw.predict_cdf(X[-99:], Y[-99:]), alone.predict_cdf(X[-99:], Y[-99:, output])),
            (raw.oob_.cdf(), alone.oob_.cdf()),
            (
                raw.predict_interval(X[-99:], COVERAGES, kind="upper"),
                alone.predict_interval(X[-99:], COVERAGES, kind="upper"),
            ),
        ):  # fmt: skip
            assert_array_equal(own[:, output], expected)


@pytest.mark.parametrize("weights", ["all", "oob"])
def test_weights_and_sample_weights(weights):
    weight = RNG.uniform(1, 2, 400)
    model = HDIForestRegressor(forest(), calibration=0.9, weights=weights)
    model.fit(X[:400], Y[:400], weight)
    share = share_held(model.predict_interval(X[TEST], 0.9, joint=True))
    assert 0.85 < share < 0.96


def test_split(raw):
    raw.calibrate(X[OTHER], Y[OTHER], coverage=COVERAGES)
    assert raw.calibration_.method == "split"
    assert "At least with probability c" in raw.calibration_.guarantee
    for level in raw.calibration_.levels:
        assert level.realised >= level.coverage
        held = share_held(raw.predict_interval(X[TEST], level.coverage, joint=True))
        assert abs(held - level.coverage) < 4 * np.sqrt(2 * level.coverage * 0.5 / N)
    own = HDIForestRegressor(ExtraTreesRegressor(40, random_state=0), calibration="auto")
    with pytest.warns(UserWarning, match=r"not calibrated .* every tree was fitted on all rows"):
        own.fit(X[TRAIN], Y[TRAIN])
    assert not hasattr(own, "calibration_")
    own.calibrate(X[OTHER], Y[OTHER], coverage=0.9)
    assert abs(share_held(own.predict_interval(X[TEST], 0.9, joint=True)) - 0.9) < 0.06


def test_means_of_another_model(raw):
    raw.calibrate(mean=LinearRegression(), coverage=0.9)
    assert 0.84 < share_held(raw.predict_interval(X[TEST], 0.9, joint=True)) < 0.96
    with pytest.raises(ValueError, match="out of bag, because what the other mean predicts"):
        raw.oob_.interval(kind="calibrated")


def test_a_box_of_one_output_is_its_interval():
    one = fitted(Y[:, 0]).calibrate()
    for ask in (one.oob_.interval, lambda c, **how: one.predict_interval(X[TEST], c, **how)):
        assert_array_equal(ask(0.9, joint=True), ask(0.9))


def test_a_constant_output_has_no_width(model):
    targets = np.column_stack([Y, np.full(len(Y), 3.0)])
    three = fitted(targets).calibrate(coverage=COVERAGES)
    for joint in (False, True):
        assert (three.predict_interval(X[TEST], 0.9, joint=joint)[:, 2] == 3).all()
    share = share_held(three.predict_interval(X[TEST], 0.9, joint=True), targets)
    assert abs(share - share_held(model.predict_interval(X[TEST], 0.9, joint=True))) < 0.03


def test_the_unit_of_one_output_does_not_matter():
    """Trees that split at random, whatever the targets are; powers of two round alike."""
    ends = []
    for unit in (1.0, 2.0**20):
        trees = forest(max_features=1, min_samples_leaf=3)
        model = HDIForestRegressor(trees, calibration=0.9).fit(X[:400], Y[:400] * [unit, 1])
        ends.append(model.predict_interval(X[TEST], 0.9, joint=True) / [[unit], [1]])
    assert_allclose(ends[1], ends[0], rtol=1e-9)


def test_draws_are_calibrated_and_joint(model):
    draws = model.sample(X[TEST], 40, random_state=0)
    assert draws.shape == (N, 2, 40)
    for output in range(2):
        quantiles = model.predict_quantiles(X[TEST], [0.1, 0.5, 0.9])[:, output]
        shares = (draws[:, output, :, np.newaxis] <= quantiles[:, np.newaxis]).mean(axis=(0, 1))
        assert_allclose(shares, [0.1, 0.5, 0.9], atol=0.02)
    levels = [model.predict_cdf(X[TEST], draws[..., j]) for j in range(5)]
    correlation = np.corrcoef(np.concatenate(levels).T)[0, 1]
    assert correlation > 0.1  # independent draws have 0 ± 0.02
    assert_array_equal(
        model.sample(X[:3], 2, random_state=1), model.sample(X[:3], 2, random_state=1)
    )


def test_tables(model):
    pytest.importorskip("pandas")
    table = model.predict_interval(X[TEST], [0.9], joint=True, output="pandas")
    assert list(table.columns[:3]) == ["y0_prediction", "y0_lower_0.9", "y0_upper_0.9"]
    boxes = model.predict_interval(X[TEST], 0.9, joint=True)
    assert_array_equal(table[["y1_lower_0.9", "y1_upper_0.9"]], boxes[:, 1])
    assert_array_equal(table[["y0_prediction", "y1_prediction"]], model.predict(X[TEST]))
    bounds = model.predict_interval(X[TEST], [0.8, 0.9], kind="lower", output="pandas")
    expected = model.predict_interval(X[TEST], 0.9, kind="lower")[:, 1, 0]
    assert_array_equal(bounds["y1_one_sided_lower_0.9"], expected)
    assert model.oob_.interval(0.9, joint=True, output="pandas").shape == (N, 6)


def test_groups(raw):
    codes = (X[:, 3] > 0).astype(float)
    raw.calibrate(by=codes[TRAIN], coverage=0.9)
    ends = raw.predict_interval(X[TEST], 0.9, by=codes[TEST])
    assert ends.shape == (N, 2, 2)
    assert all(len(own.groups.labels) == 2 for own in raw.calibration_.outputs)
    with pytest.raises(ValueError, match="joint must be False: the calibration was made by groups"):
        raw.predict_interval(X[TEST], 0.9, by=codes[TEST], joint=True)


def answers(model):
    yield model.predict_interval(X[TEST], COVERAGES)
    yield model.predict_interval(X[TEST], COVERAGES, joint=True)
    yield model.predict_quantiles(X[TEST], [0.1, 0.9])
    yield model.sample(X[:20], 3, random_state=0)
    yield model.predict(X[TEST])
    yield model.oob_.interval(0.9, joint=True)


def test_files_and_pickles(model, raw, tmp_path):
    pytest.importorskip("safetensors")
    boxes = {"X": X[TEST], "coverage": 0.9, "joint": True}
    for own in (model, raw.calibrate(coverage=COVERAGES)):
        own.save(tmp_path / "model")
        loaded, answers_of_own = HDIForestRegressor.load(tmp_path / "model"), list(answers(own))
        for again in (loaded, pickle.loads(pickle.dumps(own)), pickle.loads(pickle.dumps(loaded))):
            assert repr(again.calibration_) == repr(own.calibration_)
            for found, expected in zip(answers(again), answers_of_own, strict=True):
                assert_array_equal(found, expected)
        own.save(tmp_path / "small", training_rows=False)
        small = HDIForestRegressor.load(tmp_path / "small")
        assert_array_equal(small.predict_interval(**boxes), own.predict_interval(**boxes))
        with pytest.raises(ValueError, match="saved without its training rows"):
            small.oob_.interval(0.9)
        with pytest.raises(ValueError, match="saved without its training rows"):
            small.calibrate()
    again = loaded.calibrate(coverage=COVERAGES)
    assert_array_equal(again.predict_interval(**boxes), own.predict_interval(**boxes))


def test_names_of_targets(tmp_path):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(Y[TRAIN], columns=["height", "mass"])
    model = HDIForestRegressor(forest(), calibration=0.9)
    model.fit(pd.DataFrame(X[:N]).add_prefix("x")[:300], table[:300])
    assert model.calibration_.names == ("height", "mass")
    assert "\nheight " in repr(model.calibration_)


def test_what_is_refused(raw):
    for options, message in (
        ({"method": "cv+"}, "method must be 'oob' or 'split' for a model of several targets"),
        ({"method": CVPlus(3)}, "method must be 'oob' or 'split' for a model of several targets"),
        ({"method": "jackknife+"}, "method must be 'oob' or 'split'"),
        (
            {"method": OutOfBag(order=0)},
            "order must be None for a model of several targets, this has 2",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            raw.calibrate(**options)
    for targets in (Y[OTHER, 0], Y[OTHER][:, [0, 1, 1]]):
        with pytest.raises(ValueError, match=r"y must have shape \(n, 2\) with n > 0, got"):
            raw.calibrate(X[OTHER], targets)
    with pytest.raises(ValueError, match=r"y must have shape \(700, 2\), got \(5, 2\)"):
        raw.calibrate(X[OTHER], Y[:5])
    with pytest.raises(ValueError, match="must be finite, got 1 of 700 rows that are not"):
        raw.calibrate(X[OTHER], np.where(Y[OTHER] == Y[N, 0], np.nan, Y[OTHER]))
    with pytest.raises(ValueError, match="are training rows"):
        raw.calibrate(X[TRAIN], Y[TRAIN])
    with pytest.raises(ValueError, match="joint must be False with kind='hdi'"):
        raw.predict_interval(X[TEST], joint=True)
    raw.calibrate(coverage=0.9)
    with pytest.raises(ValueError, match="joint must be False with kind='hdi'"):
        raw.oob_.interval(kind="hdi", joint=True)
    with pytest.raises(ValueError, match="joint must be True or False"):
        raw.predict_interval(X[TEST], joint="yes")
    with pytest.raises(ValueError, match="coverage must be one that was calibrated"):
        raw.predict_interval(X[TEST], 0.8, joint=True)
    for points in (Y[TEST, 0], Y[TEST][:, [0, 1, 1]]):
        with pytest.raises(ValueError, match=r"y must be \(n, 2\) or \(n, 2, k\) numbers"):
            raw.predict_cdf(X[TEST], points)
