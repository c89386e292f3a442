"""What is to be scored: files, patterns, folders, addresses and standard input, each as sources."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from io import BufferedReader, RawIOBase
from pathlib import Path, PurePath, PurePosixPath
from typing import IO, Any, NamedTuple, cast
from urllib.parse import unquote

from hdiforest._tables.csv import CsvReader
from hdiforest._tables.formats import ANY_ENDING, FORMATS, ending, open_table
from hdiforest._tables.read import (
    ArrowStreamReader,
    Packing,
    TableError,
    TableReader,
    TextForm,
    listed,
    quoted,
)
from hdiforest._utils.optional import need

_MISSING = "__HIVE_DEFAULT_PARTITION__"


Keys = dict[str, Any]  # whole numbers, texts or None


def keys_of(folders: PurePath) -> dict[str, str | None]:
    """Return the keys in the names of some folders, as text."""
    pairs = (part.split("=", 1) for part in folders.parts if "=" in part)
    return {unquote(name): None if value == _MISSING else unquote(value) for name, value in pairs}


def typed(keys: Sequence[Mapping[str, str | None]]) -> list[Keys]:
    """Return the keys of all tables, as whole numbers where all values of a key are such."""
    names = {name for each in keys for name in each}
    numbers = {
        name
        for name in names
        if all(_is_whole(each[name]) for each in keys if each.get(name) is not None)
    }
    return [
        {n: int(v) if n in numbers and v is not None else v for n, v in each.items()}
        for each in keys
    ]


def _is_whole(text: str | None) -> bool:
    digits = (text or "").removeprefix("-")
    # With zeros in front it is a code, such as that of a town.
    return digits.isdecimal() and len(digits) < 18 and str(int(text or "")) == text


class WithKeys(TableReader):
    """A table with columns of one value behind its own.

    Parameters
    ----------
    table : TableReader
    keys : dict
        The values of the columns. Columns that the table has too are refused by `require` only.
    """

    def __init__(self, table: TableReader, keys: Keys) -> None:
        self._table, self._keys = table, keys
        self.path, self.n_rows, self.is_text = table.path, table.n_rows, table.is_text
        self.names = [*table.names, *(name for name in keys if name not in table.names)]

    def require(
        self, number_columns: Sequence[str], kept: Sequence[str] = (), left_out: Sequence[str] = ()
    ) -> None:
        """See `TableReader`; a column must not be both in the file and in a folder's name."""
        wanted = dict.fromkeys([*number_columns, *kept])
        both = [n for n in wanted if n in self._keys and n in self._table.names]
        if both:
            raise TableError(
                f"{self.path} has {listed(map(quoted, both))} in the file and in the names of its "
                "folders",
                both,
            )
        super().require(number_columns, kept, left_out)

    def separator_hint(self) -> str:
        """See `TableReader`."""
        return self._table.separator_hint()

    def without_missing(self, column: Any) -> Any:
        """See `TableReader`."""
        return self._table.without_missing(column)

    def share_read(self) -> float | None:
        """See `TableReader`."""
        return self._table.share_read()

    def fields(self, kept: list[str]) -> list[Any]:
        """See `TableReader`."""
        pa = need("pyarrow")
        return [
            pa.field(name, self._type(name))
            if self._is_key(name)
            else self._table.fields([name])[0]
            for name in kept
        ]

    def close(self) -> None:
        """Close the file."""
        self._table.close()

    def _is_key(self, name: str) -> bool:
        return name in self._keys and name not in self._table.names

    def _type(self, name: str) -> Any:
        pa = need("pyarrow")
        is_text = self.is_text or isinstance(self._keys[name], str)
        return pa.string() if is_text else pa.int64()

    def _other_types(self, columns: list[str]) -> dict[str, Any]:
        texts = {n: f"'{self._keys[n]}'" for n in columns if self._is_key(n)}
        texts = {n: text for n, text in texts.items() if isinstance(self._keys[n], str)}
        own = self._table._other_types([name for name in columns if not self._is_key(name)])
        return own | texts

    def _read(self, number_columns: list[str], kept: list[str], batch_rows: int) -> Iterator[Any]:
        own_numbers = [name for name in number_columns if not self._is_key(name)]
        own_kept = [name for name in kept if not self._is_key(name)]
        if not own_numbers and not own_kept:  # readers do not count the rows of no columns
            own_kept = self._table.names[:1]
        for part in self._table._read(own_numbers, own_kept, batch_rows):
            columns = iter(part.columns)
            yield need("pyarrow").Table.from_arrays(
                [*self._all(number_columns, columns, part.num_rows, numbers=True),
                 *self._all(kept, columns, part.num_rows, numbers=False)],
                [*number_columns, *kept],
            )  # fmt: skip

    def _all(
        self, names: Iterable[str], own: Iterator[Any], n_rows: int, *, numbers: bool
    ) -> Iterator[Any]:
        pa = need("pyarrow")
        for name in names:
            if not self._is_key(name):
                yield next(own)
                continue
            value = self._keys[name]
            kind = pa.float64() if numbers else self._type(name)
            if value is not None and pa.types.is_string(kind):
                value = str(value)
            yield (
                pa.nulls(n_rows, kind)
                if value is None
                else pa.repeat(pa.scalar(value, kind), n_rows)
            )


