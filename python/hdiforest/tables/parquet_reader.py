"""Reads Parquet page by page; no row group and no column of one is in memory as a whole."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hdiforest._utils.optional import need
from hdiforest.tables.table_reader import TableError
from hdiforest.tables.typed_reader import TypedReader

# With pre-buffering, or without a buffer, pyarrow reads columns of row groups as a whole.
_READING = {"pre_buffer": False, "buffer_size": 1 << 16, "memory_map": False}


class ParquetReader(TypedReader):
    """A Parquet file whose footer has been read.

    Parameters
    ----------
    path : Path
    stream : pyarrow.NativeFile, optional
        To be read in place of the file at `path`, which is its name in errors.
    """

    def __init__(self, path: Path, *, stream: Any = None, form: Any = None) -> None:  # noqa: ARG002
        self.path = path
        if stream is None and not stat.S_ISREG(path.stat().st_mode):
            raise TableError(
                f"cannot read {path}: Parquet is read from its end, which only a file allows; "
                "write it to a file first, or hand over CSV"
            )
        with self._naming_the_file():
            self._file = need("pyarrow.parquet").ParquetFile(stream or path, **_READING)
        self._schema = self._file.schema_arrow
        self.names = self._schema.names
        self.n_rows = self._file.metadata.num_rows

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self, number_columns: list[str], kept: list[str], batch_rows: int) -> Iterator[Any]:
        pa = need("pyarrow")
        columns = list(dict.fromkeys([*number_columns, *kept]))
        with self._naming_the_file():
            for batch in self._file.iter_batches(batch_rows, columns=columns, use_threads=False):
                yield pa.Table.from_batches([batch]).select([*number_columns, *kept])
