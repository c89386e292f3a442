"""From a table with strings, dates and missing cells to intervals, in memory and by commands."""

import json
import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hdiforest import HDIForestRegressor, fit_table
from hdiforest.serving import BatchScorer

from ..cli.calls import failure, run
from ..model_files import rewritten, with_facts
from ..oracle import blocks_of

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pd = pytest.importorskip("pandas")
pytest.importorskip("safetensors")


def sales(n, seed):
    """Flats: key, town, rooms, garden, day, a code and a price; some cells are missing."""
    rng = np.random.default_rng(seed)
    town = rng.choice(["Lyon", "Paris", "Nice", "Brest"], n, p=[0.4, 0.3, 0.2, 0.1])
    rooms = rng.integers(1, 7, n).astype(float)
    garden = rng.random(n) < 0.4
    sold = pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 2000, n), unit="D")
    worth = {"Lyon": 80, "Paris": 200, "Nice": 120, "Brest": 0}
    price = 50 * rooms + pd.Series(town).map(worth).to_numpy() + 30 * garden
    price = (price + 0.02 * np.arange(n) % 7 + rng.gamma(2, 20, n)).round(1)
    rooms[rng.random(n) < 0.05] = np.nan
    frame = pd.DataFrame({
        "key": [f"S-{seed}-{i:05d}" for i in range(n)],
        "town": town,
        "rooms": rooms,
        "garden": garden,
        "sold": sold.strftime("%Y-%m-%d"),
        "area": rng.choice([10, 20, 75], n),
        "price": price,
    })  # fmt: skip
    frame.loc[rng.random(n) < 0.03, "town"] = None
    return frame


TRAIN, NEW = sales(300, 0), sales(60, 1)
NEW.loc[[3, 9], "town"] = "Metz"
OPTIONS = {"categorical": ["area"], "id": ["key"]}
pytestmark = pytest.mark.filterwarnings("ignore:intervals are not calibrated")  # of few trees


@pytest.fixture(scope="module")
def model():
    forest = RandomForestRegressor(12, min_samples_leaf=5, random_state=0)
    return fit_table(TRAIN, "price", estimator=forest, **OPTIONS)


def tables_of(frame):
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    found = {
        "pandas": frame,
        "shuffled": frame[frame.columns[::-1]],
        "pyarrow": arrow,
        "batch": arrow.combine_chunks().to_batches()[0],
        "dict": {name: arrow[name].to_pylist() for name in arrow.schema.names},
        "typed": arrow.set_column(4, "sold", arrow["sold"].cast(pa.timestamp("ms"))),
    }
    polars = pytest.importorskip("polars")
    found["polars"] = polars.from_pandas(frame)
    return found


def test_tables_of_every_library_are_coded_alike(model):
    expected = model.predict_interval(NEW, 0.8)
    assert np.isfinite(expected).all()
    for name, table in tables_of(NEW).items():
        np.testing.assert_array_equal(model.predict_interval(table, 0.8), expected, err_msg=name)
    tables = tables_of(TRAIN)
    for name in ("pyarrow", "batch", "dict", "typed", "polars"):
        table = tables[name]
        forest = RandomForestRegressor(12, min_samples_leaf=5, random_state=0)
        again = fit_table(table, "price", estimator=forest, **OPTIONS)
        np.testing.assert_array_equal(again.predict_interval(NEW, 0.8), expected, err_msg=name)


def test_rows_are_coded_in_blocks(model):
    whole = model.predict_interval(NEW, 0.9)
    frame = model.predict_interval(NEW, 0.9, output="pandas")
    with blocks_of(100):
        for table in tables_of(NEW).values():
            assert_array_equal(model.predict_interval(table, 0.9), whole)
        assert model.predict_interval(NEW, 0.9, output="pandas").equals(frame)
        assert len(model.predict_cdf(NEW, NEW["price"])) == len(NEW)
        assert model.predict_interval(NEW.head(0), 0.9).shape == (0, 2)
        with pytest.raises(ValueError, match=r"y must have 60 rows, as many as X, got shape \(59"):
            model.predict_cdf(NEW, NEW["price"][1:])
        late = NEW.assign(sold=NEW["sold"].where(np.arange(60) != 40, "never"))
        with pytest.raises(ValueError, match=r"column 'sold' .*'never' in row 41"):
            model.predict_interval(late, 0.9)


MIXED = [
    (["Nice", 3, None], "holds cells of the types NoneType, int, str"),
    ([True, "Nice", "Nice"], "holds cells of the types bool, str"),
]


