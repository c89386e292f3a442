"""Tables on disk: their formats, and how each is written batch by batch."""

from __future__ import annotations

import codecs
import csv
import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
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
    gzip_file,
    rows_of,
)
from hdiforest._utils.checks import alternatives
from hdiforest._utils.files import writing
from hdiforest._utils.optional import need, pa


def _packed(file: IO[bytes], packing: Packing) -> Any:
    """Return a stream that compresses what is written to `file`."""
    if packing == "gzip":
        return gzip_file(file, "wb")
    return pa.CompressedOutputStream(pa.PythonFile(file, mode="w"), "zstd")


def _arrow_writer(file: IO[bytes], schema: Any) -> Any:
    return pa.ipc.new_file(file, schema, options=pa.ipc.IpcWriteOptions(compression="zstd"))


class _JsonLinesWriter:
    """Writes an object on each line. What JSON lacks is written as text."""

    def __init__(self, stream: IO[bytes], _schema: Any) -> None:
        self._stream = stream

    def write_table(self, table: Any) -> None:
        for row in table.to_pylist():
            for name, value in row.items():
                if isinstance(value, float) and not math.isfinite(value):
                    row[name] = None
            line = json.dumps(row, default=_as_json, ensure_ascii=False).encode()
            self._stream.write(line + b"\n")

    def close(self) -> None:
        pass


def _as_json(value: Any) -> Any:
    is_whole = isinstance(value, Decimal) and value.as_tuple().exponent == 0
    return int(value) if is_whole else str(value)


class _ParquetWriter:
    """Collects rows until a row group is full."""

    def __init__(self, file: IO[bytes], schema: Any) -> None:
        self._writer = need("pyarrow.parquet").ParquetWriter(file, schema, compression="zstd")
        self._groups = Regroup(rows_of(len(schema)))

    def write_table(self, table: Any) -> None:
        for group in self._groups.add(table):
            self._writer.write_table(group)

    def close(self) -> None:
        for group in self._groups.rest():
            self._writer.write_table(group)
        self._writer.close()


class _TextWriter:
    """Writes bytes as the text that they are."""

    def __init__(self, write: Callable[[Any, Any], Any], stream: Any, schema: Any) -> None:
        self._schema = pa.schema([_with_text(field) for field in schema])
        self._writer = write(stream, self._schema)
        self.close = self._writer.close

    def write_table(self, table: Any) -> None:
        columns = []
        for field, column in zip(self._schema, table.columns, strict=True):
            try:
                columns.append(column.cast(field.type))
            except pa.ArrowInvalid:
                what = f"column {field.name!r} holds bytes that are no UTF-8 text"
                raise TableError(f"{what}; write .parquet, .feather or .arrow") from None
        self._writer.write_table(pa.Table.from_arrays(columns, schema=self._schema))


def _with_text(field: Any) -> Any:
    is_binary = str(field.type).startswith(("binary", "large_binary", "fixed_size_binary"))
    return field.with_type(pa.large_string()) if is_binary else field


def _csv_writer(stream: IO[bytes], schema: Any, sep: str = ",") -> Any:
    pa_csv = need("pyarrow.csv")
    header = csv.writer(codecs.getwriter("utf-8")(stream), lineterminator="\n", delimiter=sep)
    header.writerow(schema.names)  # pyarrow quotes every name
    options = pa_csv.WriteOptions(include_header=False, delimiter=sep)
    return pa_csv.CSVWriter(stream, schema, write_options=options)


class Format(NamedTuple):
    """How tables of one format are read and written."""

    read: Callable[..., TableReader]  # of a Path, a stream and a form
    # Of a file and a pyarrow schema: returns an object with `write_table` and `close`.
    write: Callable[[Any, Any], Any]
    packing: Packing = "none"


def _text(ending: str, read: Any, write: Any) -> dict[str, Format]:
    """Return a format and its compressed forms."""
    packings: dict[str, Packing] = {"": "none", ".gz": "gzip", ".zst": "zstd"}
    return {
        ending + more: Format(partial(read, packing=packing), partial(_TextWriter, write), packing)
        for more, packing in packings.items()
    }


# By the ending of a file's name. A new format is one more line.
FORMATS = {
    **_text(".csv", CsvReader, _csv_writer),
    **_text(".tsv", partial(CsvReader, sep="\t"), partial(_csv_writer, sep="\t")),
    ".parquet": Format(ParquetReader, _ParquetWriter),
    ".feather": Format(ArrowReader, _arrow_writer),
    ".arrow": Format(ArrowReader, _arrow_writer),
    **_text(".jsonl", JsonLinesReader, _JsonLinesWriter),
    **_text(".ndjson", JsonLinesReader, _JsonLinesWriter),
}
ANY_ENDING = alternatives(FORMATS)


def ending(path: Path) -> str:
    """Return which of the keys of `FORMATS` ends the path, or raise TableError."""
    for suffix in FORMATS:
        if path.name.lower().endswith(suffix):
            return suffix
    is_spreadsheet = path.suffix.lower() in (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")
    hint = "; save the sheet as CSV or Parquet" if is_spreadsheet else ""
    raise TableError(f"{path}: a table's name must end in {ANY_ENDING}{hint}")


def open_table(path: Path, stream: Any = None, form: TextForm | None = None) -> TableReader:
    """Open a table by the ending of its name and read its header; OSError or TableError."""
    return FORMATS[ending(path)].read(path, stream=stream, form=form)


@contextmanager
def write_table(path: Path, schema: Any, within: Path | None = None) -> Iterator[Any]:
    """Give a function that writes the next part of a table, a pyarrow Table.

    The file appears under its name when the block ends without error; a pipe or a device is written
    as the parts come. `within` is that of `replacing`. OSError or TableError if it cannot be.
    """
    file_format = FORMATS[ending(path)]
    layers: list[Any] = []  # what is closed afterwards, innermost last
    try:
        with writing(path, within) as file:
            try:
                if file_format.packing != "none":
                    layers.append(_packed(file, file_format.packing))
                layers.append(file_format.write(layers[0] if layers else file, schema))
                yield layers[-1].write_table
                for layer in reversed(layers):
                    layer.close()
            except BaseException:
                # Rows that the layers still hold must neither go to a pipe, which may have no
                # reader, nor be written when the layers are collected.
                file.raw.close()
                for layer in reversed(layers):
                    with suppress(Exception):
                        layer.close()
                raise
    except pa.ArrowException as error:
        raise TableError(f"cannot write {path}: {error}") from None
    except OSError as error:  # the writer's: readers in the block raise TableError
        raise OSError(error.errno, f"cannot write {path}: {error.strerror or error}") from None
