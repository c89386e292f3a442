"""Columns of a table become features: what each kind of cell becomes, and what is refused."""

import datetime
import json
import pickle
import warnings
from decimal import Decimal

import numpy as np
import pytest

from hdiforest._tables.columns import EncodingError, without_words
from hdiforest._tables.encoder import TableEncoder, learn

pa = pytest.importorskip("pyarrow")

NAN = np.nan


def encoded(train, new=None, **options):
    """Codes of the only column of a table `new`, by an encoder of the table `train`."""
    table = pa.table({"c": train})
    encoder = learn(table, **options)
    return encoder.encode(table if new is None else pa.table({"c": new}))[0][:, 0]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, None, 3]), [1, NAN, 3]),
        (pa.array([1.5, NAN, None]), [1.5, NAN, NAN]),
        (pa.array([1, 2, None], pa.decimal128(5, 2)), [1, 2, NAN]),
        (pa.nulls(2), [NAN, NAN]),
        (pa.array([True, None, False]), [1, NAN, 0]),
        (pa.array(["True", None, "FALSE", "", " true "]), [1, NAN, 0, NAN, 1]),
        (pa.array(["2020-01-01", "", "2020-01-03"]), [-1, NAN, 1]),
        (pa.array(["2020-01-01 12:00", "2020-01-01T12:30:00"]), [24 * 30, 24 * 30 + 30]),
        (pa.array(["2020-01-01T00:00:00Z", "2020-01-01 00:00+01:00"]), [24, 23]),
        (pa.array([datetime.date(2020, 1, 1), None]), [0, NAN]),
        (pa.array([0, 86_400_000], pa.date64()), [0, 1]),
        (pa.array([0, 3600, None], pa.timestamp("s")), [0, 1, NAN]),
        (pa.array([0, 3600 * 10**9], pa.timestamp("ns", "Europe/Paris")), [0, 1]),
        (pa.array(["b", "a", "b", None, ""]), [0, 1, 0, NAN, NAN]),
        (pa.array(["b", "a", "b"], pa.string_view()), [0, 1, 0]),
        (pa.array(["b", "a", "b", None]).dictionary_encode(), [0, 1, 0, NAN]),
        (pa.array([7, 5, 7]).dictionary_encode(), [0, 1, 0]),
    ],
)
def test_cells_of_each_kind(column, expected):
    if str(column.type).startswith("timestamp") or "12:00" in str(column[0]):
        expected = np.subtract(expected, encoded(column)[0] - expected[0])  # whatever the reference
    np.testing.assert_array_equal(encoded(column), np.float32(expected))


def test_numbers_that_are_declared_categories():
    np.testing.assert_array_equal(encoded([7, 5, 7, None], categorical=["c"]), [0, 1, 0, NAN])
    np.testing.assert_array_equal(
        encoded([7, 5, 7], ["5", "7.0", "x"], categorical=["c"]), [1, 0, NAN]
    )
    np.testing.assert_array_equal(encoded(["75", "02"], [75, 2], categorical=["c"]), [0, NAN])


BIG = 2**53


@pytest.mark.parametrize(
    ("train", "values"),
    [
        (pa.array([BIG, BIG + 1, BIG, -BIG - 1]), (BIG, BIG + 1, -BIG - 1)),
        (pa.array([2**64 - 1, 2**64 - 2], pa.uint64()), (2**64 - 1, 2**64 - 2)),
        (pa.array([BIG + 1, BIG]).dictionary_encode(), (BIG + 1, BIG)),
        (pa.array([Decimal(10**30 + 1), Decimal(10**30)]), (10**30 + 1, 10**30)),
        (pa.array([Decimal("0.10"), Decimal("2.00")]), (0.1, 2)),
        (pa.array([Decimal(f"{BIG}.25"), Decimal(f"{BIG}.50")]), (f"{BIG}.25", f"{BIG}.50")),
        (pa.array([2.0**60, 0.5, -0.0, 0.0, NAN]), (0.0, 2.0**60, 0.5)),
    ],
)
def test_numbers_that_are_categories_stay_exact(train, values):
    table = pa.table({"c": train})
    encoder = learn(table, categorical=["c"])
    assert encoder.entries[0].values == values
    again = TableEncoder.from_facts(json.loads(json.dumps(encoder.facts())))
    X, counts = again.encode(table)
    np.testing.assert_array_equal(X, encoder.encode(table)[0])
    assert len(np.unique(X[~np.isnan(X)])) == len(values)
    assert not counts.unseen["c"]
    texts = pa.array([str(value) for value in values])  # as a CSV has them
    X, counts = encoder.encode(pa.table({"c": texts}))
    np.testing.assert_array_equal(X[:, 0], range(len(values)))


