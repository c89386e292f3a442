"""Frames: what rows of each library are, and what is refused before anything is done."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor, fit_table
from hdiforest.serving import BatchScorer

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pytest.importorskip("safetensors")

COLUMNS = {"town": ["Nice", "Lyon", None], "rooms": [3, 1, 2], "area": [70.5, 31.0, 48.0]}
ARROW = pa.table(COLUMNS)
MATRIX = np.arange(6.0).reshape(3, 2)


@pytest.fixture(scope="module")
def model():
    forest = RandomForestRegressor(5, random_state=0)
    table = pd.concat([pd.DataFrame(COLUMNS)] * 10).assign(price=np.arange(30.0))
    return fit_table(table, "price", estimator=forest, calibration=False)


@pytest.fixture(scope="module")
def scorer(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.hdi"
    model.save(path)
    return BatchScorer(path, keep=["rooms"])


def test_streams_are_rows_and_no_batch(model, scorer):
    expected = model.predict(ARROW)
    np.testing.assert_array_equal(model.predict(ARROW.to_reader(max_chunksize=1)), expected)
    with pytest.raises(ValueError, match=r"a batch must be .* got RecordBatchReader"):
        scorer(ARROW.to_reader())


@pytest.mark.parametrize(
    "rows", [MATRIX, MATRIX.tolist(), csr_array(MATRIX), pd.Series([1.0, 2.0, 3.0])]
)
def test_what_has_no_names_is_no_table(model, rows):
    with pytest.raises(ValueError, match=r"X must be a table with names of columns .* got "):
        model.predict(rows)


def test_nan_in_a_list_of_texts_is_a_missing_cell(model):
    rows = COLUMNS | {"town": ["Nice", np.nan, None]}
    expected = model.predict(rows | {"town": ["Nice", None, None]})
    np.testing.assert_array_equal(model.predict(rows), expected)


def lazy(kind):
    if kind == "polars":
        return pl.LazyFrame(COLUMNS)
    if kind == "pyarrow":
        return pytest.importorskip("pyarrow.dataset").dataset(ARROW)
    if kind.startswith("dask"):
        dask = pytest.importorskip("dask.dataframe")
        frame = dask.from_pandas(pd.DataFrame(COLUMNS), npartitions=2)
        return frame if kind == "dask" else frame["area"]
    module, _, name = kind.rpartition(".")
    own = {"__module__": module, "columns": [*COLUMNS], "iloc": None}
    return type(name, (), own)()


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("polars", r"X must be in memory, but is a LazyFrame of polars: call collect\(\)"),
        ("pyarrow", r"a InMemoryDataset of pyarrow: call to_table\(\)"),
        ("dask", "a DataFrame of dask: score it by hdiforest.adapters.dask"),
        ("dask series", "a Series of dask: score it by hdiforest.adapters.dask"),
        ("pyspark.sql.classic.dataframe.DataFrame", "a DataFrame of pyspark: .* mapInArrow"),
        ("pyspark.pandas.frame.DataFrame", "a DataFrame of pyspark: .* a pandas DataFrame"),
        ("ray.data.dataset.Dataset", "a Dataset of ray: score it by BatchScorer in map_batches"),
        ("duckdb.DuckDBPyRelation", r"a DuckDBPyRelation of duckdb: call df\(\)"),
    ],
)
def test_tables_that_are_not_in_memory_are_refused(model, scorer, kind, message):
    for call in (model.predict, scorer):
        with pytest.raises(ValueError, match=message.replace("X", "(X|the batch)")):
            call(lazy(kind))


@pytest.mark.parametrize("cell", [31, "Nice", None, np.float64(2.5), np.array(1)])
def test_a_record_is_no_dict_of_columns(model, cell):
    message = "X must be a dict of columns, but 'rooms' is one cell, .*put cells.*; BatchScorer"
    with pytest.raises(ValueError, match=message):
        model.predict({"town": ["Nice"], "rooms": cell, "area": [1.0]})


@pytest.mark.parametrize("kind", ["pandas", "Table", "RecordBatch", "stream"])
def test_two_columns_of_one_name_are_refused_in_one_sentence(kind):
    forest = RandomForestRegressor(5, random_state=0)
    named = pd.DataFrame(MATRIX, columns=["a", "b"])
    of_numbers = HDIForestRegressor(forest, calibration=False).fit(named, [0.0, 1.0, 2.0])
    table = pa.Table.from_arrays([pa.array([1.0])] * 3, ["a", "b", "b"])
    for ask in (of_numbers.predict, lambda rows: of_numbers.fit(rows, [0.0])):
        rows = {
            "pandas": pd.DataFrame([[1.0, 1.0, 1.0]], columns=["a", "b", "b"]),
            "Table": table,
            "RecordBatch": table.to_batches()[0],
            "stream": table.to_reader(),
        }[kind]
        with pytest.raises(ValueError, match=r"^the table has 2 columns 'b'$"):
            ask(rows)
