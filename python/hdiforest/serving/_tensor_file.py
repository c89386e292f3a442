"""Facts and arrays in one file: safetensors layout, no code, memory-mapped, with checksums."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import reprlib
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

import hdicore
from hdiforest._utils.checks import check_flag, printable
from hdiforest._utils.files import replacing
from hdiforest._utils.optional import need
from hdiforest.exceptions import ModelReplacedError
from hdiforest.serving._schema import Arrays, Facts, Origin, Versions, unpack

_AT_ONCE = 1 << 24  # a signal waits until so many bytes are read or hashed
_MAX_HEADER = 100_000_000  # bytes; as safetensors itself
_SMALL = 1 << 16  # bytes of an array whose checksum each `load` checks
_DTYPES = {
    "U8": "<u1", "U16": "<u2", "U32": "<u4", "U64": "<u8",
    "I32": "<i4", "I64": "<i8", "F32": "<f4", "F64": "<f8",
}  # fmt: skip

FORMAT_VERSION = 2  # of all kinds of files

Content = TypeVar("Content")


@dataclass(frozen=True)
class Format(Generic[Content]):
    """A kind of file, and how it is read."""

    noun: str  # as in "there is no model file PATH"
    content: str  # as in "PATH is not a valid model"
    key: str  # of its metadata
    read: Callable[[Facts, Arrays, Origin], Content]  # raises ValueError


def write(path: Path, form: Format[Any], facts: Facts, tensors: Arrays) -> None:
    """Write a file, whole or not at all. The versions of all that wrote it become facts."""
    safetensors = need("safetensors.numpy", "a model file", "io")
    scikit_learn = importlib.metadata.version("scikit-learn")
    versions = Versions(FORMAT_VERSION, hdicore.__version__, scikit_learn)._asdict()
    metadata = {form.key: json.dumps(_content(versions | facts, tensors))}
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}")
    with replacing(path) as temporary:
        try:
            # safetensors writes the memory of an array as it lies.
            in_order = {name: np.asarray(array, order="C") for name, array in tensors.items()}
            safetensors.save_file(in_order, temporary, metadata=metadata)
        except need("safetensors").SafetensorError as error:
            raise OSError(f"cannot write {path}: {error}") from None


class OpenFile:
    """A file, kept open to see whether it is as it was opened; its descriptor goes with it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("rb", buffering=0)  # which refuses to be copied or pickled
        weakref.finalize(self, self._file.close)
        self._descriptor = self._file.fileno()
        status = os.fstat(self._descriptor)
        self._n_bytes, self._written = status.st_size, status.st_mtime_ns

    def require_unchanged(self) -> None:
        """Raise ModelReplacedError if the opened file was written to. Takes a microsecond."""
        try:
            status = os.fstat(self._descriptor)
        except OSError as error:  # its descriptor was closed, as programs that become daemons do
            reason = f"cannot see whether {self._path} has changed: {error.strerror}"
            raise OSError(reason) from None
        if status.st_mtime_ns != self._written or status.st_size != self._n_bytes:
            raise ModelReplacedError(
                f"{self._path} was written to in place while it was in use: load it again, and "
                "replace model files by writing aside and renaming, as save does, or load them "
                "with mapped=False"
            )

    def content(self, *, mapped: bool) -> NDArray[np.uint8]:
        """Return all bytes, read-only: the file's own memory, or a copy."""
        if mapped:
            return np.memmap(self._file, dtype=np.uint8, mode="r")
        content, n_read = np.empty(self._n_bytes, dtype=np.uint8), 0
        while n := self._file.readinto(content[n_read : n_read + _AT_ONCE].data):
            n_read += n
        content.flags.writeable = False
        return content[:n_read]


class Loaded(NamedTuple, Generic[Content]):
    """What was read from a file."""

    content: Content
    facts: Facts
    digest: str  # SHA-256 that stands for everything in the file
    # Of a mapped file: raises OSError if it was written to since.
    check_file: Callable[[], None] | None


def load(
    path: Path, form: Format[Content], *, verify: bool = False, mapped: bool = True
) -> Loaded[Content]:
    """Return what the format reads from the file's facts and arrays.

    Facts, names, types, shapes and small arrays are compared with their checksums; with `verify`,
    or if the file is not `mapped` but copied, so are large arrays, and everything is checked at
    once. OSError says that the file cannot be read, or is written to meanwhile; ValueError that it
    is of another format or version, damaged, or refused by `Format.read`.
    """
    check_flag("mapped", mapped)
    if not path.is_file():
        raise FileNotFoundError(f"there is no {form.noun} {path}")
    file = OpenFile(path)
    try:
        header, tensors = _read(path, form, file, mapped)
        content = _checked(path, form, header, tensors, verify or not mapped)
    finally:
        file.require_unchanged()  # which says more of a file that was half written
    check_file = file.require_unchanged if mapped else None
    return Loaded(content, header.facts, header.sha256, check_file)


