"""The command hdiforest on real files: results, every error of its list, interruption."""

import errno
import json
import os
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import hdicore
from hdiforest import HDIForestRegressor

from ..oracle import SKLEARN_ROUTES_NAN_AS_IT_TRAINED, not_installed
from .calls import command, failure, output_of, read, run

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pa_csv = pytest.importorskip("pyarrow.csv")
pq = pytest.importorskip("pyarrow.parquet")

FEATURES = [f"f{i}" for i in range(5)]
LEVELS = ["0.8", "0.9", "0.95"]


@pytest.fixture(scope="module")
def frame():
    X, y = make_friedman1(600, 5, noise=1, random_state=0)
    table = pd.DataFrame(X, columns=FEATURES)
    table.insert(2, "target", y)
    if SKLEARN_ROUTES_NAN_AS_IT_TRAINED:
        table.loc[::17, "f3"] = np.nan
    return table


@pytest.fixture(scope="module")
def model_path(frame, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    frame.to_csv(folder / "train.csv", index=False)
    path = folder / "model.hdi"
    call = ["fit", folder / "train.csv", "--target", "target", "-o", path, "--trees", "40"]
    assert run(call) == 0
    return path


@pytest.fixture
def table(frame, tmp_path):
    path = tmp_path / "new.csv"
    frame.drop(columns="target").to_csv(path, index=False)
    return path


@pytest.mark.skipif(os.name == "nt", reason="pipes with names")
def test_a_run_has_one_model_whatever_becomes_of_its_file(model_path, table, tmp_path):
    names = ("model.hdi", "out.csv", "again.csv", "pipe.csv")
    path, out, again, pipe = (tmp_path / name for name in names)
    path.write_bytes(model_path.read_bytes())
    assert run(["score", path, table, "-o", out]) == 0
    os.mkfifo(pipe)
    with subprocess.Popen(command("score", path, pipe, "-o", again)) as process:
        with pipe.open("w") as rows:  # opened when the command reads it, and has its model
            path.write_bytes(b"another model")
            rows.write(table.read_text())
        assert process.wait(60) == 0
    assert again.read_bytes() == out.read_bytes()


def test_scores_equal_those_of_the_regressor(frame, model_path, table, tmp_path):
    out = tmp_path / "out.csv"
    assert run(["score", model_path, table, "--coverage", *LEVELS, "-o", out]) == 0
    forest = RandomForestRegressor(40, min_samples_leaf=5, random_state=0)
    model = HDIForestRegressor(forest, calibration=False).fit(frame[FEATURES], frame["target"])
    found = read(out)
    assert list(found) == [
        "prediction",
        *["lower_0.8", "upper_0.8", "lower_0.9", "upper_0.9", "lower_0.95", "upper_0.95"],
    ]
    np.testing.assert_array_equal(found["prediction"], model.predict(frame[FEATURES]))
    intervals = model.predict_interval(frame[FEATURES], [float(level) for level in LEVELS])
    for j, level in enumerate(LEVELS):
        np.testing.assert_array_equal(found[f"lower_{level}"], intervals[:, 0, j])
        np.testing.assert_array_equal(found[f"upper_{level}"], intervals[:, 1, j])


@pytest.mark.parametrize("kind", ["equal_tailed", "lower", "upper"])
def test_kinds_are_told_by_the_names_of_columns(frame, model_path, table, tmp_path, kind):
    out = tmp_path / "out.parquet"
    assert run(["score", model_path, table, "--kind", kind, "-o", out]) == 0
    names = {"lower": ["one_sided_lower_0.9"], "upper": ["one_sided_upper_0.9"]}
    columns = names.get(kind, ["equal_tailed_lower_0.9", "equal_tailed_upper_0.9"])
    found = read(out)
    assert list(found) == ["prediction", *columns]
    ends = HDIForestRegressor.load(model_path).predict_interval(frame[FEATURES], 0.9, kind=kind)
    finite = ends[:, np.isfinite(ends).all(axis=0)]
    np.testing.assert_array_equal(found[columns], finite)


def test_neither_batches_nor_threads_change_a_byte(model_path, table, tmp_path):
    outputs = []
    for i, more in enumerate([[], ["--batch-rows", 7], ["--batch-rows", 599, "--jobs", 1]]):
        out = tmp_path / f"{i}.csv"
        assert run(["score", model_path, table, "--keep", "f3", "-o", out, *more]) == 0
        outputs.append(out.read_bytes())
    assert outputs[0] == outputs[1] == outputs[2]


@pytest.mark.parametrize("endings", [("csv", "parquet"), ("parquet", "csv.gz"), ("csv.gz", "csv")])
def test_formats_order_and_extra_columns_do_not_matter(frame, model_path, table, tmp_path, endings):
    source, kept = (tmp_path / f"{i}.{ending}" for i, ending in enumerate(endings))
    mixed = frame[FEATURES[::-1]].copy()
    mixed.insert(1, "note", "any, text")
    mixed.insert(0, "id", [f"i{i:05d}" for i in range(len(frame))])
    mixed.to_parquet(source) if endings[0] == "parquet" else mixed.to_csv(source, index=False)
    out = tmp_path / "out.csv"
    assert run(["score", model_path, table, "-o", out]) == 0
    call = ["score", model_path, source, "-o", kept]
    assert run([*call, "--keep", "id", "f1", "--keep", "note"]) == 0
    found = read(kept)
    assert list(found)[:4] == ["id", "f1", "note", "prediction"]
    assert found[["id", "note"]].equals(mixed[["id", "note"]])
    np.testing.assert_array_equal(found["f1"].astype(float), mixed["f1"])
    pd.testing.assert_frame_equal(found.iloc[:, 3:], read(out), check_exact=True)


def test_a_model_without_names_takes_the_columns_in_order(frame, table, tmp_path, capsys):
    forest = RandomForestRegressor(5, min_samples_leaf=5, random_state=0)
    model = HDIForestRegressor(forest, calibration=False).fit(
        frame[FEATURES].to_numpy(), frame["target"]
    )
    path, out = tmp_path / "nameless.hdi", tmp_path / "out.csv"
    model.save(path, training_rows=False)
    assert run(["score", path, table, "-o", out]) == 0
    expected = model.predict(frame[FEATURES].to_numpy())
    np.testing.assert_array_equal(read(out)["prediction"], expected)
    frame.to_csv(tmp_path / "wide.csv", index=False)
    call = ["score", path, tmp_path / "wide.csv", "-o", tmp_path / "out2.csv"]
    assert "takes 5 columns in their order" in failure(capsys, call)
    assert run([*call, "--keep", "target"]) == 0


def test_a_model_of_several_targets_is_refused(frame, table, tmp_path, capsys):
    forest, path = RandomForestRegressor(3, min_samples_leaf=5, random_state=0), tmp_path / "two"
    model = HDIForestRegressor(forest, calibration=False)
    model.fit(frame[FEATURES], frame[["target", "f0"]]).save(path, training_rows=False)
    call = ["score", path, table, "-o", tmp_path / "out.csv"]
    assert "the model has 2 targets" in failure(capsys, call)
    for name in ("check", "calibrate"):
        call = [name, path, table, "--target", "f0"]
        assert "must have one target, but has 2" in failure(capsys, call)
    assert re.search(r"target 1 +\S+ to \S+, 600 distinct", output_of(capsys, ["inspect", path]))


def test_forest_options_reach_the_forest(frame, tmp_path):
    weighted = frame.assign(w=1 + np.arange(len(frame)) % 3, junk="text")
    weighted.to_csv(tmp_path / "train.csv", index=False)
    path = tmp_path / "m.hdi"
    call = ["fit", tmp_path / "train.csv", "--target", "target", "-o", path, "--drop", "junk"]
    call += ["--sample-weight", "w", "--extra-trees", "--trees", 7, "--min-samples-leaf", 3]
    call += ["--max-depth", 6, "--max-features", "sqrt", "--max-samples", 0.7, "--seed", 5]
    assert run([*call, "--weights", "inbag", "--jobs", 1]) == 0
    forest = ExtraTreesRegressor(
        7,
        bootstrap=True,
        min_samples_leaf=3,
        max_depth=6,
        max_features="sqrt",
        max_samples=0.7,
        random_state=5,
    )
    model = HDIForestRegressor(forest, weights="inbag", calibration=False)
    model.fit(frame[FEATURES], frame["target"], sample_weight=weighted["w"])
    loaded = HDIForestRegressor.load(path)
    assert loaded.weights == "inbag"
    expected = model.predict_interval(frame[FEATURES])
    np.testing.assert_array_equal(loaded.predict_interval(frame[FEATURES]), expected)


def test_inspect_says_what_the_file_holds(frame, model_path, capsys):
    printed = output_of(capsys, ["inspect", model_path])
    facts = dict(re.split(r"  +", line, maxsplit=1) for line in printed.splitlines())
    assert facts["trees"] == "40"
    assert facts["training rows"] == "600 (not in the file)"
    assert facts["calibration"] == "none"
    assert facts["features"] == "5: " + ", ".join(FEATURES)
    low, high = frame["target"].min(), frame["target"].max()
    assert facts["target"] == f"{low:.3g} to {high:.3g}, 600 distinct values"
    assert f"hdicore {hdicore.__version__}" in facts["written by"]


def test_inspect_shows_encoders(frame, tmp_path, capsys):
    frame = frame.head(150)[["f0", "f1"]].assign(
        on=np.arange(150) % 2 == 0,
        y=frame["target"],
        town=["Nice", "Lyon", "Lyon"] * 50,
        key=range(150),
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    fit = ["fit", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "m.hdi", "--trees", 5]
    assert run([*fit, "--id", "key"]) == 0
    found = json.loads(output_of(capsys, ["inspect", tmp_path / "m.hdi", "--json"]))
    assert found["features"] == ["f0", "f1", "on", "town"]
    assert found["encoder"]["ids"] == ["key"]
    town = {"name": "town", "kind": "category", "values": ["Lyon", "Nice"]}
    assert found["encoder"]["columns"][3] == town
    assert found["trees"] == 5
    assert found["targets"][0]["n_distinct"] == frame["y"].nunique()
    printed = output_of(capsys, ["inspect", tmp_path / "m.hdi"])
    assert "4: f0, f1, on (boolean), town (2 categories)" in printed
    assert re.search(r"^ids \(1\) +key$", printed, re.M)


class Odd(StandardScaler):
    """A step of a type that skops does not trust."""


def test_models_with_steps_that_must_be_trusted(frame, tmp_path, capsys):
    pytest.importorskip("skops.io")
    forest = RandomForestRegressor(5, random_state=0)
    model = HDIForestRegressor(make_pipeline(Odd(), forest), calibration=False)
    path, name = tmp_path / "odd.hdi", f"{__name__}.Odd"
    model.fit(frame[FEATURES].fillna(0), frame["target"]).save(path)
    frame.fillna(0).to_csv(tmp_path / "new.csv", index=False)
    table = [tmp_path / "new.csv", "--target", "target"]
    score = ["score", path, table[0], "-o", tmp_path / "out.csv"]
    for call in (["inspect", path], ["check", path, *table], score):
        assert failure(capsys, call).endswith(f"if you know them, add --trust {name}")
        assert run([*call, "--trust", name]) == 0


def test_demo_writes_a_table_and_a_picture(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("hdiforest._cli.demo.N_FOLDS", 2)
    folder = tmp_path / "a" / "demo"
    printed = output_of(capsys, ["demo", "-o", folder])
    number = r" +(\d[\d.]*)"
    for level in LEVELS:  # at the same share of rows inside, calibrated intervals are the narrowest
        lines = re.findall(rf"^{level}{6 * number}$", printed, re.MULTILINE)
        assert len(lines) == 2
        for line in lines:
            inside, width, _, hdi, _, equal_tailed = map(float, line)
            assert inside == pytest.approx(float(level), abs=0.02)
            assert width < min(hdi, equal_tailed)
    for name, n in (("concrete", 1030), ("diamonds", 3000)):
        table = read(folder / f"{name}_intervals.csv")
        assert len(table) == n
        assert (table["upper_0.9"] - table["lower_0.9"]).mean() < (
            table["equal_tailed_upper_0.9"] - table["equal_tailed_lower_0.9"]
        ).mean()
    assert (folder / "intervals.png").read_bytes().startswith(b"\x89PNG")
    names = ["concrete_intervals.csv", "diamonds_intervals.csv", "intervals.png"]
    assert sorted(os.listdir(folder)) == names


def test_version_and_help(capsys):
    assert run(["--version"]) == 0
    used = hdicore.instructions()["used"]
    assert capsys.readouterr().out == f"hdiforest {hdicore.__version__} ({used} instructions)\n"
    for name in ("fit", "score", "calibrate", "check", "inspect", "demo"):
        assert "{levels}" not in output_of(capsys, [name, "--help"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--coverage", "0.9,80"], r"got 80 \(did you mean 0.8\?\)"),
        (["--coverage", "101"], r"got 101 \(see"),
        (["--coverage", "0.9", "0"], "a share must be above 0 and at most 1, got 0"),
        (["--coverage", "high"], "a share must be a number .*, got 'high'"),
        (["--coverage"], "expected at least one argument"),
        (["--kind", "shortest"], "invalid choice"),
        (["--batch-rows", "0"], "a whole number from 1 to 4294967295 is needed, got 0"),
        (["--coverage", "0.9,0.8", "0.9"], "argument --coverage: 0.9 must not be given twice"),
        (["--jobs", "-2"], "a whole number from 1 to 4294967295 is needed, got -2"),
        (["--frob"], "unrecognized arguments: --frob"),
    ],
)
def test_wrong_arguments_are_told_in_one_line(capsys, arguments, sentence):
    call = ["score", "model", "t.csv", "-o", "out.csv", *arguments]
    assert re.search(sentence, failure(capsys, call, code=2))


def test_no_command_and_unknown_endings(capsys):
    assert "command" in failure(capsys, [], code=2)
    call = ["score", "model", "t.xlsx", "-o", "out.csv"]
    found = failure(capsys, call, code=2)
    assert "t.xlsx: a table's name must end in" in found
    assert "; save the sheet as CSV or Parquet" in found
    call = ["score", "model", "t.csv", "-o", "out"]
    assert "out: a table's name must end in" in failure(capsys, call, code=2)


SCORE = ["score", "{model}", "{new}", "-o", "{out}"]
FIT = ["fit", "{train}", "--target", "target", "-o", "{out}", "--trees", "5"]


@pytest.mark.parametrize(
    ("call", "code", "sentence"),
    [
        # Options, alone and together: 2.
        *(
            ([*SCORE, *options], 2, options[0])
            for options in (
                ["--keep", "f1", "f1"],
                ["--prefix"],
                ["--quote", "'"],
            )
        ),
        *(
            ([*FIT, *options], 2, options[0])
            for options in (
                ["--seed", "4294967296"],
                ["--max-features", "9" * 23],
                ["--max-samples", "1.5"],
                ["--coverage", "1"],
                ["--groups", "f1"],
                ["--report", ""],
            )
        ),
        (["score", "{model}", "", "-o", "{out}"], 2, "a name must not be empty"),
        (["score", "{model}", "{new}", "-o", ""], 2, "a name must not be empty"),
        (["check", "{model}", "{train}", "--target", "target", "--kind", "lower"], 2,
         "argument --kind: invalid choice: 'lower'"),
        (["check", "{model}", "{train}", "--target", "f0"], 2,
         "--target must not be a feature of the model, and 'f0' is one"),
        # Files and what they hold: 1.
        ([*SCORE, "--keep", "none"], 1, "no column 'none'"),
        ([*SCORE, "--keep", "prediction"], 1, "no column 'prediction'"),
        (["inspect", "{new}"], 1, "is not a model file: it looks like a table"),
        (["check", "{model}", "{new}", "--target", "target"], 1, "no column 'target'"),
    ],
)  # fmt: skip
def test_exit_codes(capsys, model_path, table, tmp_path, call, code, sentence):
    names = {"new": table, "model": model_path, "out": tmp_path / "out.csv"}
    names["train"] = model_path.parent / "train.csv"
    assert re.search(sentence, failure(capsys, [each.format(**names) for each in call], code))
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("column", "cell", "clause"),
    [
        ("a", "x", "must hold numbers, but holds 'x' in row 3 (line 5)"),
        ("a", "1e39", "must hold numbers that fit into float32, but holds 1e+39 in row 3"),
        ("b", "maybe", "must hold booleans, but holds 'maybe' in row 3"),
        ("day", "soon", "but holds 'soon' in row 3"),
        ("y", "", "must be finite in every row, but 1 of 5 rows are not: row 3 holds a missing"),
    ],
)
def test_cells_of_a_row_are_told_by_one_number(tmp_path, capsys, column, cell, clause):
    names = ["a", "b", "day", "word", "y"]
    first, second = ["1", "true", "2024-01-01", '"x\nx"', "1"], ["2", "0", "2024-01-02", "x", "2"]
    no = ["2", "false", "2024-01-02", "x", "2"]
    bad = [cell if name == column else own for name, own in zip(names, second, strict=True)]

    def write(path, rows):
        path.write_text("".join(",".join(row) + "\n" for row in [names, *rows]))
        return path

    train = write(tmp_path / "train.csv", [first, no] * 50)
    assert run(["fit", train, "--target", "y", "-o", tmp_path / "m", "--trees", "5"]) == 0
    new = write(tmp_path / "new.csv", [first, second, bad, second, first])
    assert clause in failure(capsys, ["check", tmp_path / "m", new, "--target", "y"])


def test_the_output_must_not_be_an_input(capsys, model_path, table, tmp_path):
    before = table.read_bytes()
    (tmp_path / "link.csv").symlink_to(table)
    for out in (table, tmp_path / "link.csv"):
        found = failure(capsys, ["score", model_path, table, "-o", out], code=2)
        assert "must not be one of the inputs" in found
    found = failure(capsys, ["fit", table, "--target", "f0", "-o", table], code=2)
    assert "must not be one of the inputs" in found
    assert table.read_bytes() == before


HEADER = b"f0,f1,f2,f3,f4\n"
ROW = b"1,2,3,4,5\n"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"f0,f1,f2,f3\n1,2,3,4\n", r"bad.csv has no column 'f4'; it has f0, f1, f2, f3"),
        (HEADER + ROW * 150_000 + b"1,2,?,4,5\n", r"'f2' .* '\?' in row 150001 \(line 150002\)"),
    ],
)
def test_bad_tables_leave_no_output(capsys, model_path, tmp_path, content, sentence):
    bad = tmp_path / "bad.csv"
    bad.write_bytes(content)
    found = failure(capsys, ["score", model_path, bad, "-o", tmp_path / "out.csv"])
    assert re.search(sentence, found)
    assert os.listdir(tmp_path) == ["bad.csv"]