@pytest.mark.parametrize(("cells", "sentence"), MIXED)
def test_columns_of_two_kinds_of_cells(model, tmp_path, cells, sentence):
    frame = NEW.head(3).assign(town=pd.Series(cells, dtype=object))
    model.save(tmp_path / "m.hdi")
    scorer = BatchScorer(tmp_path / "m.hdi", 0.9)
    as_lists = {name: frame[name].tolist() for name in frame}
    for ask in (
        lambda: model.predict_interval(frame),
        lambda: model.predict_interval(as_lists),
        lambda: fit_table(frame, "price", **OPTIONS),
        lambda: scorer(frame),
        lambda: scorer(as_lists),
    ):
        with pytest.raises(ValueError, match=f"column 'town' {sentence}: "):
            ask()


def test_the_encoder_follows_the_model_everywhere(model, tmp_path):
    model.save(tmp_path / "m.hdi")
    expected = model.predict_quantiles(NEW, [0.1, 0.5])
    loaded = HDIForestRegressor.load(tmp_path / "m.hdi")
    for other in (loaded, pickle.loads(pickle.dumps(model)), pickle.loads(pickle.dumps(loaded))):
        np.testing.assert_array_equal(other.predict_quantiles(NEW, [0.1, 0.5]), expected)
    np.testing.assert_array_equal(
        loaded.predict_weights(NEW).toarray(), model.predict_weights(NEW).toarray()
    )
    loaded.calibrate(NEW, NEW["price"], coverage=0.8)
    assert loaded.predict_interval(NEW, 0.8).shape == (60, 2)
    assert list(model.feature_names_in_) == ["town", "rooms", "garden", "sold", "area"]


def test_a_fit_to_arrays_forgets_the_encoder(model):
    again = pickle.loads(pickle.dumps(model)).fit(np.arange(40.0).reshape(-1, 1), np.arange(40.0))
    assert again.predict([[3.0]]).shape == (1,)


def test_without_an_estimator_the_intervals_are_calibrated():
    model = fit_table(TRAIN.drop(columns="key"), "price", random_state=0)
    assert model.calibration_.method == "oob"
    assert isinstance(model.estimator_, ExtraTreesRegressor)


def test_weights_are_a_column_or_an_array():
    forest = RandomForestRegressor(5, random_state=0)
    weights = 1 + np.arange(300) % 3
    one = fit_table(
        TRAIN.assign(w=weights), "price", estimator=forest, sample_weight="w", **OPTIONS
    )
    other = fit_table(TRAIN, "price", estimator=forest, sample_weight=weights, **OPTIONS)
    np.testing.assert_array_equal(one.predict(NEW), other.predict(NEW))
    assert "w" not in one.feature_names_in_


@pytest.mark.parametrize("cells", [[1.0, np.inf], ["0000-01-01", "0000-02-01"]])
def test_what_no_file_could_hold_is_refused_at_the_fit(cells):
    frame = pd.DataFrame({"c": cells * 50, "y": np.arange(100.0)})
    with pytest.raises(ValueError, match="'c'"):
        fit_table(frame, "y", categorical=["c"] if cells[0] == 1 else "auto")


def test_roles_that_overlap():
    frame = TRAIN[["rooms", "area", "price"]]
    forest = RandomForestRegressor(3, random_state=0)
    model = fit_table(frame, "price", drop=["price"], estimator=forest)
    assert list(model.feature_names_in_) == ["rooms", "area"]
    with pytest.raises(ValueError, match="target must be the name of a column"):
        fit_table(frame, ["price"])
    with pytest.raises(ValueError, match="estimator must be a forest, because fit_table encodes"):
        fit_table(frame, "price", estimator=make_pipeline(StandardScaler(), forest))


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {}, "the table: column 'key' has 300 categories in 300 rows"),
        (
            {},
            {"drop": ["k"], "id": ["i"], "categorical": ["c"]},
            "has no columns 'c', 'k', 'i'; it",
        ),
        ({}, {"drop": "key"}, "drop must be a list of names of columns, got 'key'"),
        ({}, {"categorical": "area"}, "categorical must be a list of names of columns"),
        ({"price": "dear"}, OPTIONS, "target 'price' must hold numbers .* holds 'dear' in row 1"),
        ({"price": np.nan}, OPTIONS, "target 'price' must be finite in every row"),
        ({"rooms": [[1]] * 300}, OPTIONS, "column 'rooms' must hold numbers, booleans, dates or"),
        ({}, OPTIONS | {"sample_weight": "w"}, "has no column 'w'"),
        ({}, OPTIONS | {"sample_weight": [1, 2]}, r"sample_weight must have shape \(300,\)"),
    ],
)
def test_what_fit_table_refuses(change, options, message):
    with pytest.raises(ValueError, match=message):
        fit_table(TRAIN.assign(**change), "price", **options)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((2, 5)), "X must be a table with names of columns .*, got ndarray"),
        (NEW.drop(columns=["town", "sold"]), "the table has no columns 'town', 'sold'"),
        (NEW.assign(sold="soon"), "column 'sold' must hold dates .*, but holds 'soon' in row 1"),
    ],
)
def test_what_a_coded_model_refuses(model, X, message):
    with pytest.raises(ValueError, match=message):
        model.predict(X)