@pytest.mark.parametrize(
    "new",
    [
        pa.array([BIG + 4, None, BIG + 3]),
        pa.array([BIG + 4, None, BIG + 3], pa.uint64()).dictionary_encode(),
        pa.array([Decimal(BIG + 4), None, Decimal(BIG + 3)]),
        pa.array([f"{BIG + 4}", "", f"{BIG + 3}"]),
        pa.array([f" {BIG + 4}.0", None, f"{BIG + 3}.5"]),
        pa.array([2.0**53 + 4, NAN, 2.0**60]),
        pa.array(["9007199254740996e0", None, "1e400"]),
    ],
)
def test_neighbours_of_large_categories_are_unseen(new):
    for train in (pa.array([BIG, BIG + 4]), pa.array([2.0**53, 2.0**53 + 4])):
        encoder = learn(pa.table({"c": train}), categorical=["c"])
        X, counts = encoder.encode(pa.table({"c": new}))
        np.testing.assert_array_equal(X[:, 0], [1, NAN, NAN])
        assert counts.unseen == {"c": 1}


def test_categories_that_are_not_known_are_missing_and_counted():
    table = pa.table({"town": ["a", "a", "b"], "x": [1, 2, 3]})
    encoder = learn(table)
    new = pa.table({"x": [1] * 5, "more": [0] * 5, "town": ["z", "b", "z", None, ""]})
    X, counts = encoder.encode(new)
    np.testing.assert_array_equal(X[:, 0], [NAN, 1, NAN, NAN, NAN])
    assert counts.unseen == {"town": 2}
    assert X.dtype == np.float32
    assert X.flags.c_contiguous


def test_chunks_and_batches_are_coded_alike():
    columns = {"t": ["a", "b", "a", "c"], "d": ["2020-01-01", None, "2021-01-01", "2020-01-01"]}
    table = pa.table(columns)
    encoder = learn(table)
    expected, _ = encoder.encode(table)
    chunked = pa.concat_tables([table.slice(0, 1), table.slice(1, 0), table.slice(1)])
    np.testing.assert_array_equal(encoder.encode(chunked)[0], expected)
    np.testing.assert_array_equal(encoder.encode(table.to_batches()[0])[0], expected)
    dictionaries = pa.table({"t": pa.chunked_array([
        pa.array(["a", "b"]).dictionary_encode(), pa.array(["c", "a"]).dictionary_encode()
    ]), "d": columns["d"]})  # fmt: skip
    np.testing.assert_array_equal(encoder.encode(dictionaries)[0][:, 0], expected[[0, 1, 3, 0], 0])
    assert encoder.encode(table.slice(0, 0))[0].shape == (0, 2)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_of_every_unit_mean_the_same(unit):
    stamps = ["2023-01-01 00:00:00", "2024-02-29 23:59:59"]
    np.testing.assert_array_equal(
        encoded(stamps, pa.array(stamps).cast(pa.timestamp(unit))), encoded(stamps)
    )


def test_seconds_of_a_year_and_days_of_all_years_are_exact():
    seconds = pa.array(np.arange(0, 365 * 86400, 86400 - 1), pa.timestamp("s"))
    assert len(np.unique(encoded(seconds))) == len(seconds)
    np.testing.assert_array_equal(np.diff(encoded(seconds)), 86400 - 1)
    days = encoded(["2024-01-01", "2024-01-02", "2024-01-03", "9999-12-31", "0001-01-01"])
    np.testing.assert_array_equal(np.diff(days)[:2], 1)
    assert days[3] - days[0] == (datetime.date(9999, 12, 31) - datetime.date(2024, 1, 1)).days


DATES = ["2024-01-01", "2024-01-02"]
ZONED = ["2024-01-01T00:00:00Z", "2024-01-02T12:00:00+01:00"]


