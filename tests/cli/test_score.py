"""Score on folders, patterns, pipes and addresses: which outputs there are, and what is refused."""

import gzip
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor, fit_table

from ..oracle import run_python
from . import calls
from .calls import command, output_of, read, run, write

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("safetensors")
pq = pytest.importorskip("pyarrow.parquet")

RNG = np.random.default_rng(0)
NAMES = ["a", "b", "year"]
ROWS = pd.DataFrame(RNG.normal(size=(600, 2)), columns=["a", "b"])
ROWS["year"] = RNG.choice([2023, 2024], len(ROWS))
RESULTS = ["prediction", "lower_0.9", "upper_0.9"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.hdi"
    forest = RandomForestRegressor(10, min_samples_leaf=5, random_state=0)
    y = ROWS["a"] * 3 + RNG.normal(size=len(ROWS))
    HDIForestRegressor(forest, calibration=False).fit(ROWS, y).save(path, training_rows=False)
    return path


def rows(seed, n=50):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    return frame.assign(year=2023, id=np.arange(n) + 1000 * seed)


@pytest.fixture
def folder(tmp_path):
    """Three tables of two formats, and files that are none."""
    folder = tmp_path / "in"
    for i, name in enumerate(("one.parquet", "two.csv", "deep/three.parquet"), 1):
        write(rows(i), folder / name)
    for name in ("_SUCCESS", ".one.parquet.crc", "readme.txt", "_common.parquet"):
        (folder / name).write_text("none")
    return folder


def score(*arguments):
    assert run(["score", *arguments]) == 0


def failure(capsys, *arguments, code=1):
    return calls.failure(capsys, ["score", *arguments], code)


def tables_in(folder):
    names = (os.path.relpath(os.path.join(r, n), folder) for r, _, f in os.walk(folder) for n in f)
    return sorted(name for name in names if "/." not in f"/{name}")


def test_a_folder_goes_to_a_folder(model, folder, tmp_path, capsys):
    out = tmp_path / "out"
    printed = output_of(capsys, ["score", model, folder, "-o", out, "--keep", "id"])
    assert "150 rows of 3 tables scored" in printed
    assert "rows/s" not in printed  # the time is that of the start
    assert tables_in(out) == ["deep/three.parquet", "one.parquet", "two.csv"]
    loaded = HDIForestRegressor.load(model)
    for i, name in enumerate(["one.parquet", "two.csv", "deep/three.parquet"], 1):
        scored = read(out / name)
        assert list(scored.columns) == ["id", *RESULTS]
        assert list(scored["id"]) == list(rows(i)["id"])
        expected = loaded.predict_interval(rows(i)[NAMES], 0.9)
        np.testing.assert_allclose(scored[RESULTS[1:]], expected, rtol=1e-15)
    origin = json.loads(pq.read_schema(out / "one.parquet").metadata[b"hdiforest"])
    assert origin["size of the input"] == (folder / "one.parquet").stat().st_size
    assert origin["--coverage"] == [0.9]


@pytest.mark.parametrize(
    "pattern", ["in/*.parquet", "in/**/*.parquet", "in/one.parquet in/two.csv"]
)
def test_patterns_and_several_tables(model, folder, tmp_path, pattern):
    inputs = [tmp_path / each for each in pattern.split()]
    score(model, *inputs, "-o", tmp_path / "out")
    expected = {
        "in/*.parquet": ["_common.parquet", "one.parquet"],
        "in/**/*.parquet": ["deep/three.parquet", "one.parquet"],
    }
    found = tables_in(tmp_path / "out")
    assert found == [n for n in expected.get(pattern, ["one.parquet", "two.csv"]) if n[0] != "_"]


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("b=1", r"part\.csv has 'b' in the file and in the names of its folders"),
        ("year=last", "column 'year' must hold numbers, but is 'last'"),
    ],
)
def test_keys_that_do_not_go_with_the_file_or_the_model(model, tmp_path, capsys, key, sentence):
    path = tmp_path / "in" / key / "part.csv"
    write(rows(1).drop(columns="year"), path)
    assert re.search(sentence, failure(capsys, model, tmp_path / "in", "-o", tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_all_tables_at_fault_are_named_before_any_is_scored(model, folder, tmp_path, capsys):
    (folder / "empty.csv").write_text("")
    rows(1).drop(columns="b").to_parquet(folder / "lacks.parquet")
    rows(1).assign(a="x").to_parquet(folder / "text.parquet")
    (folder / "zero.parquet").write_bytes(b"")
    (folder / "zero.feather").write_bytes(b"")
    rows(1).assign(a="x", b="y").to_csv(folder / "words.csv.gz", index=False)
    rows(1).assign(a=["1"] * 40 + ["x"] * 10).to_csv(folder / "word.tsv", index=False, sep="\t")
    rows(1).assign(a=np.inf).to_csv(folder / "infinite.csv", index=False)
    found = failure(capsys, model, folder, "-o", tmp_path / "out")
    assert "8 of 11 tables cannot be scored: " in found
    for sentence in (
        r"empty\.csv is empty",
        r"lacks\.parquet has no column 'b'",
        r"text\.parquet: column 'a' must hold numbers, but is \w+",
        r"cannot read .*zero\.parquet",
        r"cannot read .*zero\.feather",
        r"words\.csv\.gz: 2 columns must .* 'a' holds 'x' in row 1 \(line 2\), 'b' holds 'y'",
        r"word\.tsv: column 'a' must hold numbers, but holds 'x' in row 41 \(line 42\)",
        r"infinite\.csv: column 'a' must hold numbers .* inf in row 1",
    ):
        assert re.search(sentence, found)
    assert not (tmp_path / "out").exists()


def test_inputs_and_outputs_that_do_not_go_together(model, folder, tmp_path, capsys, monkeypatch):
    (tmp_path / "none").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "other").mkdir()
    rows(1).to_parquet(tmp_path / "other" / "one.parquet")
    monkeypatch.chdir(tmp_path)
    for arguments, sentence in (
        (["none", "-o", "out"], "the folder none has no tables; endings known are .csv"),
        (["in/x*.csv", "-o", "out"], r"no table matches in/x\*\.csv"),
        (["in", "-o", "in"], "the output in must not lie in the input in"),
        (["in", "-o", "in/deep/out"], "the output in/deep/out must not lie in the input in"),
        (["in/*.csv", "-o", "in"], "the output in/two.csv must not be one of the inputs"),
        (["in", "-o", "file"], "several tables need a folder as output, and file is a file"),
        (
            ["in", "other", "-o", "out"],
            "in/one.parquet and other/one.parquet would both be .* out/one",
        ),
        (["-", "in", "-o", "out"], "must be the only input"),
        (["in/two.csv", "-o", "out.csv", "--resume"], "--resume and --part need a folder"),
        (["in", "-o", "out", "--part", "3/2"], r"--part: a part is written as i/n .*got 3/2"),
        (["in", "-o", "out", "--keep", "id", "--keep-all"], "--keep-all must not be given with"),
        (["ftp://x/a.csv", "-o", "out.csv"], "ftp:// is not known or not complete; possible are"),
    ):
        assert re.search(sentence, failure(capsys, model, *arguments, code=2))
    assert not (tmp_path / "out").exists()


def test_parts_are_shares_of_the_tables(model, folder, tmp_path):
    found = []
    for i in (1, 2):
        score(model, folder, "-o", tmp_path / f"out{i}", "--part", f"{i}/2")
        found.append(tables_in(tmp_path / f"out{i}"))
    assert sorted([*found[0], *found[1]]) == ["deep/three.parquet", "one.parquet", "two.csv"]
    assert {len(each) for each in found} == {1, 2}


def test_outputs_that_are_there_and_equal_are_left(model, folder, tmp_path, capsys):
    call = (model, folder, "-o", tmp_path / "out", "--resume")
    score(*call)
    before = {n: os.stat(tmp_path / "out" / n).st_mtime_ns for n in tables_in(tmp_path / "out")}
    assert "3 outputs were there and stay as they are" in output_of(capsys, ["score", *call])
    printed = output_of(capsys, ["score", *call, "--coverage", "0.8"])
    assert "150 rows of 3 tables scored" in printed
    assert "Scored again: deep/three.parquet: another --coverage, one.parq" in printed
    score(*call)
    rows(9).to_csv(folder / "two.csv", index=False)
    (tmp_path / "out" / "one.parquet").write_bytes(b"PAR1")
    printed = output_of(capsys, ["score", *call])
    assert "100 rows of 2 tables scored" in printed
    assert "one.parquet: what it was made from is not known" in printed
    assert "two.csv: another size of the input" in printed
    after = {n: os.stat(tmp_path / "out" / n).st_mtime_ns for n in before}
    assert all(after[name] > before[name] for name in before)


@pytest.mark.parametrize("damage", [b"[" * 100_000, b"[]", b"\xff"])
def test_outputs_with_a_damaged_record_are_made_again(model, folder, tmp_path, capsys, damage):
    out = tmp_path / "out"
    score(model, folder, "-o", out)
    (out / ".two.csv.hdiforest.json").write_bytes(damage)
    printed = output_of(capsys, ["score", model, folder, "-o", out, "--resume"])
    assert "50 rows of 1 tables scored" in printed
    assert "Scored again: two.csv: what it was made from is not known" in printed
    score(model, folder, "-o", out, "--resume")
    assert "0 rows of 0 tables scored" in capsys.readouterr().out


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_and_sockets_among_tables_are_not_waited_for(model, folder, tmp_path, capsys):
    os.mkfifo(folder / "pipe.csv")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(folder / "socket.csv"))
        call = command("score", model, folder, "-o", tmp_path / "out")
        subprocess.run(call, check=True, timeout=60)
        score(model, folder / "*.csv", "-o", tmp_path / "out.csv")
    assert tables_in(tmp_path / "out") == ["deep/three.parquet", "one.parquet", "two.csv"]
    assert tables_in(tmp_path / "out.csv") == ["two.csv"]
    call = [model, folder / "two.csv", folder / "pipe.csv", "-o", tmp_path / "none"]
    assert "pipe.csv is a pipe or a device, and must be" in failure(capsys, *call, code=2)
    (folder / "pipe.csv").unlink()
    (folder / "lost.csv").symlink_to("nowhere")  # not skipped: it may be a table
    assert "lost.csv: No such file" in failure(capsys, model, folder, "-o", tmp_path / "none")


