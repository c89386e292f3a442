"""Tables as rows: columns are read by name or refused, whichever library they come from."""

import re
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

NAMES = ["width", "age", "height"]
RNG = np.random.default_rng(5)
X = RNG.normal(size=(200, 3))
Y = X[:, 0] + 0.1 * RNG.normal(size=200)


class Stream:
    """A table of a library that nobody here knows."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


class Batch:
    def __init__(self, table):
        self.batch = table.combine_chunks().to_batches()[0]

    def __arrow_c_array__(self, requested_schema=None):
        return self.batch.__arrow_c_array__(requested_schema)


KINDS = {
    "pyarrow.Table": lambda table: table,
    "pyarrow.RecordBatch": lambda table: table.to_batches()[0],
    "pyarrow.RecordBatchReader": lambda table: table.to_reader(max_chunksize=7),
    "pyarrow.StructArray": lambda table: table.to_struct_array(),
    "__arrow_c_stream__": Stream,
    "__arrow_c_array__": Batch,
    "dict": lambda table: {name: np.asarray(table[name]) for name in table.column_names},
    "dict of lists": lambda table: table.to_pydict(),
    "polars.DataFrame": lambda table: pl.DataFrame(table.to_pydict()),
    "polars.Series": lambda table: pl.DataFrame(table.to_pydict()).to_struct("rows"),
    "pandas.DataFrame": lambda table: pd.DataFrame(table.to_pydict()),
    "pandas.DataFrame of Arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
}


def table_of(rows, order=NAMES):
    return pa.table({name: rows[:, NAMES.index(name)] for name in order})


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def fit_forest(rows, y=Y):
    forest = RandomForestRegressor(10, random_state=0)
    return HDIForestRegressor(forest, calibration=False).fit(rows, y)


@pytest.fixture(scope="module")
def model():
    return fit_forest(pd.DataFrame(X, columns=NAMES))


def test_columns_are_read_by_name(kind, model):
    expected = fit_forest(X)
    assert_array_equal(
        model.predict_interval(kind(table_of(X))), expected.predict_interval(X.copy())
    )
    assert_array_equal(
        model.predict_weights(kind(table_of(X))).toarray(), expected.predict_weights(X).toarray()
    )


@pytest.mark.parametrize(
    ("order", "message"),
    [(NAMES[::-1], "must be in the same order"), (NAMES[:2], "missing"), (["age"], "missing")],
)
def test_other_columns_are_refused(kind, model, order, message):
    with pytest.raises(ValueError, match=message):
        model.predict_interval(kind(table_of(X, order)))
    with pytest.raises(ValueError, match=message):
        model.sample(kind(table_of(X, order)))


def test_fit_and_from_forest(kind, model):
    fitted = fit_forest(kind(table_of(X)))
    assert_array_equal(fitted.feature_names_in_, NAMES)
    assert_array_equal(fitted.predict(kind(table_of(X))), model.predict(table_of(X)))
    forest = RandomForestRegressor(10, random_state=0).fit(pd.DataFrame(X, columns=NAMES), Y)
    imported = HDIForestRegressor.from_forest(forest, kind(table_of(X)), Y)
    assert_array_equal(imported.predict(table_of(X)), model.predict(table_of(X)))
    with pytest.raises(ValueError, match="must be in the same order"):
        HDIForestRegressor.from_forest(forest, kind(table_of(X, NAMES[::-1])), Y)


def test_a_model_without_names_warns_of_them():
    model = fit_forest(X)
    with pytest.warns(UserWarning, match="X has feature names, but"):
        model.predict(table_of(X).to_batches()[0])


def test_no_rows(kind, model):
    if kind is KINDS["pyarrow.RecordBatch"] or kind is Batch:
        empty = pa.RecordBatch.from_pydict({name: pa.array([], pa.float64()) for name in NAMES})
    else:
        empty = kind(table_of(X[:0]).cast(table_of(X).schema))
    assert model.predict_interval(empty).shape == (0, 2)


def test_numbers_of_every_type(model):
    whole = np.round(10 * X)
    floats = fit_forest(whole)
    expected = floats.predict_interval(whole)
    types = [pa.float32(), pa.int8(), pa.decimal128(5, 1)]
    mixed = pa.table(
        [pa.array(column).cast(kind) for column, kind in zip(whole.T, types, strict=True)], NAMES
    )
    fitted = fit_forest(mixed)
    assert_array_equal(fitted.predict_interval(mixed), expected)
    assert_array_equal(fitted.predict_interval(mixed.to_batches()[0]), expected)


def test_missing_cells_are_missing_values():
    holes = X.copy()
    holes[::7, 1] = np.nan
    fitted = fit_forest(holes)
    column = pa.array(holes[:, 1], from_pandas=True)
    assert column.null_count > 0
    table = pa.table([holes[:, 0], column, holes[:, 2]], NAMES)
    by_name = fit_forest(table)
    assert_array_equal(by_name.predict(table.to_batches()[0]), fitted.predict(holes))


@pytest.mark.parametrize("frame", [pa.table, Stream, dict, pl.DataFrame, pd.DataFrame])
@pytest.mark.parametrize("bad", [["Paris"] * 200, [None, "Rome"] * 100])
def test_columns_of_text_are_named(frame, bad, model):
    columns = {"width": X[:, 0], "age": bad, "height": X[:, 2]}
    rows = Stream(pa.table(columns)) if frame is Stream else frame(columns)
    sentence = re.compile("X must hold numbers, but does not in the columns? 'age'")
    with pytest.raises(ValueError, match=sentence):
        model.predict(rows)
    with pytest.raises(ValueError, match=sentence):
        fit_forest(rows)


@pytest.mark.parametrize("frame", [dict, pd.DataFrame])
def test_columns_of_two_kinds_of_cells(frame, model):
    rows = frame({"width": [0.5, 1], "age": [30, "Paris"], "height": [0, 1]})
    sentence = "'age',?( which)? holds cells of the types int, str"
    with pytest.raises(ValueError, match=sentence):
        model.predict(rows)
    with pytest.raises(ValueError, match=sentence):
        fit_forest(rows, [0.0, 1.0])


def test_all_bad_columns_of_arrow_data_are_named_with_their_types(model):
    table = pa.table(
        {
            "width": X[:, 0],
            "age": ["x"] * 200,
            "height": pa.array([0] * 200).cast(pa.timestamp("us")),
        }
    )
    message = re.escape("in the columns 'age' (string), 'height' (timestamp[us])")
    with pytest.raises(ValueError, match=message):
        model.predict(table)


@pytest.mark.parametrize("others", [NAMES, []])
@pytest.mark.parametrize(
    "cell",
    [pd.Timestamp("2021-07-04"), pd.Timestamp("2021-07-04 12:00Z"), pd.Timedelta("3h")],
)
def test_times_of_pandas_are_no_numbers(others, cell):
    rows = pd.DataFrame(X, columns=NAMES)[others].assign(sold=pd.Series([cell] * 200))
    message = r"X must hold numbers, but does not in the columns 'sold' .*; models of fit_table"
    with pytest.raises(ValueError, match=message):
        fit_forest(rows)


@pytest.mark.parametrize("frame", [pa.table, Stream, dict, pl.DataFrame, pd.DataFrame])
@pytest.mark.parametrize("cells", [["Paris"] * 200, [7] * 200])
def test_columns_that_the_fit_did_not_have_are_named(frame, cells, model):
    columns = {name: X[:, j] for j, name in enumerate(NAMES)} | {"city": cells, "floor": X[:, 0]}
    rows = Stream(pa.table(columns)) if frame is Stream else frame(columns)
    message = "X has unexpected columns: 'city', 'floor'; the fit had width, age, height"
    with pytest.raises(ValueError, match=message):
        model.predict_interval(rows)


def test_columns_of_other_names_are_told_by_scikit_learn(model):
    rows = pd.DataFrame(X, columns=NAMES).rename(columns={"age": "years"}).assign(city="Paris")
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- city\n- years\n.*:\n- age"):
        model.predict(rows)


def test_records_name_who_takes_them(model):
    rows = [{"width": 1.5, "age": 2.5, "height": 0.5}] * 2
    unfitted = HDIForestRegressor(RandomForestRegressor(5))
    for ask in (model.predict, lambda rows: unfitted.fit(rows, [0.0, 1.0])):
        with pytest.raises(ValueError, match=r"X must be a table .*, got records, which Batch"):
            ask(rows)


def test_other_errors_name_no_column(model):
    frame = pd.DataFrame(X, columns=NAMES)
    frame.loc[3, "age"] = np.inf
    with pytest.raises(ValueError, match="infinity") as caught:
        model.predict(frame)
    assert "must hold numbers" not in str(caught.value)


@pytest.mark.parametrize(
    "rows",
    [
        pa.array([1.0, 2.0]),
        pa.chunked_array([[1.0]]),
        pl.Series([1.0]),
        {"width": X, "age": Y, "height": Y},
        {"width": [1.0], "age": [1.0, 2.0], "height": [1.0]},
        {1: [1.0]},
    ],
)
def test_what_is_no_table(rows, model):
    kind = type(rows).__name__
    with pytest.raises(ValueError, match=f"X is a {kind} that cannot be read as a table: "):
        model.predict(rows)


def test_without_pyarrow(monkeypatch, model):
    table = table_of(X)
    expected = model.predict(table)
    frame, stream = pl.DataFrame(table.to_pydict()), Stream(table)
    columns = {name: X[:, j] for j, name in enumerate(NAMES)}
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for rows in (stream, columns):
        with pytest.raises(ImportError, match=f"X is a {type(rows).__name__}, .* pip install"):
            model.predict(rows)
    # What scikit-learn itself reads by name needs no pyarrow.
    assert_array_equal(model.predict(pd.DataFrame(columns)), expected)
    try:
        found = model.predict(frame)
    except ImportError:
        return  # an older scikit-learn
    assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="must be in the same order"):
        model.predict(frame.select(NAMES[::-1]))


def test_names_that_scikit_learn_cannot_read_are_an_error(monkeypatch, model):
    monkeypatch.setattr("sklearn.utils.validation._get_feature_names", lambda table: None)
    with pytest.raises(ImportError, match="does not read the column names"):
        model.predict(table_of(X))
