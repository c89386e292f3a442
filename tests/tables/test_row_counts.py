"""RowCounts: cells out of the range of the training rows, and rows without a known cell."""

import datetime
import json
import pickle
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from hdiforest import HDIForestRegressor, fit_table
from hdiforest.serving import BatchScorer, RowCounts

from ..cli.calls import output_of, run, write
from ..model_files import arrays_of, rewritten, with_change
from ..oracle import blocks_of

pa = pytest.importorskip("pyarrow")

pytest.importorskip("safetensors.numpy")
pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
N = 300
FLATS = pd.DataFrame(
    {
        "area": np.r_[20.0, 160.0, RNG.uniform(20, 160, N - 2)],
        "town": RNG.choice(["Lyon", "Nice"], N),
        "sold": pd.Timestamp("2020-03-01") + pd.to_timedelta(np.arange(N), "D"),
        "lift": np.zeros(N, dtype=bool),
    }
)
FLATS["price"] = 2 * FLATS["area"] + RNG.normal(size=N)
FOREST = RandomForestRegressor(20, min_samples_leaf=5, random_state=0)
DAY = datetime.date
# Of 5 rows: two areas and two dates out of range, a lift where none was, an unseen town.
NEW = {
    "area": [50.0, 1e6, 5.0, None, 160.0],
    "town": ["Lyon", "Oslo", "Nice", "Rome", None],
    "sold": [DAY(2020, 3, 1), DAY(2030, 1, 2), DAY(2020, 12, 25), None, None],
    "lift": [False, None, True, None, False],
}
TOLD = (
    "Cells of categories that the training rows did not have, taken as missing: 2 of 'town'\n"
    "Rows with values beyond the range of the training rows: 2 of 5, most in 'area' (2: down to 5 "
    "and up to 1,000,000; trained on 20 to 160); their intervals are those of the leaves at its "
    "edge\nRows without a known value: 1 of 5 (all cells are missing or of unknown categories)"
)


def numbers_of(counts):
    return (
        *(counts.n_rows, counts.n_rows_out_of_range, counts.n_rows_without_values),
        *(+counts.unseen, +counts.out_of_range),
    )


EXPECTED = 5, 2, 1, Counter(town=2), Counter(area=2, sold=1, lift=1)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "flats.hdi"
    fit_table(FLATS, "price", estimator=FOREST, calibration=False).save(path, training_rows=False)
    return path


def twin(X, low, high):
    """Cells out of range by column, rows with one, rows without a number; cell by cell."""
    cells, n_rows, n_empty = [0] * X.shape[1], 0, 0
    for row in X.astype(np.float32):
        outside = [j for j, cell in enumerate(row) if cell < low[j] or cell > high[j]]
        for j in outside:
            cells[j] += 1
        n_rows += len(outside) > 0
        n_empty += all(np.isnan(cell) for cell in row)
    return cells, n_rows, n_empty


@pytest.mark.parametrize("block_cells", [7, 2**16])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_counts_are_those_of_the_twin(tmp_path, block_cells, dtype):
    train = RNG.normal(size=(50, 3)).astype(np.float32)
    train[:, 2] = np.nan
    ends = np.stack([np.fmin.reduce(train), np.fmax.reduce(train)])
    X = RNG.normal(scale=2, size=(97, 3)).astype(dtype)
    X[RNG.random(X.shape) < 0.4] = np.nan
    X[0] = ends[0]  # an end is not out of range
    X[1] = np.nextafter(ends[1].astype(dtype), dtype(9))  # in float64, as float32 it is an end
    scorer = scorer_of(tmp_path, pd.DataFrame(train, columns=list("abc")))
    with blocks_of(block_cells):
        scorer({name: X[:0, j] for j, name in enumerate("abc")})
        assert scorer.counts.n_rows == 0
        scorer({name: X[:, j] for j, name in enumerate("abc")})
    cells, n_rows, n_empty = twin(X, *ends)
    assert n_rows > 10
    assert n_empty > 2
    expected = 97, n_rows, n_empty, Counter(), +Counter(dict(zip("abc", cells, strict=True)))
    assert numbers_of(scorer.counts) == expected


def scorer_of(folder, table):
    """A scorer of a model that was trained on a table of numbers."""
    model = HDIForestRegressor(FOREST, calibration=False).fit(table, np.arange(len(table)))
    model.save(folder / "model.hdi")
    return BatchScorer(folder / "model.hdi")