def test_a_fault_among_small_tables_stops_the_others(model, tmp_path, capsys):
    for i in range(40):
        write(rows(i), tmp_path / "in" / f"{i:02}.csv")
    out = tmp_path / "out"
    (out / "07.csv").mkdir(parents=True)  # cannot be replaced
    assert "07.csv: it is a folder" in failure(capsys, model, tmp_path / "in", "-o", out)
    found = tables_in(out)
    assert 7 <= len(found) < 39
    assert all(len(read(out / name)) == 50 for name in found)
    assert [name for name in os.listdir(out) if name.endswith(".tmp")] == []


def test_outputs_of_another_model_are_made_again(model, folder, tmp_path, capsys):
    score(model, folder, "-o", tmp_path / "out")
    other = tmp_path / "other.hdi"
    forest = RandomForestRegressor(5, min_samples_leaf=5, random_state=1)
    HDIForestRegressor(forest, calibration=False).fit(ROWS, ROWS["a"]).save(other)
    call = ["score", other, folder, "-o", tmp_path / "out", "--resume"]
    assert "one.parquet: another model" in output_of(capsys, call)
    call += ["--encoding", "latin-1"]
    assert "two.csv: another form of text" in output_of(capsys, call)


def test_scoring_loads_neither_pandas_nor_scikit_learn(model, tmp_path):
    rows(1).to_parquet(tmp_path / "in.parquet")
    code = (
        "import atexit, runpy, sys; atexit.register(lambda: print(*sys.modules));"
        "runpy.run_module('hdiforest', run_name='__main__')"
    )
    call = ("score", model, tmp_path / "in.parquet", "-o", tmp_path / "out.parquet")
    loaded = set(run_python(code, *call).splitlines()[-1].split())
    assert "hdiforest" in loaded
    assert not loaded & {"pandas", "sklearn", "scipy"}