def test_two_commands_without_code(tmp_path, capsys):
    """The walk of the docs, on CSV and on Parquet."""
    TRAIN.to_csv(tmp_path / "sales.csv", index=False)
    NEW.to_csv(tmp_path / "new.csv", index=False)
    TRAIN.to_parquet(tmp_path / "sales.parquet")
    NEW.to_parquet(tmp_path / "new.parquet")
    fit = ["--target", "price", "--id", "key", "--categorical", "area", "--trees", 60]
    found = []
    for train in ("sales.csv", "sales.parquet"):
        assert run(["fit", tmp_path / train, "-o", tmp_path / "m.hdi", *fit]) == 0
        for new in ("new.csv", "new.parquet"):
            capsys.readouterr()
            assert run(["score", tmp_path / "m.hdi", tmp_path / new, "-o", tmp_path / "o.csv"]) == 0
            assert "taken as missing: 2 of 'town'" in capsys.readouterr().out
            found.append((tmp_path / "o.csv").read_bytes())
    assert found == 4 * found[:1]
    out = pd.read_csv(tmp_path / "o.csv")
    assert list(out.columns) == ["key", "prediction", "lower_0.9", "upper_0.9"]
    assert list(out["key"]) == list(NEW["key"])


def changed(place, **facts):
    """A change of the facts of one column."""
    return lambda encoder: encoder["columns"][place].update(facts)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda encoder: encoder.pop("ids"), "an encoder must have the entries columns and ids"),
        (lambda encoder: encoder["columns"].reverse(), "the encoder does not fit the features"),
        (changed(1, kind="\x1b[2J"), "a column must be one of"),
        (changed(3, code="import os"), "column 'sold': it must have the entries"),
    ],
)
def test_hostile_model_files(model, tmp_path, change, message):
    path = tmp_path / "m.hdi"
    model.save(path)
    rewritten(path, with_facts("encoder", change))
    with pytest.raises(ValueError, match=f"is not a valid model: {message}") as error:
        HDIForestRegressor.load(path)
    assert str(error.value).isprintable()


HOLES = TRAIN.drop(columns=["key"]).fillna({"rooms": -1, "town": "no town"})
GAPS = NEW.drop(columns=["key", "price"]).assign(town=NEW["town"].mask(NEW.index == 5))
HOLED = GAPS.fillna({"rooms": -1, "town": "no town"})


def test_words_for_missing_cells_are_kept_with_the_model(tmp_path, capsys):
    """A model of words reads every table as a model of missing cells does."""
    forest = RandomForestRegressor(12, min_samples_leaf=5, random_state=0)
    how = {"estimator": forest, "calibration": False}
    plain = fit_table(TRAIN.drop(columns="key"), "price", **how)
    model = fit_table(HOLES, "price", missing=["no town", -1], **how)
    expected = plain.predict_interval(GAPS, 0.8)
    model.save(tmp_path / "m.hdi")
    for each in (model, HDIForestRegressor.load(tmp_path / "m.hdi")):
        assert_array_equal(each.predict_interval(HOLED, 0.8), expected)
        assert_array_equal(each.predict_interval(GAPS, 0.8), expected)
    scorer = BatchScorer(tmp_path / "m.hdi", 0.8)
    assert_array_equal(scorer(HOLED)["lower_0.8"], expected[:, 0])
    n_missing = {name: int(n) for name, n in GAPS[["town", "rooms"]].isna().sum().items()}
    assert +scorer.counts.missing == n_missing
    record = scorer(HOLED.iloc[0].to_dict() | {"rooms": "no town", "town": "no town"})
    assert record == scorer(HOLED.iloc[0].to_dict() | {"rooms": None, "town": None})
    written = HOLED.assign(price=NEW["price"], rooms=HOLED["rooms"].replace(-1, "-1.0"))
    written.to_csv(tmp_path / "new.csv", index=False)
    assert run(["score", tmp_path / "m.hdi", tmp_path / "new.csv", "-o", tmp_path / "o.csv"]) == 0
    scored = pd.read_csv(tmp_path / "o.csv")
    assert list(scored["prediction"]) == list(plain.predict(GAPS))
    check = ["check", tmp_path / "m.hdi", tmp_path / "new.csv", "--target", "price", "--json"]
    capsys.readouterr()
    assert run(check) == 0
    assert json.loads(capsys.readouterr().out)["missing_cells"] == n_missing


