"""`nearest_rows`: the training rows of the largest weights."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor
from hdiforest.inspection import nearest_rows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3)).astype(np.float32)
Y = np.round(3 * X[:, 0] + RNG.normal(size=80), 0)
NEW = RNG.normal(size=(2, 3)).astype(np.float32)


def fitted(y=Y):
    forest = RandomForestRegressor(30, min_samples_leaf=3, random_state=0)
    return HDIForestRegressor(forest, calibration=False).fit(X, y)


def test_rows_and_weights_are_those_of_the_dense_weights():
    model = fitted()
    dense = model.predict_weights(NEW).toarray()
    found = nearest_rows(model, NEW, 75)
    for weights, rows, own in zip(dense, found.rows, found.weights, strict=True):
        order = np.lexsort((np.arange(80), -np.round(weights, 7)))[: np.count_nonzero(weights)]
        assert rows.tolist() == [*order, *[-1] * (75 - len(order))]
        assert_allclose(own[: len(order)], weights[order])
    assert_array_equal(np.isnan(found.targets), found.rows < 0)
    assert_array_equal(found.targets[found.rows >= 0], Y[found.rows[found.rows >= 0]])


def test_targets_of_several_outputs():
    found = nearest_rows(fitted(np.column_stack([Y, -Y])), NEW, 4)
    assert found.targets.shape == (2, 4, 2)
    assert_array_equal(found.targets[..., 1], -Y[found.rows])


@pytest.mark.parametrize("k", [0, 2.5, True, "3"])
def test_bad_numbers_of_rows(k):
    with pytest.raises(ValueError, match="k must be a whole number from 1 on"):
        nearest_rows(fitted(), NEW, k)


def test_a_model_without_training_rows_is_refused(tmp_path):
    pytest.importorskip("safetensors")
    fitted().save(tmp_path / "model", training_rows=False)
    with pytest.raises(ValueError, match="save it with training_rows=True"):
        nearest_rows(HDIForestRegressor.load(tmp_path / "model"), NEW)
