"""Reads and writes JSON lines, block by block."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from hdiforest.extras import need
from hdiforest.tables.table_reader import TableError
from hdiforest.tables.table_writer import Write
from hdiforest.tables.text_form import Packing, packed, unpacked
from hdiforest.tables.typed_reader import TypedReader

_BLOCK_BYTES = 1 << 22


class JsonLinesReader(TypedReader):
    """A file with an object of JSON on each line; the first block says names and types.

    Parameters
    ----------
    path : Path
    packing : {"none", "gzip", "zstd"}, default="none"
    stream : binary file, optional
        To be read in place of the file at `path`, which is its name in errors.
    """

    def __init__(
        self,
        path: Path,
        *,
        packing: Packing = "none",
        stream: Any = None,
        form: Any = None,  # noqa: ARG002
    ) -> None:
        self.path = path
        self._file = stream or cast("IO[bytes]", open(path, "rb"))  # noqa: SIM115
        self._n_lines = 0
        self._rest = b""
        try:
            with self._naming_the_file():
                self._stream = unpacked(self._file, packing)
                self._first = self._block()
                if not self._first.strip():
                    raise TableError(f"{path} is empty")
                self._schema = self._parsed(self._first, None).schema
        except BaseException:
            self._file.close()
            raise
        self.names = self._schema.names

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
        self._file.close()

    def _read(
        self,
        number_columns: list[str],
        kept: list[str],
        batch_rows: int,  # noqa: ARG002 (blocks are cut by bytes)
    ) -> Iterator[Any]:
        pa = need("pyarrow")
        wanted = list(dict.fromkeys([*number_columns, *kept]))
        numeric = set(number_columns) - set(kept)
        schema = pa.schema([
            pa.field(name, pa.float64()) if name in numeric
            else self._schema.field(name)
            for name in wanted
        ])  # fmt: skip
        block = self._first
        while block:
            with self._naming_the_file():
                # What is whole in the first block may have decimals later.
                table = self._parsed(block, schema if block is not self._first else None)
                columns = {name: table[name].cast(schema.field(name).type) for name in wanted}
            yield pa.table(columns).select([*number_columns, *kept])
            block = self._block()

    def _parsed(self, block: bytes, schema: Any) -> Any:
        pa, pa_json = need("pyarrow"), need("pyarrow.json")
        how: dict[str, Any] = {}
        if schema is not None:
            how = {"explicit_schema": schema, "unexpected_field_behavior": "ignore"}
        read = pa_json.ReadOptions(use_threads=False, block_size=len(block) + 1)
        try:
            table = pa_json.read_json(pa.BufferReader(block), read, pa_json.ParseOptions(**how))
        except pa.ArrowException as error:
            lines = f"lines {self._begin + 1} to {self._n_lines}"
            raise TableError(f"cannot read {self.path}: {error} (in {lines})") from None
        return table

    def _block(self) -> bytes:
        """Return the next lines, empty at the end."""
        self._begin = self._n_lines
        parts = [self._rest]
        while part := self._stream.read(_BLOCK_BYTES):
            parts.append(part)
            if b"\n" in part:
                break
        joined = b"".join(parts)
        end = joined.rfind(b"\n") + 1 if part else len(joined)
        block, self._rest = joined[:end], joined[end:]
        self._n_lines += block.count(b"\n")
        return block if block.strip() or not part else self._block()


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
