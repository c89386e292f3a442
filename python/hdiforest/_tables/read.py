"""Readers of tables on disk: their base class, Parquet, Arrow and JSON lines; CSV is in `csv`.

Each format is read by pyarrow's reader of its files, not by `pyarrow.dataset`, which holds row
groups of Parquet as a whole, twice the memory, and more with readahead. JSON lines are parsed block
by block: `pyarrow.json.open_json` is as flat in memory, but not in pyarrow 15, and in 26 a signal
waits until a pipe has data, types are those of the first block, and errors do not name the line.
"""

from __future__ import annotations

import json
import os
import re
import stat
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import IO, Any, Literal

from hdiforest._tables.columns import (
    EncodingError,
    fails,
    is_number,
    is_text,
    plain_type,
    with_leaves,
)
from hdiforest._tables.names import column_faults, listed
from hdiforest._utils.optional import need, pa, pc

try:  # two to three times as fast; not on every platform
    gzip: Any = import_module("isal.igzip")
    zlib: Any = import_module("isal.isal_zlib")
except ImportError:
    gzip, zlib = import_module("gzip"), import_module("zlib")

BATCH_ROWS = 65536
BATCH_CELLS = 1 << 22
_MAX_FAULTS = 20  # in one message

# With pre-buffering, or without a buffer, pyarrow reads columns of row groups as a whole.
_PARQUET = {"pre_buffer": False, "buffer_size": 1 << 16, "memory_map": False}
_JSON_BLOCK_BYTES = 1 << 22

Packing = Literal["none", "gzip", "zstd"]

Wanted = list[tuple[str, bool]]  # columns to read, and whether as numbers, or else as they are

# How files that are no text begin, what they are, and what is done about it.
_NO_TEXTS = {
    b"\x1f\x8b": ("packed by gzip", "give it a name that ends in .gz"),
    b"\x28\xb5\x2f\xfd": ("packed by zstd", "give it a name that ends in .zst"),
    b"\xfd7zXZ": ("packed by xz", "unpack it"),
    b"PAR1\x15": ("a Parquet file", "it must be a file whose name ends in .parquet"),
    b"ARROW1\0": ("an Arrow file", "it must be a file whose name ends in .arrow"),
    b"PK\x03\x04": ("a workbook or another zip archive", "save the sheet as CSV or Parquet"),
    b"\xd0\xcf\x11\xe0": ("a workbook", "save the sheet as CSV or Parquet"),
}


def require_text(path: Path, begin: bytes) -> None:
    """Raise TableError if a file that should be text begins as other files do."""
    for start, (what, advice) in _NO_TEXTS.items():
        if begin.startswith(start):
            raise TableError(f"{path} is not text, but {what}; {advice}")


@dataclass(frozen=True)
class TextForm:
    """How to read the text of tables without types."""

    sep: str | None = None  # between cells; None: as the ending of the name says
    decimal: str = "."
    encoding: str = "utf-8"  # a name that Python knows
    missing: list[str] = field(default_factory=list)  # words of missing cells, also in JSON lines
    has_quotes: bool = True  # whether cells may stand between quotes; else quotes are text


def gzip_file(file: Any, mode: str) -> Any:
    """Return a stream that unpacks ("rb") or packs ("wb").

    No time and no name in the header: equal tables are equal files. Level 1 of zlib packs numbers
    twice as fast as level 4, to 6 % more bytes.
    """
    return gzip.GzipFile("", mode, compresslevel=1, fileobj=file, mtime=0)


def unpacked(file: Any, packing: Packing) -> Any:
    """Return a stream of the contents of a compressed file."""
    if packing == "gzip":  # pyarrow refuses zeros behind the end
        return gzip_file(file, "rb")
    if packing == "zstd":
        source = file if isinstance(file, pa.NativeFile) else pa.PythonFile(file, mode="r")
        return pa.CompressedInputStream(source, "zstd")
    return file


