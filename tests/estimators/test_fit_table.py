"""From a table with strings, dates and missing cells to intervals, in memory and by commands."""

import json
import pickle
import re
import shlex

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hdiforest import HDIForestRegressor, fit_table
from hdiforest._tables.encoder import TableEncoder
from hdiforest.serving import BatchScorer

from ..cli.calls import failure, run
from ..oracle import ROOT
from ..serving.test_model_file import rewritten

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


def test_rows_are_coded_in_blocks(model, monkeypatch):
    whole = model.predict_interval(NEW, 0.9)
    frame = model.predict_interval(NEW, 0.9, output="pandas")
    sizes = []
    encode = TableEncoder.encode

    def measured(encoder, table, **options):
        sizes.append(table.num_rows)
        return encode(encoder, table, **options)

    monkeypatch.setattr(TableEncoder, "encode", measured)
    monkeypatch.setattr("hdiforest._estimators.input_rows.BLOCK_CELLS", 100)
    for form in tables_of(NEW).values():
        assert len(model.predict_interval(form, 0.9)) == len(NEW)
    assert max(sizes) == 100 // model._fitted.n_features
    assert_array_equal(model.predict_interval(NEW, 0.9), whole)
    assert model.predict_interval(NEW, 0.9, output="pandas").equals(frame)
    assert len(model.predict_cdf(NEW, NEW["price"])) == len(NEW)
    assert model.predict_interval(NEW.head(0), 0.9).shape == (0, 2)
    with pytest.raises(ValueError, match=r"y must have 60 rows, as many as X, got shape \(59,\)"):
        model.predict_cdf(NEW, NEW["price"][1:])
    late = NEW.assign(sold=NEW["sold"].where(np.arange(60) != 40, "never"))
    with pytest.raises(ValueError, match=r"column 'sold' .*'never' in row 41"):
        model.predict_interval(late, 0.9)


