"""Models with larger leaves: by `prune`, and by a calibration that chooses among leaf sizes."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import make_regression
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError

from hdiforest import HDIForestRegressor
from hdiforest.calibration import OutOfBag
from hdiforest.inspection import predict_matches_forest

from ..oracle import leaf_sizes

X, Y = make_regression(600, 4, noise=90, random_state=0)
FOREST = RandomForestRegressor(100, random_state=0).fit(X, Y)  # all rows calibrate
SIZES = (15, 5, 1)


def imported(**options):
    return HDIForestRegressor.from_forest(FOREST, X, Y, **options)


def calibrated(model, size):
    """Calibrated with leaves of one size alone."""
    with leaf_sizes(size):
        return model.calibrate()


def calibrated_by(method):
    return imported().calibrate(coverage=0.9, method=method).calibration_


def n_leaves(model):
    return int(model.scorer_.forest.n_leaves.sum())


def test_prune_returns_another_model_and_leaves_the_first():
    model = imported(weights="inbag", calibration=[0.9])
    before = model.predict_interval(X)
    pruned = model.prune(15)
    assert type(pruned) is HDIForestRegressor
    assert pruned.get_params() == model.get_params()
    assert n_leaves(pruned) < n_leaves(model)
    assert not hasattr(pruned, "calibration_")
    assert not predict_matches_forest(pruned)
    assert_array_equal(model.predict_interval(X), before)
    assert hasattr(model, "calibration_")


def test_prune_starts_from_the_trees_as_they_grew():
    model = calibrated(imported(weights="inbag"), 15)
    assert n_leaves(model) == n_leaves(model.prune(15))
    assert n_leaves(model.prune(1)) == n_leaves(imported())
    assert predict_matches_forest(model.prune(1))


@pytest.mark.parametrize("copied", [copy.copy, lambda model: model])
def test_a_calibration_starts_from_the_trees_as_they_grew(copied):
    model = imported()
    for size in SIZES:
        again = copied(calibrated(model, size))
        assert {base.min_samples_leaf for base in again.calibration_.bases} == {size}
        first = calibrated(imported(), size)
        assert again.calibration_ == first.calibration_
        assert_array_equal(again.predict_interval(X), first.predict_interval(X))
        assert_array_equal(again.predict(X), first.predict(X))


def test_a_model_from_a_file_or_pickle_answers_by_its_pruned_trees(tmp_path):
    model = calibrated(imported(), 15)
    model.save(tmp_path / "model")
    for loaded in (HDIForestRegressor.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert n_leaves(loaded) == n_leaves(model) < n_leaves(imported())
        assert loaded.calibration_ == model.calibration_
        assert_array_equal(loaded.predict_interval(X), model.predict_interval(X))
        assert_array_equal(loaded.oob_.interval(0.9), model.oob_.interval(0.9))


def test_trees_as_they_grew_and_larger_leaves_are_compared():
    """Without a signal larger leaves say more of a row; without noise smaller ones do."""
    noise = np.random.default_rng(0).normal(size=len(Y))
    for y, size in [(noise, 5), (X[:, 0], 1)]:
        forest = RandomForestRegressor(100, random_state=0).fit(X, y)
        model = HDIForestRegressor.from_forest(forest, X, y).calibrate()
        assert {base.min_samples_leaf for base in model.calibration_.bases} == {size}
        assert (n_leaves(model) < sum(t.get_n_leaves() for t in forest.estimators_)) == (size > 1)


def test_monotonic_models_are_not_pruned():
    rising = RandomForestRegressor(100, random_state=0, monotonic_cst=[1, 0, 0, 0]).fit(X, Y)
    model = HDIForestRegressor.from_forest(rising, X, Y, weights="monotonic").calibrate()
    assert {base.min_samples_leaf for base in model.calibration_.bases} == {1}
    assert {base.kind for base in model.calibration_.bases} == {"equal_tailed"}
    with pytest.raises(ValueError, match="pruning needs weights='all', 'inbag' or 'oob', got"):
        model.prune(5)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "5", None])
def test_refused_sizes(wrong):
    model = imported()
    with pytest.raises(ValueError, match="min_samples_leaf must be "):
        model.prune(wrong)


def test_models_that_cannot_be_pruned(tmp_path):
    with pytest.raises(NotFittedError):
        HDIForestRegressor().prune(5)
    imported().save(tmp_path / "model", training_rows=False)
    with pytest.raises(ValueError, match="training rows"):
        HDIForestRegressor.load(tmp_path / "model").prune(5)


def test_objectives():
    levels = {
        name: imported()
        .calibrate(coverage=0.9, method=OutOfBag(objective=name))
        .calibration_.levels[0]
        for name in ("width", "interval_score", "balanced")
    }
    least_width = min(level.mean_width for level in levels.values())
    least_score = min(level.interval_score for level in levels.values())
    assert levels["width"].mean_width == least_width
    assert levels["interval_score"].interval_score == least_score
    balanced = {
        name: np.log(level.mean_width) + 1.5 * np.log(level.interval_score)
        for name, level in levels.items()
    }
    assert balanced["balanced"] == min(balanced.values())
