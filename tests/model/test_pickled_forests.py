"""Forests that another scikit-learn fitted and pickled are imported as they were meant."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.exceptions import InconsistentVersionWarning

from hdiforest import HDIForestRegressor

from ..oracle import ROOT, SKLEARN

FILES = sorted((ROOT / "tests" / "model" / "pickled").glob("*.pkl"))
PREDICT_MEANS = (
    *("forest", "weighted forest", "part of the rows", "extra trees", "bags", "float32 weights"),
)
KINDS = (*PREDICT_MEANS, "medians", "constraints")


def is_older(path):
    parts = path.stem.partition("_")[2].split(".")
    return tuple(map(int, parts[:2])) <= SKLEARN


def load(path, kind):
    if not is_older(path):
        pytest.skip("fitted by a newer scikit-learn")
    case = pickle.loads(path.read_bytes())[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        return case | {"forest": pickle.loads(case["forest"])}


def test_there_are_forests_of_both_meanings_of_weights():
    assert [path.stem for path in FILES] == ["forests_1.6.1", "forests_1.8.0"]


@pytest.mark.filterwarnings("ignore:the forest (has monotonic|averages the medians)")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_mean_is_what_the_forest_predicted_then(path, kind):
    case = load(path, kind)
    X, y, weight = case["X"], case["y"], case["sample_weight"]
    model = HDIForestRegressor.from_forest(
        case["forest"], X, y, sample_weight=weight, weights="inbag"
    )
    if kind in PREDICT_MEANS:
        np.testing.assert_allclose(model.predict(X), case["prediction"], atol=1e-6)
    paper = HDIForestRegressor.from_forest(case["forest"], X, y, sample_weight=weight)
    lower, upper = paper.predict_interval(X, 0.9).T
    assert np.mean((lower <= y) & (y <= upper)) > 0.9


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_forgotten_weights_are_refused(path):
    case = load(path, "weighted forest")
    with pytest.raises(ValueError, match="sample_weight"):
        HDIForestRegressor.from_forest(case["forest"], case["X"], case["y"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_other_targets_are_refused(path, kind):
    case = load(path, kind)
    with pytest.raises(ValueError, match="y is not the target"):
        HDIForestRegressor.from_forest(
            case["forest"], case["X"], case["y"][::-1], sample_weight=case["sample_weight"]
        )