# Runs the command, and kills its process before it gives a file its name.
KILLED = """
import os, runpy, signal, sys

n_left = int(sys.argv.pop(1))

def count(event, _):
    global n_left
    if event == "os.rename":
        n_left -= 1
        if n_left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(count)
runpy.run_module("hdiforest", run_name="__main__")
"""


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
@pytest.mark.parametrize(("n_renamed", "is_small"), [(3, False), (9, True)])
def test_a_run_that_was_killed_is_resumed(model, tmp_path, n_renamed, is_small, capsys):
    folder, n_rows = tmp_path / "in", 50 if is_small else 3000  # small ones are scored together
    for i in range(20):
        write(rows(i, n_rows), folder / f"part{i:02}.{'parquet' if i % 2 else 'csv'}")
    score(model, folder, "-o", tmp_path / "whole", "--keep", "id")
    call = ["score", model, folder, "-o", tmp_path / "out", "--keep", "id", "--resume"]
    killed = [sys.executable, "-P", "-c", KILLED, n_renamed, *call]
    done = subprocess.run([*map(str, killed)], capture_output=True)
    assert done.returncode == -signal.SIGKILL
    found = len(tables_in(tmp_path / "out"))
    assert 0 < found < 20
    printed = output_of(capsys, call)
    if not is_small:  # of several at once a finished one may have no record yet
        assert f" rows of {20 - found} tables scored" in printed
        assert "rows/s" in printed
    names = tables_in(tmp_path / "whole")
    assert len(names) == 20
    assert tables_in(tmp_path / "out") == names
    for name in names:
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    hidden = [name for name in os.listdir(tmp_path / "out") if name.endswith(".tmp")]
    assert hidden == []