def test_results_whose_names_are_taken_get_a_prefix(frame, tmp_path, capsys):
    taken, out, model = ["upper_0.9", "prediction"], tmp_path / "out.csv", tmp_path / "m.hdi"
    named = frame.assign(**{name: range(len(frame)) for name in taken})
    named.to_csv(tmp_path / "t.csv", index=False)
    fit = ["fit", tmp_path / "t.csv", "--target", "target", "-o", model, "--trees", 5]
    assert run([*fit, "--id", *taken, "--calibrate", "none"]) == 0
    score = ["score", model, tmp_path / "t.csv", "-o", out]
    ends = ["prediction", "lower_0.9", "upper_0.9"]
    for more, kept in (([], [*taken]), (["--keep", "prediction"], ["prediction"]),
                       (["--keep-all"], list(named))):  # fmt: skip
        capsys.readouterr()
        assert run([*score, *more]) == 0
        assert list(read(out)) == [*kept, *(f"hdiforest_{name}" for name in ends)]
        told = r"The names of the results begin with hdiforest_, because '(upper_0.9|prediction)'"
        assert re.search(told, capsys.readouterr().out)
        assert run([*score, *more, "--prefix", "our "]) == 0
        assert list(read(out)) == [*kept, *(f"our {name}" for name in ends)]
    (tmp_path / "in").mkdir()
    frame.to_csv(tmp_path / "in" / "a.csv", index=False)
    named.to_csv(tmp_path / "in" / "b.csv", index=False)
    score = ["score", model, tmp_path / "in", "-o", tmp_path / "scored", "--keep-all"]
    told = "b.csv has a column 'upper_0.9', which is also the name of a result; --prefix"
    assert told in failure(capsys, score, code=2)
    assert run([*score, "--prefix", "_"]) == 0
    assert set(read(tmp_path / "scored" / "a.csv")) == {*frame, *(f"_{name}" for name in ends)}


