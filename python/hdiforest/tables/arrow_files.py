"""Reads and writes Arrow files, which Feather is another name of, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

from hdiforest.coding.arrow_types import is_number
from hdiforest.extras import need
from hdiforest.tables.table_reader import TableError, TableReader
from hdiforest.tables.table_writer import Write


class ArrowReader(TableReader):
    """An Arrow file or stream whose schema has been read.

    Parameters
    ----------
    path : Path
    stream : pyarrow.NativeFile, optional
        To be read in place of the file at `path`, which is its name in errors.
    """

    def __init__(self, path: Path, *, stream: Any = None, form: Any = None) -> None:  # noqa: ARG002
        pa = need("pyarrow")
        self.path = path
        self.n_rows = None
        with path.open("rb") if stream is None else nullcontext():  # OSError names the file
            pass
        with self._naming_the_file():
            # A batch of a mapped file is in memory as far as it is read.
            self._source = pa.memory_map(str(path)) if stream is None else stream
            begin = self._source.read(6)
            self._source.seek(0)
            opened = pa.ipc.open_file if begin == b"ARROW1" else pa.ipc.open_stream
            self._file = opened(self._source)
        self._schema = self._file.schema
        self.names = self._schema.names

    def fields(self, kept: list[str]) -> list[Any]:
        """Return the pyarrow fields with which `batches` yields the kept columns."""
        return [self._schema.field(name) for name in kept]

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def _other_types(self, columns: list[str]) -> dict[str, Any]:
        types = {name: self._schema.field(name).type for name in columns}
        return {name: kind for name, kind in types.items() if not is_number(kind)}

    def _read(self, number_columns: list[str], kept: list[str], batch_rows: int) -> Iterator[Any]:
        pa = need("pyarrow")
        with self._naming_the_file():
            for batch in self._batches():
                table = pa.Table.from_batches([batch]).select([*number_columns, *kept])
                for begin in range(0, len(table), batch_rows):
                    yield table.slice(begin, batch_rows)

    def _batches(self) -> Iterator[Any]:
        if hasattr(self._file, "num_record_batches"):
            return map(self._file.get_batch, range(self._file.num_record_batches))
        return iter(self._file)

    @contextmanager
    def _naming_the_file(self) -> Iterator[None]:
        pa = need("pyarrow")
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            raise TableError(f"cannot read {self.path}: {error}") from None


def write_arrow(file: IO[bytes], schema: Any, layers: list[Any]) -> Write:
    """Begin an Arrow file; see `StartWriting`."""
    pa = need("pyarrow")
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    writer = pa.ipc.new_file(file, schema, options=options)
    layers.append(writer)
    write: Write = writer.write_table
    return write
