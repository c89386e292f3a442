"""Every format of tables: in and out, in batches, as other text, and what damage says."""

import gzip
import json
import os
import re
import threading
from pathlib import Path

import numpy as np
import pytest

from ..cli.calls import failure, run
from .matrix import numbers

pa = pytest.importorskip("pyarrow")
pa_csv = pytest.importorskip("pyarrow.csv")
pq = pytest.importorskip("pyarrow.parquet")
pd = pytest.importorskip("pandas")
pytest.importorskip("safetensors")

from hdiforest._tables import formats  # noqa: E402
from hdiforest._tables.formats import (  # noqa: E402
    FORMATS,
    open_table,
    write_table,
)
from hdiforest._tables.read import TableError, TextForm  # noqa: E402
from hdiforest._tables.training_table import read_training_table  # noqa: E402

TABLE = pa.table({
    "x": [0.1 + 0.2, None, 1e-300] * 50,
    'a "b", c': [1 / 3, None, 28.0] * 50,
    "town": ["Lyon", "Nîmes, \"old\"", None] * 50,
    "n": list(range(150)),
})  # fmt: skip


def written(path, table=TABLE):
    with write_table(path, table.schema) as write:
        write(table.slice(0, 70))
        write(table.slice(70))
    return path


def read(path, numbers=("x", "n"), kept=("town",), **options):
    with open_table(path, **options) as table:
        return pa.concat_tables(table.batches(list(numbers), list(kept), 64))


@pytest.mark.parametrize("ending", FORMATS)
def test_round_trip(tmp_path, ending):
    path = written(tmp_path / f"t{ending}")
    assert written(tmp_path / f"equal{ending}").read_bytes() == path.read_bytes()
    again = read(path, TABLE.column_names[:2])
    for name in TABLE.column_names[:2]:  # to the last bit
        np.testing.assert_array_equal(again[name].to_numpy(), TABLE[name].to_numpy())
    towns = [town or None for town in again["town"].to_pylist()]
    assert towns == TABLE["town"].to_pylist()


@pytest.mark.parametrize("ending", FORMATS)
def test_damaged_and_empty_files_are_named(tmp_path, ending):
    path = tmp_path / f"t{ending}"
    path.write_bytes(b"")
    with pytest.raises(TableError, match=f"t{ending}"):
        read(path)
    path.write_bytes(b"\x28\xb5\x2f\xfd\x00nothing of the kind {")
    with pytest.raises(TableError, match=f"t{ending}"):
        read(path)
    with pytest.raises(FileNotFoundError):
        open_table(tmp_path / f"none{ending}")


def test_separator_decimal_sign_and_encoding(tmp_path):
    path = tmp_path / "t.csv"
    text = 'größe;ort;jahr\n1,5;Köln;2020\n-2;"a;b\nc";2021\n;Ulm;2022\n1.5e3;Ulm;2023\n'
    form = TextForm(";", ",", "latin-1")
    path.write_bytes(text.replace("1.5e3", "1,5e3").encode("latin-1"))
    found = read(path, ["größe", "jahr"], ["ort"], form=form)
    assert found["größe"].to_pylist() == [1.5, -2, None, 1500]
    assert found["ort"].to_pylist() == ["Köln", "a;b\nc", "Ulm", "Ulm"]
    typed = read_training_table(path, "jahr", form, missing=["Ulm"])
    assert typed.X["größe"].to_pylist()[:2] == [1.5, -2]
    path.write_bytes(text.encode("latin-1"))  # a point is no decimal sign now
    with pytest.raises(TableError, match=r"'größe' .* holds '1.5e3' in row 4 \(line 6\)"):
        read(path, ["größe"], [], form=form)
    path.write_bytes(text.replace("1.5e3", "1,5e3").encode("utf-16"))
    again = read(path, ["größe", "jahr"], ["ort"], form=TextForm(";", ",", "utf-16"))
    assert again.equals(found)
    with pytest.raises(TableError, match="cannot read"):
        read(path, ["größe"], [], form=TextForm(";", ",", "ascii"))