def test_quotes_are_text_if_that_is_asked(tmp_path, capsys):
    rows = "".join(f'{i},"tall {i % 3},{2 * i}\n' for i in range(60))
    (tmp_path / "t.csv").write_text(f"size,kind,price\n{rows}")
    verbs = {
        "fit": [tmp_path / "t.csv", "--target", "price", "-o", tmp_path / "m.hdi", "--trees", 70,
                "--coverage", "0.8", "--training-rows"],
        "score": [tmp_path / "m.hdi", tmp_path / "t.csv", "-o", tmp_path / "o.csv", "--keep-all"],
        "check": [tmp_path / "m.hdi", tmp_path / "t.csv", "--target", "price"],
        "recalibrate": [tmp_path / "m.hdi", tmp_path / "t.csv", "--target", "price"],
    }  # fmt: skip
    for verb, call in verbs.items():
        found = failure(capsys, [verb, *call])
        assert found.endswith("makes one cell of rows; --quote none reads quotes as text")
        assert run([verb, *call, "--quote", "none"]) == 0
    assert sorted(set(read(tmp_path / "o.csv")["kind"])) == ['"tall 0', '"tall 1', '"tall 2']


def test_coverages_with_commas(model_path, table, tmp_path):
    for i, coverage in enumerate((["0.8,0.95"], ["0.8", "0.95"], ["0.8,", "0.95"])):
        call = ["score", model_path, table, "-o", tmp_path / f"{i}.csv", "--coverage", *coverage]
        assert run([*call, "--jobs", -1]) == 0
        assert (tmp_path / f"{i}.csv").read_bytes() == (tmp_path / "0.csv").read_bytes()