@contextmanager
def piped(monkeypatch, content):
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    with open(reading) as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        yield


def stream_of(frame):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table, 20)
    return stream.getvalue()


@pytest.mark.parametrize("form", ["csv", "csv.gz", "csv.zst", "stream"])
def test_tables_from_standard_input(model, tmp_path, monkeypatch, form):
    text = rows(1).to_csv(index=False).encode()
    content = {
        "csv": text,
        "csv.gz": gzip.compress(text),
        "csv.zst": pa.compress(text, "zstd", asbytes=True),
        "stream": stream_of(rows(1)),
    }[form]
    out = tmp_path / "out.parquet"
    call = ["score", model, "-", "-o", out, "--keep", "id"]
    if form == "csv":
        done = subprocess.run(command(*call), input=content, capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")
    else:
        with piped(monkeypatch, content):
            assert run(call) == 0
    expected = HDIForestRegressor.load(model).predict_interval(rows(1)[NAMES], 0.9)
    np.testing.assert_allclose(read(out)[RESULTS[1:]], expected, rtol=1e-15)
    assert pq.read_schema(out).field("id").type == (pa.int64() if form == "stream" else pa.string())


def test_parquet_and_damage_on_standard_input_are_refused(model, tmp_path, monkeypatch, capsys):
    parquet = io.BytesIO()
    rows(1).to_parquet(parquet)
    for content, sentence in (
        (parquet.getvalue(), "standard input is not text, but a Parquet file; it must be a file"),
        (b"ARROW1\0\0", "standard input is not text, but an Arrow file; it must be a file"),
        (b"", "standard input is empty"),
        (stream_of(rows(1))[:1000], "cannot read standard input"),
        (stream_of(rows(1))[:-8], "standard input is cut: it ends without the marker"),
        (pa.compress(b"a,b,year\n" * 99, "zstd", asbytes=True)[:-4], "cannot read standard input"),
        (stream_of(rows(1).assign(a="x")), "standard input: column 'a' must hold numbers"),
    ):
        with piped(monkeypatch, content):
            found = failure(capsys, model, "-", "-o", tmp_path / "out.csv")
        assert re.search(sentence, found)
        assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("ending", ["parquet", "csv", "feather", "json"])
def test_folders_alone_may_name_all_that_is_read(tmp_path, ending):
    frame = pd.DataFrame({"k": [1.0, 2.0] * 30, "m": RNG.normal(size=60)})
    forest = RandomForestRegressor(5, random_state=0)
    HDIForestRegressor(forest, calibration=False).fit(frame, frame["m"]).save(tmp_path / "km.hdi")
    folder = tmp_path / "in" / "k=1" / "m=2"
    folder.mkdir(parents=True)
    lines = {"orient": "records", "lines": True} if ending == "json" else {}
    table = pd.DataFrame({"x": [1, 2, 3]})
    name = f"t.{ending}{'l' if lines else ''}"
    getattr(table, f"to_{ending}")(folder / name, **lines)
    for more in (["--keep", "k"], []):
        score(tmp_path / "km.hdi", tmp_path / "in", "-o", tmp_path / "out", *more)
        scored = tmp_path / "out" / "k=1" / "m=2" / name
        assert len(getattr(pd, f"read_{ending}")(scored, **lines)) == 3


def test_zeros_in_front_make_a_key_a_text(model, tmp_path):
    for keys in ("s=01/n=7/m=__HIVE_DEFAULT_PARTITION__", "s=2/n=-3/m=__HIVE_DEFAULT_PARTITION__"):
        path = tmp_path / "in" / keys / "part.parquet"
        write(rows(1), path)
    score(model, tmp_path / "in", "-o", tmp_path / "out", "--keep", "s", "n", "m")
    schema = pq.read_schema(tmp_path / "out" / path.relative_to(tmp_path / "in"))
    assert [str(schema.field(name).type) for name in "snm"] == ["string", "int64", "string"]


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".csv.gz", ".jsonl"])
def test_keys_are_numbers_where_the_model_has_numbers(model, tmp_path, ending):
    keys = {"02023": 2023, "2024.0": 2024, "2.024e3": 2024, "__HIVE_DEFAULT_PARTITION__": np.nan}
    loaded, part = HDIForestRegressor.load(model), rows(1).drop(columns="year")
    for key in keys:
        path = tmp_path / "in" / f"year={key}" / "where=south%2Fwest" / f"part{ending}"
        write(part, path)
    score(model, tmp_path / "in", "-o", tmp_path / "out", "--keep", "where", "year")
    for key, year in keys.items():
        path = tmp_path / "out" / f"year={key}" / "where=south%2Fwest" / f"part{ending}"
        scored = pd.read_json(path, lines=True, dtype=False) if "json" in ending else read(path)
        expected = loaded.predict_interval(part.assign(year=year)[NAMES], 0.9)
        np.testing.assert_allclose(scored[RESULTS[1:]], expected, rtol=1e-9)
        assert set(scored["where"]) == {"south/west"}
        if "csv" not in ending and year == year:
            assert set(scored["year"]) == {key}


