"""Tails of survival models in files: arrays that are none are refused."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDISurvivalForest
from hdiforest.serving._parts import Parts
from hdiforest.serving._serialization import from_arrays, to_arrays

RNG = np.random.default_rng(0)
X = RNG.random((200, 3)).astype(np.float32)
Y = np.empty(200, dtype=[("event", bool), ("time", float)])
Y["event"], Y["time"] = RNG.random(200) < 0.7, RNG.exponential(size=200)
FOREST = RandomForestRegressor(60, min_samples_leaf=10, random_state=0)
MODEL = HDISurvivalForest(FOREST, random_state=0).fit(X, Y).calibrate(coverage=[0.5, 0.8])
ARRAYS = to_arrays(MODEL._fitted_forest()).arrays


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("tails.levels", lambda levels: levels * 0 + 2, r"levels must lie in"),
        ("tails.levels", lambda levels: np.delete(levels, 5, 1), r"tails\.levels must"),
        ("tails.levels", lambda levels: levels[::-1], "ascend"),
        ("tails.levels", lambda levels: np.insert(levels[:, :5], 5, 2, 1), r"levels must lie in"),
        ("tails.numbers", lambda _: np.array([0, np.nan, 3.0]), "numbers must be those"),
        ("tails.numbers", lambda numbers: np.append(2, numbers[1:]), "numbers must be those"),
        ("training.event", None, r"training\.event must be there"),
        ("censoring0.index.events", None, "tails must be those of forests of events"),
    ],
)
def test_damaged_tails_are_refused(name, change, words):
    arrays = dict(ARRAYS)
    array = arrays.pop(name)
    if change is not None:
        arrays[name] = np.ascontiguousarray(change(array))
    with pytest.raises(ValueError, match=words):
        from_arrays(Parts(arrays))


def test_tails_of_a_forest_without_events_are_refused():
    arrays = dict(ARRAYS)
    del arrays["index.events"], arrays["training.event"]
    with pytest.raises(ValueError, match="tails must be those of forests of events"):
        from_arrays(Parts(arrays))
