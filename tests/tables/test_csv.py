"""CSV as people have it: empty lines, long rows, booleans, pipes, encodings, lines of errors."""

import gzip
import io
import lzma
import os
import threading
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdiforest._tables import csv as csv_module
from hdiforest._tables.csv import CsvReader
from hdiforest._tables.formats import open_table
from hdiforest._tables.read import TableError, TextForm
from hdiforest._tables.training_table import read_training_table

from .matrix import numbers

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def read(tmp_path):
    """Write bytes to a CSV and read columns of it."""

    def read(content, number_columns, kept=(), name="t.csv", form=None):
        path = tmp_path / name
        path.write_bytes(content)
        with open_table(path, form=form) as table:
            batches = list(table.batches(number_columns, list(kept)))
        found = pa.concat_tables(batches)
        return numbers(found, len(number_columns)), found

    return read


@pytest.fixture
def sentence(read, tmp_path):
    """What is said of a bad file, without its folder."""

    def sentence(*arguments, **more):
        with pytest.raises(TableError) as found:
            read(*arguments, **more)
        return str(found.value).replace(f"{tmp_path}{os.sep}", "")

    return sentence


def in_small_blocks(content, n_bytes):
    """Read all columns of a CSV as text, in blocks of some bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_module, "_BLOCK_BYTES", n_bytes)
        patch.setattr(csv_module, "_BLOCK_ROWS", 0)
        with CsvReader(Path("t.csv"), stream=io.BytesIO(content)) as table:
            return pa.concat_tables(table.batches([], table.names))


cells = st.text(alphabet='"a,\n\r ', max_size=6)


@settings(deadline=None)
@given(st.data(), st.integers(1, 3), st.integers(1, 30))
def test_rows_are_whole_however_blocks_are_cut(data, n_columns, n_bytes):
    row = st.lists(cells, min_size=n_columns, max_size=n_columns)
    rows = data.draw(st.lists(row, min_size=1, max_size=8))
    end = data.draw(st.sampled_from(["\n", "\r\n", "\r"]))
    always = data.draw(st.booleans())

    def written(cell):
        needs_quotes = always or set(cell) & set('",\n\r')
        return '"' + cell.replace('"', '""') + '"' if needs_quotes else cell

    names = [f"c{i}" for i in range(n_columns)]
    content = "".join(",".join(map(written, row)) + end for row in [names, *rows])
    found = in_small_blocks(content.encode(), n_bytes)
    assert list(map(list, zip(*found.to_pydict().values(), strict=True))) == rows


@pytest.mark.parametrize("n_bytes", [1, 5, 12, 100])
def test_quotes_within_a_cell_open_nothing(n_bytes):
    content = b'size,n\n5" pipe,1\n"a"b"c,2\n6",3\n'
    found = in_small_blocks(content, n_bytes)
    assert found["size"].to_pylist() == ['5" pipe', 'ab"c', '6"']
    assert found["n"].to_pylist() == ["1", "2", "3"]


def test_one_column_has_a_row_for_every_line(read):
    X, found = read(b"x\n1\n\n3\n\n", ["x"], ["x"])
    np.testing.assert_array_equal(X[:, 0], [1, np.nan, 3, np.nan])
    assert found.columns[1].to_pylist() == ["1", "", "3", ""]
    X, _ = read(b"x\r\n\r\n3", ["x"])
    np.testing.assert_array_equal(X[:, 0], [np.nan, 3])


def test_empty_lines_between_rows_of_several_columns_are_refused(read, sentence):
    assert sentence(b"a,b\n1,2\n\n3,4\n", ["a"]) == "t.csv: line 3 is empty; remove it or fill it"
    assert "line 2 is empty" in sentence(b"a,b\r\n\r\n3,4\r\n", ["a"])
    long = b"a,b\n" + b"1,2\n" * 300_000
    assert "line 300002 is empty" in sentence(long + b"\n1,2\n", ["a"])
    for end in (b"\n\n", b"\r\n\r\n", b"\n" * 1_500_000):
        X, _ = read(b"\n\r\na,b\n1,2" + end, ["a"])  # those around the table shift nothing
        assert X.tolist() == [[1]]
    X, found = read(b'a,b\n1,"\n\n"\n2,""\n', ["a"], ["b"])
    assert found["b"].to_pylist() == ["\n\n", ""]


def test_rows_above_a_megabyte(read, monkeypatch, sentence):
    long = b"x" * 3_000_000
    X, found = read(b"a,note\n1," + long + b"\n2,short\n", ["a"], ["note"])
    assert X.tolist() == [[1], [2]]
    assert found["note"].to_pylist() == [long.decode(), "short"]
    names = [f"column{i}" for i in range(20_000)]
    row = ",".join(["1.5"] * len(names))
    table = "\n".join([",".join(names), row, row]).encode()
    assert read(table, [names[-1], names[3]])[0].tolist() == [[1.5, 1.5]] * 2
    monkeypatch.setattr(csv_module, "MAX_ROW_BYTES", 1 << 20)
    found = sentence(b"a,note\n1," + long + b"\n2,short\n", ["a"])
    assert (
        found
        == "t.csv: the row in line 2 is longer than 1 MiB; is a quote not closed? --quote none "
        "reads quotes as text"
    )


def test_a_quote_that_is_not_closed_swallows_no_rows(sentence):
    assert sentence(b'a,b\n1,x\n2,"y\n3,z\n', ["a"]) == (
        "t.csv: the quote opened in line 3 is not closed; --quote none reads quotes as text"
    )
    assert "opened in line 3 is not closed" in sentence(b'a,b\n1,x\n"2,y\n3,z\n', ["a"])
    assert "opened in the header is not closed" in sentence(b'"a,b\n1,x\n', ["a"])


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        ([b'1;"tall;2', b'3;"tall;4'], (2, 3)),  # text behind the quote that closes
        ([b'1;"tall;2', b'3;short;4', b'5;size 5";6'], (2, 4)),  # numbers where they must be
        ([b'0;a;0', b'x;"tall;2', *[b'x;b;5'] * 11, b'y;5";6'], (3, 15)),  # many
        ([b'"tall;1;2', b'3;"short;4'], (2, 3)),  # rows of other lengths
    ],
)  # fmt: skip
def test_a_quote_that_takes_rows_for_a_cell(read, sentence, rows, lines, end):
    content = end.join([b"a;note;b", *rows]) + end
    form = TextForm(sep=";")
    numbers = [] if b"x" in content else ["b"]
    assert sentence(content, numbers, ["a"], form=form) == (
        f"t.csv: the quote opened in line {lines[0]} is closed in line {lines[1]}, and makes one "
        "cell of rows; --quote none reads quotes as text"
    )
    _, found = read(content, ["b"], ["a", "note"], form=TextForm(sep=";", has_quotes=False))
    plain = [row.decode().split(";") for row in rows]
    assert found.select(["a", "note"]).to_pylist() == [{"a": a, "note": n} for a, n, _ in plain]
    assert found["b"].to_pylist() == [float(b) for *_, b in plain]


@pytest.mark.parametrize(
    "content",
    [
        b'b,note\n100,"Main Street 5\n75001, Paris"\n',
        b'note,b\n"Hello, all\nand, goodbye",7\n',
        b'id,b,note\nx,1,"Main Street 5\n75001, Paris, France"\n',
        b'note,b\n"He said:\n"never" again",7\n',
        b'b,note\n1,"' + b"some words\n" * 300 + b'"\n',
        b'b,note\n1,"""\n"""\n',
        b'note\n"a\nb"\n',
    ],
)
def test_cells_of_several_lines_may_be_meant(read, content):
    numbers = ["b"] if b"b" in content.split(b"\n")[0] else []
    assert len(read(content, numbers, ["note"])[1]) == 1


def test_quotes_that_are_text_in_the_header_and_at_the_end(read):
    form = TextForm(has_quotes=False)
    _, found = read(b'"a,b"\n"1,"2\n""3,4"', [], ['"a', 'b"'], form=form)
    assert found.to_pylist() == [{'"a': '"1', 'b"': '"2'}, {'"a': '""3', 'b"': '4"'}]
    assert read(b'"\n5"\n\n6"', [], ['"'], form=form)[1]['"'].to_pylist() == ['5"', "", '6"']


def test_booleans_spaces_and_spellings_of_missing_cells(read):
    X, _ = read(b"a,b\ntrue,1\nFALSE, 2\nTrue,  \n 0 ,\nNone,<NA>\n NA,NAN\n", ["a", "b"])
    missing = np.nan
    expected = [[1, 1], [0, 2], [1, missing], [0, missing], [missing, missing], [missing, missing]]
    np.testing.assert_array_equal(X, expected)
    # The first boolean comes long after the first block.
    X, _ = read(b"a,b\n" + b"0,\n" * 600_000 + b"1,true\n0,false\n" * 300_000, ["b", "a"])
    assert np.isnan(X[:600_000, 0]).all()
    np.testing.assert_array_equal(X[600_000:], np.tile([[1.0, 1], [0, 0]], (300_000, 1)))


def test_a_column_that_is_number_and_kept_repeats_its_text(read):
    content = b"id,a\n007,041.50\n008,+1e3\n009,NA\n010,true\n"
    X, found = read(content, ["a"], ["a", "id"])
    np.testing.assert_array_equal(X[:, 0], [41.5, 1000, np.nan, 1])
    assert found.columns[1].to_pylist() == ["041.50", "+1e3", "NA", "true"]
    assert found.columns[2].to_pylist() == ["007", "008", "009", "010"]


def test_all_bad_columns_are_told_at_once(read, sentence):
    assert sentence(b"a,b,c\n1,x,1\ny,2,1\n", ["c", "a", "b"]) == (
        "t.csv: 2 columns must hold numbers, but 'a' holds 'y' in row 2 (line 3), 'b' holds 'x' in "
        "row 1 (line 2)"
    )
    assert sentence(b"a,b,a\n", ["u", "a", "b", "v"]) == (
        "t.csv has no columns 'u', 'v', 2 columns 'a'; it has a, b, a"
    )
    found = sentence(b"a\n" + b"z" * 2_000_000 + b"\n", ["a"])
    cell = f"'{'z' * 57}...'"
    assert found == f"t.csv: column 'a' must hold numbers, but holds {cell} in row 1 (line 2)"


@pytest.mark.parametrize("n_bytes", [1, 8, 1 << 20])
def test_lines_are_those_of_an_editor(n_bytes, sentence, monkeypatch):
    monkeypatch.setattr(csv_module, "_BLOCK_BYTES", n_bytes)
    monkeypatch.setattr(csv_module, "_BLOCK_ROWS", 0)
    head = b'a,b\n1,"two\nlines"\r\n2,"x\r\n\r\ny"\n'
    assert "holds 'q' in row 3 (line 7)" in sentence(head + b"q,\n", ["a"])
    assert "line 8 has 1 cell, but the header has 2" in sentence(head + b"3,\n4\n", ["a"])
    assert "line 7 is empty" in sentence(head + b"\n4,\n", ["a"])
    assert "opened in line 7" in sentence(head + b'3,"\n4,\n', ["a"])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "t.csv is empty"),
        (b" \n\n  \r\n", "t.csv is empty"),
        (b"x;a\n1;2\n", "t.csv has no column 'a'; it has x;a (its columns seem to be separated by "
         "semicolons: --sep ';' reads them)"),
        (b"x\ta\n1\t2\n", "t.csv has no column 'a'; it has 'x\\ta' (its columns seem to be "
         "separated by tabs: --sep '\\t' reads them)"),
        (b"x, a,\n1, 2,3\n", "t.csv has no column 'a'; it has x, ' a', ''"),
        (b"sep=;\na;b\n1;2\n", "the first line of t.csv is 'sep=;', which is for Excel; remove it, "
         "and give --sep ';'"),
        (b'"SEP=\t"\r\na\tx\r\n', "the first line of t.csv is 'sep=\t', which is for Excel; remove "
         "it, and give --sep '\\t'"),
        (b"Sales of 2024\n\nx,a\n1,2\n", "t.csv has no column 'a'; it has Sales of 2024 (its "
         "header seems to be in line 3, not in its first line: remove the lines above it)"),
        (b"\nTotal,5,\nin,month,\na,x,y\n1,2,3\n", "t.csv has no column 'a'; it has Total, 5, '' "
         "(its header seems to be in line 4, not in its first line: remove the lines above it)"),
        (b"x,y\na,1\n", "t.csv has no column 'a'; it has x, y"),
        ("a,b\n1,2\n".encode("utf-16"), "t.csv: line 1 is not UTF-8; save the file as UTF-8, or "
         "name its encoding by --encoding"),
        (b"a,b\n1,2\n3,caf\xe9\n", "t.csv: line 3 is not UTF-8; save the file as UTF-8, or name "
         "its encoding by --encoding"),
        (b"a,b\n1,2,3\n", "t.csv: line 2 has 3 cells, but the header has 2"),
        (b"a,b\n1,2\n   \n", "t.csv: line 3 has 1 cell, but the header has 2"),
    ],
)  # fmt: skip
def test_odd_files_get_one_sentence(sentence, content, said):
    assert sentence(content, ["a"], ["b"] if b"b" in content else []) == said


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_files_of_other_formats_are_named(tmp_path, name):
    path, table = tmp_path / name, pa.table({"a": [1.5]})
    parquet, arrow, book = io.BytesIO(), io.BytesIO(), io.BytesIO()
    pq.write_table(table, parquet)
    with pa.ipc.new_file(arrow, table.schema) as file:
        file.write_table(table)
    with zipfile.ZipFile(book, "w") as archive:
        archive.writestr("sheet.xml", "<a/>")
    for content, said in {
        gzip.compress(b"a"): "packed by gzip; give it a name that ends in .gz",
        pa.compress(b"a", "zstd", asbytes=True): "packed by zstd; give it a name that ends in .zst",
        lzma.compress(b"a"): "packed by xz; unpack it",
        parquet.getvalue(): "a Parquet file; it must be a file whose name ends in .parquet",
        arrow.getvalue(): "an Arrow file; it must be a file whose name ends in .arrow",
        book.getvalue(): "a workbook or another zip archive; save the sheet as CSV or Parquet",
    }.items():
        path.write_bytes(content)
        with pytest.raises(TableError) as found:
            open_table(path)
        assert str(found.value) == f"{path} is not text, but {said}"


def test_a_header_without_an_end_has_no_rows(tmp_path):
    (tmp_path / "t.csv").write_bytes(b'\xef\xbb\xbf"a\n1",b')
    with open_table(tmp_path / "t.csv") as table:
        assert table.names == ["a\n1", "b"]
        assert list(table.batches(["b"], [])) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names")
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_a_pipe_is_read_in_one_pass(tmp_path, name):
    content = b"a,b\n" + b"1,true\n2,x\n" * 100_000
    os.mkfifo(tmp_path / name)
    written = gzip.compress(content) if name.endswith("gz") else content
    writer = threading.Thread(target=(tmp_path / name).write_bytes, args=(written,))
    writer.start()
    with open_table(tmp_path / name) as table:
        found = pa.concat_tables(table.batches(["a"], ["b"]))
    writer.join()
    assert found["a"].to_pylist() == [1, 2] * 100_000
    assert found["b"].to_pylist() == ["true", "x"] * 100_000


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names")
def test_parquet_from_a_pipe_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "t.parquet")
    with pytest.raises(TableError, match=r"Parquet is read from its end, which only a file allows"):
        open_table(tmp_path / "t.parquet")


def test_an_open_quote_in_a_long_file_does_not_take_all_memory(monkeypatch):
    monkeypatch.setattr(csv_module, "MAX_ROW_BYTES", 1 << 18)
    stream = io.BufferedReader(io.BytesIO(b'a\n"' + b"x" * (1 << 22)))
    with CsvReader(Path("t.csv"), stream=stream) as table:
        tracemalloc.start()
        with pytest.raises(TableError, match="longer than 0 MiB; is a quote not closed"):
            list(table.batches([], ["a"]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 18


def test_words_of_a_model_are_missing_and_its_categories_are_not(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c\n1,NA,x\n?,null,?\n -- ,N/A,y\n--,,z\n")
    form = TextForm(missing=["?", "--"])
    with open_table(tmp_path / "t.csv", form=form) as table:
        (batch,) = table.batches(["a"], ["b", "c"])
        assert batch["a"].to_pylist() == [1, None, None, None]
        assert table.without_missing(batch["b"]).to_pylist() == [None] * 4
        assert table.without_missing(batch["b"], ["NA", 1.0]).to_pylist() == ["NA", *[None] * 3]
        assert table.without_missing(batch["c"], ["x"]).to_pylist() == ["x", None, "y", "z"]


def test_columns_have_the_type_of_all_cells_that_a_fit_reads(tmp_path):
    rows = "NA,,true,7,20240531\n" * 40_000 + "7.5,Lyon,FALSE,x,20240601\n" * 20_000
    (tmp_path / "t.csv").write_text("n,town,flag,late,day\n" + rows)
    read = read_training_table(tmp_path / "t.csv", "n", drop_missing_target=True)
    kinds = {entry.name: entry.kind for entry in read.encoder.entries}
    assert kinds == {"town": "category", "flag": "boolean", "late": "category", "day": "date"}
