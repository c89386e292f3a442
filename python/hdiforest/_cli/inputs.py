"""What is to be scored: files, patterns, folders, addresses and standard input, each as sources."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from itertools import takewhile
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote

from hdiforest._tables.csv import CsvReader
from hdiforest._tables.formats import ANY_ENDING, FORMATS, ending, open_table
from hdiforest._tables.read import ArrowReader, Packing, TableError, TableReader, TextForm
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


NAME = Path("standard input")

_STARTS_OF_OTHERS = {b"PAR1": "Parquet", b"ARROW1": "an Arrow file"}
_PACKINGS: dict[bytes, Packing] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


def open_standard_input(form: TextForm | None = None) -> TableReader:
    """Open the table that comes through standard input, and read its header.

    Raises
    ------
    TableError
        If it is Parquet, an Arrow file, or nothing that can be read.
    """
    stream = open(os.dup(sys.stdin.fileno()), "rb")  # noqa: SIM115 (the reader closes it)
    try:
        begin = stream.peek(6)
        for start, what in _STARTS_OF_OTHERS.items():
            if begin.startswith(start):
                raise TableError(
                    f"{NAME} is {what}, which is read from its end; a pipe can bring CSV, CSV "
                    "packed by gzip or zstd, or a stream of Arrow; or name a file"
                )
        if begin.startswith(b"\xff\xff\xff\xff"):
            return ArrowReader(NAME, stream=stream)
        packings = (packing for start, packing in _PACKINGS.items() if begin.startswith(start))
        return CsvReader(NAME, packing=next(packings, "none"), stream=stream, form=form)
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
        table.add_columns(self.keys)
        return table

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
    return list(takewhile(lambda part: not glob.has_magic(part), parts))
