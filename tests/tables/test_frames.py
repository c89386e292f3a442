"""Frames: what rows of each library are, parts of them, their columns as Arrow, and results."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from hdiforest._tables.columns import EncodingError
from hdiforest._tables.frames import batch_of, frame_of

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

COLUMNS = {"town": ["Nice", "Lyon", None], "rooms": [3, 1, 2], "area": [70.5, 31.0, 48.0]}
INDEX = pd.Index(["r1", "r2", "r2"], name="row")
ARROW = pa.table(COLUMNS)
TABLES = {
    "pandas": pd.DataFrame(COLUMNS, index=INDEX),
    "polars": pl.DataFrame(COLUMNS),
    "Table": ARROW,
    "RecordBatch": ARROW.to_batches()[0],
    "dict": COLUMNS,
}
MATRIX = np.arange(6.0).reshape(3, 2)


@pytest.fixture(params=TABLES)
def rows(request):
    return TABLES[request.param]


def test_tables_have_names_and_their_columns_as_arrow(rows):
    frame = frame_of(rows)
    assert frame.names == list(COLUMNS)
    assert frame.library == ("polars" if isinstance(rows, pl.DataFrame) else "pandas")
    assert frame.arrow().to_pydict() == COLUMNS
    some = frame.arrow(["area", "garden", "town"])
    assert isinstance(some, pa.Table)
    assert some.to_pydict() == {"town": COLUMNS["town"], "area": COLUMNS["area"]}
    assert frame.arrow(["garden"]).num_columns == 0


def test_slices_are_rows(rows):
    frame = frame_of(rows).sliceable()
    assert frame.n_rows == 3
    blocks = list(frame.blocks(2))
    assert [part for part, _ in blocks] == [slice(0, 2), slice(2, 3)]
    assert [block.n_rows for _, block in blocks] == [2, 1]
    assert pa.concat_tables(block.arrow() for _, block in blocks).to_pydict() == COLUMNS
    assert [block for _, block in frame.blocks(3)] == [frame]
    if not isinstance(rows, dict):
        assert type(frame_of(rows).rows(slice(0, 2))) is type(rows)
        assert frame_of(rows).sliceable().native is rows


def test_results_come_back_in_the_library_of_the_rows(rows):
    results = {"prediction": np.array([1.0, 2.0, 3.0])}
    table = batch_of(rows).with_results(results, ["rooms"], {"rooms": pa.string()})
    assert type(table) is type(rows)
    frame = frame_of(table)
    assert frame.arrow().to_pydict() == {"rooms": ["3", "1", "2"], "prediction": [1.0, 2.0, 3.0]}
    if frame.index is not None:
        pd.testing.assert_index_equal(table.index, INDEX)


def test_streams_are_read_once_and_not_before():
    frame = frame_of(ARROW.to_reader(max_chunksize=1))
    assert (frame.n_rows, frame.names, frame.index) == (None, [], None)
    read = frame.sliceable()
    assert (read.n_rows, read.names) == (3, list(COLUMNS))
    with pytest.raises(ValueError, match=r"a batch must be .* got RecordBatchReader"):
        batch_of(ARROW.to_reader())


@pytest.mark.parametrize(
    "rows", [MATRIX, MATRIX.tolist(), csr_array(MATRIX), pd.Series([1.0, 2.0, 3.0])]
)
def test_what_has_no_names_is_no_table(rows):
    frame = frame_of(rows)
    assert (frame.names, frame.n_rows) == (None, 3)
    assert frame.numbers() is frame.in_library("pandas") is frame.native is rows
    assert frame_of(frame) is frame
    assert [block.n_rows for _, block in frame.blocks(2)] == [2, 1]
    assert type(frame.rows(slice(1, 3))) is type(rows)
    with pytest.raises(ValueError, match=r"X must be a table with names of columns .* got "):
        frame.arrow()


@pytest.mark.parametrize("rows", [(1, 2), "abc", None, {1, 2}])
def test_slices_of_other_objects_may_be_no_rows(rows):
    frame = frame_of(rows)
    assert frame.n_rows is None
    assert [block.native for _, block in frame.blocks(1)] == [rows]


def test_names_that_are_no_texts():
    frame = frame_of(pd.DataFrame(MATRIX))
    assert frame.arrow(["1"]).to_pydict() == {"1": [1.0, 3.0, 5.0]}
    assert_array_equal(frame.column(1), MATRIX[:, 1])


def test_nan_in_a_list_of_texts_is_a_missing_cell():
    cells = frame_of({"town": ["Nice", float("nan")]}).arrow().column("town")
    assert cells.to_pylist() == ["Nice", None]


@pytest.mark.parametrize("index", [["town"], ["rooms", "town"], ["area", "rooms"]])
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_that_pandas_wrote_as_an_index_stay_columns(index, library):
    table = pa.Table.from_pandas(pd.DataFrame(COLUMNS).set_index(index))
    for rows in (table, table.to_batches()[0], table.to_reader()):
        made = frame_of(rows).in_library(library)
        assert sorted(made.columns) == sorted(COLUMNS)
        assert list(made["rooms"]) == COLUMNS["rooms"]


TOWNS = ["Nice", "Lyon", "Rome"]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(TOWNS, index=[4, 5, 5]),
        pl.Series(TOWNS),
        pa.array(TOWNS),
        pa.chunked_array([TOWNS[:1], TOWNS[1:]]).cast(pa.string_view()),
    ],
)
def test_columns_without_a_name_become_those_of_the_library(column):
    frame = frame_of(column)
    assert (frame.names, frame.n_rows) == (None, 3)
    assert frame.library == ("polars" if isinstance(column, pl.Series) else "pandas")
    for library, kind in (("pandas", pd.Series), ("polars", pl.Series)):
        made = frame.in_library(library)
        assert isinstance(made, kind)
        assert list(made) == TOWNS
    assert list(frame.in_library(None)) == TOWNS
    assert [list(block.in_library(None)) for _, block in frame.blocks(2)] == [TOWNS[:2], TOWNS[2:]]


def lazy(kind):
    if kind == "polars":
        return pl.LazyFrame(COLUMNS)
    if kind == "pyarrow":
        return pytest.importorskip("pyarrow.dataset").dataset(ARROW)
    if kind.startswith("dask"):
        dask = pytest.importorskip("dask.dataframe")
        frame = dask.from_pandas(TABLES["pandas"].reset_index(drop=True), npartitions=2)
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
def test_tables_that_are_not_in_memory_are_refused(kind, message):
    for call in (frame_of, lambda rows: batch_of(rows)):
        with pytest.raises(ValueError, match=message.replace("X", "(X|the batch)")):
            call(lazy(kind))


@pytest.mark.parametrize("cell", [31, "Nice", None, np.float64(2.5), np.array(1)])
def test_a_record_is_no_dict_of_columns(cell):
    message = r"X must be a dict of columns, but 'b' is one cell, .*: put cells into lists"
    with pytest.raises(EncodingError, match=message):
        frame_of({"a": [1.0], "b": cell}).arrow()


@pytest.mark.parametrize("kind", ["pandas", "Table", "RecordBatch", "stream"])
@pytest.mark.parametrize("call", ["numbers", "pandas", "polars"])
def test_two_columns_of_one_name_are_refused_in_one_sentence(kind, call):
    table = pa.Table.from_arrays([pa.array([1.0])] * 2, ["b", "b"])
    rows = {
        "pandas": pd.DataFrame([[1.0, 1.0]], columns=["b", "b"]),
        "Table": table,
        "RecordBatch": table.to_batches()[0],
        "stream": table.to_reader(),
    }[kind]
    frame = frame_of(rows)
    with pytest.raises(EncodingError, match=r"^the table has 2 columns 'b'$"):
        frame.numbers() if call == "numbers" else frame.in_library(call)


def test_the_column_that_cannot_be_read_is_named_though_others_hold_two_kinds_of_cells():
    columns = {"code": ["x", b"y"], "rooms": [1, "two"]}  # text and bytes are bytes to Arrow
    assert frame_of({"code": columns["code"]}).arrow().num_rows == 2
    with pytest.raises(ValueError, match=r"column 'rooms' holds numbers \(1 in row 1\) and text"):
        frame_of(columns).arrow()