# JSON lines without rows are a file without bytes.
@pytest.mark.parametrize("ending", [".csv", ".tsv.gz", ".parquet"])
def test_tables_without_rows_are_scored_to_such(model_path, frame, tmp_path, ending):
    empty = pa.Table.from_pandas(frame.head(0), preserve_index=False)
    pq.write_table(empty, tmp_path / "empty.parquet")
    none = tmp_path / f"none{ending}"
    whole = ["score", model_path, tmp_path / "empty.parquet", "-o", none, "--keep-all"]
    assert run([*whole, "--prefix", "our "]) == 0
    for out in ("out.csv", "out.parquet"):
        assert run(["score", model_path, none, "-o", tmp_path / out]) == 0
    schema = pq.read_schema(tmp_path / "out.parquet")
    assert schema.types == [pa.float64()] * 3
    assert (tmp_path / "out.csv").read_text() == "prediction,lower_0.9,upper_0.9\n"


def test_missing_files_and_folders(capsys, model_path, table, tmp_path):
    call = ["score", model_path, tmp_path / "none.csv", "-o", tmp_path / "out.csv"]
    assert failure(capsys, call) == f"{tmp_path / 'none.csv'}: No such file or directory"
    call = ["score", tmp_path / "none.hdi", table, "-o", tmp_path / "out.csv"]
    assert "none.hdi" in failure(capsys, call)
    call = ["score", model_path, table, "-o", tmp_path / "none" / "out.csv"]
    assert "there is no folder" in failure(capsys, call)
    (tmp_path / "folder.csv").mkdir()
    call = ["score", model_path, table, "-o", tmp_path / "folder.csv"]
    assert "is a folder" in failure(capsys, call, code=2)
    assert "demo" in failure(capsys, ["demo", "-o", table / "demo"])


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder that refuses files")
def test_a_folder_that_cannot_be_written_is_told_before_the_work(capsys, model_path, table):
    call = ["score", model_path, table, "-o", "/proc/self/out.csv"]
    assert failure(capsys, call).startswith("cannot write /proc/self/out.csv: ")