def test_types_of_json_lines_that_later_lines_widen(tmp_path, monkeypatch):
    from hdiforest._tables import read as json_lines

    monkeypatch.setattr(json_lines, "_JSON_BLOCK_BYTES", 256)
    rows = [
        {
            "n": i,
            "late": None if i < 80 else f"t{i}",
            "decimals": i if i < 60 else i + 0.5,
            "flag": i % 2 == 0,
            "at": ("2024-01-01", "2024-01-01T10:00:00Z", "2024-01-01 10:00:00")[i % 3],
            "more": {"day": "2024-01-01"} if i < 90 else {"day": "2024-01-01", "n": [i]},
            "odd": i if i < 95 else "x",
        }
        for i in range(100)
    ]
    text = "\n".join(map(json.dumps, rows)).encode()
    columns = ["late", "decimals", "at", "more"]
    for ending, content in ((".jsonl", text), (".jsonl.gz", gzip.compress(text))):
        path = tmp_path / f"t{ending}"
        path.write_bytes(content)
        with open_table(path) as table:
            assert [str(field.type) for field in table.fields(columns)] == [
                "string", "double", "string", "struct<day: string, n: list<item: int64>>"
            ]  # fmt: skip
            found = pa.concat_tables(table.batches(["n", "flag"], columns, 7))
        assert found["n"].to_pylist() == list(range(100))
        assert found["flag"].to_pylist() == [1.0, 0.0] * 50
        for name in columns[:3]:
            assert found[name].to_pylist() == [row[name] for row in rows]
        assert found["more"][99].as_py() == rows[99]["more"]
        with pytest.raises(TableError, match=r"Column\(/odd\) changed .*\(in lines \d+ to \d+\)"):
            read(path, ["n"], ["odd"])
    # A pipe is read once: columns have the types of its first lines.
    os.mkfifo(tmp_path / "pipe.jsonl")
    writer = threading.Thread(target=(tmp_path / "pipe.jsonl").write_bytes, args=(text,))
    writer.start()
    found = read(tmp_path / "pipe.jsonl", ["n", "decimals"], ["at"])
    writer.join()
    assert found["decimals"].to_pylist() == [row["decimals"] for row in rows]


def test_streams_of_arrow_have_the_ending_too(tmp_path):
    with pa.ipc.new_stream(tmp_path / "t.arrow", TABLE.schema) as writer:
        writer.write_table(TABLE)
    assert len(read(tmp_path / "t.arrow")) == 150
    whole = (tmp_path / "t.arrow").read_bytes()
    (tmp_path / "t.arrow").write_bytes(whole[:-8])
    with pytest.raises(TableError, match=r"t.arrow is cut: it ends without the marker"):
        read(tmp_path / "t.arrow")


FRAME = pd.DataFrame({
    "town": np.resize(["Lyon", "Nice", "Brest"], 90),
    "rooms": np.resize([1.5, 2, 3, np.nan], 90),
    "price": np.arange(90.0),
})  # fmt: skip


def test_the_command_reads_what_a_spreadsheet_wrote(tmp_path, capsys):
    FRAME.to_csv(tmp_path / "t.csv", sep=";", decimal=",", index=False)
    fit = ["fit", tmp_path / "t.csv", "--target", "price", "-o", tmp_path / "m.hdi"]
    fit += ["--trees", 30]
    assert "separated by semicolons: --sep ';' reads them" in failure(capsys, fit)
    form = ["--sep", ";", "--decimal", ","]
    assert run([*fit, *form]) == 0
    score = ["score", tmp_path / "m.hdi", tmp_path / "t.csv", "-o"]
    assert run([*score, tmp_path / "one.csv", *form]) == 0
    check = ["check", tmp_path / "m.hdi", tmp_path / "t.csv", "--target", "price"]
    assert run([*check, *form]) == 0
    FRAME.to_csv(tmp_path / "t.tsv", sep="\t", index=False)
    FRAME.to_feather(tmp_path / "t.feather")
    FRAME.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    for name in ("t.tsv", "t.feather", "t.jsonl"):
        other = ["score", tmp_path / "m.hdi", tmp_path / name, "-o", tmp_path / "other.csv"]
        assert run(other) == 0
        assert (tmp_path / "other.csv").read_bytes() == (tmp_path / "one.csv").read_bytes(), name


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--sep", "ab"], r"argument --sep: one character of ASCII or \\t is needed, got 'ab'"),
        (["--sep", "é"], "argument --sep: one character of ASCII"),
        (["--decimal", ";"], "argument --decimal: invalid choice: ';'"),
        (["--sep", ",", "--decimal", ","], "--sep and --decimal must differ"),
        *(
            (["--encoding", name], f"argument --encoding: {name!r} is no encoding of text")
            for name in ("latin-77", "rot13")
        ),
    ],
)
def test_forms_that_are_not_possible(tmp_path, capsys, more, sentence):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    fit = ["fit", tmp_path / "t.csv", "--target", "price", "-o", tmp_path / "m.hdi", *more]
    assert re.search(sentence, failure(capsys, fit, code=2))


def all_rows(path, number_columns, kept=(), batch_rows=2):
    with open_table(path) as table:
        batches = list(table.batches(number_columns, list(kept), batch_rows))
    return pa.concat_tables(batches), [batch.num_rows for batch in batches]


