"""Recipes for forests of other libraries run, on clusters of Dask and Spark of two processes."""

import shutil

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_limits

from .local import DASK_END, DASK_START, SPARK_OPTIONS, SPARK_START, recipes_of, run_script

pd = pytest.importorskip("pandas")
pytest.importorskip("lightgbm")
pytest.importorskip("safetensors")
RECIPES = recipes_of("forests", "many_rows")


def rows(n, seed):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    return table.assign(y=table["a"] + 0.5 * rng.normal(size=n), id=np.arange(n))


def test_lightgbm_and_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train, new = rows(600, 0), rows(200, 1)
    for table in (train, new):
        table["colour"] = pd.Categorical(np.resize(["red", "green", "blue"], len(table)))
    names = {"train": train, "new": new, "features": ["a", "b", "colour"]}
    with threadpool_limits(1):
        exec(RECIPES["LightGBM, XGBoost and CatBoost"][0], names)
        exec(RECIPES["Files"][1], names)
        found = names["intervals"]
        inside = (found["lower_0.9"] <= new["y"]) & (new["y"] <= found["upper_0.9"])
        assert 0.8 < inside.mean() <= 1
        arguments = new[names["features"]], [0.8, 0.9]
        expected = names["model"].predict_interval(*arguments)
        assert_array_equal(names["loaded"].predict_interval(*arguments), expected)


DASK_ROWS = """
import dask.dataframe
import numpy as np
import pandas as pd
train, new = pd.read_parquet("train.parquet"), pd.read_parquet("new.parquet")
rows = dask.dataframe.from_pandas(train[["a", "b", "y"]], npartitions=2).persist()
"""
# Leaf ids come in the order of the rows, and the training rows are where the forest puts them.
DASK_CHECKS = """
import pickle
def check(library, model):
    own = model.apply(X.compute())
    assert np.array_equal(own, leaves), "leaves of the cluster"
    inside = {}
    for kind in ("hdi", "calibrated"):
        lower, upper = model.predict_interval(new[["a", "b"]], 0.9, kind=kind).T
        inside[kind] = ((lower <= new["y"]) & (new["y"] <= upper)).mean()
    print(library, inside)
    assert 0.86 < inside["calibrated"] < 0.94, inside
    pickle.dumps(model)
"""


def test_dask(tmp_path):
    for package in ("distributed", "dask.dataframe", "xgboost"):
        pytest.importorskip(package)
    rows(6000, 0).to_parquet(tmp_path / "train.parquet")
    rows(4000, 1).to_parquet(tmp_path / "new.parquet")
    recipes = [
        part
        for library in ("lightgbm.dask", "xgboost.dask")
        for part in (*RECIPES[library], f"check({library!r}, model)")
    ]
    print(run_script(tmp_path, DASK_START, DASK_ROWS, DASK_CHECKS, *recipes, DASK_END, timeout=900))


SPARK_ROWS = """
import pandas as pd
train, new = spark.read.parquet("train.parquet"), spark.read.parquet("new.parquet")
"""
SPARK_CHECKS = """
table = scored.toPandas().sort_values("id", ignore_index=True)
rows = pd.read_parquet("new.parquet")
assert list(table["id"]) == list(rows["id"])
inside = (table["lower_0.9"] <= rows["y"]) & (rows["y"] <= table["upper_0.9"])
ids, y = leaves_and_targets(new)
lower, upper = LeafModel.load("intervals.hdi", numpy.asarray).predict_interval(ids, kind="hdi").T
found = {"hdi": ((lower <= y) & (y <= upper)).mean(), "calibrated": inside.mean()}
print("Spark MLlib", found)
assert 0.86 < inside.mean() < 0.94, inside.mean()
"""


def test_spark(tmp_path):
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("needs Java")
    rows(6000, 0).to_parquet(tmp_path / "train.parquet")
    rows(4000, 1).to_parquet(tmp_path / "new.parquet")
    parts = [SPARK_START, SPARK_ROWS, *RECIPES["Spark MLlib"], SPARK_CHECKS, "spark.stop()"]
    print(run_script(tmp_path, *parts, timeout=900, **SPARK_OPTIONS))