@pytest.mark.parametrize(
    ("train", "new", "message"),
    [
        ([1, 2], ["x", "y"], "'c' must hold numbers, but is string"),
        ([1, 2], pa.array([1], pa.date32()), "'c' must hold numbers, but is date32"),
        ([1, 2], [1.0, 1e39], r"'c' must hold numbers that fit into float32, .* 1e\+39 in row 12"),
        ([True], ["yes"], "'c' must hold booleans, but holds 'yes' in row 11"),
        ([True], [1.0, 0.0, 0.5], "'c' must hold booleans, but holds 0.5 in row 13"),
        (DATES, [1, 2], "'c' must hold dates, but is int64"),
        (DATES, ["2024-01-01", None, "soon"], "such as 2024-05-31 .*, but holds 'soon' in row 13"),
        (DATES, ["2024-02-30"], "but holds '2024-02-30' in row 11"),
        (DATES, ZONED, "dates without a time zone .*, but holds '2024-01-01T00:00:00Z' in row 11"),
        (ZONED, DATES, "timestamps with a time zone such as .*, but holds '2024-01-01' in row 11"),
        (ZONED, pa.array([0], pa.timestamp("s")), r"dates with a time zone, but is timestamp\[s\]"),
        (DATES, pa.array([0], pa.timestamp("s", "UTC")), "dates without a time zone, but is"),
        (
            DATES,
            pa.array([0, 2**62], pa.timestamp("s")),
            "'c' must hold dates of the years 1 to 9999, but holds 4611686018427387904 seconds "
            "since 1970 in row 12",
        ),
        (DATES, ["0001-01-01", "0000-12-31"], "years 1 to 9999, but holds '0000-12-31' in row 12"),
        (ZONED, ["0001-01-01T00:00:00+01:00"], "years 1 to 9999, but holds '0001-01-01T00"),
        (["a", "b"], pa.array([b"a"]), "'c' must hold categories, but is binary"),
    ],
)
def test_what_is_refused(train, new, message):
    encoder = learn(pa.table({"c": train}))
    with pytest.raises(EncodingError, match=message) as error:
        encoder.encode(pa.table({"c": new}), first_row=10)
    assert error.value.columns == ["c"]


def test_dates_of_the_year_0_are_not_learned():
    with pytest.raises(
        EncodingError, match=r"must hold dates of the years .*'0000-06-01' in row 2"
    ):
        learn(pa.table({"c": ["2024-01-01", "0000-06-01", "2024-01-03"]}))


def test_rows_are_counted_over_chunks():
    column = pa.chunked_array([["2024-01-01"], ["2024-01-01", "soon"]])
    with pytest.raises(EncodingError, match="in row 3"):
        learn(pa.table({"c": DATES})).encode(pa.table({"c": column}))


def test_one_message_names_all_columns():
    encoder = learn(pa.table({"a": [1], "b": [1], "c": ["x"], "d": [True]}))
    with pytest.raises(EncodingError, match="has no columns 'a', 'd', 2 columns 'b'"):
        encoder.encode(pa.Table.from_arrays([pa.array([1])] * 3, ["b", "b", "c"]))
    with pytest.raises(EncodingError, match=r"'a' must .*; column 'd' must") as error:
        encoder.encode(pa.table({"a": ["x"], "b": [1], "c": ["x"], "d": ["x"]}))
    assert error.value.columns == ["a", "d"]


@pytest.mark.parametrize("column", [[2**24 + 1], [2.0**24 + 1, NAN], [2**53 + 1, 2]])
def test_whole_numbers_that_are_rounded_warn(column):
    encoder = learn(pa.table({"n": column}))
    with pytest.warns(UserWarning, match=r"beyond 2\^24 are rounded .* the column 'n'"):
        encoder.encode(pa.table({"n": column}))


@pytest.mark.parametrize("column", [[2**24], [2**25], [2.0**24 + 1, 0.5]])
def test_numbers_that_are_no_rounded_whole_ones_do_not_warn(column):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder = learn(pa.table({"n": column}))
        encoder.encode(pa.table({"n": column}))


SECONDS = 1_650_000_000 + np.arange(2000) / 16
FRACTIONS = {
    "epoch seconds": SECONDS,
    "easting": 4_321_987 + np.arange(60) / 100,
    "pressure": 101_325 + np.append(NAN, np.arange(40) / 10_000),
}


@pytest.mark.parametrize("name", FRACTIONS)
@pytest.mark.parametrize("mixed", [False, True])
def test_fractions_that_float32_merges_warn(name, mixed):
    cells = np.random.default_rng(0).permutation(FRACTIONS[name][:1000])
    table = pa.table({"x": np.arange(len(cells)) / 7, name: cells})
    if mixed:  # the values need not be alike
        table = pa.concat_tables([table.slice(0, 5), pa.table({"x": [0.5], name: [0.0]}), table])
    message = rf"float32 merges .* in the column '{name}' \(\d+ become \d+\); subtract a constant"
    with pytest.warns(UserWarning, match=message):
        learn(table).encode(table)


