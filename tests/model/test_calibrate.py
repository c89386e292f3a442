"""Smoothed HDIs of models: of new rows, out of bag, and as bases of calibrations."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_regression
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor
from hdiforest.calibration import CVPlus

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
    model.calibrate(coverage=(0.8, 0.9), kinds=("smoothed_hdi",), mean=mean, random_state=0)
    bases = [level.base for level in model.calibration_.levels]
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
    model = imported().calibrate(coverage=0.9)
    without = model.calibration_.levels[0]
    model.calibrate(coverage=0.9, kinds=("hdi", "equal_tailed", "smoothed_hdi"))
    assert model.calibration_.levels[0].mean_width <= without.mean_width


def test_split_and_cross_validated_calibrations_take_them():
    kinds = ("smoothed_hdi",)
    for how in (
        {"X": X_NEW, "y": Y_NEW},
        {"method": CVPlus(2), "random_state": 0},
    ):
        model = imported().calibrate(coverage=0.9, kinds=kinds, **how)
        assert np.isfinite(model.predict_interval(X_NEW)).all()
