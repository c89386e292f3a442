"""Centred distributions of a fitted forest against the forest's own means and weights."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_regression
from sklearn.ensemble import RandomForestRegressor

from hdicore import weighted_hdi
from hdiforest import HDIForestRegressor
from hdiforest._model.out_of_bag import OutOfBagIntervals
from hdiforest.calibration import Base

from ..oracle import SKLEARN

X, Y = make_regression(200, 4, noise=20, random_state=0)
X_NEW = np.random.default_rng(1).normal(size=(30, 4)).astype(np.float32)


def fitted_source(n_trees=60, sample_weight=None, **options):
    forest = RandomForestRegressor(n_trees, random_state=0, **options).fit(X, Y, sample_weight)
    model = HDIForestRegressor.from_forest(forest, X, Y, sample_weight=sample_weight)
    return forest, model, OutOfBagIntervals(model._fitted, 1)


@pytest.mark.parametrize("weighted", [False, True])
def test_centres_are_the_forests_own_means(weighted):
    weights = np.random.default_rng(2).random(len(Y)) if weighted else None
    forest, _, source = fitted_source(sample_weight=weights, oob_score=True)
    assert_allclose(source.means.centres, forest.oob_prediction_, rtol=1e-10)
    centred = source.centred_forest()
    found = centred.intervals(X_NEW, [0.9], ["hdi"], 1) - centred.scorer.intervals(X_NEW, [0.9])
    assert_allclose(found, np.tile(forest.predict(X_NEW)[:, None, None], (1, 2, 1)), atol=1e-10)


def test_intervals_are_those_of_the_weighted_residuals():
    forest, model, source = fitted_source()
    levels = [0.5123, 0.8871]  # no sums of weights, up to rounding
    found = source.centred_forest().intervals(X_NEW, levels, ["hdi", "equal_tailed"], 2)
    weights = model.predict_weights(X_NEW).toarray()
    for i, mean in enumerate(forest.predict(X_NEW)):
        atoms = mean + Y - source.means.centres
        assert_allclose(found[i, :, 0], weighted_hdi(atoms, weights[i], levels[0]), rtol=1e-7)
        order = np.argsort(atoms)
        reached = np.cumsum(weights[i][order])
        tails = [np.searchsorted(reached, (1 + side * levels[1]) / 2) for side in (-1, 1)]
        assert_allclose(found[i, :, 1], atoms[order][tails], rtol=1e-7)


def test_rows_that_every_tree_drew_have_no_atom():
    *_, source = fitted_source(n_trees=3)
    never = np.flatnonzero(source.means.n_oob == 0)
    assert len(never) > 10
    ends = source.intervals(np.arange(len(Y)), [Base("centred", "hdi", 0.9)])
    # So have rows whose leaves hold nothing else.
    assert np.isnan(ends[never]).all()
    assert not np.isnan(ends).all()
    assert_array_equal(source.row_weights == 0, source.means.n_oob == 0)


@pytest.mark.skipif(SKLEARN < (1, 9), reason="bootstraps of scikit-learn drew all rows alike")
def test_weights_of_usable_rows_stand_for_those_of_all():
    weights = np.where(np.arange(len(Y)) % 2, 0.5, 1.5)
    *_, source = fitted_source(90, sample_weight=weights)
    usable = source.usable
    shares = [source.weights_of(usable)[weights[usable] == w].sum() for w in (0.5, 1.5)]
    assert shares[0] == pytest.approx(50, rel=0.01)
    assert weights[usable].sum() < 140
    assert shares[1] == pytest.approx(150, rel=0.15)
    assert fitted_source()[2].weights_of(usable) is None
