"""Writes CSV and gzipped CSV."""

from __future__ import annotations

import csv
import gzip
import io
from typing import IO, Any

from hdiforest.command.extras import need
from hdiforest.command.table_writer import Write


def write_csv(file: IO[bytes] | gzip.GzipFile, schema: Any, layers: list[Any]) -> Write:
    """Write the header of a CSV; see `StartWriting`."""
    pa_csv = need("pyarrow.csv")
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(schema.names)  # pyarrow quotes every name
    file.write(header.getvalue().encode())
    writer = pa_csv.CSVWriter(file, schema, write_options=pa_csv.WriteOptions(include_header=False))
    layers.insert(0, writer)
    write: Write = writer.write_table
    return write


def write_zipped_csv(file: IO[bytes], schema: Any, layers: list[Any]) -> Write:
    """Write the header of a gzipped CSV; see `StartWriting`."""
    # No time and no name in the header: equal tables are equal files.
    zipped = gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0)
    layers.append(zipped)
    return write_csv(zipped, schema, layers)
