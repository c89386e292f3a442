"""Tables on disk: three formats in and out, batches, and what a damaged file says."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from hdiforest._tables.formats import (
    FORMATS,
    ending,
    open_table,
    write_table,
)
from hdiforest._tables.read import TableError

from .matrix import numbers

pa = pytest.importorskip("pyarrow")
pa_csv = pytest.importorskip("pyarrow.csv")
pq = pytest.importorskip("pyarrow.parquet")

TEXT = 'id,a,b\n007,1.5,2\n"x,""y""",,-3e2\nzoë,NA,0.1\n'


@pytest.fixture
def csv_file(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(TEXT, encoding="utf-8")
    return path


def all_rows(path, number_columns, kept=(), batch_rows=2):
    with open_table(path) as table:
        batches = list(table.batches(number_columns, list(kept), batch_rows))
    return pa.concat_tables(batches), [batch.num_rows for batch in batches]


def test_csv_numbers_missing_cells_and_text_kept_as_it_is(csv_file):
    table, sizes = all_rows(csv_file, ["b", "a"], ["id"])
    assert sizes == [2, 1]
    expected = [[2, 1.5], [-300, np.nan], [0.1, np.nan]]
    np.testing.assert_array_equal(numbers(table, 2), expected)
    assert table["id"].to_pylist() == ["007", 'x,"y"', "zoë"]


def test_gzip_and_endings_in_capitals(tmp_path):
    path = tmp_path / "T.CSV.GZ"
    path.write_bytes(gzip.compress(TEXT.encode()))
    table, _ = all_rows(path, ["b"])
    np.testing.assert_array_equal(numbers(table, 1)[:, 0], [2, -300, 0.1])


def test_byte_order_mark_and_line_breaks_in_cells(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbfa,note\n1,"two\nlines"\n2,one\n')
    table, _ = all_rows(path, ["a"], ["note"])
    assert table["note"].to_pylist() == ["two\nlines", "one"]


@pytest.mark.parametrize("batch_rows", [1, 7, 1000, 30_000, 10**6])
def test_batches_have_the_size_asked_for(tmp_path, batch_rows):
    n = 100_000  # over several of pyarrow's blocks
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


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.parquet"])
def test_written_tables_read_back_to_the_last_bit(tmp_path, name):
    values = np.r_[0.1 + 0.2, 1e-300, 1 / 3, 28.0, np.random.default_rng(0).normal(size=500)]
    table = pa.table({'a "b", c': values, "s": [f"{v:.3f}" for v in values]})
    with write_table(tmp_path / name, table.schema) as write:
        write(table.slice(0, 200))
        write(table.slice(200))
    found, _ = all_rows(tmp_path / name, ['a "b", c'], ["s"])
    np.testing.assert_array_equal(numbers(found, 1)[:, 0], values)
    assert found["s"].equals(table["s"])
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.parquet"])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_block_that_raises_leaves_what_was_there(tmp_path, name, error):
    path = tmp_path / name
    path.write_text("before")
    table = pa.table({"a": np.arange(1000.0)})

    def interrupted():
        with write_table(path, table.schema) as write:
            write(table)
            raise error

    with pytest.raises(error):
        interrupted()
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == [name]


def test_a_link_goes_on_pointing_to_the_file(tmp_path):
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_text("before")
    link.symlink_to(target)
    table = pa.table({"a": [1.0]})
    with write_table(link, table.schema) as write:
        write(table)
    assert link.is_symlink()
    assert target.read_text() == "a\n1\n"


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
    assert [ending(Path("x" + end)) for end in FORMATS] == list(FORMATS)
    for name in ("x.txt", "x.gz", "x", "csv"):
        with pytest.raises(TableError, match=r"must end in .csv, .csv.gz, .* or .ndjson.zst"):
            ending(Path(name))


def _zipped(content):
    return gzip.compress(content, mtime=0)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("t.csv", b"", r"t.csv is empty"),
        ("t.csv", b"a,b\n1,2\n3\n", r"t.csv: line 3 has 1 cell, but the header has 2$"),
        ("t.csv", b"b\n1\n", r"t.csv has no column 'a'; it has b"),
        ("t.csv", b"a,a\n1,2\n", r"t.csv has 2 columns 'a'"),
        ("t.csv", b"a\n1\n2\nthree\n", r"column 'a' must .* 'three' in row 3 \(line 4\)"),
        ("t.csv", b"c,a\nx,?\n", r"t.csv: column 'a' must .* holds '\?' in row 1 \(line 2\)"),
        ("t.csv.gz", b"a\n1\n", r"cannot read .*t.csv.gz: "),
        ("t.csv", b"a\n\xab,\xfe\n", r"t.csv: line 2 has 2 cells, but the header has 1$"),
        ("t.csv", b"a\n1\n\xab\xfe\n", r"t.csv: column 'a' must .* in row 2 \(line 3\)"),
        ("t.csv.gz", _zipped(b"a\n\xab,\xfe\n"), r"t.csv.gz: line 2 has 2 cells"),
        ("t.csv.gz", _zipped(b"a\n1\n2\n")[:-9], r"cannot read .*t.csv.gz: "),
        ("t.parquet", b"", r"cannot read .*t.parquet: "),
        ("t.parquet", b"PAR1" * 10, r"cannot read .*t.parquet: "),
    ],
)
def test_a_bad_file_gets_one_sentence(tmp_path, name, content, sentence):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(TableError, match=sentence):
        all_rows(path, ["a"])


def test_a_text_cell_deep_in_a_csv_is_found_with_its_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 600_000 + "3,four\n")
    with pytest.raises(TableError, match=r"column 'b' .* 'four' in row 600001 \(line 600002\)"):
        all_rows(path, ["b"])


def test_text_in_parquet_is_told_from_the_schema(tmp_path):
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "t.parquet")
    with pytest.raises(TableError, match="column 'a' must hold numbers, but is string"):
        all_rows(tmp_path / "t.parquet", ["a"])


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_table(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(OSError, match=r"folder\.csv"):
        open_table(tmp_path / "folder.csv")