def test_the_range_is_that_of_training_rows_that_weigh_anything(tmp_path):
    def feature_range(model):
        model.save(tmp_path / "model.hdi")
        return arrays_of(tmp_path / "model.hdi")["feature_range"]

    X = np.array([[1.0, np.nan], [5, np.nan], [3, np.nan], [2**24 + 1, 7]])
    y, weight = np.arange(4.0), np.array([1.0, 2, 1, 0])
    model = HDIForestRegressor(FOREST, calibration=False).fit(X, y, sample_weight=weight)
    assert_array_equal(feature_range(model), np.float32([[1, np.nan], [5, np.nan]]))
    model = HDIForestRegressor(FOREST, calibration=False).fit(X, y)
    for each in (model, pickle.loads(pickle.dumps(model))):
        assert feature_range(each).dtype == np.float32
        assert_array_equal(feature_range(each), [[1, 7], [2**24, 7]])


def test_a_scorer_counts_dates_booleans_and_categories(path):
    scorer = BatchScorer(path)
    scorer(NEW)
    assert numbers_of(scorer.counts) == EXPECTED
    assert str(scorer.counts) == TOLD
    scorer({name: column[::-1] for name, column in NEW.items()})
    n_rows, *counts = EXPECTED
    assert numbers_of(scorer.counts) == (2 * n_rows, *(each + each for each in counts))
    assert str(BatchScorer(path).counts) == ""


@pytest.mark.parametrize(
    ("column", "cells", "told"),
    [
        ("sold", [DAY(2030, 1, 2)], "'sold' (1: up to 2030-01-02; trained on 2020-03-01 to"),
        ("sold", [DAY(1, 1, 1)], "(1: down to 0001-01-01; trained on 2020-03-01 to 2020-12-25)"),
        ("lift", [True, False, True], "'lift' (2: up to true; trained on false to false)"),
        ("area", [160.01], "'area' (1: up to 160.01; trained on 20 to 160)"),
        ("area", [1e6, 1e6 + 1], "'area' (2: up to 1,000,000; trained on 20 to 160)"),
        ("area", [160.01, 170], "'area' (2: up to 170; trained on 20 to 160)"),
    ],
)
def test_ends_are_written_as_people_do(path, column, cells, told):
    scorer = BatchScorer(path)
    others = {name: [None] * len(cells) for name in NEW}
    scorer(others | {column: cells})
    assert told in str(scorer.counts)


def test_threads_count_every_row(path):
    scorer = BatchScorer(path)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(scorer, [NEW] * 64))
    n_rows, n_out, n_empty, *_ = EXPECTED
    assert numbers_of(scorer.counts)[:3] == (64 * n_rows, 64 * n_out, 64 * n_empty)
    assert scorer.counts.out_of_range["area"] == 128


def test_a_batch_that_is_refused_counts_nothing(path):
    scorer = BatchScorer(path)
    with pytest.raises(ValueError, match="'lift' must hold booleans"):
        scorer(NEW | {"lift": [0, 0, 0, 0, 3]})
    assert scorer.counts.n_rows == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda ends: ends[:, :2],
        lambda ends: ends.astype(np.float64),
        lambda ends: ends[::-1],
        lambda ends: np.where([[True], [False]], np.nan, ends),
    ],
)
def test_a_damaged_range_is_refused(path, tmp_path, change):
    damaged = rewritten(path, with_change("feature_range", change), to=tmp_path / "damaged.hdi")
    for verify in (True, False):
        with pytest.raises(ValueError, match=r"damaged.hdi is not a .*feature_range mu"):
            HDIForestRegressor.load(damaged, verify=verify)


def test_a_model_without_names(tmp_path):
    X = FLATS[["area", "lift"]].to_numpy(float)
    path = tmp_path / "model.hdi"
    HDIForestRegressor(FOREST, calibration=False).fit(X, FLATS["price"].to_numpy()).save(path)
    scorer = BatchScorer(path)
    scorer({"u": [50.0, -1e6, None], "v": [0.0, 0.0, None]})
    assert numbers_of(scorer.counts) == (3, 1, 1, Counter(), Counter(u=1))


def test_steps_that_fill_and_scale(tmp_path):
    """Steps are code: what they make is counted, and cells that are missing before them."""
    steps = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["area"]),
        (OneHotEncoder(handle_unknown="ignore"), ["town"]),
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), ["place"]),
    )
    table = FLATS[["area", "town"]].assign(place=FLATS["town"])
    path = tmp_path / "model.hdi"
    HDIForestRegressor(make_pipeline(steps, FOREST), calibration=False).fit(
        table, FLATS["price"]
    ).save(path)
    scorer = BatchScorer(path)
    scorer(
        {"area": [200.0, None, None], "town": ["Nice", "x", None], "place": ["Nice"] * 2 + [None]}
    )
    scorer({"area": [20.0], "town": ["Oslo"], "place": ["Oslo"]})
    area, place = "pipeline__area", "ordinalencoder__place"
    assert numbers_of(scorer.counts) == (4, 3, 1, Counter(), Counter({area: 1, place: 2}))
    assert f"most in '{place}' (2: down to -1; trained on 0 to " in str(scorer.counts)