def test_fractions_are_counted_in_the_first_rows():
    table = pa.table({"t": SECONDS, "u": np.append(SECONDS[:-1], NAN)})
    message = r"columns 't' \(1024 of the first 1,024 become 1\), 'u' \(1024 of the first"
    with pytest.warns(UserWarning, match=message):
        learn(table).encode(table)


@pytest.mark.parametrize(
    "cells",
    [
        np.random.default_rng(1).normal(size=5000),
        101_325 + np.arange(900) / 10,
        SECONDS[:2000:250],
        np.repeat(SECONDS[0], 50),
        np.arange(50) * 1e-30,
        np.full(30, NAN),
    ],
)
def test_fractions_that_stay_apart_do_not_warn(cells):
    table = pa.table({"n": cells})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learn(table).encode(table)


KINDS = {
    "number": [1.0, 2.0, 3.0],
    "boolean": [True, None, False],
    "date": ["2024-01-01", "2024-01-02", None],
    "zoned": ["2024-01-01T01:30:00Z", "2024-01-02T00:00:00Z", None],
    "text": ["a", 'é\n"', None],
    "code": pa.array([1.5, 2, None]).dictionary_encode(),
    "nothing": pa.array(["", None, None]),
    "key": ["x", "y", "z"],
}


def test_facts_and_pickles_make_the_encoder_again():
    table = pa.table(KINDS)
    encoder = learn(table, ids=["key"])
    assert encoder.ids == ("key",)
    assert encoder.columns == tuple(KINDS)[:-1]
    encoder.encode(table)
    again = TableEncoder.from_facts(json.loads(json.dumps(encoder.facts())))
    for other in (again, pickle.loads(pickle.dumps(encoder))):
        assert other == encoder
        np.testing.assert_array_equal(other.encode(table)[0], encoder.encode(table)[0])


def column(**facts):
    return {"columns": [{"name": "a", **facts}], "ids": []}


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (None, "entries columns and ids"),
        ({"columns": []}, "entries columns and ids"),
        ({"columns": [], "ids": []}, "list that is not empty"),
        ({"columns": "ab", "ids": []}, "list that is not empty"),
        ({"columns": [[]], "ids": []}, "must be an object"),
        (column(kind="number") | {"ids": [1]}, "ids of an encoder must be a list of texts"),
        (column(kind="number") | {"ids": ["a"]}, "distinct names"),
        ({"columns": 2 * column(kind="number")["columns"], "ids": []}, "distinct names"),
        (column(), "must be one of"),
        (column(kind=["number"]), "must be one of"),
        (column(kind="code"), "must be one of"),
        (column(kind="number", name=3), "name of a column must be a text"),
        (column(kind="number", more=1), "must have the entries"),
        (column(kind="number", **{"x" * 10**6: 1}), "must have the entries"),
        (column(kind="date", unit="day", reference=1), "must have the entries"),
        (column(kind="date", unit="week", reference=1, zoned=False), "unit must be one of"),
        (column(kind="date", unit="day", reference=10**30, zoned=False), "reference must be"),
        (column(kind="date", unit="day", reference=True, zoned=False), "reference must be"),
        (column(kind="date", unit="day", reference=1, zoned=0), "zoned must be true or false"),
        (column(kind="category"), "must have the entries"),
        (column(kind="category", values="ab"), "values must be a list"),
        (column(kind="category", values=["a", 1.0]), "values must be texts"),
        (column(kind="category", values=["\ud800"]), "values must be texts"),
        (column(kind="category", values=[10**400]), "values must be texts"),
        (column(kind="category", values=[[]]), "values must be texts"),
        (column(kind="category", values=[NAN]), "values must be texts"),
        (column(kind="category", values=["a", "a"]), "values must be distinct"),
        (column(kind="category", values=[2**60, 2.0**60]), "values must be distinct"),
        (column(kind="category", values=[0.0, -0.0]), "values must be distinct"),
    ],
)
def test_hostile_facts(facts, message):
    with pytest.raises(ValueError, match=message) as error:
        TableEncoder.from_facts(facts)
    assert len(str(error.value)) < 200


