"""Recipes of the pages on many rows and on deploying, run on local clusters of two processes.

Each runs as it stands, in a script of its own between a cluster's start and its end, and gives the
command's numbers.
"""

import shutil

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor

from ...cli.calls import run
from .local import (
    DASK_END,
    DASK_START,
    RAY_OPTIONS,
    RAY_START,
    SPARK_OPTIONS,
    SPARK_START,
    recipes_of,
    run_script,
)

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("safetensors")
RECIPES = recipes_of("many_rows", "deploy")
N = 2000


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A folder with a model, a table and what the command makes of them."""
    folder = tmp_path_factory.mktemp("inputs")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc"))
    forest = RandomForestRegressor(100, min_samples_leaf=5, random_state=0)
    model = HDIForestRegressor(forest, calibration=False).fit(X, X["a"] + rng.normal(size=300))
    model.calibrate(coverage=[0.8, 0.9]).save(folder / "model.hdi")
    new = pd.DataFrame(rng.normal(size=(N, 3)), columns=list("abc"))
    new.insert(0, "id", rng.permutation(N) + 2**40)
    new.to_parquet(folder / "new.parquet", row_group_size=500)
    paths = [str(folder / name) for name in ("model.hdi", "new.parquet", "expected.parquet")]
    scored = ["--coverage", "0.8", "0.9", "--keep", "id"]
    assert run(["score", paths[0], paths[1], "-o", paths[2], *scored]) == 0
    return folder


@pytest.fixture
def folder(inputs, tmp_path):
    """A copy of the inputs, to write in."""
    return shutil.copytree(inputs, tmp_path / "work")


def assert_as_the_command(folder, name):
    """The intervals, in whatever order, are those of the command, bit for bit."""
    expected = pd.read_parquet(folder / "expected.parquet").sort_values("id", ignore_index=True)
    found = pd.read_parquet(folder / name).sort_values("id", ignore_index=True)
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


def test_there_is_a_recipe_for_each_engine():
    expected = {
        "BatchScorer": 1, "Dask": 2, "Ray Data": 1, "Spark": 2, "Polars": 1, "DuckDB": 1,
        "FastAPI": 1, "MLflow": 2,
    }  # fmt: skip
    assert {title: len(RECIPES[title]) for title in expected} == expected


DASK_CHECKS = """
import dask.array
import numpy as np
import pandas as pd
from distributed.protocol.pickle import dumps
from hdiforest import HDIForestRegressor
tasks = dict(intervals.optimize().__dask_graph__())
assert max(len(dumps(task)) for task in tasks.values()) < 10_000

model = HDIForestRegressor.load("model.hdi")
expected = pd.read_parquet("expected.parquet")
found = hdiforest.adapters.dask.predict_interval(model, rows, [0.8, 0.9], keep=["id"]).compute()
pd.testing.assert_frame_equal(found, expected, check_exact=True)

X = dask.array.from_array(pd.read_parquet("new.parquet")[list("abc")].to_numpy(), chunks=(700, 2))
found = hdiforest.adapters.dask.predict_interval("model.hdi", X, [0.8, 0.9])
columns = expected.to_numpy()[:, 2:].reshape(-1, 2, 2).transpose(0, 2, 1)
np.testing.assert_array_equal(found.compute(), columns)
found = hdiforest.adapters.dask.predict_interval(model, X, 0.8)
np.testing.assert_array_equal(found.compute(), columns[:, :, 0])
"""


def test_dask(folder):
    pytest.importorskip("distributed")
    pytest.importorskip("dask.dataframe")
    scored, counted = RECIPES["Dask"]
    counted += "assert total.n_rows == len(rows) and total.n_rows_out_of_range > 0"
    run_script(folder, DASK_START, scored, counted, DASK_CHECKS, DASK_END, timeout=900)
    assert_as_the_command(folder, "intervals")


def test_ray(folder):
    pytest.importorskip("ray")
    run_script(
        folder, RAY_START, RECIPES["Ray Data"][0], "ray.shutdown()", timeout=900, **RAY_OPTIONS
    )
    assert_as_the_command(folder, "intervals")


def test_spark(folder):
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("needs Java")
    arrow, sql = RECIPES["Spark"]
    sql = sql.replace('write.parquet("intervals")', 'write.parquet("of_sql")')
    run_script(folder, SPARK_START, arrow, sql, "spark.stop()", timeout=900, **SPARK_OPTIONS)
    assert_as_the_command(folder, "intervals")
    assert_as_the_command(folder, "of_sql")


@pytest.mark.parametrize(
    ("title", "library"),
    [("BatchScorer", "pyarrow"), ("Polars", "polars"), ("DuckDB", "duckdb")],
)
def test_streams(title, library, folder):
    pytest.importorskip(library)
    run_script(folder, RECIPES[title][0])
    assert_as_the_command(folder, "intervals.parquet")


MLFLOW_CHECKS = """
rows = pandas.read_parquet("new.parquet")
model = mlflow.pyfunc.load_model("mlflow_model")
found = model.predict(rows[["c", "a", "b"]], params={"coverage": [0.8, 0.9]})
pandas.concat([rows[["id"]], found], axis=1).to_parquet("intervals")
assert list(model.predict(rows.head()).columns) == list(found.columns)
"""


def test_mlflow(folder):
    pytest.importorskip("mlflow")
    # What MLflow itself warns of when it is imported.
    quiet = {"PYTHONWARNINGS": "ignore", "MLFLOW_LOGGING_LEVEL": "ERROR"}
    code, saves = RECIPES["MLflow"]
    (folder / "intervals.py").write_text(code)
    run_script(folder, saves, MLFLOW_CHECKS, **quiet)
    assert_as_the_command(folder, "intervals")
    assert not list((folder / "mlflow_model").rglob("*.pkl"))


FASTAPI_CHECKS = """
import os

import pandas
from fastapi.testclient import TestClient

rows = pandas.read_parquet("new.parquet")
with TestClient(app) as client:
    found = client.post("/intervals", json=rows[list("abc")].to_dict("records"))
    assert found.status_code == 200
    refused = client.post("/intervals", json=[{"a": 1.0}])
    assert refused.status_code == 422 and "'b'" in refused.json()["detail"]
    assert "hdi" not in refused.json()["detail"]
    os.truncate("model.hdi", 100)
    broken = client.post("/intervals", json=rows[list("abc")].to_dict("records"))
    assert broken.status_code == 503 and "hdi" not in broken.json()["detail"]
pandas.concat([rows[["id"]], pandas.DataFrame(found.json())], axis=1).to_parquet("intervals")
"""


def test_fastapi(folder):
    pytest.importorskip("fastapi")
    pytest.importorskip("httpx2")
    run_script(folder, RECIPES["FastAPI"][0], FASTAPI_CHECKS)
    assert_as_the_command(folder, "intervals")
