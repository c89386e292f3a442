"""Writes Parquet in row groups that do not depend on the batches that come."""

from __future__ import annotations

from typing import IO, Any

from hdiforest._utils.optional import need
from hdiforest.tables.regroup import Regroup
from hdiforest.tables.table_reader import rows_of
from hdiforest.tables.table_writer import Write


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