def test_keys_are_texts_where_the_model_has_texts(tmp_path):
    frame = rows(1, 120).drop(columns="year").assign(zone=["01", "1", "10", None] * 30)
    y = frame["a"] + 10 * (frame["zone"] == "01") + 20 * (frame["zone"] == "10")
    forest = RandomForestRegressor(10)
    fitted = fit_table(frame.assign(y=y), "y", estimator=forest, calibration=False, id=["id"])
    fitted.save(tmp_path / "m.hdi")
    keys = {"01": "01", "1": "1", "10": "10", "__HIVE_DEFAULT_PARTITION__": None}
    for key in keys:
        path = tmp_path / "in" / f"zone={key}" / "part.parquet"
        write(frame[["id", "a", "b"]], path)
    score(tmp_path / "m.hdi", tmp_path / "in", "-o", tmp_path / "out")
    for key, zone in keys.items():
        scored = read(tmp_path / "out" / f"zone={key}" / "part.parquet")
        expected = fitted.predict_interval(frame.assign(zone=zone), 0.9)
        np.testing.assert_allclose(scored[RESULTS[1:]], expected, rtol=1e-9)


def test_no_input_is_replaced_by_the_output_of_another(model, folder, tmp_path, capsys):
    inner = folder / "in"
    inner.mkdir()
    rows(4).to_parquet(inner / "one.parquet")
    said = failure(capsys, model, folder / "in" / "..", inner, "-o", tmp_path / "in2", code=2)
    assert "would both be written" in said
    said = failure(capsys, model, f"file://{folder}", "-o", folder / "out", code=2)
    assert "must not lie in the input" in said
    said = failure(capsys, model, folder, "-o", "s3://bucket/out", code=2)
    assert "the output must be a file or folder here" in said


def test_a_table_that_is_given_twice_is_scored_once(model, folder, tmp_path, capsys):
    one = folder / "one.parquet"
    score(model, one, one, folder / "two.csv", "-o", tmp_path / "out")
    assert "100 rows of 2 tables" in capsys.readouterr().out


def test_an_equal_file_elsewhere_is_another_input(model, tmp_path, capsys):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        rows(5 if name == "first" else 6).to_csv(tmp_path / name / "t.csv", index=False)
        text = (tmp_path / name / "t.csv").read_text()
        (tmp_path / name / "t.csv").write_text(text.ljust(20_000, "\n"))
        os.utime(tmp_path / name / "t.csv", (10**9, 10**9))
    score(model, tmp_path / "first", "-o", tmp_path / "out")
    call = ["score", model, tmp_path / "second", "-o", tmp_path / "out", "--resume"]
    assert "t.csv: another input" in output_of(capsys, call)