class Regroup:
    """Holds rows until there are enough for tables of `n_rows`."""

    def __init__(self, n_rows: int) -> None:
        self._pending: list[Any] = []
        self._n_rows, self._n_pending = n_rows, 0

    def add(self, table: Any) -> Iterator[Any]:
        """Take a pyarrow Table; yield those that are full."""
        self._pending.append(table)
        self._n_pending += table.num_rows
        while self._n_pending >= self._n_rows:
            joined = pa.concat_tables(self._pending)
            self._pending = [joined.slice(self._n_rows)]
            self._n_pending -= self._n_rows
            yield joined.slice(0, self._n_rows)

    def rest(self) -> Iterator[Any]:
        """Yield the rows that are left, if there are any."""
        if self._n_pending > 0:
            yield pa.concat_tables(self._pending)


class TableError(EncodingError):
    """A table that cannot be used; `columns` are those at fault, but for missing ones."""


def refuse(faults: Sequence[str], what: str) -> None:
    """Raise one TableError for all faults of tables, if there are any; `what` is said of many."""
    if len(faults) == 1:
        raise TableError(faults[0])
    if faults:
        more = f"; {len(faults) - _MAX_FAULTS} more" if len(faults) > _MAX_FAULTS else ""
        raise TableError(f"{what}: {'; '.join(faults[:_MAX_FAULTS])}{more}")