def test_not_a_model(capsys, model_path, table, tmp_path):
    content = bytearray(model_path.read_bytes())
    content[-100] ^= 1
    for damaged in (b"", b"not a model at all", bytes(content)):
        path = tmp_path / "bad.hdi"
        path.write_bytes(damaged)
        assert "bad.hdi" in failure(capsys, ["inspect", path])
        call = ["score", path, table, "-o", tmp_path / "out.csv"]
        assert "bad.hdi" in failure(capsys, call)
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("content", "more", "sentence"),
    [
        (b"a,b\n1,2\n", ["--target", "y"], "has no column 'y'; it has a, b"),
        (b"a,y\n1,2\n", ["--target", "y", "--drop", "q"], "has no column 'q'"),
        (b"y\n1\n", ["--target", "y"], "no column left to predict 'y' from"),
        (b"a,y\n1,2\n2,\n3,\n", ["--target", "y"], "2 of 3 rows .* row 2 holds a missing cell"),
        (b"a,y\n1,2\n2,inf\n", ["--target", "y"], "1 of 2 rows .* row 2 holds infinity"),
        (b"a,y\n1,2\n2,x\n", ["--target", "y"], "'y' must hold numbers .* 'x' in row 2$"),
        (b"a,y\n1,2\n2,2\njan,2\n", ["--target", "y"],
         r"numbers such as '1', but 'jan' in row 3 \(--drop a leaves it out"),
        (b"a,y\n", ["--target", "y"], "has no rows"),
        (b"a,y,w\n1,2,-1\n", ["--target", "y", "--sample-weight", "w"], "not negative"),
        (b"a,y,w\n1,2,\n", ["--target", "y", "--sample-weight", "w"], "'w' must be finite"),
    ],
)  # fmt: skip
def test_bad_training_tables_leave_no_model(capsys, tmp_path, content, more, sentence):
    (tmp_path / "train.csv").write_bytes(content)
    call = ["fit", tmp_path / "train.csv", "-o", tmp_path / "m.hdi", "--trees", 3, *more]
    assert re.search(sentence, failure(capsys, call))
    assert os.listdir(tmp_path) == ["train.csv"]


