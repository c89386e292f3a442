"""Writes CSV and its like, compressed or not."""

from __future__ import annotations

import csv
import io
from typing import IO, Any

from hdiforest._utils.optional import need
from hdiforest.tables.table_writer import Write
from hdiforest.tables.text_form import Packing, packed


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