class TableReader(ExitStack):
    """A table whose header has been read. Its rows can be read once.

    A `stream` is read in place of the file, and `path` then is its name in errors. Formats that are
    text heed `packing`, and CSV heeds `form`, and `sep` where that does not say the separator.
    """

    is_text = False  # whether the file has no types
    _schema: Any  # pyarrow.Schema of all columns, of text if the file has no types

    def __init__(
        self,
        path: Path,
        *,
        stream: Any = None,
        packing: Packing = "none",
        form: TextForm | None = None,
        sep: str = ",",
    ) -> None:
        need("pyarrow")  # before a file is opened
        super().__init__()  # `close` undoes what `_open` opened, the file itself last
        self.path, self._packing, self._form, self._sep = path, packing, form or TextForm(), sep
        self.n_rows: int | None = None  # None: only reading the whole file would tell
        self.keys: dict[str, Any] = {}  # columns of one value, which is a scalar of pyarrow
        self._doubled: set[str] = set()
        try:
            self._open(stream)
        except BaseException:
            self.close()
            raise
        self.names: list[str] = self._schema.names  # all columns, in order

    def add_columns(self, keys: Mapping[str, str | None], whole: Collection[str]) -> None:
        """Add columns of one value behind those of the file: text, or numbers if these are read.

        Those that are `whole` are whole numbers where they are passed on.
        """
        self._doubled = {name for name in keys if name in self.names}
        for name, value in keys.items():
            if name not in self._doubled:
                is_whole = name in whole and not self.is_text
                text = pa.scalar(value, pa.string())
                self.keys[name] = text.cast(pa.int64()) if is_whole else text
                self._schema = self._schema.append(pa.field(name, self.keys[name].type))
        self.names = self._schema.names

    def require(
        self, number_columns: Sequence[str], kept: Sequence[str] = (), left_out: Iterable[str] = ()
    ) -> None:
        """Raise one TableError for all columns that cannot be read, or are missing."""
        wanted = list(dict.fromkeys([*number_columns, *kept]))
        if both := [name for name in wanted if name in self._doubled]:
            where = "in the file and in the names of its folders"
            raise TableError(f"{self.path} has {listed(map(repr, both))} {where}", both)
        faults, repeated = column_faults(wanted, self.names, there=left_out)
        once = set(self.names) - set(repeated)
        types = self._other_types([name for name in number_columns if name in once])
        hint = self.hint({*wanted, *left_out} - {*self.names}) if faults else ""
        clauses = [f"{self.path} has {faults}{hint}"] if faults else []
        if types:
            where = "" if faults else f"{self.path}: "
            clauses.append(where + not_numbers({n: f"is {t}" for n, t in types.items()}))
        if clauses:
            raise TableError("; ".join(clauses), [] if hint else [*repeated, *types])

    def hint(self, missing: Collection[str] = ()) -> str:  # noqa: ARG002
        """Say what seems to be wrong with the header if columns are missing."""
        return ""

    def batches(
        self, number_columns: list[str], kept: list[str], batch_rows: int | None = None
    ) -> Iterator[Any]:
        """Yield pyarrow Tables of exactly `batch_rows` rows, or `rows_of`; the last: what is left.

        Columns of numbers come first; those `kept` are text in a CSV, and else of their own type.
        TableError for a column that is missing or holds something else, and for a damaged file.
        """
        self.require(number_columns, kept)
        wanted = [(name, True) for name in number_columns] + [(name, False) for name in kept]
        n_rows = batch_rows or rows_of(len(wanted))
        groups = Regroup(n_rows)
        for part in self._parts(wanted, n_rows):
            yield from groups.add(part)
        yield from groups.rest()

    def _parts(self, wanted: Wanted, n_rows: int) -> Iterator[Any]:
        """Yield Tables of any size, with these columns of the file and those of one value."""
        in_file = [each for each in wanted if each[0] not in self.keys]
        with self._naming_the_file():
            # Readers do not count the rows of no columns.
            for part in self._read(in_file or [(self.names[0], False)], n_rows):
                yield self._with_keys(part, wanted) if self.keys else part

    def without_missing(self, column: Any, _categories: Iterable[Any] = ()) -> Any:
        """Return a column that `batches` was to pass on, with null for cells that say missing.

        Known categories do not say so.
        """
        return column

    def typed(self, name: str, column: Any) -> Any:
        """Return a column without a type as numbers, or ArrowInvalid; others as they are."""
        if name in self.keys:
            return column.cast(pa.float64())
        if is_text(column.type):
            raise pa.ArrowInvalid("it has the type of text")
        return column

    def share_read(self) -> float | None:
        """Return which share of the file was read, where that is not known from its rows."""
        return None

    def fields(self, kept: list[str]) -> list[Any]:
        """Return the pyarrow fields of the kept columns that `batches` yields, if made `plain`."""
        fields = map(self._schema.field, kept)
        return [each.with_type(plain_type(each.type)) for each in fields]

    @abstractmethod
    def _open(self, stream: Any) -> None:
        """Read the header; see `_naming_the_file`."""

    @abstractmethod
    def _read(self, wanted: Wanted, n_rows: int) -> Iterator[Any]:
        """Yield Tables of any size, with these columns of the file."""

    def _other_types(self, columns: list[str]) -> dict[str, Any]:
        """Return the types of those columns that are known to hold no numbers."""
        keys = {name: self.keys[name] for name in columns if name in self.keys}
        texts = {n: repr(key.as_py()) for n, key in keys.items() if fails(key.cast, pa.float64())}
        if self.is_text:
            return texts
        types = {name: self._schema.field(name).type for name in columns if name not in keys}
        return {name: kind for name, kind in types.items() if not is_number(kind)} | texts

    def _with_keys(self, part: Any, wanted: Wanted) -> Any:
        """Return a Table of the file with the columns of one value in between."""
        columns, arrays = [], iter(part.columns)
        for name, as_number in wanted:
            if name in self.keys:
                key = self.keys[name].cast(pa.float64()) if as_number else self.keys[name]
                columns.append(pa.repeat(key, part.num_rows))
            else:
                columns.append(next(arrays))
        return pa.Table.from_arrays(columns, [name for name, _ in wanted])

    @contextmanager
    def _naming_the_file(self) -> Iterator[None]:
        """Make a TableError of what reading raises."""
        try:
            yield
        except (pa.ArrowException, OSError, EOFError, UnicodeError, zlib.error) as error:
            raise TableError(f"cannot read {self.path}: {error}") from None