def test_prices_shares_and_days_that_are_text(capsys, tmp_path):
    rng = np.random.default_rng(0)
    share, days = rng.integers(1, 90, 300), np.datetime64("2023-12-01") + np.arange(300) % 60
    day = pd.Series(days).dt.strftime("%d.%m.%Y")
    price = [f"${100 * s + 1000:,}.50" for s in share]
    table = pd.DataFrame({"share": [f"{s} %" for s in share], "day": day, "price": price})
    table.to_csv(tmp_path / "text.csv", index=False)
    typed = pd.DataFrame({"share": share, "day": days, "price": 100.0 * share + 1000.5})
    typed.to_parquet(tmp_path / "typed.parquet")
    call = ["fit", tmp_path / "text.csv", "--target", "price", "-o", tmp_path / "m", "--trees", 20]
    assert run(call) == 0
    scored = []
    for name in ("text.csv", "typed.parquet"):
        check = ["check", tmp_path / "m", tmp_path / name, "--target", "price", "--json"]
        found = json.loads(output_of(capsys, check))
        assert run(["score", tmp_path / "m", tmp_path / name, "-o", tmp_path / "out.csv"]) == 0
        scored.append((found["levels"], (tmp_path / "out.csv").read_text()))
    assert scored[0] == scored[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--date-format", "day"], "COL=FORMAT is needed, such as day=%d/%m/%Y, got day"),
        (["--date-format", "no=%Y-%m"], "has no column 'no'"),
        (["--date-format", "y=%Y-%m"], "a date format is given for 'y', which is no feature"),
        (["--thousands", ",", "--decimal", ","], "--thousands and --decimal must differ"),
    ],
)
def test_forms_that_do_not_fit(options, message, capsys, tmp_path):
    (tmp_path / "train.csv").write_text("a,y\n1,2\n2,2\n3,2\n")
    call = ["fit", tmp_path / "train.csv", "--target", "y", "-o", tmp_path / "m", *options]
    capsys.readouterr()
    assert run(call) in (1, 2)
    assert message in capsys.readouterr().err


