"""Writes tables batch by batch, in memory that does not grow with their length."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from hdiforest._utils.files import writing
from hdiforest._utils.optional import need
from hdiforest.tables.table_reader import TableError

# Writes one pyarrow Table.
Write = Callable[[Any], None]
# Takes a file, a pyarrow schema and a list of layers. It returns a function that writes batches to
# the file, and adds to the list the objects to close afterwards, innermost first.
StartWriting = Callable[[IO[bytes], Any, list[Any]], Write]


@contextmanager
def written(
    path: Path, schema: Any, start: StartWriting, within: Path | None = None
) -> Iterator[Write]:
    """Write a table in the format of `start`; see `hdiforest.tables.formats.write_table`."""
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
    pa = need("pyarrow")
    try:
        yield
    except pa.ArrowException as error:
        raise TableError(f"cannot write {path}: {error}") from None
    except OSError as error:
        raise OSError(error.errno, f"cannot write {path}: {error.strerror or error}") from None
