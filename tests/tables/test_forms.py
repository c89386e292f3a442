"""How texts write numbers and dates: what is certain, what is refused, through every door."""

import datetime
import json
import random

import numpy as np
import pytest

from hdiforest._tables.encoder import learn
from hdiforest._tables.forms import DateForm, NumberForm, Written, form_from, form_of
from hdiforest._tables.read import TableError
from hdiforest._tables.training_table import Roles, read_training_table, training_table

pa = pytest.importorskip("pyarrow")
pc = pytest.importorskip("pyarrow.compute")

VALUES = [1234.5, -1.5, 0.25, 21.0, 1234567.0]
DAYS = [
    datetime.datetime(2023, 12, 31),
    datetime.datetime(2024, 2, 29),
    datetime.datetime(1987, 7, 4),
]


def grouped(value, sign, point="."):
    return f"{value:,.2f}".replace(",", "#").replace(".", point).replace("#", sign)


NUMBERS = {
    "57%": lambda v: f"{v} %",
    "$1,234.50": lambda v: f"${grouped(v, ',')}".replace("$-", "-$"),
    "1.234,50 €": lambda v: f"{grouped(v, '.', ',')} €",
    "CHF 1'234.50": lambda v: f"CHF {grouped(v, chr(39))}",
    "1,234.50": lambda v: grouped(v, ","),
    "1 234,50": lambda v: grouped(v, "\u202f", ","),
    "57,5": lambda v: f"{v}".replace(".", ","),
    "(57)": lambda v: f"({-v})" if v < 0 else f"{v}",
    "57-": lambda v: f"{-v}-" if v < 0 else f" {v}",
    "57 m2": lambda v: f"{v} m2",
    "57 km/h": lambda v: f"{v}km/h",
    "57 as text": str,
}
DATES = {
    "31/12/2023": "%d/%m/%Y",
    "12/31/2023": "%m/%d/%Y",
    "31.12.2023": "%d.%m.%Y",
    "31-12-2023": "%d-%m-%Y",
    "2023/12/31": "%Y/%m/%d",
    "20231231": "%Y%m%d",
    "31-Dec-23": "%d-%b-%y",
    "31 December 2023": "%d %B %Y",
    "Dec 31, 2023": "%b %d, %Y",
    "31/12/2023 00:00": "%d/%m/%Y %H:%M",
    "2023-12-31 12:00 AM": "%Y-%m-%d %I:%M %p",
    "31DEC2023": "%d%b%Y",
}


def file_of(columns, path, door):
    """Write a table of columns with a gap behind."""
    table = {name: [*cells, None] for name, cells in columns.items()}
    if door == "parquet":
        pytest.importorskip("pyarrow.parquet").write_table(pa.table(table), path)
    elif door == "jsonl":
        lines = [json.dumps(row) for row in pa.table(table).to_pylist()]
        path.write_text("\n".join(lines), encoding="utf-8")
    else:
        pytest.importorskip("pyarrow.csv").write_csv(pa.table(table), path)


def learned(columns, tmp_path, door):
    """The encoder and the features of columns, of a file or of a table in memory."""
    n_rows = len(next(iter(columns.values())))
    columns = columns | {"y": [0.5] * n_rows}
    if door == "frame":
        read = training_table(pa.table(columns), "the table", Roles("y"))
    else:
        file_of(columns, tmp_path / f"t.{door}", door)
        path = tmp_path / f"t.{door}"
        read = read_training_table(path, "y", drop_missing_target=True)
    return read.encoder, read.X


DOORS = pytest.mark.parametrize("door", ["csv", "parquet", "jsonl", "frame"])


@DOORS
def test_numbers_in_twelve_spellings(door, tmp_path):
    columns = {name: list(map(write, VALUES)) for name, write in NUMBERS.items()}
    encoder, X = learned(columns, tmp_path, door)
    later = {name: [write(v) for v in (-7.25, 98765.5)] for name, write in NUMBERS.items()}
    if door == "csv":  # the form of plain numbers
        later["57 as text"] = [-7.25, 98765.5]
    again = type(encoder).from_facts(json.loads(json.dumps(encoder.facts())))
    assert again == encoder
    for column, new in zip(X.columns, again.encode(pa.table(later))[0].T, strict=True):
        np.testing.assert_array_equal(column, np.float32(VALUES))
        np.testing.assert_array_equal(new, np.float32([-7.25, 98765.5]))
    typed, _ = again.encode(pa.table({name: [2.5] for name in NUMBERS}))
    np.testing.assert_array_equal(typed, [[2.5] * 12])
    said = encoder.described(X.to_pandas().to_numpy()[:2])["numbers (12)"]
    assert "57% (numbers as 1234.5%), $1,234.50 (numbers as $1,234.5)" in said


