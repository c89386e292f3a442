"""Reads tables on disk batch by batch: the base of all readers, Parquet, Arrow and JSON lines."""

from __future__ import annotations

import codecs
import gzip
import stat
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, Self, cast

from hdiforest._tables.columns import is_number
from hdiforest._utils.optional import need


class Regroup:
    """Holds rows until there are enough.

    Parameters
    ----------
    n_rows : int
        Length of the tables to make.
    """

    def __init__(self, n_rows: int) -> None:
        self._n_rows = n_rows
        self._held: list[Any] = []
        self._n_held = 0

    def add(self, table: Any) -> Iterator[Any]:
        """Take a pyarrow Table; yield those that are full."""
        self._held.append(table)
        self._n_held += table.num_rows
        while self._n_held >= self._n_rows:
            joined = need("pyarrow").concat_tables(self._held)
            self._held = [joined.slice(self._n_rows)]
            self._n_held -= self._n_rows
            yield joined.slice(0, self._n_rows)

    def rest(self) -> Iterator[Any]:
        """Yield the rows that are left, if there are any."""
        if self._n_held > 0:
            yield need("pyarrow").concat_tables(self._held)


BATCH_ROWS = 65536


BATCH_CELLS = 1 << 22


_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


_MAX_SHOWN = 12