def test_all_bad_columns_are_told_at_once_and_the_hint_works(capsys, tmp_path):
    rows = "1,2,1,10,3,4\n1,2,2,20,3,4\n1,2,x,red,3,4\n" * 10
    (tmp_path / "train.csv").write_text("a,twice,b,it's,y,twice\n" + rows)
    call = ["fit", tmp_path / "train.csv", "--target", "y", "-o", tmp_path / "m", "--trees", 3]
    assert "has 2 columns 'twice' (--drop twice leaves it out, " in failure(capsys, call)
    call += ["--drop", "twice"]
    found = failure(capsys, call)
    assert "column 'b' holds numbers such as '1', but 'x' in row 3; " in found
    assert "column \"it's\" holds numbers such as '10', but 'red' in row 3" in found
    hint = shlex.split(re.search(r"\((--drop .*) leaves them out,", found)[1])
    for option in ("--drop", "--id", "--categorical"):
        assert run([*call, option, *hint[1:]]) == 0
    columns = {"a": [[1]], "b": [b"x"], "y": [1.0], "z": ["u"]}
    pq.write_table(pa.table(columns), tmp_path / "train.parquet")
    call = ["fit", tmp_path / "train.parquet", "--target", "y", "-o", tmp_path / "m"]
    assert "has no column 'none'; it has a, b, y, z" in failure(capsys, [*call, "--drop", "none"])
    found = failure(capsys, [*call, "--drop", "z"])
    assert "'a' must hold numbers, booleans, dates or categories, but is list<" in found
    assert "column 'b' must hold numbers, booleans, dates or categories, but is binary" in found
    assert "(--drop a b leaves them out" in found


def test_training_tables_that_are_odd_but_good(capsys, tmp_path):
    (tmp_path / "one.csv").write_text("a,y\n1,2\n")
    (tmp_path / "constant.csv").write_text("a,y\n" + "1,2\n2,2\n,2\n" * 20)
    for name in ("one", "constant"):
        path = tmp_path / f"{name}.hdi"
        call = ["fit", tmp_path / f"{name}.csv", "--target", "y", "-o", path, "--trees", 9]
        assert run(call) == 0
        out = tmp_path / f"{name}_out.csv"
        assert run(["score", path, tmp_path / f"{name}.csv", "-o", out]) == 0
        assert set(read(out).to_numpy().ravel()) == {2}
    assert "No out-of-bag record" in capsys.readouterr().out