@DOORS
def test_dates_in_twelve_spellings(door, tmp_path):
    columns = {name: [day.strftime(form) for day in DAYS] for name, form in DATES.items()}
    encoder, X = learned(columns, tmp_path, door)
    assert [(each.unit, str(each.form)[:9]) for each in encoder.entries] == [
        ("day", "dates as ")
    ] * 12
    days = [(day - DAYS[0]).days for day in DAYS]
    typed, _ = encoder.encode(pa.table(dict.fromkeys(DATES, DAYS)))
    for column, of_dates in zip(X.columns, typed.T, strict=True):
        np.testing.assert_array_equal(column, days)
        np.testing.assert_array_equal(of_dates, days)
    later = datetime.datetime(2031, 1, 30)
    new, _ = encoder.encode(pa.table({c: [later.strftime(form)] for c, form in DATES.items()}))
    np.testing.assert_array_equal(new, [[(later - DAYS[0]).days] * 12])
    assert type(encoder).from_facts(json.loads(json.dumps(encoder.facts()))) == encoder


def test_years_of_two_digits_are_those_from_1969_to_2068():
    encoder = learn(pa.table({"c": ["31-Dec-68", "1-Jan-69", "31-Dec-99", "1-Jan-00"]}))
    X, _ = encoder.encode(pa.table({"c": ["1-Jan-69", "2-Jan-69", "31-Dec-68"]}))
    days = (datetime.date(2068, 12, 31) - datetime.date(1969, 1, 1)).days
    np.testing.assert_array_equal(X[:, 0] - X[0, 0], [0, 1, days])


@pytest.mark.parametrize(
    ("cells", "form"),
    [
        (["0,125", "0,250"], NumberForm(decimal=",")),
        (["1,234,567", "1,234"], NumberForm(thousands=",")),
        (["12,34,567", "1,23,456"], NumberForm(thousands=",")),  # lakhs
        (["R$ 5", "R$ 7"], NumberForm("R$")),
        (["5 EUR", "7EUR"], NumberForm("", "EUR")),
        (["\u2212£5.50", "£7"], NumberForm("£")),
        (["1'000", "1\u2019500"], NumberForm(thousands="'")),
        (["01234", "00012"], NumberForm()),
        (["", " ", "5"], NumberForm()),
        ([" 2024-05-31", "2024-06-01 "], DateForm("%Y-%m-%d")),
        ([" 20240531 "], DateForm("%Y%m%d")),
        (["May-2024", "Jun-2025"], DateForm("%b-%Y")),
        (["2024-5-1", "2024-05-12"], DateForm("%Y-%m-%d")),
        (["01.02.2024"], DateForm("%d.%m.%Y")),
        (["5/31/2024 1:05PM", "12/1/2024 12:30AM"], DateForm("%m/%d/%Y %I:%M%p")),
        (["31.05.2024T13:00:10.25"], DateForm("%d.%m.%YT%H:%M:%S")),
        (["Sun, 31 Dec 2023 10:00:00 GMT"], DateForm("%a, %d %b %Y %H:%M:%S GMT")),
        (["Sunday, December 31, 2023"], DateForm("%a, %b %d, %Y")),
        (["31/12/2023 10:00 UTC"], DateForm("%d/%m/%Y %H:%M UTC")),
        (["20240531120000"], DateForm("%Y%m%d%H%M%S")),
        (["20240531", "20241331"], NumberForm()),
        (["18240531"], NumberForm()),
        (["2024-05-31", "2024-06-01"], None),  # ISO 8601 has no form
        (["1.2.3", "1.10.0"], None),
        (["01,234", "02,345"], NumberForm(decimal=",")),
        (["0,12,345", "0,01,234"], None),
        (["0-9", "10-19", "20-29"], None),
        (["12A", "12B", "7C", "14D"], None),
        (["1st", "2nd", "3rd", "4th", "5th", "6th"], None),
        (["a\nb", "c"], None),
        (["", " "], None),
        ([], None),
    ],
)
def test_what_cells_say(cells, form):
    assert form_of(pa.array(cells, pa.string())) == form
    random.Random(0).shuffle(cells)
    assert form_of(pa.array([None, *cells], pa.string_view())) == form


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["01/02/2024", "03/04/2024"], "'01/02/2024' and '03/04/2024'; --date-format 'c=%d/%m/%Y'"),
        (["31/05/24", "30/05/24"], "--date-format 'c=%d/%m/%y' or 'c=%y/%m/%d' says which"),
        (["31/05/2024", "30/06/2024", "2024-05-31"], "'31/05/2024', but '2024-05-31' in row 3"),
        (["31/05/2024", "31/02/2024", "30/04/2024"], "such as '31/05/2024', but '31/02/2024'"),
        (["31/05/2024"] * 97 + ["30/05/2024", "soon"], "but 'soon' in row 99"),
        (["2024-01-01", "2024-01-02", "soon"], "such as '2024-01-01', but 'soon' in row 3"),
        (["1,234", "2,345"], "'1,234' and '2,345'; --thousands ',' or --decimal ',' says which"),
        (["1.234 €", "999 €"], "--thousands '.' or --decimal '.' says which"),
        (["$5", "€7", "$8"], r"numbers such as '\$5', but '€7' in row 2"),
        (["5%", "7", "8", "9"], "numbers such as '7', but '5%' in row 1"),
        (["5 kg"] * 3 + ["6 kg", "7 kg", "8 kg", "9 lb"], "such as '5 kg', but '9 lb' in row 7"),
        (["1", "2", "3 or more"], "numbers such as '1', but '3 or more' in row 3"),
        (["1.5", "1,5", "2.5"], "numbers such as '1.5', but '1,5' in row 2"),
    ],
)
def test_what_is_refused_of_columns(cells, message):
    with pytest.raises(ValueError, match=message):
        learn(pa.table({"c": cells}))
    assert learn(pa.table({"c": cells}), categorical=["c"]).entries[0].kind == "category"


