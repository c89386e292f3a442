"""Centred distributions of a fitted forest against the forest's own means and weights."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_regression
from sklearn.ensemble import RandomForestRegressor

from hdicore import weighted_hdi
from hdiforest import HDIForestRegressor
from hdiforest.exceptions import OutOfBagWarning

from ..oracle import SKLEARN, families, leaf_sizes

X, Y = make_regression(200, 4, noise=20, random_state=0)
X_NEW = np.random.default_rng(1).normal(size=(30, 4)).astype(np.float32)


@pytest.mark.parametrize("weighted", [False, True])
def test_centred_intervals_are_those_of_residuals_around_the_forests_means(weighted):
    """Out of bag means are the centres of training rows; ends are widened and clipped."""
    weight = np.random.default_rng(2).uniform(1, 1.5, len(Y)) if weighted else None
    forest = RandomForestRegressor(97, min_samples_leaf=3, oob_score=True, random_state=0)
    forest.fit(X, Y, weight)
    model = HDIForestRegressor.from_forest(forest, X, Y, sample_weight=weight)
    with families("centred"), leaf_sizes(1):
        model.calibrate(coverage=0.9)
    (level,) = model.calibration_.levels
    assert level.base[:2] == ("centred", "averaged")
    found = model.predict_interval(X_NEW, 0.9)
    weights = model.predict_weights(X_NEW).toarray()
    for i, mean in enumerate(forest.predict(X_NEW)):
        atoms = mean + Y - forest.oob_prediction_
        shortest = weighted_hdi(atoms, weights[i], level.base.level)
        order = np.argsort(atoms)
        reached = np.cumsum(weights[i][order])
        tails = [np.searchsorted(reached, (1 + s * level.base.level) / 2) for s in (-1, 1)]
        lower, upper = (shortest + atoms[order][tails]) / 2 + [-level.q_hat, level.q_hat]
        expected = (lower, upper) if lower <= upper else ((lower + upper) / 2,) * 2
        assert_allclose(found[i], np.clip(expected, Y.min(), Y.max()), rtol=1e-7)


@pytest.mark.skipif(SKLEARN < (1, 9), reason="bootstraps of scikit-learn drew all rows alike")
def test_a_row_that_every_tree_drew_has_no_atom():
    weight = np.where(np.arange(len(Y)) == 7, 12.0, 1.0)
    y = np.where(np.arange(len(Y)) == 7, 1e9, Y)
    model = HDIForestRegressor(RandomForestRegressor(97, random_state=0), calibration=False)
    model.fit(X, y, sample_weight=weight)
    with families("centred"), leaf_sizes(1):
        model.calibrate(coverage=0.8)
    with pytest.warns(OutOfBagWarning, match="1 of 200 training rows have no out-of-bag interval"):
        ends = model.oob_.interval(0.8)
    assert_array_equal(np.flatnonzero(np.isnan(ends).any(axis=1)), [7])