def test_a_full_disk(model_path, table, tmp_path):
    resource = pytest.importorskip("resource")

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    out = tmp_path / "score" / "out.parquet"
    out.parent.mkdir()
    call = command("score", model_path, table, "-o", out, "--batch-rows", 50)
    done = subprocess.run(call, preexec_fn=limit, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == f"hdiforest: error: cannot write {out}: {os.strerror(errno.EFBIG)}\n"
    assert os.listdir(out.parent) == []


def peak_memory(*arguments):
    """What a call of the command takes at its peak, in bytes."""
    if not os.path.exists("/proc/self/status"):
        pytest.skip("needs Linux, whose ru_maxrss counts the calling process too")
    script = (
        "import atexit, runpy; atexit.register(lambda: print(open('/proc/self/status').read()));"
        "runpy.run_module('hdiforest', run_name='__main__')"
    )
    call = [sys.executable, "-P", "-c", script, *map(str, arguments)]
    done = subprocess.run(call, capture_output=True, check=True, text=True)
    return 1024 * int(re.search(r"VmHWM:\s*(\d+) kB", done.stdout)[1])


@pytest.fixture(scope="module")
def small_model(model_path):
    """A model that scores many rows at once."""
    train, path = model_path.parent / "train.csv", model_path.parent / "small.hdi"
    assert run(["fit", train, "--target", "target", "-o", path, "--trees", 2]) == 0
    return path


def test_memory_does_not_grow_with_a_csv(small_model, tmp_path):
    peaks = []
    for n_rows in (10_000, 100_000):
        source = tmp_path / f"{n_rows}.csv"
        source.write_bytes(HEADER + ROW * n_rows)
        out = tmp_path / "out.csv"
        peaks.append(peak_memory("score", small_model, source, "-o", out, "--batch-rows", 5000))
    # Parsed, read and written, 90,000 rows are 10 MB.
    assert peaks[1] < 1.08 * peaks[0]


def test_memory_does_not_grow_with_a_parquet_file(small_model, tmp_path):
    kept, peaks = [f"kept{i}" for i in range(10)], []
    source, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    for n_rows, group in ((50_000, 20_000), (350_000, 20_000), (350_000, 350_000)):
        random = np.random.default_rng(0)  # nothing that compresses
        columns = {name: random.random(n_rows) for name in [*FEATURES, *kept]}
        # A dictionary is a page that every column holds.
        how = {"row_group_size": group, "use_dictionary": False, "data_page_size": 1 << 16}
        pq.write_table(pa.table(columns), source, **how)
        call = ["score", small_model, source, "-o", out, "--batch-rows", 5000, "--keep", *kept]
        peaks.append(peak_memory(*call))
        assert pq.read_metadata(out).num_rows == n_rows
    # 300,000 rows of 15 columns are 36 MB, which was read, and 31 MB, which was written; a row
    # group that is still being compressed when the next is full takes 14 MB and more.
    assert max(peaks) < peaks[0] + 28e6, peaks


def test_the_console_script_is_the_module(tmp_path):
    call = command("score", tmp_path / "x", "t.csv", "-o", tmp_path / "out.csv")
    done = subprocess.run(call, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("package", "arguments"),
    [
        ("pyarrow", ["score", "{model}", "{table}", "-o", "{out}"]),
        ("pyarrow", ["fit", "{table}", "--target", "f0", "-o", "{out}"]),
        ("safetensors", ["fit", "{table}", "--target", "f0", "-o", "{out}"]),
        ("matplotlib", ["demo", "-o", "{out}"]),
        ("matplotlib", ["fit", "{table}", "--target", "f0", "-o", "{out}", "--report", "r.html"]),
    ],
)
def test_a_missing_package_is_named(capsys, model_path, table, tmp_path, package, arguments):
    names = {"model": model_path, "table": table, "out": tmp_path / "out.csv"}
    with not_installed(package):
        found = failure(capsys, [argument.format(**names) for argument in arguments])
    assert found == f"this command needs {package}: pip install 'hdicore[cli]'"
    assert not names["out"].exists()


@pytest.fixture
def on_terminal(monkeypatch):
    def begin():
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        monkeypatch.setenv("TERM", "xterm")

    return begin


def test_progress_is_shown_on_a_terminal_alone(capsys, on_terminal, model_path, table, tmp_path):
    call = ["score", model_path, table, "-o", tmp_path / "out.csv"]
    assert run(call) == 0
    assert capsys.readouterr().err == ""
    on_terminal()
    assert run(call) == 0
    assert "600 rows" in capsys.readouterr().err


def test_fit_shows_its_stages_on_a_terminal_alone(capsys, on_terminal, table, tmp_path):
    call = ["fit", table, "--target", "f0", "-o", tmp_path / "m.hdi", "--trees"]
    assert run([*call, 5]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert re.search(
        r"5 trees with .* leaves from 600 rows and 4 features in [\d.]+ s\n", captured.out
    )
    assert re.search(r"Model written to \S+ \([\d.]+ [kM]B\)\n$", captured.out)
    on_terminal()
    assert run([*call, 60]) == 0
    captured = capsys.readouterr()
    for stage in ("growing the forest", "routing training rows", "calibrating by leaf size"):
        assert stage in captured.err
    assert "growing" not in captured.out
    # A bar goes when its stage is done.
    assert "growing" not in captured.err[captured.err.index("calibrating by leaf size") :]