@pytest.mark.parametrize(
    ("cells", "options", "form"),
    [
        (["01/02/2024"], {"date_formats": {"c": "%m/%d/%Y"}}, DateForm("%m/%d/%Y")),
        (["31/05/24"], {"date_formats": {"c": "%d/%m/%y"}}, DateForm("%d/%m/%y")),
        (["1,234"], {"thousands": ","}, NumberForm(thousands=",")),
        (["1,234"], {"decimal": ","}, NumberForm(decimal=",")),
        (["1,234"], {"decimal": "."}, NumberForm(thousands=",")),
        (["1.234"], {"thousands": "."}, NumberForm(thousands=".", decimal=",")),
        (["12"], {"thousands": "."}, NumberForm(decimal=",")),
        (["12"], {"decimal": ","}, NumberForm(decimal=",")),
    ],
)
def test_options_settle_it(cells, options, form):
    encoder = learn(pa.table({"c": cells}), written=Written(**options))
    assert encoder.entries[0].form == form


@pytest.mark.parametrize(
    ("cells", "options", "message"),
    [
        (["31/05/2024", "x"], {"date_formats": {"c": "%d/%m/%Y"}}, "as %d/%m/%Y, .* 'x' in row 2"),
        (["a"], {"date_formats": {"b": "%d/%m/%Y"}}, "for 'b', which is no feature of dates"),
        ([1.5], {"date_formats": {"c": "%d/%m/%Y"}}, "'c' is double, so it takes no date format"),
        (["1.5", "2.5"], {"decimal": ","}, "'1.5' and '2.5', which thousands and decimal do not"),
        (["a"], {"date_formats": {"c": "%d"}}, "must have a year and a month"),
        (["a"], {"date_formats": {"c": "%Q"}}, "date format '%Q' must be of %Y"),
        (["a"], {"date_formats": {"c": "%Y%m%m"}}, "each once"),
        (["a"], {"thousands": "x"}, "thousands must be None, ',', '.'"),
        (["a"], {"decimal": ";"}, "decimal must be"),
    ],
)
def test_options_that_fit_nothing(cells, options, message):
    with pytest.raises(ValueError, match=message):
        learn(pa.table({"c": cells}), written=Written(**options))


