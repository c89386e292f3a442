"""Tables on disk: their formats, and how each is written batch by batch."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

from hdiforest._tables.csv import CsvReader
from hdiforest._tables.read import (
    ArrowReader,
    JsonLinesReader,
    Packing,
    ParquetReader,
    Regroup,
    TableError,
    TableReader,
    TextForm,
    rows_of,
)
from hdiforest._utils.checks import alternatives
from hdiforest._utils.files import writing
from hdiforest._utils.optional import need, pa

# Writes one pyarrow Table.
Write = Callable[[Any], None]

# Takes a file, a pyarrow schema and a list of layers. It returns a function that writes batches to
# the file, and adds to the list the objects to close afterwards, innermost first.
StartWriting = Callable[[IO[bytes], Any, list[Any]], Write]


def packed(file: IO[bytes], packing: Packing, layers: list[Any]) -> Any:
    """Return a stream that compresses what is written to `file`; see `StartWriting`."""
    if packing == "none":
        return file
    if packing == "gzip":
        # No time and no name in the header: equal tables are equal files. Numbers compress three
        # times as fast as at level 6, to 2 to 7 % more bytes.
        stream: Any = gzip.GzipFile("", "wb", compresslevel=4, fileobj=file, mtime=0)
    else:
        stream = pa.CompressedOutputStream(pa.PythonFile(file, mode="w"), "zstd")
    layers.append(stream)
    return stream


def write_arrow(file: IO[bytes], schema: Any, layers: list[Any]) -> Write:
    """Begin an Arrow file; see `StartWriting`."""
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    writer = pa.ipc.new_file(file, schema, options=options)
    layers.append(writer)
    write: Write = writer.write_table
    return write


def write_json_lines(
    file: IO[bytes], _schema: Any, layers: list[Any], *, packing: Packing = "none"
) -> Write:
    """Begin a file of JSON lines; see `StartWriting`. What JSON lacks is written as text."""
    stream = packed(file, packing, layers)

    def write(table: Any) -> None:
        for row in table.to_pylist():
            for name, value in row.items():
                if isinstance(value, float) and not math.isfinite(value):
                    row[name] = None
            stream.write(json.dumps(row, default=str, ensure_ascii=False).encode() + b"\n")

    return write


def write_parquet(file: IO[bytes], schema: Any, layers: list[Any]) -> Write:
    """Begin a Parquet file; see `StartWriting`."""
    groups = _RowGroups(file, schema)
    layers.append(groups)
    return groups.write


class _RowGroups:
    """Collects rows until a row group is full."""

    def __init__(self, file: IO[bytes], schema: Any) -> None:
        self._writer = need("pyarrow.parquet").ParquetWriter(file, schema, compression="zstd")
        self._groups = Regroup(rows_of(len(schema)))

    def write(self, table: Any) -> None:
        for group in self._groups.add(table):
            self._writer.write_table(group)

    def close(self) -> None:
        for group in self._groups.rest():
            self._writer.write_table(group)
        self._writer.close()


def write_csv(
    file: IO[bytes], schema: Any, layers: list[Any], *, packing: Packing = "none", sep: str = ","
) -> Write:
    """Write the header of a CSV; see `StartWriting`."""
    pa_csv = need("pyarrow.csv")
    stream = packed(file, packing, layers)
    header = io.StringIO()
    # pyarrow quotes every name
    csv.writer(header, lineterminator="\n", delimiter=sep).writerow(schema.names)
    stream.write(header.getvalue().encode())
    options = pa_csv.WriteOptions(include_header=False, delimiter=sep)
    writer = pa_csv.CSVWriter(stream, schema, write_options=options)
    layers.insert(0, writer)
    write: Write = writer.write_table
    return write


class Format(NamedTuple):
    """How tables of one format are read and written."""

    read: Callable[..., TableReader]  # of a Path, a stream and a form
    write: StartWriting


def _text(ending: str, read: Any, write: Any) -> dict[str, Format]:
    """Return a format and its compressed forms."""
    return {ending: Format(read, write)} | {
        f"{ending}{more}": Format(partial(read, packing=packing), partial(write, packing=packing))
        for more, packing in ((".gz", "gzip"), (".zst", "zstd"))
    }


# By the ending of a file's name. A new format is one more line.
FORMATS = {
    **_text(".csv", CsvReader, write_csv),
    **_text(".tsv", partial(CsvReader, sep="\t"), partial(write_csv, sep="\t")),
    ".parquet": Format(ParquetReader, write_parquet),
    ".feather": Format(ArrowReader, write_arrow),
    ".arrow": Format(ArrowReader, write_arrow),
    **_text(".jsonl", JsonLinesReader, write_json_lines),
    **_text(".ndjson", JsonLinesReader, write_json_lines),
}
ANY_ENDING = alternatives(FORMATS)


def ending(path: Path) -> str:
    """Return which of the keys of `FORMATS` ends the path, or raise TableError."""
    for known in FORMATS:
        if path.name.lower().endswith(known):
            return known
    is_spreadsheet = path.suffix.lower() in (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")
    hint = "; save the sheet as CSV or Parquet" if is_spreadsheet else ""
    raise TableError(f"{path}: a table's name must end in {ANY_ENDING}{hint}")


def open_table(path: Path, stream: Any = None, form: TextForm | None = None) -> TableReader:
    """Open a table by the ending of its name and read its header; OSError or TableError."""
    return FORMATS[ending(path)].read(path, stream=stream, form=form)


@contextmanager
def write_table(path: Path, schema: Any, within: Path | None = None) -> Iterator[Write]:
    """Write a table batch by batch; it appears under its name when the block ends without error.

    A pipe or a device is written as the batches come. `within` is that of `replacing`. OSError or
    TableError if the file cannot be written.
    """
    start = FORMATS[ending(path)].write
    layers: list[Any] = []
    try:
        with writing(path, within) as file:
            try:
                yield start(file, schema, layers)
                for layer in layers:
                    layer.close()
            except BaseException:
                # Rows that the layers still hold must neither go to a pipe, which may have no
                # reader, nor be written when the layers are collected.
                file.raw.close()
                for layer in layers:
                    with suppress(Exception):
                        layer.close()
                raise
    except pa.ArrowException as error:
        raise TableError(f"cannot write {path}: {error}") from None
    except OSError as error:  # the writer's: readers in the block raise TableError
        raise OSError(error.errno, f"cannot write {path}: {error.strerror or error}") from None
