"""Models pass through pickle, joblib, copy, skops and MLflow, bit for bit, as plain arrays."""

import copy
import pickle
import warnings
from contextlib import suppress
from importlib.util import find_spec

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import BaggingRegressor, ExtraTreesRegressor, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

from hdiforest import HDIForestRegressor, LeafModel

from ..oracle import run_python

RNG = np.random.default_rng(3)
X = RNG.normal(size=(120, 3)).astype(np.float32)
Y = X[:, 0] + np.exp(RNG.normal(size=120))
X_NEW = RNG.normal(size=(40, 3)).astype(np.float32)
FOREST = RandomForestRegressor(30, min_samples_leaf=2, random_state=0)

MODELS = {
    "fitted": lambda: HDIForestRegressor(FOREST, calibration=False).fit(X, Y),
    "all rows": lambda: HDIForestRegressor(
        ExtraTreesRegressor(5, random_state=0), calibration=False
    ).fit(X, Y),
    "imported": lambda: HDIForestRegressor.from_forest(
        FOREST.fit(X, Y), X, Y, weights="inbag", n_jobs=2
    ),
    "weighted, several outputs": lambda: HDIForestRegressor(
        BaggingRegressor(DecisionTreeRegressor(max_depth=4), 30, random_state=0),
        weights="oob",
        calibration=False,
    ).fit(X, np.column_stack([Y, -Y]), sample_weight=np.arange(1.0, 121)),
}


@pytest.fixture(params=[*MODELS, "loaded"], scope="module")
def model(request, tmp_path_factory):
    if request.param != "loaded":
        return MODELS[request.param]()
    path = tmp_path_factory.mktemp("loaded") / "model"
    MODELS["fitted"]().save(path)
    return HDIForestRegressor.load(path)


def answers(model):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*no out-of-bag", UserWarning)
        bags = []
        with suppress(ValueError):  # of trees that saw all rows
            bags.append(model.oob_.interval([0.5, 0.9]))
    return [
        model.predict(X_NEW),
        model.predict_interval(X_NEW, [0.5, 0.9]),
        model.predict_quantiles(X_NEW, [0.1, 0.5]),
        model.predict_weights(X_NEW).toarray(),
        model.sample(X_NEW, 3, random_state=0),
        *bags,
    ]


def assert_same_answers(found, expected):
    assert type(found) is type(expected)
    assert repr(found) == repr(expected)
    for one, other in zip(answers(found), answers(expected), strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(model, protocol):
    model.predict_weights(X_NEW[:1])  # the index that it keeps does not go along
    data = pickle.dumps(model, protocol=protocol)
    assert b"hdicore" not in data
    assert_same_answers(pickle.loads(data), model)


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy])
def test_copies(model, make):
    assert_same_answers(make(model), model)


@pytest.mark.parametrize("mmap_mode", [None, "r"])
def test_joblib(model, mmap_mode, tmp_path):
    joblib.dump(model, tmp_path / "dump")
    assert_same_answers(joblib.load(tmp_path / "dump", mmap_mode=mmap_mode), model)


def test_the_state_is_plain_arrays(model):
    def check(value):
        if isinstance(value, dict):
            for inner in value.values():
                check(inner)
        elif type(value) is list:
            check(dict(enumerate(value)))
        else:
            assert type(value) in {np.ndarray, bool, int, float, str, type(None)}

    state = model.__getstate__()
    check({name: state[name] for name in state if not name.startswith("estimator")})


def test_a_state_is_checked_when_it_comes_back(model):
    state = copy.deepcopy(model.__getstate__())
    state["_fitted"]["arrays"]["index.ranks"][:] = 60000
    with pytest.raises(ValueError, match="ranks"):
        HDIForestRegressor.__new__(HDIForestRegressor).__setstate__(state)


def test_a_state_is_copied_unless_it_maps_a_file(tmp_path):
    model = MODELS["fitted"]()
    state = copy.deepcopy(model.__getstate__())
    found = HDIForestRegressor.__new__(HDIForestRegressor)
    found.__setstate__(state)
    ranks = state["_fitted"]["arrays"]["index.ranks"]
    assert not np.shares_memory(found.scorer_.index.arrays()["ranks"], ranks)
    joblib.dump(state, tmp_path / "state")
    for mode, shared in (("r", True), ("r+", False), ("c", False)):
        state = joblib.load(tmp_path / "state", mmap_mode=mode)
        found.__setstate__(state)
        for held, part in (
            (found.scorer_.index.arrays()["ranks"], state["_fitted"]["arrays"]["index.ranks"]),
            (found.scorer_.forest.arrays()["nodes"], state["_fitted"]["arrays"]["forest.nodes"]),
        ):
            assert np.shares_memory(held, part) == shared


def test_unfitted_models():
    for make in (copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))):
        assert repr(make(HDIForestRegressor(FOREST, calibration=False))) == repr(
            HDIForestRegressor(FOREST, calibration=False)
        )
        assert make(LeafModel(len)).apply is len


def test_skops(model):
    skops_io = pytest.importorskip("skops.io")
    data = skops_io.dumps(model)
    untrusted = skops_io.get_untrusted_types(data=data)
    loaded = not hasattr(model, "estimator_")
    own = HDIForestRegressor.__module__
    forest = f"{own}.StoredForest" if loaded else "sklearn.tree._tree.Tree"
    assert untrusted == [f"{own}.HDIForestRegressor", forest]
    assert_same_answers(skops_io.loads(data, trusted=untrusted), model)


MLFLOW = """
import sys, joblib, mlflow.sklearn, numpy as np, skops.io
model, X = joblib.load(sys.argv[1] + "/model")
types = skops.io.get_untrusted_types(data=skops.io.dumps(model))
folder = sys.argv[1] + "/mlflow"
# Without given requirements it would start an interpreter to find them.
mlflow.sklearn.save_model(model, folder, skops_trusted_types=types, pip_requirements=["hdicore"])
for loaded in (mlflow.sklearn.load_model(folder), mlflow.pyfunc.load_model(folder)):
    assert np.array_equal(loaded.predict(X), model.predict(X))
found = mlflow.sklearn.load_model(folder).predict_interval(X)
assert np.array_equal(found, model.predict_interval(X))
"""


@pytest.mark.clusters
def test_mlflow(tmp_path):
    # In an interpreter of its own, as what it imports warns of much.
    if not (find_spec("mlflow") and find_spec("skops")):
        pytest.skip("mlflow or skops is not installed")
    joblib.dump((MODELS["imported"](), X_NEW), tmp_path / "model")
    run_python(MLFLOW, tmp_path, cwd=tmp_path)