@pytest.mark.parametrize(
    ("train", "cell", "message"),
    [
        (["5%", "6%"], "7", "'c' must hold numbers as 1234.5%, but holds '7' in row 12"),
        (["$5", "$6"], "€5", r"must hold numbers as \$1234.5, but holds '€5' in row 12"),
        (["$5", "$6"], "(5", r"must hold numbers as \$1234.5, but holds '\(5' in row 12"),
        (["5", "6"], "--5", "must hold numbers as 1234.5, but holds '--5' in row 12"),
        (["5", "6"], "1,234", "must hold numbers as 1234.5, but holds '1,234' in row 12"),
        (["31/05/2024"], "05/31/2024", "must hold dates as %d/%m/%Y, but holds '05/31/2024'"),
        (["31/05/2024"], "2024-05-31", "must hold dates as %d/%m/%Y, but holds '2024-05-31'"),
        (["2024-05-31 11:00 PM"], "2024-05-31 13:00 PM", "but holds '2024-05-31 13:00 PM'"),
    ],
)
def test_later_cells_of_another_form_are_refused(train, cell, message):
    encoder = learn(pa.table({"c": train}))
    with pytest.raises(ValueError, match=message):
        encoder.encode(pa.table({"c": [train[0], cell, None]}), first_row=10)


def test_whole_numbers_such_as_20240531_are_dates_for_a_model_of_such_texts():
    encoder = learn(pa.table({"c": ["20240531", "20240601"]}))
    np.testing.assert_array_equal(encoder.encode(pa.table({"c": [20240602]}))[0], [[2]])


def test_tables_without_rows_are_read():
    encoder = learn(pa.table({"c": ["5%", "6%"], "d": ["31/05/2024", None]}))
    X, _ = encoder.encode(pa.table({"c": pa.array([], "string"), "d": pa.array([], "string")}))
    assert X.shape == (0, 2)


def test_dictionaries_are_categories_that_someone_chose():
    encoder = learn(pa.table({"c": pa.array(["1%", "2%"]).dictionary_encode()}))
    assert encoder.entries[0].kind == "category"


@pytest.mark.parametrize(
    "form",
    [
        {"format": "%d"},
        {"format": 3},
        {"prefix": "$"},
        {"prefix": 1, "suffix": "", "thousands": "", "decimal": "."},
        {"prefix": "", "suffix": "", "thousands": "x", "decimal": "."},
        {"prefix": "", "suffix": "", "thousands": ",", "decimal": ","},
        [],
        None,
    ],
)
def test_hostile_forms(form):
    with pytest.raises(ValueError, match=r"form|must differ"):
        form_from(form)


@pytest.mark.parametrize("text", ["(.*)+", "\\", "a{2}", "[", "$^", "\n"])
def test_signs_are_no_patterns(text):
    form = NumberForm(text, text)
    assert form.read(pa.array([f"{text}5{text}"])).to_pylist() == [5]
    date = DateForm(f"%Y{text}%m")
    assert date.read(pa.array([f"2024{text}05"])).to_pylist() == [datetime.datetime(2024, 5, 1)]


@pytest.mark.parametrize("door", ["csv", "parquet", "jsonl"])
def test_targets_and_weights_have_forms(tmp_path, door):
    prices = [f"${1000 + i:,}.50" for i in range(5)]
    file_of({"c": prices, "x": range(5)}, tmp_path / f"t.{door}", door)
    with pytest.raises(TableError, match=r"target 'c' must be finite .* row 6 holds a missing"):
        read_training_table(tmp_path / f"t.{door}", "c")
    table = {"price": prices, "w": ["50%"] * 5, "x": range(5)}
    read = training_table(pa.table(table), "t", Roles("price", sample_weight="w"))
    np.testing.assert_array_equal(read.y, 1000.5 + np.arange(5))
    np.testing.assert_array_equal(read.weights, 50)
    table["price"] = ["1,000", "2,000"] * 2 + ["3,000"]
    with pytest.raises(TableError, match="target 'price' holds numbers that can be read in two"):
        training_table(pa.table(table), "t", Roles("price"))
    read = training_table(pa.table(table), "t", Roles("price", written=Written(thousands=",")))
    assert read.y.tolist() == [1000, 2000, 1000, 2000, 3000]


@pytest.mark.parametrize("first", [2**53, 10**17, 2**63])
def test_whole_numbers_that_doubles_merge_are_ids(first):
    assert form_of(pa.array([str(first + i) for i in range(4)])) is None
    assert form_of(pa.array([f"{first}.5", "1e300"])) == NumberForm()
    assert form_of(pa.array([str(2**53 - 1), "7"])) == NumberForm()