@pytest.mark.parametrize("names", [("gzip", "zlib"), ("isal.igzip", "isal.isal_zlib")])
def test_either_library_packs_and_unpacks(tmp_path, monkeypatch, names):
    for name, module in zip(("gzip", "zlib"), names, strict=True):
        monkeypatch.setattr(f"hdiforest._tables.read.{name}", pytest.importorskip(module))
    path = tmp_path / "t.csv.gz"
    packed = written(path).read_bytes()
    assert written(path).read_bytes() == packed
    path.write_bytes(packed + b"\0" * 500)
    table, _ = all_rows(path, ["x"])
    np.testing.assert_array_equal(numbers(table, 1)[:, 0], TABLE["x"].to_numpy())
    for damaged in (packed[:-9], packed[:40] + b"\xff" * 40 + packed[80:], packed[:-8] + b"\0" * 8):
        path.write_bytes(damaged)
        with pytest.raises(TableError, match=r"cannot read .*t\.csv\.gz: "):
            all_rows(path, ["x"])


@pytest.mark.parametrize("batch_rows", [7, 1000, 10**6])
def test_batches_have_the_size_asked_for(tmp_path, batch_rows):
    n = 60_000  # over several blocks of text
    values = pa.table({"a": np.arange(n), "b": np.arange(n) / 8})
    if batch_rows < 100:
        values = values.slice(0, 300)
    n = values.num_rows
    pq.write_table(values, tmp_path / "t.parquet", row_group_size=999)
    pa_csv.write_csv(values, tmp_path / "t.csv")
    for name in ("t.parquet", "t.csv"):
        table, sizes = all_rows(tmp_path / name, ["b", "a"], batch_rows=batch_rows)
        assert sizes[:-1] == [batch_rows] * (len(sizes) - 1)
        assert 0 < sizes[-1] <= batch_rows
        expected = np.c_[np.arange(n) / 8, np.arange(n)]
        np.testing.assert_array_equal(numbers(table, 2), expected)


def test_parquet_takes_every_kind_of_number_and_keeps_types(tmp_path):
    table = pa.table(
        {
            "whole": pa.array([1, None], pa.int32()),
            "flag": pa.array([True, None]),
            "half": pa.array([0.5, None], pa.float32()),
            "dec": pa.array([None, "2.25"]).cast(pa.decimal128(6, 2)),
            "none": pa.nulls(2),
            "when": pa.array([0, 1], pa.timestamp("s")),
        }
    )
    path = tmp_path / "t.parquet"
    pq.write_table(table, path)
    names = ["whole", "flag", "half", "dec", "none"]
    found, _ = all_rows(path, names, ["when", "whole"])
    missing = np.nan
    expected = [[1, 1, 0.5, missing, missing], [missing, missing, missing, 2.25, missing]]
    np.testing.assert_array_equal(numbers(found, len(names)), expected)
    with open_table(path) as reader:
        fields = reader.fields(["when", "whole"])
    assert [field.type for field in fields] == [pa.timestamp("ms"), pa.int32()]
    assert [found.schema.field(i) for i in (5, 6)] == fields


def test_the_system_is_quoted_when_a_file_cannot_be_written(tmp_path):
    schema = pa.schema([("a", pa.float64())])
    with (
        pytest.raises(OSError, match=r"cannot write .*No such file"),
        write_table(tmp_path / "no" / "t.csv", schema),
    ):
        pass
    nested = pa.schema([("a", pa.list_(pa.int64()))])
    with (
        pytest.raises(TableError, match=r"cannot write .*Unsupported Type"),
        write_table(tmp_path / "t.csv", nested),
    ):
        pass
    assert os.listdir(tmp_path) == []


def test_endings():
    assert [formats.ending(Path("x" + end)) for end in FORMATS] == list(FORMATS)
    assert formats.ending(Path("X.CSV.GZ")) == ".csv.gz"
    for name in ("x.txt", "x.gz", "x", "csv"):
        with pytest.raises(TableError, match=r"must end in .csv, .csv.gz, .* or .ndjson.zst"):
            formats.ending(Path(name))


def dictionaries(*chunks, kind):
    """A column whose chunks have dictionaries of their own, of values of some type."""
    own = [pa.array(chunk).dictionary_encode() for chunk in chunks]
    types = [pa.dictionary(each.type.index_type, kind) for each in own]
    return pa.chunked_array([each.cast(t) for each, t in zip(own, types, strict=True)])


HALVES = ["Rome", "Oslo", None] * 10, ["Turin", "Rome", "Bari"] * 10
WORDS = [*HALVES[0], *HALVES[1]]
CODED = {
    "day": dictionaries(["2024-01-01", None] * 15, ["2024-01-02"] * 30, kind=pa.string_view()),
    "town": dictionaries(*HALVES, kind=pa.string_view()),
    "plain": dictionaries(*HALVES, kind=pa.string()),
    "rank": dictionaries([4, 2, None] * 10, [7, 4, 7] * 10, kind=pa.int64()),
    "view": pa.array(WORDS, pa.string_view()),
    "bytes": pa.array([word and word.encode() for word in WORDS], pa.binary_view()),
    "nested": dictionaries(*HALVES, kind=pa.string_view()),
}