MIXED = [
    (["Nice", 3, None], "holds text ('Nice' in row 1) and numbers (3 in row 2)"),
    ([None, 7.5, "Nice"], "holds numbers (7.5 in row 2) and text ('Nice' in row 3)"),
    ([True, "Nice", "Nice"], "holds booleans (True in row 1) and text ('Nice' in row 2)"),
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
        with pytest.raises(ValueError, match=rf"column 'town' {re.escape(sentence)}$"):
            ask()


def test_columns_of_one_name(model):
    twice = pd.concat([NEW, NEW[["town", "rooms"]]], axis="columns")
    sentence = "^the table has 2 columns 'town', 2 columns 'rooms'$"
    with pytest.raises(ValueError, match=sentence):
        model.predict_interval(twice)
    with pytest.raises(ValueError, match=sentence):
        fit_table(twice, "price", **OPTIONS)
    with pytest.raises(ValueError, match=sentence):
        model.predict_interval(
            pa.Table.from_arrays([pa.array([1])] * 7, [*model.feature_names_in_, "town", "rooms"])
        )
    others = pd.concat([NEW, NEW[["key"]]], axis="columns")
    assert model.predict_interval(others, 0.9).shape == (60, 2)


def test_the_encoder_follows_the_model_everywhere(model, tmp_path):
    model.save(tmp_path / "m.hdi")
    expected = model.predict_quantiles(NEW, [0.1, 0.5])
    loaded = HDIForestRegressor.load(tmp_path / "m.hdi")
    for other in (loaded, pickle.loads(pickle.dumps(model)), pickle.loads(pickle.dumps(loaded))):
        np.testing.assert_array_equal(other.predict_quantiles(NEW, [0.1, 0.5]), expected)
        assert other._fitted.encoder == model._fitted.encoder
    np.testing.assert_array_equal(
        loaded.predict_weights(NEW).toarray(), model.predict_weights(NEW).toarray()
    )
    loaded.calibrate(NEW, NEW["price"], coverage=0.8)
    assert loaded.predict_interval(NEW, 0.8).shape == (60, 2)
    assert list(model.feature_names_in_) == ["town", "rooms", "garden", "sold", "area"]


def test_a_fit_to_arrays_forgets_the_encoder(model):
    again = pickle.loads(pickle.dumps(model)).fit(np.arange(40.0).reshape(-1, 1), np.arange(40.0))
    assert again._fitted.encoder is None


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


def test_columns_of_a_table_of_numbers_are_found_by_name():
    frame = TRAIN[["rooms", "area", "price"]]
    model = fit_table(frame, "price", estimator=RandomForestRegressor(5, random_state=0))
    expected = model.predict(frame[["rooms", "area"]])
    np.testing.assert_array_equal(model.predict(frame[["area", "price", "rooms"]]), expected)


def test_out_of_bag_tables_have_the_index_of_the_table():
    frame = TRAIN[["rooms", "area", "price"]].set_index(pd.Index([f"r{i}" for i in range(300)]))
    model = fit_table(frame, "price", estimator=RandomForestRegressor(40, random_state=0))
    assert list(model.oob_interval(0.5, output="pandas").index[:2]) == ["r0", "r1"]


@pytest.mark.parametrize("cells", [[1.0, np.inf], ["0000-01-01", "0000-02-01"]])
def test_what_no_file_could_hold_is_refused_at_the_fit(cells):
    frame = pd.DataFrame({"c": cells * 50, "y": np.arange(100.0)})
    with pytest.raises(ValueError, match="'c'"):
        fit_table(frame, "y", categorical=["c"] if cells[0] == 1 else "auto")


def test_zeros_of_both_signs_are_one_category():
    frame = pd.DataFrame({"c": [0.0, -0.0] * 50, "y": np.arange(100.0)})
    model = fit_table(frame, "y", categorical=["c"], estimator=RandomForestRegressor(3))
    assert len(pickle.loads(pickle.dumps(model))._fitted.encoder.entries[0].values) == 1


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
        ({"price": "dear"}, OPTIONS, "target 'price' must hold numbers, but holds 'dear' in row 1"),
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
        ([[1, 2, 3, 4, 5]], "X must be a table with names of columns"),
        (NEW.drop(columns=["town", "sold"]), "the table has no columns 'town', 'sold'"),
        (NEW.assign(rooms="many"), "column 'rooms' must hold numbers, but is"),
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
    inside = (out["lower_0.9"] <= NEW["price"]) & (NEW["price"] <= out["upper_0.9"])
    assert inside.mean() > 0.8
    check = ["check", tmp_path / "m.hdi", tmp_path / "new.csv", "--target", "price", "--json"]
    capsys.readouterr()
    assert run(check) == 0
    assert json.loads(capsys.readouterr().out)["unknown_categories"] == {"town": 2}


def test_commands_name_all_columns_at_fault(tmp_path, capsys, model):
    bad = TRAIN.assign(rooms=["1", "2", "3", "two"] * 75, area=["1", "many", "3", "4"] * 75)
    bad.to_csv(tmp_path / "bad.csv", index=False)
    call = ["fit", tmp_path / "bad.csv", "-o", tmp_path / "m.hdi", "--target", "price"]
    found = failure(capsys, call)
    assert "column 'rooms' holds numbers such as '1', but 'two' in row 4; column 'area'" in found
    assert "column 'area' holds numbers such as '1', but 'many' in row 2 (" in found
    assert found.startswith(f"{tmp_path / 'bad.csv'}: column 'key' has 300 categories")
    model.save(tmp_path / "m.hdi")
    late = NEW.astype({"sold": object})
    late.loc[4, "sold"] = "99999-01-01"
    late.to_csv(tmp_path / "late.csv", index=False)
    call = ["score", tmp_path / "m.hdi", tmp_path / "late.csv", "-o", tmp_path / "out.csv"]
    assert "late.csv: column 'sold' must hold dates" in failure(capsys, call)
    assert not (tmp_path / "out.csv").exists()


def changed(place, **facts):
    """A change of the facts of one column."""
    return lambda encoder: encoder["columns"][place].update(facts)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda encoder: encoder.pop("ids"), "an encoder must have the entries columns and ids"),
        (lambda encoder: encoder["columns"].pop(), "the encoder does not fit the features"),
        (lambda encoder: encoder["columns"].reverse(), "the encoder does not fit the features"),
        (changed(1, name="room"), "the encoder does not fit the features"),
        (changed(1, kind="\x1b[2J"), "a column must be one of"),
        (changed(0, values=["a", "a"]), "column 'town': values must be distinct"),
        (changed(0, values=["a", 3.0]), "column 'town': values must be texts"),
        (changed(3, reference=10**20), "column 'sold': reference must be a day"),
        (changed(3, unit="year"), "column 'sold': unit must be one of"),
        (changed(3, code="import os"), "column 'sold': it must have the entries"),
    ],
)
def test_hostile_model_files(model, tmp_path, change, message):
    path = tmp_path / "m.hdi"
    model.save(path)
    rewritten(path, lambda facts: change(facts["encoder"]))
    with pytest.raises(ValueError, match=f"is not a valid model: {message}") as error:
        HDIForestRegressor.load(path)
    assert str(error.value).isprintable()


def test_the_page_on_tables_runs(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    TRAIN.to_csv("sales.csv", index=False)
    NEW.to_csv("new.csv", index=False)
    for line in re.findall(r"^hdiforest (fit|score)(.*)$", page, re.M):
        assert run(shlex.split(" ".join(line))) == 0
    columns = ["key", "prediction", "lower_0.9", "upper_0.9"]
    assert pq.read_table("intervals.parquet").schema.names == columns
    names = {"new": NEW}
    code, fitted_already = re.findall(r"```python\n(.*?)```", page, re.S)
    exec(code, names)
    assert (names["lower"] <= names["upper"]).all()
    X, y = np.arange(60.0).reshape(30, 2), np.arange(30.0)
    forest = RandomForestRegressor(5, random_state=0).fit(X, y)
    exec(fitted_already, {"forest": forest, "X_train": X, "y_train": y})
    assert HDIForestRegressor.load("prices.hdi").n_training_rows_ == 30
