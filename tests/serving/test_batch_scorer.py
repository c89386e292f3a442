"""BatchScorer: the estimator's numbers for batches of any library, in any process."""

import gc
import json
import math
import os
import pickle
import platform
import re
import shutil
import warnings
import weakref
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import BaggingRegressor, RandomForestRegressor

from hdiforest import HDIForestRegressor, fit_table
from hdiforest.calibration import CVPlus, JackknifePlus, OutOfBag
from hdiforest.exceptions import ModelReplacedError
from hdiforest.serving import BatchScorer

from ..model_files import rewritten, with_number
from ..oracle import blocks_of, not_installed, run_python

pa = pytest.importorskip("pyarrow")
pytest.importorskip("safetensors")
pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
NAMES = ["a", "b c", "d`"]
X = RNG.normal(size=(240, 3)).astype(np.float32)
Y = X[:, 0] * 3 + RNG.normal(size=240)
ROWS = pd.DataFrame(X[:50], columns=NAMES).assign(id=np.arange(50), note=["x", "y"] * 25)
ROWS.index = np.arange(50) + 7


def forest(n_trees=60):
    return RandomForestRegressor(n_trees, min_samples_leaf=5, random_state=0)


def fitted():
    named = pd.DataFrame(X, columns=NAMES)
    return HDIForestRegressor(forest(), calibration=False).fit(named, Y)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    model = fitted()
    model.save(folder / "raw.hdi")
    model.calibrate().save(folder / "calibrated.hdi")
    return folder


@pytest.fixture(scope="module")
def scorer(folder):
    return BatchScorer(folder / "calibrated.hdi", [0.8, 0.9], keep=["id"])


@pytest.mark.parametrize(
    ("kind", "n_jobs"),
    [("calibrated", 1), ("calibrated", 3), ("hdi", -1), ("equal_tailed", None), ("lower", 1)],
)
def test_numbers_are_the_estimators(folder, kind, n_jobs):
    scorer = BatchScorer(folder / "calibrated.hdi", [0.9, 0.5], kind=kind, n_jobs=n_jobs)
    scored = scorer(ROWS)
    model = HDIForestRegressor.load(folder / "calibrated.hdi")
    expected = model.predict_interval(ROWS[NAMES], [0.9, 0.5], kind=kind)
    assert_array_equal(scored["prediction"], model.predict(ROWS[NAMES]))
    for column in scored.columns[1:]:
        end = 0 if "lower" in column else 1
        level = 0 if column.endswith("_0.9") else 1
        assert_array_equal(scored[column], expected[:, end, level])


def test_many_rows_are_scored_in_blocks(scorer):
    whole = scorer(ROWS)
    batch = pa.RecordBatch.from_pandas(ROWS, preserve_index=False)
    infinite = ROWS.assign(a=np.where(np.arange(50) == 30, np.inf, 0))
    with blocks_of(21):
        pd.testing.assert_frame_equal(scorer(ROWS), whole)
        assert scorer(batch).column(1).to_pylist() == whole["prediction"].tolist()
        with pytest.raises(ValueError, match=r"column 'a' must hold numbers .* inf in row 31"):
            scorer(infinite)


CALIBRATIONS = {
    "boosted mean": {"mean": "boosting", "random_state": 0},
    "raw": {"method": OutOfBag(objective="interval_score")},
    "folds": {"method": CVPlus(2)},
    "jackknife": {"method": JackknifePlus(30)},
}


@pytest.mark.parametrize("how", CALIBRATIONS)
def test_calibrations_of_every_method_are_the_estimators(how, tmp_path):
    path = tmp_path / "model.hdi"
    fitted().calibrate(coverage=(0.5, 0.8), **CALIBRATIONS[how]).save(path)
    scored = BatchScorer(path, 0.8)(ROWS)
    expected = HDIForestRegressor.load(path).predict_interval(ROWS[NAMES], 0.8)
    assert_array_equal(scored[["lower_0.8", "upper_0.8"]], expected)


