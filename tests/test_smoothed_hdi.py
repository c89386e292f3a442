"""Smoothed HDIs: degenerate and extreme targets, order of trees, and as bases of calibrations."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_regression
from sklearn.ensemble import RandomForestRegressor

from hdicore import LeafIndex, _reference
from hdiforest import HDIForestRegressor

LEVELS = [1e-9, 0.05, 0.3, 0.5, 0.9, 1 - 1e-9, 1.0]
EXTREMES = {
    "one target": [2.5],
    "one distinct target": [2.5] * 9,
    "two targets": [1.0, 4.0],
    "equal gaps": np.arange(24.0),
    "ties": [0.0, 0.0, 0.0, 1.0, 5.0, 5.0, 5.0, 9.0],
    "ties but for rounding": [1.0, 1.0 + 2.0**-52, 2.0, 2.0 + 2.0**-51, 7.0],
    "denormal": np.array([0.0, 1.0, 3.0, 6.0, 10.0]) * 5e-324,
    "tiny": np.array([-2.0, 1.0, 3.0, 6.0, 10.0]) * 1e-300,
    "huge": np.array([-2.0, 1.0, 3.0, 6.0, 10.0]) * 1e260,
    "widths that overflow": [-1.7e308, -1.6e308, 0.0, 1.6e308, 1.7e308],
    "far from zero": 1e9 + np.random.default_rng(3).normal(size=40),
    "an outlier": [*np.random.default_rng(4).normal(size=40), 1e200],
}


@pytest.mark.engine
@pytest.mark.parametrize("name", EXTREMES)
def test_extreme_targets(name):
    y = np.asarray(EXTREMES[name], dtype=np.float64)
    leaves = np.zeros((len(y), 1), dtype=np.int32)
    ends = LeafIndex(leaves, y).intervals([[0]], LEVELS, "smoothed_hdi")[0]
    assert np.isfinite(ends).all()
    assert (ends[0] <= ends[1]).all()
    atoms = _reference.merge(leaves, y, np.zeros(1))
    with np.errstate(over="ignore"):  # infinite widths
        expected = [_reference.interval(atoms, level, "smoothed_hdi") for level in LEVELS]
    largest = np.abs(y).max()
    assert_allclose(ends.T / largest, np.array(expected) / largest, rtol=0, atol=1e-14)
    assert_array_equal(ends[:, -1], [y.min(), y.max()])


@pytest.mark.engine
def test_the_order_of_trees_and_the_threads_change_no_bit():
    rng = np.random.default_rng(0)
    leaves, query = rng.integers(0, 5, (900, 30)), rng.integers(-1, 5, (200, 30))
    y = rng.normal(size=900)
    trees = rng.permutation(30)
    expected = LeafIndex(leaves, y).intervals(query, LEVELS, "smoothed_hdi", n_threads=1)
    turned = LeafIndex(leaves[:, trees], y)
    found = turned.intervals(query[:, trees], LEVELS, "smoothed_hdi", n_threads=3)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.engine
def test_equally_short_intervals_count_alike():
    y = np.array([0.0, 1.0, 10.0, 11.0])
    index = LeafIndex(np.zeros((4, 1), dtype=np.int32), y)
    ends = index.intervals([[0]], 0.5, "smoothed_hdi")[0]
    # The third interval, [1, 10], weighs nothing.
    assert_allclose(ends, [5.0, 6.0], atol=1e-14)


X, Y = make_regression(1400, 4, noise=20, random_state=0)
X_TRAIN, Y_TRAIN, X_NEW, Y_NEW = X[700:], Y[700:], X[:700], Y[:700]
FOREST = RandomForestRegressor(70, min_samples_leaf=2, random_state=0).fit(X_TRAIN, Y_TRAIN)


def imported(**options):
    return HDIForestRegressor.from_forest(FOREST, X_TRAIN, Y_TRAIN, n_jobs=1, **options)


def test_a_model_predicts_them_for_new_rows_and_out_of_bag():
    model = imported()
    found = model.predict_interval(X_NEW, [0.5, 0.9], kind="smoothed_hdi")
    shortest = model.predict_interval(X_NEW, [0.5, 0.9])
    widths, least = found[:, 1] - found[:, 0], shortest[:, 1] - shortest[:, 0]
    assert (widths >= least * (1 - 1e-12)).all()
    assert 1 < widths.mean() / least.mean() < 1.2
    out_of_bag = model.oob_interval(0.9, kind="smoothed_hdi")
    assert out_of_bag.shape == (700, 2)
    assert 0.75 < ((out_of_bag[:, 0] <= Y_TRAIN) & (out_of_bag[:, 1] >= Y_TRAIN)).mean() < 1


@pytest.mark.parametrize(
    ("family", "options", "mean"),
    [
        ("raw", {"weights": "inbag"}, None),
        ("raw", {"weights": "oob"}, None),
        ("centred", {}, None),
        ("stacked", {}, "boosting"),
    ],
)
def test_a_calibration_can_choose_them_and_is_kept(tmp_path, family, options, mean):
    model = imported(**options)
    model.calibrate((0.8, 0.9), kinds=("smoothed_hdi",), mean=mean, random_state=0)
    bases = [level.choice.base for level in model.calibration_.levels]
    assert {base.kind for base in bases} == {"smoothed_hdi"}
    # Raw ones of all rows compete with the centred.
    assert {base.family for base in bases} <= {"raw", family}
    ends = model.predict_interval(X_NEW, [0.8, 0.9])
    covered = ((ends[:, 0] <= Y_NEW[:, None]) & (Y_NEW[:, None] <= ends[:, 1])).mean(axis=0)
    assert_allclose(covered, [0.8, 0.9], atol=0.05)
    model.save(tmp_path / "model")
    for again in (HDIForestRegressor.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert again.calibration_ == model.calibration_
        assert_array_equal(again.predict_interval(X_NEW, [0.8, 0.9]), ends)


def test_they_compete_with_the_other_kinds():
    model = imported().calibrate(0.9)
    without = model.calibration_.levels[0].choice
    model.calibrate(0.9, kinds=("hdi", "equal_tailed", "smoothed_hdi"))
    assert model.calibration_.levels[0].choice.mean_width <= without.mean_width


def test_split_and_cross_validated_calibrations_take_them():
    kinds = ("smoothed_hdi",)
    for how in (
        {"method": "split", "X": X_NEW, "y": Y_NEW},
        {"method": "cv+", "cv": 2, "random_state": 0},
    ):
        model = imported().calibrate(0.9, kinds=kinds, **how)
        assert np.isfinite(model.predict_interval(X_NEW)).all()