def test_columns_that_name_the_rows_are_refused_unless_declared():
    table = pa.table({"key": [f"k{i}" for i in range(30)], "x": range(30)})
    with pytest.raises(
        EncodingError, match="'key' has 30 categories in 30 rows, and so says little"
    ):
        learn(table)
    assert learn(table, categorical=["key"]).columns == ("key", "x")
    assert learn(table, ids=["key"]).columns == ("x",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"categorical": ["b", "x"]}, "no column 'b'; it has x"),
        ({"categorical": ["b", "c"]}, "no columns 'b', 'c'"),
        ({"ids": ["x"]}, "no column left"),
    ],
)
def test_arguments_of_learn(options, message):
    with pytest.raises(EncodingError, match=message):
        learn(pa.table({"x": [1, 2]}), **options)


def test_types_that_are_nothing_of_a_table_are_all_named():
    table = pa.table({"a": [[1]], "b": pa.array([1], pa.duration("s")), "c": [1]})
    with pytest.raises(EncodingError, match=r"'a' must .* list.*; column 'b' must .* duration"):
        learn(table)
    twice = pa.Table.from_arrays([pa.array([1])] * 2, ["a", "a"])
    with pytest.raises(EncodingError, match="2 columns 'a'"):
        learn(twice)


@pytest.mark.parametrize(
    ("column", "words", "missing"),
    [
        (["n/k", " n/k ", "n/k.", "7"], ["n/k", "7"], [0, 1, 3]),
        (pa.array(["n/k", "a"], pa.string_view()), ["n/k"], [0]),
        (pa.array(["n/k", "a", "n/k"]).dictionary_encode(), ["n/k"], [0, 2]),
        (
            pa.DictionaryArray.from_arrays([1, 0, None], pa.array(["a", "?"], pa.string_view())),
            ["?", "b"],
            [0, 2],
        ),
        ([-1, 1, 7], ["-1", "x"], [0]),
        ([-1.0, 1.5, 7.0], ["-1", "7.00", "1.5"], [0, 1, 2]),
        (pa.array([1.1, 2.2], pa.float32()), ["1.1"], [0]),
        (pa.array([1, 2], pa.float16()), ["2"], [1]),
        (pa.array([1, 9], pa.uint8()), ["-9", "9.0", "999"], [1]),
        (pa.array([1, 9], pa.decimal128(4, 2)), ["9"], [1]),
        (pa.array([9, 8, 9]).dictionary_encode(), ["9"], [0, 2]),
        ([2**62 + 1, 2**62], [str(2**62)], [1]),
        ([datetime.date(9999, 12, 31), datetime.date(2020, 1, 1)], ["9999-12-31", "0"], [0]),
        ([datetime.datetime(1900, 1, 1), None], ["1900-01-01"], [0, 1]),
        ([True, False], ["0", "true"], []),
        (pa.array([5], pa.duration("s")), ["5"], []),
        (pa.nulls(1), ["5"], [0]),
    ],
)
def test_words_for_missing_cells(column, words, missing):
    array = column if isinstance(column, pa.Array) else pa.array(column)
    for given in (array, pa.chunked_array([array.slice(0, 1), array.slice(1)])):
        found = without_words(given, words)
        assert [row for row, cell in enumerate(found) if not cell.is_valid] == missing
        assert pa.types.is_null(found.type) == (len(missing) == len(array))
        assert pa.types.is_dictionary(found.type) == pa.types.is_dictionary(given.type)
        assert without_words(given, []).null_count == given.null_count


def test_an_encoder_keeps_its_words():
    table = pa.table({"a": [1.0, -9, 3], "c": ["x", None, "y"]})
    encoder = learn(pa.table({"a": [1.0, None, 3], "c": ["x", None, "y"]}), missing=["-9", "?"])
    for other in (encoder, pickle.loads(pickle.dumps(encoder))):
        X, counts = other.encode(table.append_column("more", table["a"]))
        np.testing.assert_array_equal(X, [[1, 0], [NAN, NAN], [3, 1]])
        assert counts.missing == {"a": 1, "c": 1}
        assert counts.n_rows_without_values == 1
    assert "missing" not in learn(table).facts()
    facts = json.loads(json.dumps(encoder.facts())) | {"missing": "?"}
    with pytest.raises(
        ValueError, match="the words for missing cells of an encoder must be a list"
    ):
        TableEncoder.from_facts(facts)