NAME = Path("standard input")


_STARTS_OF_OTHERS = {b"PAR1": "Parquet", b"ARROW1": "an Arrow file"}


_PACKINGS: dict[bytes, Packing] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


_N_BYTES = 6  # tell the formats apart


class _Ahead(RawIOBase):
    """A stream of which some bytes were read already."""

    def __init__(self, stream: IO[bytes], ahead: bytes) -> None:
        self._stream, self._ahead = stream, ahead

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._ahead[: len(buffer)]
        self._ahead = self._ahead[len(part) :]
        part = part or self._stream.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)

    def fileno(self) -> int:
        return self._stream.fileno()

    def tell(self) -> int:
        return self._stream.tell() - len(self._ahead)

    def close(self) -> None:
        self._stream.close()
        super().close()


def open_standard_input(form: TextForm | None = None) -> TableReader:
    """Open the table that comes through standard input, and read its header.

    Raises
    ------
    TableError
        If it is Parquet, an Arrow file, or nothing that can be read.
    """
    # Not buffered, so that no byte stays in a buffer of Python's own.
    stream = cast("IO[bytes]", open(os.dup(sys.stdin.fileno()), "rb", buffering=0))  # noqa: SIM115
    try:
        ahead = b""
        while len(ahead) < _N_BYTES and (part := stream.read(_N_BYTES - len(ahead))):
            ahead += part
        for start, what in _STARTS_OF_OTHERS.items():
            if ahead.startswith(start):
                raise TableError(
                    f"{NAME} is {what}, which is read from its end; a pipe can bring CSV, CSV "
                    "packed by gzip or zstd, or a stream of Arrow; or name a file"
                )
        whole = cast("IO[bytes]", _Ahead(stream, ahead))
        if ahead.startswith(b"\xff\xff\xff\xff"):
            # Arrow takes fewer bytes than it asked for as the end.
            return ArrowStreamReader(NAME, BufferedReader(cast("RawIOBase", whole)))
        packings = (packing for start, packing in _PACKINGS.items() if ahead.startswith(start))
        return CsvReader(NAME, packing=next(packings, "none"), stream=whole, form=form)
    except BaseException:
        stream.close()
        raise


STANDARD_INPUT = "-"


@dataclass(frozen=True)
class Source:
    """One table to score."""

    path: Path  # its name in errors; of a remote file the path in its file system
    name: Path  # of the output, in a folder of outputs
    keys: Keys = field(default_factory=dict)  # columns from the names of its folders
    system: Any = None  # pyarrow.fs.FileSystem; None: a file of this machine, or standard input
    form: TextForm = field(default_factory=TextForm)

    def open(self) -> TableReader:
        """Open the table and read its header.

        Raises
        ------
        OSError, TableError
            See `open_table`.
        """
        if self.path == NAME:
            return open_standard_input(self.form)
        stream = None
        if self.system is not None:
            stream = self.system.open_input_file(self.path.as_posix())
        table = open_table(self.path, stream, self.form)
        return WithKeys(table, self.keys) if self.keys else table

    def size_and_time(self) -> tuple[int, int]:
        """Return the bytes of the file, and when it changed in nanoseconds."""
        if self.system is None:
            status = self.path.stat()
            return status.st_size, status.st_mtime_ns
        info = self.system.get_file_info(self.path.as_posix())
        return info.size, info.mtime_ns or 0


class Part(NamedTuple):
    """The i-th of n shares of the sources, for jobs side by side."""

    i: int  # from 1 on
    n: int

    def of(self, sources: Sequence[Source]) -> list[Source]:
        """Return every n-th source."""
        return list(sources[self.i - 1 :: self.n])