@pytest.mark.parametrize(("ending", "n_threads"), [("csv", "3"), ("parquet", "1")])
def test_score_ends_with_a_line_for_each(path, tmp_path, ending, n_threads, capsys):
    """Of one table and of a folder of two, scored by some threads."""
    folder = tmp_path / "tables"
    write(pd.concat([pd.DataFrame(NEW)] * 200), folder / f"a.{ending}")
    write(FLATS.drop(columns="price"), folder / f"b.{ending}")

    def told(given, out):
        arguments = [str(path), str(given), "-o", str(tmp_path / out), "--jobs", n_threads]
        return output_of(capsys, ["score", *arguments, "--batch-rows", "300"]).splitlines()[1:]

    assert told(folder / f"b.{ending}", f"b.{ending}") == []
    lines = told(folder / f"a.{ending}", f"a.{ending}")
    expected = TOLD.replace("of 5", "of 1,000").replace("1 of 1,", "200 of 1,")
    expected = re.sub(r"2 of (?=1,|')", "400 of ", expected).replace("(2:", "(400:")
    assert lines == expected.split("\n")
    assert told(folder, "out") == [line.replace("of 1,000", "of 1,300") for line in lines]


def test_check_and_calibrate_tell_the_same(path, tmp_path, capsys):
    table, kept = tmp_path / "sold.csv", tmp_path / "kept.hdi"
    pd.concat([pd.DataFrame(NEW)] * 40).assign(price=100).to_csv(table, index=False)
    arguments = [str(path), str(table), "--target", "price"]
    lines = output_of(capsys, ["check", *arguments]).splitlines()[-3:]
    assert lines[1].startswith("Rows with values beyond the range of the training rows: 80 of 200")
    found = json.loads(output_of(capsys, ["check", *arguments, "--json"]))
    assert found["out_of_range"] == {"area": 80, "sold": 40, "lift": 40}
    assert found["missing_cells"] == {"area": 40, "town": 40, "sold": 80, "lift": 80}
    assert (found["rows_out_of_range"], found["rows_without_values"]) == (80, 40)
    fit_table(FLATS, "price", estimator=FOREST, calibration=False).save(kept)
    assert run(["calibrate", str(kept), str(table), "--target", "price"]) == 0
    assert capsys.readouterr().out.splitlines()[-3:] == lines


def test_columns_that_are_missing_in_every_row_are_named(path):
    scorer = BatchScorer(path, 0.9)
    scorer({name: [] for name in NEW})
    assert str(scorer.counts) == ""
    frame = FLATS.assign(town=None, lift=pd.array([None] * N, dtype="boolean"))
    frame.loc[:9, "area"] = np.nan
    for part in (frame.head(7), frame.tail(N - 7)):
        scorer(part)
    assert +scorer.counts.missing == {"town": N, "lift": N, "area": 10}
    line = (
        "Columns that are missing in every row: 'town', 'lift'; the training rows had values there,"
        " so intervals may cover less than they say"
    )
    assert str(scorer.counts).splitlines() == [line]
    scorer(FLATS.head(1))
    assert str(scorer.counts) == ""


def test_of_columns_with_as_many_cells_always_the_same_is_named(tmp_path):
    scorer = scorer_of(tmp_path, pd.DataFrame({"b": [0, 1] * 9, "a": [0, 1] * 9}))
    for rows in ([[2, 0], [0, 2]], [[0, 2], [2, 0]]):
        again = pickle.loads(pickle.dumps(scorer))
        for b, a in rows:
            again({"b": [b], "a": [a]})
        assert "most in 'a' (1: up to 2;" in str(again.counts)


def test_counts_add_up(tmp_path):
    scorer = scorer_of(tmp_path, pd.DataFrame({"a": [0, 1] * 9}))
    scorer({"a": [9]})  # a pickled scorer counts for itself
    counts, more = RowCounts(), RowCounts()
    for cell in (5, 0.5, -3):
        again = pickle.loads(pickle.dumps(scorer))
        again({"a": [cell]})
        more.add(pickle.loads(pickle.dumps(again.counts)))  # as of another process
    counts.add(more)
    assert "training rows: 2 of 3," in str(counts)
    assert "(2: down to -3 and up to 5; trained on 0 to 1)" in str(counts)


def test_counts_grow_while_their_text_is_written():
    class Name(str):
        def __repr__(self):
            more = RowCounts()
            more.unseen[f"{self}, added meanwhile"] = 1
            counts.add(more)
            return super().__repr__()

    counts = RowCounts()
    counts.unseen[Name("town")] = 1
    assert str(counts).endswith("taken as missing: 1 of 'town'")
    assert len(counts.unseen) == 2