def test_words_for_missing_cells_in_columns_of_text_and_numbers(tmp_path, capsys):
    odd = TRAIN.drop(columns="key").assign(garden=TRAIN["garden"].astype(object))
    odd.loc[::9, ["rooms", "garden", "sold"]] = np.nan
    odd.to_csv(tmp_path / "empty.csv", index=False, na_rep="")
    odd.to_csv(tmp_path / "words.csv", index=False, na_rep="not told")
    call = ["--target", "price", "--trees", 5, "--calibrate", "none", "-o"]
    fit = ["fit", tmp_path / "words.csv", *call, tmp_path / "w.hdi"]
    said = failure(capsys, fit)
    assert re.search(r"'rooms' holds numbers such as '\d.*', but 'not told' in row 1", said)
    assert "--missing WORD" in said
    assert run([*fit, "--missing", "not told", "0", "-9"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^read as missing +'not told', '0', '-9'$", printed, re.M)
    assert re.search(r"^missing cells +rooms \(\d\d\), ", printed, re.M)
    assert run(["fit", tmp_path / "empty.csv", *call, tmp_path / "e.hdi"]) == 0
    for name in ("w", "e"):
        table = tmp_path / ("words.csv" if name == "w" else "empty.csv")
        call = ["score", tmp_path / f"{name}.hdi", table, "-o", tmp_path / f"{name}.csv"]
        assert run(call) == 0
    assert (tmp_path / "w.csv").read_bytes() == (tmp_path / "e.csv").read_bytes()


def test_words_among_numbers_in_frames_and_json_lines(tmp_path):
    """Cells of two kinds, as spreadsheets and JSON have them."""
    rooms = TRAIN["rooms"].astype(object).where(TRAIN["rooms"].notna(), 'n/k: "é"')
    words = ['n/k: "é"', "none"]
    frame = pd.DataFrame({"rooms": rooms, "area": TRAIN["area"], "price": TRAIN["price"]})
    how = {"estimator": RandomForestRegressor(5, random_state=0), "calibration": False}
    expected = fit_table(TRAIN[["rooms", "area", "price"]], "price", **how).predict(NEW)
    columns = {name: cells.tolist() for name, cells in frame.items()}
    for name, is_ascii in (("a.jsonl", True), ("b.jsonl", False)):
        rows = (json.dumps(row, ensure_ascii=is_ascii) for row in frame.to_dict("records"))
        (tmp_path / name).write_text("\n".join(rows), encoding="utf-8")
    for table in (frame, columns, tmp_path / "a.jsonl", tmp_path / "b.jsonl"):
        model = fit_table(table, "price", missing=words, **how)
        assert_array_equal(model.predict(NEW), expected)
    again = fit_table(frame.set_axis([7, 8, "price"], axis=1), "price", missing=words, **how)
    assert again.feature_names_in_.tolist() == ["7", "8"]
    assert frame["rooms"].isna().sum() == 0  # the caller's table stays
    assert_array_equal(model.predict(frame), model.predict(TRAIN))
    model.save(tmp_path / "m.hdi")
    scorer = BatchScorer(tmp_path / "m.hdi", 0.9)
    two = scorer([{"rooms": 2, "area": 10}, {"rooms": "none", "area": 10}])
    assert two[1] == scorer({"rooms": None, "area": 10})
    with pytest.raises(ValueError, match="'rooms' holds cells of the types int, str"):
        scorer([{"rooms": 2, "area": 10}, {"rooms": "no", "area": 10}])
    call = ["score", tmp_path / "m.hdi", tmp_path / "b.jsonl", "-o", tmp_path / "o.csv"]
    assert run(call) == 0
    assert list(pd.read_csv(tmp_path / "o.csv")["prediction"]) == list(model.predict(TRAIN))
    check = ["check", tmp_path / "m.hdi", tmp_path / "a.jsonl", "--target", "price"]
    assert run(check) == 0


def test_a_number_that_is_missing_where_it_is_a_number(tmp_path, capsys):
    frame = pd.DataFrame({"floor": [0, 1, 2] * 30, "price": 5.0 + np.arange(90)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    call = ["fit", tmp_path / "t.csv", "--target", "price", "-o", tmp_path / "m.hdi", "--trees", 3]
    assert run([*call, "--calibrate", "none", "--missing", "0"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^read as missing +'0'$", printed, re.M)
    assert re.search(r"^missing cells +floor \(30\)$", printed, re.M)
    model = HDIForestRegressor.load(tmp_path / "m.hdi")
    both = model.predict(pd.DataFrame({"floor": [0, None]}))
    assert both[0] == both[1] != model.predict({"floor": [1]})[0]


def test_a_category_of_the_model_is_never_missing(tmp_path):
    land = np.where(TRAIN["town"] == "Paris", "NA", TRAIN["town"].fillna("Lyon"))
    frame = pd.DataFrame({"land": land, "rooms": TRAIN["rooms"], "price": TRAIN["price"]})
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    call = ["fit", tmp_path / "t.parquet", "--target", "price", "-o", tmp_path / "m.hdi"]
    assert run([*call, "--trees", 9, "--calibrate", "none"]) == 0
    scored = []
    for name in ("t.parquet", "t.csv"):
        out = tmp_path / "o.csv"
        assert run(["score", tmp_path / "m.hdi", tmp_path / name, "-o", out]) == 0
        scored.append(out.read_bytes())
    assert scored[0] == scored[1]


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_columns_without_a_value_are_refused_at_the_fit(tmp_path, capsys, name):
    frame = TRAIN[["rooms", "price"]].assign(left=np.nan, memo=None, **{"the rest": ""})
    if name == "t.jsonl":
        frame.to_json(tmp_path / name, orient="records", lines=True)
    else:
        getattr(frame, f"to_{name[2:]}")(tmp_path / name, index=False)
    said = failure(capsys, ["fit", tmp_path / name, "--target", "price", "-o", tmp_path / "m.hdi"])
    assert "columns 'left', 'memo', 'the rest' have no value in any row; " in said
    assert "--drop left memo 'the rest' (drop=['left', 'memo', 'the rest'] in Python)" in said
    assert "--categorical" not in said
    with pytest.raises(
        ValueError, match="the table: column 'rooms' has no value in any row; --drop"
    ):
        fit_table(TRAIN[["rooms", "area", "price"]].assign(rooms="?"), "price", missing=["?"])
    with pytest.raises(ValueError, match="column 'memo' has no value in any row"):
        fit_table(frame[["rooms", "memo", "price"]], "price", categorical=["memo"])


def test_rows_without_a_target_are_left_out_if_asked(tmp_path, capsys):
    frame = TRAIN.drop(columns="key").set_index(pd.Index([f"r{i}" for i in range(300)]))
    frame.iloc[[2, 7, 50], -1] = np.nan
    known = frame["price"].notna().to_numpy()
    how = {"estimator": RandomForestRegressor(30, random_state=0), "calibration": False}
    with pytest.raises(ValueError, match=r"row 3 holds a missing cell; --drop-missing-target"):
        fit_table(frame, "price", **how)
    weights = 1.0 + np.arange(300) % 4
    model = fit_table(frame, "price", drop_missing_target=True, sample_weight=weights, **how)
    expected = fit_table(frame[known], "price", sample_weight=weights[known], **how)
    assert_array_equal(model.predict(NEW), expected.predict(NEW))
    assert list(model.oob_.interval(0.5, output="pandas").index) == list(frame.index[known])
    frame.to_csv(tmp_path / "t.csv", index=False, na_rep="tba")
    call = ["fit", tmp_path / "t.csv", "--target", "price", "-o", tmp_path / "m.hdi", "--trees", 5]
    call += ["--calibrate", "none", "--missing", "tba"]
    assert failure(capsys, call).endswith(
        "3 of 300 rows are not: row 3 holds a missing cell; --drop-missing-target "
        "(drop_missing_target=True in Python) leaves such rows out"
    )
    assert run([*call, "--drop-missing-target"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^rows left out +3 of 300 rows without the target$", printed, re.M)
    assert HDIForestRegressor.load(tmp_path / "m.hdi").n_training_rows_ == 297
    with pytest.raises(ValueError, match="target 'price' has no value in any row"):
        fit_table(frame.assign(price=np.nan), "price", drop_missing_target=True)
    with pytest.raises(ValueError, match="drop_missing_target must be True or False, got 1"):
        fit_table(frame, "price", drop_missing_target=1)


@pytest.mark.parametrize("missing", ["?", [None], [["?"]], ["?", True], 5])
def test_words_that_are_none(missing):
    with pytest.raises(ValueError, match="missing must be a list of words and numbers, got"):
        fit_table(TRAIN, "price", missing=missing, **OPTIONS)