class TableError(ValueError):
    """A table that cannot be used; the message names the file and what is wrong with it.

    Attributes
    ----------
    columns : list of str
        Columns at fault that are there, but cannot be read as numbers.
    """

    def __init__(self, message: str, columns: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.columns = list(columns)


class TableReader(ABC):
    """A table whose header has been read. Its rows can be read once.

    Attributes
    ----------
    path : Path
    names : list of str
        All columns, in order.
    n_rows : int or None
        None if only reading the whole file would tell.
    is_text : bool
        Whether the file has no types.
    """

    path: Path
    names: list[str]
    n_rows: int | None
    is_text = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def require(
        self, number_columns: Sequence[str], kept: Sequence[str] = (), left_out: Sequence[str] = ()
    ) -> None:
        """Raise one TableError for all columns that cannot be read.

        Those to be left out must be there, perhaps more than once. Parquet's types are checked too.
        """
        counts = Counter(self.names)
        wanted = list(dict.fromkeys([*number_columns, *kept]))
        missing = [name for name in dict.fromkeys([*wanted, *left_out]) if name not in counts]
        repeated = [name for name in wanted if counts[name] > 1]
        types = self._other_types([name for name in number_columns if counts[name] == 1])
        faults = [f"{counts[name]} columns '{name}'" for name in repeated]
        if missing:
            faults.insert(0, f"no column{'s' * (len(missing) > 1)} {listed(map(quoted, missing))}")
        clauses = [f"{self.path} has {listed(faults)}"] if faults else []
        if missing:
            clauses.append(f"it has {listed(self.names)}{self.separator_hint()}")
        if types:
            where = "" if faults else f"{self.path}: "
            clauses.append(where + not_numbers({n: f"is {t}" for n, t in types.items()}))
        if clauses:
            raise TableError("; ".join(clauses), [*repeated, *types])

    def separator_hint(self) -> str:
        """Say so if the header looks as if it were not separated by commas."""
        for character, word in _SEPARATORS.items():
            if len(self.names) == 1 and character in self.names[0]:
                shown = "'\\t'" if character == "\t" else quoted(character)
                return f" (its columns seem to be separated by {word}: --sep {shown} reads them)"
        return ""

    def batches(
        self, number_columns: list[str], kept: list[str], batch_rows: int | None = None
    ) -> Iterator[Any]:
        """Yield pyarrow Tables of exactly `batch_rows` rows, the last one of what is left.

        Parameters
        ----------
        number_columns : list of str
            Columns that must hold numbers: the first ones of the Tables. `numbers` makes a matrix
            of them.
        kept : list of str
            Columns to pass on, behind the others: of a CSV as text, of Parquet in their own type.
        batch_rows : int, optional
            65536 if None, or as many rows as make 2^22 cells.

        Raises
        ------
        TableError
            If a column is missing or holds something else, or the file is damaged.
        """
        self.require(number_columns, kept)
        n_rows = batch_rows or rows_of(len(number_columns) + len(kept))
        groups = Regroup(n_rows)
        for part in self._read(number_columns, kept, n_rows):
            yield from groups.add(part)
        yield from groups.rest()

    def typed_batches(
        self, columns: list[str], number_columns: list[str], text_columns: Collection[str] = ()
    ) -> Iterator[Any]:
        """Yield pyarrow Tables of columns in their own types; missing text is null.

        Parameters
        ----------
        columns : list of str
            Those of a CSV are float64 if their first cells are numbers, and text if not.
        number_columns : list of str
            Those of them that must hold numbers.
        text_columns : collection of str
            Those of them that a CSV shall have as text.

        Raises
        ------
        TableError
            As `batches`; and if a CSV has numbers in most of the first cells of a column, but not
            in all cells.
        """
        self.require(number_columns, columns)
        yield from self._read_typed(columns, number_columns, text_columns)

    def _read_typed(
        self,
        columns: list[str],
        number_columns: list[str],  # noqa: ARG002 (types have been checked)
        text_columns: Collection[str],  # noqa: ARG002 (columns have types)
    ) -> Iterator[Any]:
        return self._read([], columns, rows_of(len(columns)))

    def without_missing(self, column: Any) -> Any:
        """Return a column that `batches` was to pass on, with null for cells that say missing."""
        return column

    def share_read(self) -> float | None:
        """Return which share of the file was read, where that is not known from its rows."""
        return None

    @abstractmethod
    def fields(self, kept: list[str]) -> list[Any]:
        """Return the pyarrow fields with which `batches` yields the kept columns."""

    @abstractmethod
    def close(self) -> None:
        """Close the file."""

    @abstractmethod
    def _other_types(self, columns: list[str]) -> dict[str, Any]:
        """Return the types of those columns that are known to hold no numbers."""

    @abstractmethod
    def _read(self, number_columns: list[str], kept: list[str], batch_rows: int) -> Iterator[Any]:
        """Yield Tables of any size."""

    @contextmanager
    def _naming_the_file(self) -> Iterator[None]:
        """Make a TableError of what reading raises."""
        pa = need("pyarrow")
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


def quoted(name: str) -> str:
    """Return a name between quotes."""
    return f"'{name}'"


def listed(items: Iterable[str]) -> str:
    """Return the first items, with commas between them."""
    shown = list(items)
    return ", ".join(shown[:_MAX_SHOWN]) + (", ..." if len(shown) > _MAX_SHOWN else "")


Packing = Literal["none", "gzip", "zstd"]


@dataclass(frozen=True)
class TextForm:
    """How to read the text of tables without types.

    Parameters
    ----------
    sep : str, optional
        Character between cells; by default what the ending of the name says.
    decimal : str, default="."
        Sign before the decimals of a number.
    encoding : str, default="utf-8"
        A name that Python knows.
    """

    sep: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"


def unpacked(file: Any, packing: Packing) -> IO[bytes]:
    """Return a stream of the contents of a compressed file."""
    if packing == "gzip":
        return cast("IO[bytes]", gzip.GzipFile(fileobj=file))
    if packing == "zstd":
        pa = need("pyarrow")
        source = file if isinstance(file, pa.NativeFile) else pa.PythonFile(file, mode="r")
        return cast("IO[bytes]", pa.CompressedInputStream(source, "zstd"))
    return cast("IO[bytes]", file)


def as_utf_8(stream: IO[bytes], encoding: str) -> IO[bytes]:
    """Return a stream of UTF-8 for one in another encoding."""
    if codecs.lookup(encoding).name == "utf-8":
        return stream
    return cast("IO[bytes]", codecs.EncodedFile(stream, "utf-8", encoding))


class _LeftOpen:
    """A file that stays open when the stream on it is closed."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, data: Any) -> int:
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        pass


class TypedReader(TableReader):
    """A table whose columns have types, as `_schema` says, a pyarrow.Schema."""

    n_rows = None
    _schema: Any

    def fields(self, kept: list[str]) -> list[Any]:
        """See `TableReader`."""
        return [self._schema.field(name) for name in kept]

    def _other_types(self, columns: list[str]) -> dict[str, Any]:
        types = {name: self._schema.field(name).type for name in columns}
        return {name: kind for name, kind in types.items() if not is_number(kind)}


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
