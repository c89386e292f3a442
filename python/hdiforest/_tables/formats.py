"""Tables on disk: their formats, and how each is written batch by batch."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
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
        # The file stays open when the stream on it is closed.
        left_open = SimpleNamespace(
            write=file.write, flush=file.flush, close=lambda: None, closed=False
        )
        stream = pa.CompressedOutputStream(pa.PythonFile(left_open, mode="w"), "zstd")
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
    file: IO[bytes],
    schema: Any,  # noqa: ARG001 (lines have no header)
    layers: list[Any],
    *,
    packing: Packing = "none",
) -> Write:
    """Begin a file of JSON lines; see `StartWriting`. What JSON lacks is written as text."""
    stream = packed(file, packing, layers)

    def write(table: Any) -> None:
        for row in table.to_pylist():
            finite = {name: _finite(value) for name, value in row.items()}
            stream.write(json.dumps(finite, default=str, ensure_ascii=False).encode() + b"\n")

    return write


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def written(
    path: Path, schema: Any, start: StartWriting, within: Path | None = None
) -> Iterator[Write]:
    """Write a table in the format of `start`; see `write_table`."""
    # Readers raise TableError, so any OSError in the block is the writer's.
    with _naming_the_file(path), writing(path, within) as file:
        layers: list[Any] = []
        try:
            yield start(file, schema, layers)
            for layer in layers:
                layer.close()
        except BaseException:
            # Rows that the layers still hold must neither go to a pipe, which may have no reader,
            # nor be written when the layers are collected.
            file.raw.close()
            for layer in layers:
                with suppress(Exception):
                    layer.close()
            raise


@contextmanager
def _naming_the_file(path: Path) -> Iterator[None]:
    try:
        yield
    except pa.ArrowException as error:
        raise TableError(f"cannot write {path}: {error}") from None
    except OSError as error:
        raise OSError(error.errno, f"cannot write {path}: {error.strerror or error}") from None


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
    file: IO[bytes],
    schema: Any,
    layers: list[Any],
    *,
    packing: Packing = "none",
    sep: str = ",",
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


def _packed(ending: str, read: Any, write: Any) -> dict[str, Format]:
    """Return the compressed forms of a format."""
    return {
        f"{ending}{more}": Format(partial(read, packing=packing), partial(write, packing=packing))
        for more, packing in ((".gz", "gzip"), (".zst", "zstd"))
    }


# By the ending of a file's name. A new format is one more line.
FORMATS = {
    ".csv": Format(CsvReader, write_csv),
    **_packed(".csv", CsvReader, write_csv),
    ".tsv": Format(partial(CsvReader, sep="\t"), partial(write_csv, sep="\t")),
    **_packed(".tsv", partial(CsvReader, sep="\t"), partial(write_csv, sep="\t")),
    ".parquet": Format(ParquetReader, write_parquet),
    ".feather": Format(ArrowReader, write_arrow),
    ".arrow": Format(ArrowReader, write_arrow),
    ".jsonl": Format(JsonLinesReader, write_json_lines),
    **_packed(".jsonl", JsonLinesReader, write_json_lines),
    ".ndjson": Format(JsonLinesReader, write_json_lines),
    **_packed(".ndjson", JsonLinesReader, write_json_lines),
}
ANY_ENDING = alternatives(FORMATS)
_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")


def ending(path: Path) -> str:
    """Return which of the keys of `FORMATS` ends the path, or raise TableError."""
    for known in FORMATS:
        if path.name.lower().endswith(known):
            return known
    hint = ""
    if path.suffix.lower() in _SPREADSHEETS:
        hint = "; save the sheet as CSV or Parquet"
    raise TableError(f"{path}: a table's name must end in {ANY_ENDING}{hint}")


def open_table(path: Path, stream: Any = None, form: TextForm | None = None) -> TableReader:
    """Open a table by the ending of its name and read its header; see `TableReader`.

    Raises
    ------
    OSError, TableError
        If the file cannot be opened; if its ending is unknown, or it is not what the ending says.
    """
    return FORMATS[ending(path)].read(path, stream=stream, form=form)


def write_table(
    path: Path, schema: Any, within: Path | None = None
) -> AbstractContextManager[Write]:
    """Write a table batch by batch; it appears under its name when the block ends without error.

    The context manager gives a function that takes a pyarrow Table of the schema. A file is
    replaced; a pipe or a device is written as the batches come. `within` is that of
    `hdiforest._utils.files.replacing`.

    Raises
    ------
    OSError, TableError
        If the file cannot be written: then, and if the block raises, nothing is left behind; if the
        ending of the name is unknown.
    """
    return written(path, schema, FORMATS[ending(path)].write, within)
