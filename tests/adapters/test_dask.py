"""adapters.dask without a cluster: meta, index and divisions, empty partitions, refusals."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor, from_leaves

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
da = pytest.importorskip("dask.array")
pd = pytest.importorskip("pandas")
pytest.importorskip("safetensors")
from hdiforest.adapters.dask import predict_interval  # noqa: E402

RNG = np.random.default_rng(5)
X = pd.DataFrame(RNG.normal(size=(200, 3)), columns=list("abc"))
FOREST = RandomForestRegressor(20, min_samples_leaf=5, random_state=0).fit(X, X["a"])
MODEL = HDIForestRegressor.from_forest(FOREST, X, X["a"])
NEW = pd.DataFrame(RNG.normal(size=(60, 3)), columns=list("abc"))
NEW = NEW.assign(key=np.arange(60)).set_index(np.arange(60) * 10)
LEVELS = [0.5, 0.9]


@pytest.fixture(autouse=True)
def one_process():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.hdi"
    MODEL.save(path)
    return path


@pytest.fixture(params=["file", "model"])
def model(request, path):
    return path if request.param == "file" else MODEL


@pytest.mark.parametrize("kind", ["hdi", "upper", None])
def test_frames(model, kind):
    rows = dd.from_pandas(NEW, npartitions=4)
    found = predict_interval(model, rows, LEVELS, kind=kind, keep=["key"])
    expected = MODEL.predict_interval(NEW[list("abc")], LEVELS, kind=kind, output="pandas")
    expected.insert(0, "key", NEW["key"])
    assert found.divisions == rows.divisions
    assert found.known_divisions
    computed = found.compute()
    pd.testing.assert_frame_equal(computed, expected, check_exact=True)
    pd.testing.assert_frame_equal(found._meta, computed[:0])


def test_partitions_without_rows(model):
    rows = dd.from_pandas(NEW, npartitions=4)
    some = predict_interval(model, rows[rows["key"] < 10], 0.9)
    none = predict_interval(model, rows[rows["a"] > 100], 0.9)
    assert len(some.compute()) == 10
    assert list(none.compute().columns) == ["prediction", "lower_0.9", "upper_0.9"]
    assert len(none.compute()) == 0


@pytest.mark.parametrize(("kind", "coverage"), [("hdi", 0.9), ("lower", [0.9]), ("upper", LEVELS)])
def test_arrays(model, kind, coverage):
    rows = da.from_array(NEW[list("abc")].to_numpy(), chunks=(25, 2))
    found = predict_interval(model, rows, coverage, kind=kind)
    expected = MODEL.predict_interval(NEW[list("abc")], coverage, kind=kind)
    assert found.chunks[0] == rows.chunks[0]
    assert found.shape == expected.shape
    assert found.dtype == np.float64
    assert_array_equal(found.compute(), expected)
    some = predict_interval(model, rows[rows[:, 0] > 0], coverage, kind=kind)  # of unknown length
    assert_array_equal(some.compute(), expected[NEW["a"] > 0])


def test_models_without_names(tmp_path):
    values = X.to_numpy()
    model = HDIForestRegressor(FOREST, calibration=False).fit(values, X["a"])
    model.save(tmp_path / "m.hdi")
    rows = da.from_array(NEW[list("abc")].to_numpy(), chunks=(25, 3))
    expected = model.predict_interval(NEW[list("abc")].to_numpy(), LEVELS)
    frame = dd.from_pandas(NEW, npartitions=2)
    for given in (model, tmp_path / "m.hdi"):
        assert_array_equal(predict_interval(given, rows, LEVELS).compute(), expected)
        found = predict_interval(given, frame, 0.5, keep=["key"]).compute()
        assert list(found.columns) == ["key", "prediction", "lower_0.5", "upper_0.5"]
        assert_array_equal(found[["lower_0.5", "upper_0.5"]], expected[..., 0])


def test_leaf_models():
    model = from_leaves(FOREST.apply, X, X["a"])
    rows = dd.from_pandas(NEW[list("abc")], npartitions=2)
    found = predict_interval(model, rows, LEVELS).compute()
    expected = model.predict_interval(NEW[list("abc")], LEVELS, output="pandas")
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


def test_refusals_come_with_the_graph(path, model, tmp_path, monkeypatch):
    rows = dd.from_pandas(NEW, npartitions=2)
    values = da.from_array(NEW[list("abc")].to_numpy(), chunks=(25, 3))
    for X_given in (NEW, NEW.to_numpy(), rows["a"], values[:, 0]):
        with pytest.raises(ValueError, match="X must be a Dask DataFrame, or an Array of shape"):
            predict_interval(model, X_given)
    with pytest.raises(ValueError, match="keep must be empty if X is an Array"):
        predict_interval(model, values, keep=["key"])
    with pytest.raises(ValueError, match="coverage must"):
        predict_interval(model, rows, 90)
    with pytest.raises(FileNotFoundError, match="there is no model file"):
        predict_interval(tmp_path / "m.hdi", rows)
    with pytest.raises(ValueError, match="X must have 3 columns, got 2"):
        predict_interval(path, values[:, :2])
    with pytest.raises(ValueError, match="has no column 'c'"):
        predict_interval(model, rows[["a", "b"]])
    with pytest.raises(ValueError, match="keep must be a list of names of columns, got 'key'"):
        predict_interval(model, rows, keep="key")
    monkeypatch.setitem(sys.modules, "dask.dataframe", None)
    with pytest.raises(ImportError, match=r"needs dask: pip install 'hdicore\[dask\]'"):
        predict_interval(model, rows)