def _checked(
    path: Path, form: Format[Content], header: _Header, tensors: Arrays, verify: bool
) -> Content:
    """Return what a file holds, if its checksums fit; large arrays are read to `verify` only."""
    if header.sha256 != _digest(header.facts, tensors, header.arrays):
        raise ValueError(f"{path} is damaged: its checksum does not match its contents")
    for name, sha256 in header.arrays.items():
        array = tensors[name]
        if (verify or array.nbytes <= _SMALL) and sha256 != _array_digest(array):
            raise ValueError(f"{path} is damaged: the checksum of {printable(name)} does not match")
    origin = Origin(f"{path} is not a valid {form.content}", lazy=not verify)
    try:
        rest = dict(header.facts)
        unpack(Versions, {name: rest.pop(name) for name in Versions._fields if name in rest})
        return form.read(rest, tensors, origin)
    except ValueError as error:
        text = str(error)
        if text.startswith(str(origin.source)):
            raise
        raise ValueError(f"{origin.source}: {printable(text)}") from None


class _Header(NamedTuple):
    """What a file holds beside its arrays."""

    facts: Facts  # not checked yet
    sha256: str
    arrays: dict[str, str]  # SHA-256 of each


def _content(facts: Facts, tensors: Arrays) -> dict[str, Any]:
    """Return the header of a new file, as JSON's types."""
    arrays = {name: _array_digest(array) for name, array in tensors.items()}
    return _Header(facts, _digest(facts, tensors, arrays), arrays)._asdict()


def _read(path: Path, form: Format[Any], file: OpenFile, mapped: bool) -> tuple[_Header, Arrays]:
    """Return the header, and read-only views of the arrays."""
    try:
        metadata, tensors = _metadata_and_tensors(file.content(mapped=mapped))
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
        if (other := _other_content(path)) is not None:
            raise ValueError(f"{path} is not a {form.noun}: it looks like {other}") from None
        reason = printable(str(error))[:200]
        raise ValueError(f"{path} is not a {form.noun}, or is damaged: {reason}") from None
    try:
        content = json.loads(metadata[form.key])
        header = _Header(dict(content["facts"]), str(content["sha256"]), dict(content["arrays"]))
        format_version = header.facts["format_version"]
    except (KeyError, RecursionError, TypeError, ValueError):
        raise ValueError(f"{path} is not a {form.noun}: it holds other tensors") from None
    if format_version != FORMAT_VERSION:
        writer = printable(str(header.facts.get("hdicore"))[:100])
        is_older = format_version in range(FORMAT_VERSION)
        how = "make it again, or read it with that version" if is_older else "upgrade hdicore"
        raise ValueError(
            f"{path} has format {reprlib.repr(format_version)}, written by hdicore {writer}; this "
            f"version reads format {FORMAT_VERSION} of a {form.noun}: {how}"
        )
    if set(header.arrays) != set(tensors):
        raise ValueError(f"{path} is damaged: its checksums are not those of its arrays")
    return header, tensors


def _other_content(path: Path) -> str | None:
    """Say what a file that is not ours begins like, None if that is not known."""
    with path.open("rb") as file:
        start = file.read(1 << 10)
    if not any(start[5:8]):  # ours begin with the length of a header, below 2^40
        return None
    if start.startswith((b"PAR1", b"ARROW1")):
        return "a table of Parquet or Arrow"
    has_controls = any(byte < 9 or 13 < byte < 32 for byte in start)
    return None if has_controls else "a table or another text"


def _metadata_and_tensors(content: NDArray[np.uint8]) -> tuple[Any, Arrays]:
    """Return the metadata, and views of the tensors, of the bytes of a file of safetensors.

    That package is not asked: it opens a file by its name, which may mean another one by then.
    Errors of many kinds mean that a header is not well-formed, or does not tile the file.
    """
    n_header = int.from_bytes(content[:8].tobytes(), "little")
    start = 8 + n_header
    if start > len(content) or n_header > _MAX_HEADER:
        raise ValueError(f"its header cannot have {n_header} bytes")
    header = json.loads(content[8:start].tobytes().decode(), object_pairs_hook=_unique)
    if not isinstance(header, dict):
        raise ValueError("its header is no object")
    metadata = header.pop("__metadata__", {})
    end, tensors = start, {}
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        name.encode()  # refuses halves of surrogate pairs
        begin, stop = entry["data_offsets"]
        if not all(type(n) is int and n >= 0 for n in (begin, stop, *entry["shape"])):
            raise ValueError(f"the range of {name} is none")
        if start + begin != end or stop < begin:
            raise ValueError(f"there is a gap before {name}, or an overlap")
        if entry["dtype"] not in _DTYPES:
            raise ValueError(f"{name} has type {entry['dtype']}")
        end = start + stop
        data = content[start + begin : end]
        tensors[name] = data.view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])
    if end != len(content):
        raise ValueError(f"its arrays end at byte {end} of {len(content)}")
    return metadata, tensors


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("its header names something twice")
    return entries


def _digest(facts: Facts, tensors: Arrays, digests: Mapping[str, str]) -> str:
    """SHA-256 over the facts and the names, types, shapes and checksums of arrays."""
    state = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name in sorted(tensors):
        array = tensors[name]
        state.update(f"{name} {array.dtype.str} {array.shape}{digests[name]}".encode())
    return state.hexdigest()


def _array_digest(array: NDArray[Any]) -> str:
    state = hashlib.sha256()
    contents = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    for begin in range(0, len(contents), _AT_ONCE):
        state.update(contents[begin : begin + _AT_ONCE])
    return state.hexdigest()