def rows_of(n_columns: int) -> int:
    """Return how many rows of so many columns are held at once."""
    return max(1, min(BATCH_ROWS, BATCH_CELLS // max(1, n_columns)))


def not_numbers(contents: dict[str, str]) -> str:
    """Say what each column has in place of numbers: ``holds 'x'``, ``is date``."""
    if len(contents) == 1:
        [(name, what)] = contents.items()
        return f"column '{name}' must hold numbers, but {what}"
    each = listed(f"'{name}' {what}" for name, what in contents.items())
    return f"{len(contents)} columns must hold numbers, but {each}"


def joined(tables: Sequence[tuple[Path, Any]]) -> Any:
    """Return the rows of Tables of equal columns as one; TableError if their types do not agree."""
    (first, whole), *others = tables
    schema = whole.schema.remove_metadata()
    for path, table in others:
        for j, left in enumerate(schema):
            right = table.schema.field(left.name)
            try:
                schema = schema.set(j, _wider(left, right))
            except pa.ArrowException:
                what = f"column '{left.name}' is {left.type} in {first}, but {right.type} in {path}"
                raise TableError(what, [left.name]) from None
    return pa.concat_tables([table.select(schema.names).cast(schema) for _, table in tables])


def _wider(left: Any, right: Any) -> Any:
    """Return a field of a type that holds the cells of both, or raise ArrowException."""
    both = [pa.schema([left]), pa.schema([right])]
    return pa.unify_schemas(both, promote_options="permissive").field(0)


class ParquetReader(TableReader):
    """A Parquet file whose footer has been read. No column of a row group is held as a whole."""

    def _open(self, stream: Any) -> None:
        if stream is None and not stat.S_ISREG(self.path.stat().st_mode):
            why = "Parquet is read from its end, which only a file allows"
            instead = "write it to a file first, or hand over CSV"
            raise TableError(f"cannot read {self.path}: {why}; {instead}")
        with self._naming_the_file():
            self._file = need("pyarrow.parquet").ParquetFile(stream or self.path, **_PARQUET)
        self.callback(self._file.close)
        self._schema = self._file.schema_arrow
        self.n_rows = self._file.metadata.num_rows

    def _read(self, wanted: Wanted, n_rows: int) -> Iterator[Any]:
        names = [name for name, _ in wanted]
        for batch in self._file.iter_batches(n_rows, columns=[*{*names}], use_threads=False):
            yield pa.Table.from_batches([batch]).select(names)


class ArrowReader(TableReader):
    """An Arrow file, which Feather is another name of, or a stream, whose schema has been read.

    A `stream` that cannot be read twice is an Arrow stream, and reads are short at its end only.
    """

    def _open(self, stream: Any) -> None:
        with self.path.open("rb") if stream is None else nullcontext():  # OSError names the file
            pass
        with self._naming_the_file():
            # A batch of a mapped file is in memory as far as it is read.
            source = pa.memory_map(str(self.path)) if stream is None else stream
            self.callback(source.close)
            begin = source.read(6) if source.seekable() else b""
            if begin:
                source.seek(-len(begin), os.SEEK_CUR)
            self._watched = _Watched(source)
            if begin == b"ARROW1":
                self._file = pa.ipc.open_file(source)
            else:
                self._file = pa.ipc.open_stream(pa.PythonFile(self._watched, mode="r"))
        self._schema = self._file.schema

    def _read(self, wanted: Wanted, n_rows: int) -> Iterator[Any]:  # noqa: ARG002
        file, n = self._file, getattr(self._file, "num_record_batches", None)
        for batch in file if n is None else map(file.get_batch, range(n)):
            yield pa.Table.from_batches([batch]).select([name for name, _ in wanted])
        if self._watched.is_at_end:
            # pyarrow takes the end of the bytes between two batches for the end of the stream.
            what = "it ends without the marker that ends a stream of Arrow"
            raise TableError(f"{self.path} is cut: {what} (writers write it when they are closed)")


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


class JsonLinesReader(TableReader):
    """A file with an object of JSON on each line; the first block says the names of the columns.

    Their types are those of the first block too, or wider ones if later lines need these.
    """

    def _open(self, stream: Any) -> None:
        self._file = stream or open(self.path, "rb")  # noqa: SIM115
        self.callback(self._file.close)
        with self._naming_the_file():
            self._begin()
            self._schema = self._schema_of(*self._first)
        self._has_last_types = not self._file.seekable()  # what is read once keeps the first ones

    def fields(self, kept: list[str]) -> list[Any]:
        self._widen([name for name in kept if name not in self.keys])
        return super().fields(kept)

    def _begin(self) -> None:
        """Read the first block."""
        stream = unpacked(self._file, self._packing)
        self.callback(stream.close)  # a stream closes its file when it is forgotten
        self._blocks = _blocks_of_lines(stream)
        self._first = next(self._blocks, (b"", 0))
        if not self._first[0]:
            raise TableError(f"{self.path} is empty")
        require_text(self.path, self._first[0])

    def _widen(self, columns: list[str]) -> None:
        """Read the file once for types that hold all cells, if those of some columns may not."""
        kinds = {str(self._schema.field(name).type) for name in columns}
        if self._has_last_types or kinds <= {"string", "double", "bool"}:
            return
        self._has_last_types = True
        with self._naming_the_file():
            for block, line in self._blocks:
                # What is wrong in columns that are needed is told when they are read.
                with suppress(TableError):
                    self._add_types(self._schema_of(block, line))
            self._file.seek(0)
            self._begin()

    def _add_types(self, others: Any) -> None:
        """Take types that hold the cells of another schema, too, where there are such."""
        for j, each in enumerate(self._schema):
            with suppress(KeyError, pa.ArrowException):
                self._schema = self._schema.set(j, _wider(each, others.field(each.name)))

    def _read(self, wanted: Wanted, n_rows: int) -> Iterator[Any]:  # noqa: ARG002
        self._widen([name for name, as_number in wanted if not as_number])
        as_read, as_asked = {}, {}
        for name, as_number in wanted:
            kind = self._schema.field(name).type
            # What is whole in the first block may have decimals later.
            as_asked[name] = pa.float64() if as_number else kind
            as_read[name] = kind if pa.types.is_boolean(kind) else as_asked[name]
        read, asked = (pa.schema(list(types.items())) for types in (as_read, as_asked))
        for block, line in chain([self._first], self._blocks):
            yield self._parsed(block, line, read).cast(asked).select([name for name, _ in wanted])

    def _schema_of(self, block: bytes, line: int) -> Any:
        table = self._parsed(block, line)
        fields = [f.with_type(with_leaves(f.type, _with_text)) for f in table.schema]
        for j, each in enumerate(fields):
            # pyarrow takes whole numbers beyond int64 for floating ones.
            if each.type == pa.float64() and (pc.max(pc.abs(table[j])).as_py() or 0) >= 2.0**63:
                for kind in (pa.decimal128(38), pa.decimal256(76)):
                    with suppress(TableError):
                        self._parsed(block, line, pa.schema([each.with_type(kind)]))
                        fields[j] = each.with_type(kind)
                        break
        return pa.schema(fields)

    def _parsed(self, block: bytes, line: int, schema: Any = None) -> Any:
        pa_json, others = need("pyarrow.json"), "infer" if schema is None else "ignore"
        parse = pa_json.ParseOptions(schema, unexpected_field_behavior=others)
        read = pa_json.ReadOptions(use_threads=False, block_size=len(block) + 1)
        # A quote behind a colon begins a cell: within one it would be escaped.
        for word in self._form.missing:
            for is_ascii in (True, False):
                cell = json.dumps(word, ensure_ascii=is_ascii).encode()
                block = re.sub(rb":\s*" + re.escape(cell), b":null", block)
        try:
            return pa_json.read_json(pa.BufferReader(block), read, parse)
        except pa.ArrowException as error:
            last = line + block.count(b"\n") - 1
            what = f"{error} (in lines {line} to {last})"
            raise TableError(f"cannot read {self.path}: {what}") from None


def _blocks_of_lines(stream: IO[bytes]) -> Iterator[tuple[bytes, int]]:
    """Yield whole lines, and the number of the first one, counted from 1."""
    parts: list[bytes] = []
    line = 1
    while part := stream.read(_JSON_BLOCK_BYTES):
        whole, newline, rest = part.rpartition(b"\n")
        if newline:
            block = b"".join([*parts, whole, newline])
            if block.strip():
                yield block, line
            line += block.count(b"\n")
            parts = []
        parts.append(rest)
    if rest := b"".join(parts).strip():
        yield rest + b"\n", line


def _with_text(kind: Any) -> Any:
    """Return text in place of the times that pyarrow makes of it."""
    return pa.string() if pa.types.is_timestamp(kind) else kind
