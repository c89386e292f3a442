"""Reads and writes Arrow files, which Feather is another name of, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Any

from hdiforest._utils.optional import need
from hdiforest.tables.table_reader import TableError
from hdiforest.tables.table_writer import Write
from hdiforest.tables.typed_reader import TypedReader

_NEXT_MESSAGE = b"\xff\xff\xff\xff"
_END_OF_STREAM = _NEXT_MESSAGE + bytes(4)


class ArrowReader(TypedReader):
    """An Arrow file, or a file with an Arrow stream, whose schema has been read.

    Parameters
    ----------
    path : Path
    stream : pyarrow.NativeFile, optional
        To be read in place of the file at `path`, which is its name in errors.
    """

    def __init__(self, path: Path, *, stream: Any = None, form: Any = None) -> None:  # noqa: ARG002
        pa = need("pyarrow")
        self.path = path
        with path.open("rb") if stream is None else nullcontext():  # OSError names the file
            pass
        with self._naming_the_file():
            # A batch of a mapped file is in memory as far as it is read.
            self._source = pa.memory_map(str(path)) if stream is None else stream
            begin = self._source.read(6)
            if begin.startswith(_NEXT_MESSAGE):
                self._require_end()
            self._source.seek(0)
            opened = pa.ipc.open_file if begin == b"ARROW1" else pa.ipc.open_stream
            self._file = opened(self._source)
        self._schema = self._file.schema
        self.names = self._schema.names

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def _read(self, number_columns: list[str], kept: list[str], batch_rows: int) -> Iterator[Any]:
        with self._naming_the_file():
            for table in _tables(self._batches(), [*number_columns, *kept]):
                for begin in range(0, len(table), batch_rows):
                    yield table.slice(begin, batch_rows)

    def _batches(self) -> Iterator[Any]:
        if hasattr(self._file, "num_record_batches"):
            return map(self._file.get_batch, range(self._file.num_record_batches))
        return iter(self._file)

    def _require_end(self) -> None:
        self._source.seek(max(0, self._source.size() - len(_END_OF_STREAM)))
        if self._source.read() != _END_OF_STREAM:
            raise _cut(self.path)


class ArrowStreamReader(TypedReader):
    """An Arrow stream that cannot be read twice, whose schema has been read.

    Parameters
    ----------
    path : Path
        Its name in errors.
    stream : binary file
        Whose `read` returns fewer bytes than it was asked for at the end only.
    """

    def __init__(self, path: Path, stream: IO[bytes]) -> None:
        pa = need("pyarrow")
        self.path, self._source = path, _Watched(stream)
        with self._naming_the_file():
            self._file = pa.ipc.open_stream(pa.PythonFile(self._source, mode="r"))
        self._schema = self._file.schema
        self.names = self._schema.names

    def close(self) -> None:
        """Close the stream."""
        self._source.close()

    def _read(self, number_columns: list[str], kept: list[str], batch_rows: int) -> Iterator[Any]:  # noqa: ARG002 (batches come as they were sent)
        with self._naming_the_file():
            yield from _tables(self._file, [*number_columns, *kept])
        if self._source.is_at_end:
            raise _cut(self.path)


class _Watched:
    """A stream that knows whether all of it was asked for, and more."""

    closed = False

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.is_at_end = False

    def read(self, n_bytes: int) -> bytes:
        part = self._stream.read(n_bytes)
        self.is_at_end = len(part) < n_bytes
        return part

    def close(self) -> None:
        self._stream.close()


def _cut(path: Path) -> TableError:
    # pyarrow takes the end of the bytes between two batches for the end of the stream.
    return TableError(
        f"{path} is cut: it ends without the marker that ends a stream of Arrow (writers write it "
        "when they are closed)"
    )


def _tables(batches: Iterable[Any], columns: list[str]) -> Iterator[Any]:
    """Yield batches as Tables of some columns."""
    for batch in batches:
        yield need("pyarrow").Table.from_batches([batch]).select(columns)


def write_arrow(file: IO[bytes], schema: Any, layers: list[Any]) -> Write:
    """Begin an Arrow file; see `StartWriting`."""
    pa = need("pyarrow")
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    writer = pa.ipc.new_file(file, schema, options=options)
    layers.append(writer)
    write: Write = writer.write_table
    return write
