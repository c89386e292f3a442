"""Writes tables batch by batch, in memory that does not grow with their length."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from hdiforest.atomic import writing
from hdiforest.command.extras import need
from hdiforest.command.regroup import Regroup
from hdiforest.command.table_reader import TableError, ending, rows_of


@contextmanager
def write_table(path: Path, schema: Any) -> Iterator[Callable[[Any], None]]:
    """Write a table batch by batch; it appears under its name when the block ends without error.

    Parameters
    ----------
    path : Path
        Its ending says the format. Replaced if it exists; a pipe or a device is written as the
        batches come.
    schema : pyarrow.Schema

    Yields
    ------
    callable
        Takes a pyarrow Table of that schema.

    Raises
    ------
    OSError
        If the file cannot be written. Then, and if the block raises, nothing is left behind.
    """
    # Readers raise TableError, so any OSError in the block is the writer's.
    with _naming(path), writing(path) as file:
        layers: list[Any] = []
        try:
            write = _WRITERS[ending(path)](file, schema, layers)
            yield write
            for layer in layers:
                layer.close()
        except BaseException:
            # What the layers still hold must not go to a pipe that nobody may read, nor be written
            # when they are collected.
            file.raw.close()
            for layer in layers:
                with suppress(Exception):
                    layer.close()
            raise


class _RowGroups:
    """Parquet whose row groups do not depend on the batches that come."""

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


def _parquet_writer(file: IO[bytes], schema: Any, layers: list[Any]) -> Callable[[Any], None]:
    groups = _RowGroups(file, schema)
    layers.append(groups)
    return groups.write


def _csv_writer(
    file: IO[bytes] | gzip.GzipFile, schema: Any, layers: list[Any]
) -> Callable[[Any], None]:
    pa_csv = need("pyarrow.csv")
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(schema.names)  # pyarrow quotes every name
    file.write(header.getvalue().encode())
    writer = pa_csv.CSVWriter(file, schema, write_options=pa_csv.WriteOptions(include_header=False))
    layers.insert(0, writer)
    write: Callable[[Any], None] = writer.write_table
    return write


def _gzip_writer(file: IO[bytes], schema: Any, layers: list[Any]) -> Callable[[Any], None]:
    # No time and no name in the header: equal tables are equal files.
    zipped = gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0)
    layers.append(zipped)
    return _csv_writer(zipped, schema, layers)


# Each returns what takes the batches, and adds what to close after it, from the inside out.
_WRITERS = {".csv": _csv_writer, ".csv.gz": _gzip_writer, ".parquet": _parquet_writer}


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    pa = need("pyarrow")
    try:
        yield
    except pa.ArrowException as error:
        raise TableError(f"cannot write {path}: {error}") from None
    except OSError as error:
        raise OSError(error.errno, f"cannot write {path}: {error.strerror or error}") from None
