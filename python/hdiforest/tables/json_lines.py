"""Reads and writes JSON lines, block by block."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

from hdiforest._utils.optional import need
from hdiforest.tables.table_reader import TableError
from hdiforest.tables.table_writer import Write
from hdiforest.tables.text_form import Packing, packed, unpacked
from hdiforest.tables.typed_reader import TypedReader

_BLOCK_BYTES = 1 << 22


class JsonLinesReader(TypedReader):
    """A file with an object of JSON on each line; the first block says the names of the columns.

    Their types are those of the first block too, or wider ones if later lines need these: numbers
    with decimals after whole ones, anything after null. Columns of text stay as they are, also if
    it is that of dates.

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
        self.path, self._packing = path, packing
        self._file = stream or cast("IO[bytes]", open(path, "rb"))  # noqa: SIM115
        # A stream closes its file when it is forgotten.
        self._streams: list[IO[bytes]] = []
        try:
            with self._naming_the_file():
                self._begin()
                if not self._first.strip():
                    raise TableError(f"{path} is empty")
                self._schema = self._schema_of(self._first)
        except BaseException:
            self.close()
            raise
        self.names = self._schema.names
        self._has_last_types = not self._file.seekable()  # what is read once keeps the first ones

    def fields(self, kept: list[str]) -> list[Any]:
        """See `TableReader`."""
        self._widen(kept)
        return super().fields(kept)

    def close(self) -> None:
        """Close the file."""
        for stream in self._streams:
            stream.close()
        self._file.close()

    def _begin(self) -> None:
        """Read the first block."""
        self._streams.append(unpacked(self._file, self._packing))
        self._lines = _Lines(self._streams[-1])
        self._first = self._lines.block()

    def _widen(self, columns: list[str]) -> None:
        """Read the file once for types that hold all cells, if those of some columns may not."""
        if self._has_last_types or not any(_may_widen(self._schema.field(n)) for n in columns):
            return
        self._has_last_types = True
        with self._naming_the_file():
            while block := self._lines.block():
                # What is wrong in columns that are needed is told when they are read.
                with suppress(TableError):
                    self._schema = _wider(self._schema, self._schema_of(block))
            self._file.seek(0)
            self._begin()

    def _read(
        self,
        number_columns: list[str],
        kept: list[str],
        batch_rows: int,  # noqa: ARG002 (blocks are cut by bytes)
    ) -> Iterator[Any]:
        pa = need("pyarrow")
        self._widen(kept)
        wanted = [self._schema.field(name) for name in dict.fromkeys([*number_columns, *kept])]
        numeric = set(number_columns) - set(kept)
        # What is whole in the first block may have decimals later.
        schema = pa.schema([
            pa.field(field.name, pa.float64())
            if field.name in numeric and not pa.types.is_boolean(field.type)
            else field
            for field in wanted
        ])  # fmt: skip
        block = self._first
        while block:
            with self._naming_the_file():
                table = self._parsed(block, schema)
            columns = {
                name: table[name].cast(pa.float64()) if name in numeric else table[name]
                for name in schema.names
            }
            yield pa.table(columns).select([*number_columns, *kept])
            block = self._lines.block()

    def _schema_of(self, block: bytes) -> Any:
        pa = need("pyarrow")
        fields = self._parsed(block, None).schema
        return pa.schema([field.with_type(_with_text(field.type)) for field in fields])

    def _parsed(self, block: bytes, schema: Any) -> Any:
        pa, pa_json = need("pyarrow"), need("pyarrow.json")
        how: dict[str, Any] = {}
        if schema is not None:
            how = {"explicit_schema": schema, "unexpected_field_behavior": "ignore"}
        read = pa_json.ReadOptions(use_threads=False, block_size=len(block) + 1)
        try:
            table = pa_json.read_json(pa.BufferReader(block), read, pa_json.ParseOptions(**how))
        except pa.ArrowException as error:
            lines = f"lines {self._lines.first} to {self._lines.last}"
            raise TableError(f"cannot read {self.path}: {error} (in {lines})") from None
        return table


class _Lines:
    """The lines of a stream, in blocks.

    Attributes
    ----------
    first, last : int
        Those of the last block, counted from 1.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._rest = b""
        self.first = self.last = 0

    def block(self) -> bytes:
        """Return the next lines, empty at the end."""
        self.first = self.last + 1
        parts = [self._rest]
        while part := self._stream.read(_BLOCK_BYTES):
            parts.append(part)
            if b"\n" in part:
                break
        joined = b"".join(parts)
        end = joined.rfind(b"\n") + 1 if part else len(joined)
        block, self._rest = joined[:end], joined[end:]
        self.last += block.count(b"\n")
        return block if block.strip() or not part else self.block()


def _with_text(kind: Any) -> Any:
    """Return a type with text in place of the times that pyarrow makes of it."""
    pa = need("pyarrow")
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_with_text(kind.value_type))
    if pa.types.is_struct(kind):
        fields = (kind.field(i) for i in range(kind.num_fields))
        return pa.struct([field.with_type(_with_text(field.type)) for field in fields])
    return kind


def _may_widen(field: Any) -> bool:
    """Whether later lines may hold what the type of the first ones does not."""
    types, kind = need("pyarrow").types, field.type
    return bool(types.is_null(kind) or types.is_integer(kind) or types.is_nested(kind))


def _wider(schema: Any, other: Any) -> Any:
    """Return the columns of a schema with types that hold those of both, if there are such."""
    pa = need("pyarrow")
    fields = []
    for field in schema:
        own = [
            pa.schema([each.field(field.name)])
            for each in (schema, other)
            if field.name in each.names
        ]
        try:
            [found] = pa.unify_schemas(own, promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            found = field
        fields.append(found)
    return pa.schema(fields)


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