def test_every_library_gets_its_own_kind_back(scorer):
    polars = pytest.importorskip("polars")
    expected = scorer(ROWS)
    assert list(expected.index) == list(ROWS.index)
    assert expected["id"].dtype == ROWS["id"].dtype
    levels = ("lower_0.8", "upper_0.8", "lower_0.9", "upper_0.9")
    assert list(expected.columns) == ["id", "prediction", *levels]
    table = pa.Table.from_pandas(ROWS, preserve_index=False)
    kinds = {
        pa.Table: table,
        pa.RecordBatch: table.to_batches()[0],
        polars.DataFrame: polars.DataFrame({n: ROWS[n].to_numpy() for n in [*NAMES[::-1], "id"]}),
        dict: {name: ROWS[name].tolist() for name in [*NAMES, "id"]},
    }
    for kind, batch in kinds.items():
        scored = scorer(batch)
        assert type(scored) is kind
        columns = scored if kind is dict else {n: scored[n].to_numpy() for n in expected.columns}
        assert list(columns) == list(expected.columns)
        for name, column in columns.items():
            assert_array_equal(column, expected[name])


def test_columns_of_polars_are_kept_as_types_of_arrow(folder):
    polars = pytest.importorskip("polars")
    kinds = {"enum": polars.Enum(["x", "y"]), "category": polars.Categorical, "text": polars.String}
    notes = polars.Series(ROWS["note"].tolist())
    batch = polars.DataFrame({name: ROWS[name].to_numpy() for name in NAMES})
    batch = batch.with_columns(notes.cast(kind).alias(name) for name, kind in kinds.items())
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        scorer = BatchScorer(folder / "raw.hdi", keep=dict.fromkeys(kinds, kind))
        for rows in (batch, batch.to_arrow()):
            scored = scorer(rows)
            assert all(list(map(str, scored[name])) == list(notes) for name in kinds)


@pytest.mark.parametrize("first", [2**60, 2**70])
def test_records_of_large_categories(first, tmp_path):
    shops = [first + i % 3 for i in range(120)]
    cells = {"shop": shops, "size": np.arange(120.0), "y": [100.0 * (i % 3) for i in range(120)]}
    how = {"categorical": ["shop"], "estimator": forest(9), "calibration": False}
    fit_table(cells, "y", **how).save(tmp_path / "m.hdi")
    scorer = BatchScorer(tmp_path / "m.hdi", keep=["shop"])
    scored = scorer([{"shop": first + i, "size": 60.0} for i in (0, 1, 2, 3)])
    assert [row["shop"] for row in scored] == [first, first + 1, first + 2, first + 3]
    assert scorer.counts.unseen == {"shop": 1}
    assert np.diff([row["prediction"] for row in scored[:3]]).min() > 50


RECORD = {"day": date(2024, 5, 31), "town": "Lyon", "size": 3, "id": 2**40, "tags": ["x"]}