@pytest.fixture(scope="module")
def coded(tmp_path_factory):
    """A stream of Arrow of `CODED`, and a model of its columns."""
    folder = tmp_path_factory.mktemp("coded")
    columns = CODED | {"price": np.arange(60.0)}
    chunks = (pa.ListArray.from_arrays(range(31), each) for each in columns.pop("nested").chunks)
    table = pa.table(columns | {"nested": pa.chunked_array(chunks)})
    with pa.ipc.new_stream(folder / "t.arrow", table.schema) as stream:
        stream.write_table(table, 30)
    fit = ["fit", folder / "t.arrow", "--target", "price", "-o", folder / "m.hdi", "--trees", 20]
    features = ["--drop", "nested", "bytes", "plain", "--calibrate", "none"]
    assert run([*fit, *features]) == 0
    return folder


@pytest.mark.parametrize("ending", FORMATS)
def test_dictionaries_views_and_bytes_go_to_every_format(coded, tmp_path, ending):
    out = tmp_path / f"o{ending}"
    nested = [] if ending.startswith((".csv", ".tsv")) else ["nested"]
    names = [name for name in CODED if name != "nested"] + nested
    score = ["score", coded / "m.hdi", coded / "t.arrow", "-o", out, "--keep", *names]
    assert run([*score, "--batch-rows", 20]) == 0
    found = read(out, ["prediction"], names)
    for name in names:
        cells, expected = found[name].to_pylist(), CODED[name].to_pylist()
        if name == "nested":
            cells = [cell[0] for cell in cells]
        if name == "rank" and ending.startswith((".csv", ".tsv")):
            expected = ["" if cell is None else str(cell) for cell in expected]
        if name == "bytes" and ending not in (".parquet", ".feather", ".arrow"):
            expected = WORDS
        assert [cell or None for cell in cells] == [cell or None for cell in expected]


@pytest.mark.parametrize("ending", [".csv", ".jsonl.gz", ".parquet"])
def test_bytes_that_are_no_text_are_refused_where_only_text_goes(tmp_path, ending):
    table = pa.table({"x": [1.0, 2.0], "hash": pa.array([b"ab", b"\xff\x00"], pa.binary(2))})
    path = tmp_path / f"t{ending}"
    if ending == ".parquet":
        assert pq.read_table(written(path, table)).equals(table)
    else:
        with pytest.raises(TableError, match=r"column .* holds bytes that are no UTF-8 text"):
            written(path, table)
        assert not path.exists()


WHOLE = [2**63, 17, None, 2**63 + 1, -(2**63) - 1, 2**64 + 5]


@pytest.mark.parametrize("first", [0, 5])
@pytest.mark.parametrize("more", [[], [10**37], [2**128 - 1, 10**75 + 1]])
def test_whole_numbers_of_json_lines_keep_their_digits(tmp_path, monkeypatch, first, more):
    from hdiforest._tables import read as json_lines

    monkeypatch.setattr(json_lines, "_JSON_BLOCK_BYTES", 64)
    path, ids = tmp_path / "t.jsonl", [*range(first), *WHOLE, *more]
    path.write_text("".join(json.dumps({"x": 1.5, "id": each}) + "\n" for each in ids))
    for ending in (".csv", ".jsonl", ".parquet", ".arrow"):
        out = tmp_path / f"o{ending}"
        with open_table(path) as table:
            schema = pa.schema([pa.field("x", pa.float64()), *table.fields(["id"])])
            with write_table(out, schema) as write:
                for part in table.batches(["x"], ["id"], 4):
                    write(part)
        found = read(out, ["x"], ["id"])["id"].to_pylist()
        assert [int(each) if each not in ("", None) else None for each in found] == ids
    lines = (tmp_path / "o.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ids


@pytest.mark.parametrize("later", [0.5, 1e300])
def test_other_numbers_of_json_lines_are_floating(tmp_path, monkeypatch, later):
    from hdiforest._tables import read as json_lines

    monkeypatch.setattr(json_lines, "_JSON_BLOCK_BYTES", 64)
    path, numbers = tmp_path / "t.jsonl", [2**63, 2**64, 5, 6, 7, later]
    path.write_text("".join(json.dumps({"x": 1.5, "id": each}) + "\n" for each in numbers))
    assert read(path, ["x"], ["id"])["id"].to_pylist() == [float(each) for each in numbers]
