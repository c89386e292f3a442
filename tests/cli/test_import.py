"""The command makes a model file from a forest that skops or joblib stored; inspect as JSON."""

import json
import pickle

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression

from hdiforest import HDIForestRegressor

from .calls import failure, run

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
joblib = pytest.importorskip("joblib")
pytest.importorskip("safetensors")

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.random((150, 3)).astype(np.float32), columns=["a", "b", "c"])
FRAME["on"] = RNG.random(150) < 0.5
FRAME["y"] = (5 * FRAME["a"] + RNG.random(150)).round(2)
NAMES = ["c", "a", "on"]


@pytest.fixture(scope="module")
def forest():
    model = RandomForestRegressor(25, min_samples_leaf=5, random_state=0)
    return model.fit(FRAME[NAMES], FRAME["y"])


@pytest.fixture
def train(tmp_path):
    path = tmp_path / "train.parquet"
    FRAME.to_parquet(path)
    return path


def call(forest, train, *more):
    return ["import", forest, train, "--target", "y", "-o", train.parent / "m.hdi", *more]


def test_by_skops_without_a_question(forest, train, tmp_path):
    skops = pytest.importorskip("skops.io")
    skops.dump(forest, tmp_path / "f.skops")
    assert run(call(tmp_path / "f.skops", train, "--training-rows")) == 0
    loaded = HDIForestRegressor.load(tmp_path / "m.hdi")
    expected = HDIForestRegressor.from_forest(forest, FRAME[NAMES], FRAME["y"])
    np.testing.assert_array_equal(
        loaded.predict_interval(FRAME[NAMES], kind="hdi"), expected.predict_interval(FRAME[NAMES])
    )
    assert list(loaded.feature_names_in_) == NAMES


def test_by_joblib_and_pickle_if_trusted(forest, train, tmp_path, capsys):
    joblib.dump(forest, tmp_path / "f.joblib")
    (tmp_path / "f.pkl").write_bytes(pickle.dumps(forest))
    for name in ("f.joblib", "f.pkl"):
        found = failure(capsys, call(tmp_path / name, train))
        assert "loading it runs whatever code it holds: add --trusted" in found
        assert not (tmp_path / "m.hdi").exists()
        assert run(call(tmp_path / name, train, "--trusted", "--calibrate", "none")) == 0
        (tmp_path / "m.hdi").unlink()


def test_weights_of_a_constrained_forest(train, tmp_path, capsys):
    forest = RandomForestRegressor(25, monotonic_cst=[0, 1, 0], random_state=0)
    joblib.dump(forest.fit(FRAME[NAMES], FRAME["y"]), tmp_path / "f.joblib")
    weights = ["--weights", "monotonic"]
    assert run(call(tmp_path / "f.joblib", train, "--trusted", *weights)) == 0
    X, y = FRAME[NAMES], FRAME["y"]
    expected = HDIForestRegressor.from_forest(forest, X, y, weights="monotonic")
    loaded = HDIForestRegressor.load(tmp_path / "m.hdi")
    assert loaded.weights == "monotonic"
    np.testing.assert_array_equal(
        loaded.predict_interval(X[::3], kind="equal_tailed"),
        expected.predict_interval(X[::3], kind="equal_tailed"),
    )
    fit = ["fit", train, "--target", "y", "-o", tmp_path / "m.hdi", *weights]
    assert "invalid choice: 'monotonic'" in failure(capsys, fit, code=2)


def test_a_forest_without_names_takes_all_columns(train, tmp_path):
    forest = RandomForestRegressor(5, random_state=0)
    forest.fit(FRAME[["a", "b", "c"]].to_numpy(), FRAME["y"])
    joblib.dump(forest, tmp_path / "f.joblib")
    more = ["--trusted", "--drop", "on", "--calibrate", "none"]
    assert run(call(tmp_path / "f.joblib", train, *more)) == 0


class Odd(RandomForestRegressor):
    """A type that skops does not know."""


def test_types_that_skops_does_not_know_are_named(train, tmp_path, capsys):
    skops = pytest.importorskip("skops.io")
    skops.dump(Odd(3).fit(FRAME[NAMES], FRAME["y"]), tmp_path / "f.skops")
    found = failure(capsys, call(tmp_path / "f.skops", train))
    assert "Odd, whose loading may run code; if you know them, add --trust-types" in found
    assert not (tmp_path / "m.hdi").exists()


def test_what_import_refuses(forest, train, tmp_path, capsys):
    joblib.dump(forest, tmp_path / "f.joblib")
    stored = tmp_path / "f.joblib"
    (tmp_path / "bad.skops").write_bytes(b"PK\x05\x06" + bytes(18))
    assert "is not a file of skops, or is damaged" in failure(
        capsys, call(tmp_path / "bad.skops", train)
    )
    (tmp_path / "bad.joblib").write_bytes(b"no pickle")
    found = failure(capsys, call(tmp_path / "bad.joblib", train, "--trusted"))
    assert "cannot load" in found
    assert "No such file" in failure(capsys, call(tmp_path / "none", train))
    FRAME.drop(columns=["c", "on"]).to_parquet(tmp_path / "less.parquet")
    found = failure(capsys, call(stored, tmp_path / "less.parquet", "--trusted"))
    assert "has no columns 'c', 'on', which the forest was fitted on" in found
    FRAME.assign(c="x", on="2024-01-01").to_parquet(tmp_path / "text.parquet")
    found = failure(capsys, call(stored, tmp_path / "text.parquet", "--trusted"))
    assert "the forest takes numbers, but 'c' holds categories, 'on' holds dates" in found
    FRAME[::-1].to_parquet(tmp_path / "other.parquet")
    assert failure(capsys, call(stored, tmp_path / "other.parquet", "--trusted"))
    joblib.dump(LinearRegression().fit(FRAME[NAMES], FRAME["y"]), stored)
    assert "LinearRegression" in failure(capsys, call(stored, train, "--trusted"))
    assert not (tmp_path / "m.hdi").exists()


def test_inspect_as_json(train, tmp_path, capsys):
    frame = FRAME.assign(town=["Nice", "Lyon", "Lyon"] * 50, key=range(150))
    frame.to_csv(tmp_path / "t.csv", index=False)
    fit = ["fit", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "m.hdi", "--trees", 40]
    assert run([*fit, "--id", "key"]) == 0
    capsys.readouterr()
    assert run(["inspect", tmp_path / "m.hdi", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["features"] == ["a", "b", "c", "on", "town"]
    assert found["encoder"]["ids"] == ["key"]
    assert found["encoder"]["columns"][4] == {
        "name": "town", "kind": "category", "values": ["Lyon", "Nice"]
    }  # fmt: skip
    assert found["trees"] == 40
    assert found["targets"][0]["n_distinct"] == FRAME["y"].nunique()
    assert run(["inspect", tmp_path / "m.hdi"]) == 0
    printed = capsys.readouterr().out
    assert "5: a, b, c, on (boolean), town (2 categories)" in printed
    assert "columns that name rows" in printed