@pytest.fixture(scope="module")
def flats(tmp_path_factory):
    """A model of dates, categories and numbers."""
    path = tmp_path_factory.mktemp("flats") / "model.hdi"
    n = 200
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(n), "D")
    table = pd.DataFrame({"day": days, "town": ["Lyon", "Nice"] * (n // 2), "size": np.arange(n)})
    table = table.assign(y=table["size"] + RNG.normal(size=n))
    fit_table(table, "y", estimator=forest(9), calibration=False).save(path)
    return path


def test_a_record_gives_a_record_and_a_list_of_them_a_list(flats):
    scorer = BatchScorer(flats, [0.8, 0.9], keep=["id", "tags"])
    records = [
        RECORD,
        RECORD | {"size": None, "town": math.nan, "id": "other"},
        {name: cell for name, cell in RECORD.items() if name not in ("day", "tags")},
        RECORD | {"day": None, "town": "Oslo", "size": np.float32(1e9)},
    ]
    missing = {"id": [2**40, "other", 2**40, 2**40], "tags": [["x"], ["x"], None, ["x"]]}
    batch = {
        "day": pa.array([RECORD["day"], RECORD["day"], None, None]),
        "town": pa.array(["Lyon", None, "Lyon", "Oslo"]),
        "size": pa.array([3, None, 3, 1e9]),
        **missing,
    }
    expected = scorer(batch)
    found = scorer(records)
    assert found == [
        dict(zip(expected, row, strict=True)) for row in zip(*expected.values(), strict=True)
    ]
    assert [type(cell) for cell in found[0].values()] == [int, list, *[float] * 5]
    assert scorer(RECORD) == found[0]
    assert scorer([RECORD]) == [found[0]]
    assert scorer([]) == []
    assert (scorer.counts.unseen["town"], scorer.counts.out_of_range["size"]) == (2, 2)
    typed = BatchScorer(flats, keep={"id": pa.string()})
    assert typed(RECORD)["id"] == str(2**40)
    assert [row["id"] for row in typed([RECORD, RECORD | {"id": None}])] == [str(2**40), None]
    assert list(scorer.stream([RECORD, [RECORD]])) == [found[0], [found[0]]]


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ({"day": None, "town": None}, "the batch has no columns 'size', 'id'"),
        ([{"day": None}, {"town": "Lyon"}], "the batch has no columns 'size', 'id'"),
        (RECORD | {"size": "3"}, "column 'size' must hold numbers, but is string"),
        (
            RECORD | {"size": 10**100},
            "the batch is a dict that cannot be read as a table: .*precision",
        ),
        (RECORD | {"day": "31.5.24"}, "column 'day' must hold dates .* holds '31.5.24' in row 1"),
        (
            [RECORD, RECORD | {"size": "x"}],
            "'size' holds cells of the types int, str",
        ),
        (
            [RECORD, 3],
            "a batch must be .* a record .a dict of cells. or a list of records, got list",
        ),
    ],
)
def test_records_that_do_not_fit_are_refused(flats, batch, message):
    scorer = BatchScorer(flats, keep=["id"])
    with pytest.raises(ValueError, match=message):
        scorer(batch)


N_ROWS = 240
DAYS = [date(2024, 1, 1) + timedelta(days=i % 90) for i in range(N_ROWS)]
KINDS = {
    "number": RNG.normal(size=N_ROWS) * 50,
    "whole": np.arange(N_ROWS),
    "yes": np.arange(N_ROWS) % 3 == 0,
    "words": ["true", "FALSE"] * (N_ROWS // 2),
    "town": ["Lyon", "Nice", "Zürich", "5"] * (N_ROWS // 4),
    "code": [7, 5, 2**40] * (N_ROWS // 3),
    "share": [0.1, 2.0, 0.5] * (N_ROWS // 3),
    "day": DAYS,
    "stamp": [datetime.combine(each, time(i % 24)) for i, each in enumerate(DAYS)],
    "zoned": [datetime.combine(each, time(3), tzinfo=UTC) for each in DAYS],
    "iso": [each.isoformat() for each in DAYS],
    "iso_zoned": [f"{each}T12:00:00Z" for each in DAYS],
    "written": [each.strftime("%d.%m.%Y") for each in DAYS],
    "price": [f"{i}.50 EUR" for i in range(N_ROWS)],
}
PLAIN = {
    "number": 1.5, "whole": 3, "yes": True, "words": "true", "town": "Nice", "code": 5,
    "share": 0.1, "day": date(2024, 2, 3), "stamp": datetime(2024, 2, 3, 4, 5, 6, 7),
    "zoned": datetime(2024, 2, 3, tzinfo=UTC), "iso": "2024-02-03",
    "iso_zoned": "2024-02-03T04:05:06+02:00", "written": "03.02.2024", "price": "12.50 EUR",
}  # fmt: skip
HOSTILE = [
    *(None, math.nan, math.inf, -math.inf, True, False, 0, 1, -0.0, 0.1, 2.0, 5, 5.0, 7, -999),
    *(2**24, 2**24 + 1, 2.0**24 + 1, 2.0**24 + 0.5, 2**40, 2.0**40, 2**53 + 1, 2**63 - 1, 2**63),
    *(2**64, 10**37, 10**100, 1e38, 1e39, -1e300, 5e-324, 1j, b"Nice", "", " ", "Nice", " Nice "),
    *("nice", "Zürich", "Oslo", "\ud800", "a\nb", "x\0", "Nice\u200b", "5", "5.0", "7", "0.1"),
    *("1e0", "true", "True", " TRUE ", "false", "1", "yes", "nan", "None", "NULL", "n/a", "-999"),
    *("unknown", "2024-02-03", "2024-02-30", "2024-02-03T04:05:06", "2024-02-03 04:05", "1,2"),
    *("2024-02-03T24:00:00", "2024-02-03T04:05:06Z", "2024-02-03 04:05:06-05:30", "0000-01-01"),
    *("2024-02-03T04:05:06+05:60", "2024-02-03 04:05:06+05:99", " NULL ", "2024-02-03T04:60:06"),
    *("2024-02-03T04:05:06+99:00", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"),
    *("2024-02-03T04:05:06.123456789", "20240203", "2024-W05-6", "\uff12024-02-03", "03.02.2024"),
    *("2.3.24", "12.50 EUR", "12 EUR", "(12.50 EUR)"),
    *(Decimal("0.10"), Decimal("5"), Decimal("NaN"), Decimal("1e30"), Decimal(2**40)),
    *(np.float64(1.5), np.float64(math.nan), np.float32(0.1), np.float16(2), np.int64(5)),
    *(np.int64(-(2**63)), np.uint64(2**63), np.int8(7), np.bool_(True), np.str_("Nice")),
    *(np.datetime64("2024-02-03"), np.datetime64("NaT"), np.array(5.0), np.array([5.0])),
    *(date(1, 1, 1), date(9999, 12, 31), datetime(2024, 2, 3), datetime(1, 1, 1, tzinfo=UTC)),
    datetime(2024, 2, 3, tzinfo=timezone(timedelta(hours=2))),
    datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2))),
    datetime(2024, 2, 3, tzinfo=ZoneInfo("Europe/Paris")),
    *(time(3), time(3, tzinfo=UTC), timedelta(seconds=3), timedelta.max, timedelta(0, 0, 1)),
    *(pd.Timestamp("2024-02-03"), pd.Timestamp("2024-02-03", tz="UTC"), pd.NaT, pd.NA),
    *(pd.Timedelta(3, "s"), [], [5], ["Nice"], (), (5,), {}, {"a": 5}, {5}, object, lambda: 5),
    pa.scalar(5),
]  # fmt: skip


def answer(scorer, batch):
    """What a copy of a scorer says of a batch: the result or the error, warnings, and counts."""
    scorer = pickle.loads(pickle.dumps(scorer))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            result = scorer(batch)
        except Exception as error:
            result = type(error), str(error).replace("list that", "dict that")
    result = result[0] if isinstance(result, list) else result
    counts = {name: own for name, own in vars(scorer.counts).items() if name != "_beyond"}
    counts |= {name: list(counts[name].items()) for name in ("missing", "unseen", "out_of_range")}
    return repr(result), [str(each.message) for each in told], counts, str(scorer.counts)


def scorer_of(folder, names):
    """A scorer of columns of some kinds."""
    table = pd.DataFrame({name: KINDS[name] for name in names}).assign(y=RNG.normal(size=N_ROWS))
    categorical = [name for name in ("code", "share") if name in names]
    how = {"categorical": categorical, "estimator": forest(5), "calibration": False}
    fit_table(table, "y", **how).save(folder / "model.hdi")
    return BatchScorer(folder / "model.hdi", 0.8, keep=["id"])


def test_a_record_is_told_as_a_table_of_one_row(tmp_path):
    all_kinds = scorer_of(tmp_path, KINDS)
    plain = PLAIN | {"id": [3]}
    records = [plain, plain | {"more": [1, 2]}, dict.fromkeys(plain), {1: 2} | plain, {}]
    records += [{name: plain[name] for name in plain if name != left} for left in ("town", "id")]
    records.append(plain | {"number": math.inf, "town": "Oslo", "day": "2024-02-30"})
    for record in records:
        assert answer(all_kinds, record) == answer(all_kinds, [record]), record


@pytest.mark.parametrize("name", PLAIN)
def test_every_cell_of_every_column_is_told_as_in_a_table(tmp_path, name):
    scorer = scorer_of(tmp_path, [name])
    for cell in HOSTILE:
        record = {"id": 3, name: cell}
        assert answer(scorer, record) == answer(scorer, [record]), record


def test_records_of_plain_cells_are_not_made_tables(tmp_path):
    names = ("number", "whole", "yes", "town", "code", "share")
    scorer, plain = scorer_of(tmp_path, names), {name: PLAIN[name] for name in names} | {"id": 3}
    with not_installed("pyarrow"):
        for more in ({}, {"number": None}, {"town": "Oslo"}, {"whole": 900}, {"code": 7}):
            scorer(plain | more)
    assert scorer.counts.n_rows == 5
    assert scorer.counts.out_of_range["whole"] == 1


def test_a_batch_without_rows_has_a_result_without_rows(scorer):
    empty = pa.Table.from_pandas(ROWS, preserve_index=False).slice(0, 0)
    for batch in (empty, empty.to_pandas(), pa.RecordBatch.from_pylist([], empty.schema)):
        scored = scorer(batch)
        assert len(scored) == 0
        assert scored.shape[1] == 6


def test_schema_ddl_and_meta_say_what_comes_out(folder):
    keep = {"id": pa.int64(), "note": pa.string()}
    scorer = BatchScorer(folder / "raw.hdi", 0.9, keep=keep)
    scored = scorer(pa.Table.from_pandas(ROWS.astype({"id": "int32"}), preserve_index=False))
    assert scored.schema == scorer.schema
    assert scorer.ddl == (
        "`id` BIGINT, `note` STRING, `prediction` DOUBLE, `lower_0.9` DOUBLE, `upper_0.9` DOUBLE"
    )
    assert scorer.meta.dtypes.equals(scorer(ROWS).dtypes)
    assert scorer.features == NAMES
    without = BatchScorer(folder / "raw.hdi", 0.9, keep=["id"])
    with pytest.raises(ValueError, match="the type of the kept column 'id' is not known"):
        without.schema  # noqa: B018
    with pytest.raises(ValueError, match="column 'note' must be kept as int64, but is string"):
        BatchScorer(folder / "raw.hdi", keep={"note": pa.int64()})(
            {"note": ["x"], **{name: [1.0] for name in NAMES}}
        )


def test_a_pickle_is_small_and_scores_alike(scorer):
    data = pickle.dumps(scorer)
    assert len(data) < 1000
    again = pickle.loads(data)
    pd.testing.assert_frame_equal(again(ROWS), scorer(ROWS))
    assert repr(again) == repr(scorer)
    typed = BatchScorer(scorer.path, 0.9, keep={"id": pa.int64()})
    assert pickle.loads(pickle.dumps(typed)).schema == typed.schema
    assert len(pickle.dumps(typed)) < 1000


def test_models_without_names_take_columns_by_position(tmp_path):
    HDIForestRegressor(forest(5), calibration=False).fit(X, Y).save(tmp_path / "model.hdi")
    scorer = BatchScorer(tmp_path / "model.hdi", 0.9, keep=["id"])
    assert scorer.features is None
    expected = HDIForestRegressor.load(tmp_path / "model.hdi").predict_interval(X[:50], 0.9)
    scored = scorer(
        ROWS[["d`", "id", "a", "b c"]].set_axis([2, "id", 0, 1], axis=1)[[0, 1, 2, "id"]]
    )
    assert_array_equal(scored[["lower_0.9", "upper_0.9"]], expected)
    with pytest.raises(ValueError, match="takes 3 columns in their order, got 4 that"):
        scorer(ROWS)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (
            ROWS.drop(columns=["a", "id"]),
            "has no columns 'a', 'id', which the model needs; it has 'b",
        ),
        (ROWS.assign(a="x"), "column 'a' must hold numbers, but is"),
        (ROWS.assign(a=[0.0] * 49 + [1e300]), "column 'a'.* fit into float32.* in row 50"),
        (ROWS[[*ROWS.columns, "a"]], "the batch has 2 columns 'a'"),
        (
            ROWS.assign(a=[1, "x"] * 25),
            "column 'a' holds cells of the types int, str",
        ),
        (X, "a batch must be a pyarrow RecordBatch.*got ndarray"),
        (
            {"id": [1], "a": [1], "b c": [1, 2], "d`": [1]},
            "columns of a batch must be equally long",
        ),
    ],
)
def test_batches_that_do_not_fit_are_refused(scorer, batch, message):
    with pytest.raises(ValueError, match=message.replace("'b", "")):
        scorer(batch)


def test_missing_values_are_refused_where_the_forest_takes_none(tmp_path):
    bagging = BaggingRegressor(n_estimators=5, random_state=0)
    model = HDIForestRegressor(bagging, calibration=False).fit(pd.DataFrame(X, columns=NAMES), Y)
    model.save(tmp_path / "model.hdi")
    rewritten(tmp_path / "model.hdi", with_number("allow_nan", 0))  # as forests of other versions
    scorer = BatchScorer(tmp_path / "model.hdi")
    with pytest.raises(ValueError, match=r"no missing values, but column 'b c' has .* in row 3"):
        scorer(ROWS.assign(**{"b c": [0.0, 0.0, np.nan] + [0.0] * 47}))


def test_names_of_results_with_a_prefix(folder):
    batch = ROWS.assign(prediction="mine")
    scorer = BatchScorer(folder / "calibrated.hdi", 0.8, keep=["prediction"], prefix="new_")
    names = ["new_prediction", "new_lower_0.8", "new_upper_0.8"]
    assert scorer.results == names
    plain = BatchScorer(folder / "calibrated.hdi", 0.8)(ROWS)
    for found in (scorer(batch), pickle.loads(pickle.dumps(scorer))(batch)):
        assert list(found) == ["prediction", *names]
        assert_array_equal(found[names], plain)
    assert list(scorer(batch.head(1).to_dict("records"))[0]) == ["prediction", *names]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coverage": 90}, r"coverage must be above 0 and at most 1, got 90 .did you mean 0\.9\?"),
        ({"coverage": "x"}, "coverage must be a number or a list of numbers, got 'x'"),
        ({"kind": "best"}, "kind must be 'calibrated', 'hdi'.*got 'best'"),
        ({"kind": "calibrated"}, "the model has no calibration.*raw.hdi"),
        ({"keep": "id"}, "keep must be a list of names"),
        ({"keep": ["prediction"]}, "two columns 'prediction'"),
        ({"prefix": None}, "prefix must be a text, got None"),
        ({"keep": {"id": int}}, "keep must map 'id' to a type such as pyarrow.int64"),
        ({"mapped": "no"}, "mapped must be True or False, got 'no'"),
        ({"n_jobs": 0}, "n_jobs must be a whole number other than 0, or None, got 0"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(folder, options, message):
    with pytest.raises(ValueError, match=message):
        BatchScorer(folder / "raw.hdi", **options)
    with pytest.raises(ValueError, match=r"must be one that was calibrated: .*; got 0.7; call"):
        BatchScorer(folder / "calibrated.hdi", 0.7)


HOST = re.escape(platform.node())


def test_an_opened_scorer_has_loaded_what_records_need(tmp_path):
    table = ROWS.drop(columns="id").assign(y=Y[:50])
    fit_table(table, "y", estimator=forest(20), calibration=False).save(tmp_path / "table.hdi")
    code = (
        "import sys, json; from hdiforest.serving import BatchScorer\n"
        "scorer = BatchScorer(sys.argv[1], 0.9).open(); known = set(sys.modules)\n"
        "scorer(json.loads(sys.argv[2])); print(scorer.counts.n_rows, *set(sys.modules) - known)"
    )
    record = json.dumps(ROWS.iloc[0].to_dict(), default=float)
    said = run_python(code, tmp_path / "table.hdi", record, cwd=tmp_path)
    assert said.split() == ["1"]


def test_a_model_that_is_replaced_damaged_or_gone_is_named_with_its_host(folder, tmp_path):
    path = tmp_path / "model.hdi"
    shutil.copy(folder / "raw.hdi", path)
    worker = pickle.loads(pickle.dumps(BatchScorer(path, 0.9)))
    worker(ROWS)
    os.utime(path, (1, 1))
    worker(ROWS)  # the same model again
    shutil.copy(folder / "calibrated.hdi", path)
    for damage, why in ((0, "it is another model"), (100, "damaged")):
        os.truncate(path, path.stat().st_size - damage)
        with pytest.raises(ModelReplacedError, match="replaced or damaged") as raised:
            worker(ROWS)
        again = pickle.loads(pickle.dumps(raised.value))  # as from a worker
        assert not re.search(rf"model\.hdi|{HOST}", str(again))
        assert re.search(rf"model\.hdi on host {HOST}: .*{why}", again.__notes__[0])
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"no model file .*model\.hdi") as gone:
        worker(ROWS)
    assert re.search(rf"model\.hdi on host {HOST}", gone.value.__notes__[0])
    with pytest.raises(FileNotFoundError, match=r"there is no model file .*model\.hdi$"):
        BatchScorer(path)


def test_a_copy_in_memory_outlives_its_file(folder, tmp_path):
    path = tmp_path / "model.hdi"
    shutil.copy(folder / "raw.hdi", path)
    scorer = BatchScorer(path, 0.9, mapped=False)
    data = pickle.dumps(scorer)
    expected, other = scorer(ROWS), BatchScorer(folder / "calibrated.hdi", 0.9, kind="hdi")(ROWS)
    for change in (
        lambda: shutil.copy(folder / "calibrated.hdi", path),
        lambda: os.truncate(path, 100),
        lambda: path.unlink(),
    ):
        change()
        for worker in (scorer, pickle.loads(data)):
            pd.testing.assert_frame_equal(worker(ROWS), expected)
    with pytest.raises(FileNotFoundError, match="there is no model file"):
        BatchScorer(path, 0.9, mapped=False)
    shutil.copy(folder / "calibrated.hdi", path)
    pd.testing.assert_frame_equal(BatchScorer(path, 0.9, kind="hdi", mapped=False)(ROWS), other)
    pd.testing.assert_frame_equal(scorer(ROWS), expected)
    with pytest.raises(ModelReplacedError):  # as in another process
        pickle.loads(data)(ROWS)


def test_a_copy_in_memory_is_freed_with_its_last_scorer(folder):
    first = BatchScorer(folder / "raw.hdi", 0.9, mapped=False)
    other = BatchScorer(folder / ".." / folder.name / "raw.hdi", 0.8, mapped=False)
    assert other.model is first.model
    copy = weakref.ref(first.model.fitted)
    del first
    gc.collect()
    assert copy() is not None
    del other
    gc.collect()
    assert copy() is None


def test_models_that_are_mapped_and_copies_are_told_apart(folder):
    scorers = {
        mapped: BatchScorer(folder / "raw.hdi", 0.9, mapped=mapped) for mapped in (False, True)
    }
    for mapped, scorer in scorers.items():
        assert BatchScorer(folder / "raw.hdi", 0.8, mapped=mapped).model is scorer.model
        for one in (scorer, pickle.loads(pickle.dumps(scorer))):
            assert one.mapped == mapped
            assert isinstance(one.model.fitted.training_rows.X, np.memmap) == mapped
            assert (one.model.fitted.check_file is not None) == mapped
    pd.testing.assert_frame_equal(scorers[False](ROWS), scorers[True](ROWS))


def test_a_process_opens_a_model_once(folder, monkeypatch):
    scorer = BatchScorer(folder / "raw.hdi", 0.9)
    monkeypatch.setattr(Path, "open", lambda *_, **__: pytest.fail("opened again"))
    worker = pickle.loads(pickle.dumps(scorer))
    worker(ROWS)
    assert worker.model is scorer.model


SCORES = """
import pickle, sys
import hdiforest.serving
print(*sys.modules)
import pyarrow as pa
scorer = pickle.load(open(sys.argv[1], "rb"))
(batch,) = pa.ipc.open_stream(sys.argv[2])
assert scorer(batch).num_rows == 50
print(*sys.modules)
"""


def test_a_worker_loads_neither_scikit_learn_nor_scipy_nor_pandas(folder, tmp_path):
    pickled = tmp_path / "scorer.pickle"
    pickled.write_bytes(pickle.dumps(BatchScorer(folder / "calibrated.hdi", 0.8)))
    (batch,) = pa.Table.from_pandas(ROWS, preserve_index=False).to_batches()
    with pa.ipc.new_stream(tmp_path / "rows.arrow", batch.schema) as stream:
        stream.write(batch)
    said = run_python(SCORES, pickled, tmp_path / "rows.arrow", cwd=tmp_path)
    imported, loaded = (set(line.split()) for line in said.splitlines())
    assert "hdiforest" in loaded
    assert not loaded & {"sklearn", "scipy", "pandas", "joblib", "polars"}
    assert not imported & {"sklearn", "scipy", "pandas", "joblib", "pyarrow"}