class Inputs:
    """What the arguments stand for.

    Parameters
    ----------
    arguments : sequence of str
    form : TextForm, optional
        How the text of a CSV is written.

    Attributes
    ----------
    sources : list of Source
        Sorted by name within each folder or pattern.
    is_one_file : bool
        Whether there is one argument and it names a file, not a folder or pattern.
    folders : list of Path
        Those of this machine that were named.

    Raises
    ------
    TableError
        If a folder has no tables, a pattern matches nothing, or an ending is unknown.
    ValueError
        If arguments do not go together, one of several is a pipe, or an address is not understood.
    OSError
        If an address cannot be listed.
    """

    def __init__(self, arguments: Sequence[str], form: TextForm | None = None) -> None:
        if STANDARD_INPUT in arguments and len(arguments) > 1:
            raise ValueError("- (standard input) must be the only input")
        self.folders: list[Path] = []
        self.is_one_file = len(arguments) == 1
        every = [source for each in arguments for source in self._found(each)]
        # The same table may be given twice.
        found = list({(str(each.path), each.system is None): each for each in every}.values())
        if len(found) > 1:
            _refuse_pipes(found)
        keys = typed([each.keys for each in found])
        self.sources = [
            Source(each.path, each.name, own, each.system, form or TextForm())
            for each, own in zip(found, keys, strict=True)
        ]

    def _found(self, text: str) -> list[Source]:
        if text == STANDARD_INPUT:
            return [Source(NAME, NAME)]
        if "://" in text:
            return self._remote(text)
        path = Path(text)
        if path.is_dir():
            self.is_one_file = False
            self.folders.append(path)
            walked = os.walk(path, onerror=_raise)
            files = (Path(root, f) for root, _, names in walked for f in names)
            # Reading a pipe would wait. A link to nothing may be a table that is lost.
            files = (f for f in files if f.is_file() or not f.exists())
            return _in_folder(path, files, f"the folder {text}")
        if glob.has_magic(text) and not os.path.lexists(text):
            self.is_one_file = False
            matches = [Path(each) for each in glob.glob(text, recursive=True)]
            files = (each for each in matches if each.is_file())
            sources = _in_folder(Path(*_fixed(path.parts)), files, None)
            if not sources:
                raise TableError(f"no table matches {text}; endings known are {ANY_ENDING}")
            return sources
        ending(path)
        return [Source(path, Path(path.name))]

    def _remote(self, text: str) -> list[Source]:
        pa, fs = need("pyarrow"), need("pyarrow.fs")
        address, question, options = text.partition("?")
        is_pattern = glob.has_magic(address)
        base = "/".join(_fixed(address.split("/"))) if is_pattern else address
        try:
            system, root = fs.FileSystem.from_uri(f"{base}{question}{options}")
        except (pa.ArrowException, ValueError):
            raise ValueError(
                f"cannot read {text}: {text.partition('://')[0]}:// is not known or not complete; "
                "possible are file://, s3://, gs://, abfss:// and hdfs://"
            ) from None
        if isinstance(system, fs.LocalFileSystem):
            return self._found(f"{root}{address.removeprefix(base)}")
        try:
            info = system.get_file_info(root)
            if info.type == fs.FileType.File and not is_pattern:
                path = PurePosixPath(root)
                ending(Path(path))
                return [Source(Path(path), Path(path.name), {}, system)]
            self.is_one_file = False
            if info.type != fs.FileType.Directory:
                raise TableError(f"there is nothing at {text}")
            entries = system.get_file_info(fs.FileSelector(root, recursive=True))
        except OSError as error:
            raise OSError(
                f"cannot read {text}: {error}; credentials are read from the environment, such as "
                "AWS_ACCESS_KEY_ID or AWS_PROFILE"
            ) from None
        files = (Path(each.path) for each in entries if each.is_file)
        if is_pattern:
            rest = address.removeprefix(base).lstrip("/")
            files = (f for f in files if fnmatch(f.relative_to(root).as_posix(), rest))
        return [
            Source(each.path, each.name, each.keys, system)
            for each in _in_folder(Path(root), files, text)
        ]


def _in_folder(folder: Path, files: Iterable[Path], what: str | None) -> list[Source]:
    """Return the tables among files below a folder; `what` is named if there are none."""
    sources = []
    for path in sorted(files):
        name = path.relative_to(folder)
        if not any(part.startswith((".", "_")) for part in name.parts) and _is_table(path):
            sources.append(Source(path, name, dict(keys_of(name.parent))))
    if not sources and what is not None:
        raise TableError(f"{what} has no tables; endings known are {ANY_ENDING}")
    return sources


def _refuse_pipes(sources: Sequence[Source]) -> None:
    """Raise ValueError if one of several tables is no file: these are read twice."""
    for source in sources:
        if source.system is None and source.path.exists() and not source.path.is_file():
            raise ValueError(f"{source.path} is a pipe or a device, and must be the only input")


def _raise(error: OSError) -> None:
    raise error


def _is_table(path: Path) -> bool:
    return any(path.name.lower().endswith(known) for known in FORMATS)


def _fixed(parts: Sequence[str]) -> list[str]:
    """Return the parts in front of the first one with a wildcard."""
    return list(_until_magic(parts))


def _until_magic(parts: Sequence[str]) -> Iterator[str]:
    for part in parts:
        if glob.has_magic(part):
            return
        yield part
