"""Facts and arrays in one file: safetensors layout, no code, memory-mapped, with checksums."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

import hdicore
from hdiforest._utils.checks import check_flag, printable
from hdiforest._utils.files import replacing
from hdiforest._utils.optional import need
from hdiforest.exceptions import ModelReplacedError
from hdiforest.serving._parts import Arrays, Origin, Parts

_AT_ONCE = 1 << 24  # a signal waits until so many bytes are read or hashed
_SMALL = 1 << 16  # bytes of an array whose checksum each `load` checks
_MAX_HEADER = 100_000_000  # bytes; as safetensors itself
_DIGEST = 32  # bytes of a checksum
_DTYPES = {
    "U8": "<u1", "U16": "<u2", "U32": "<u4", "U64": "<u8",
    "I32": "<i4", "I64": "<i8", "F32": "<f4", "F64": "<f8",
}  # fmt: skip

# A header as safetensors writes it: JSON without blanks, whose names need no escapes. Other texts
# that mean the same are refused, so that readers in all languages take the same files.
_START = re.compile(r'\{"__metadata__":\{"(\w+)":"([ -!#-\[\]-~]*)', re.ASCII)
_WHOLE = "(?:0|[1-9][0-9]{0,17})"
_ENTRY = re.compile(
    r',"([A-Za-z0-9_.]+)":\{"dtype":"([A-Z0-9]+)",'
    rf'"shape":\[((?:{_WHOLE}(?:,{_WHOLE})*)?)\],"data_offsets":\[({_WHOLE}),({_WHOLE})\]\}}'
)

FORMAT_VERSION = 3  # of all kinds of files
_OLDER = ("format_version", "hdicore")  # facts that name it

Content = TypeVar("Content")


class Versions(NamedTuple):
    """What wrote a file."""

    format_version: int
    hdicore: str
    scikit_learn: str


@dataclass(frozen=True)
class Format(Generic[Content]):
    """A kind of file, and how it is read."""

    noun: str  # as in "there is no model file PATH"
    content: str  # as in "PATH is not a valid model"
    key: str  # of its metadata
    read: Callable[[Parts], Content]  # raises ValueError


def write(path: Path, form: Format[Any], tensors: Arrays) -> None:
    """Write a file, whole or not at all, with the versions of all that wrote it."""
    safetensors = need("safetensors.numpy", "a model file", "io")
    versions = FORMAT_VERSION, hdicore.__version__, importlib.metadata.version("scikit-learn")
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}")
    # safetensors writes the memory of an array as it lies.
    in_order = {name: np.asarray(array, order="C") for name, array in tensors.items()}
    digests = [_digest(in_order[name]) for name in sorted(in_order)]
    in_order["digests"] = np.zeros((1 + len(digests), _DIGEST), dtype=np.uint8)
    with replacing(path) as temporary:
        try:
            metadata = {form.key: " ".join(map(str, versions))}
            safetensors.save_file(in_order, temporary, metadata=metadata)
        except need("safetensors").SafetensorError as error:
            raise OSError(f"cannot write {path}: {error}") from None
        _write_digests(temporary, b"".join(digests))


def _write_digests(path: Path, digests: bytes) -> None:
    """Put the checksum of the header and of all others, and these, in their place."""
    with path.open("r+b") as file:
        head = file.read(8)
        head += file.read(int.from_bytes(head, "little"))
        begin = re.search(rb'"digests":{[^}]*"data_offsets":\[([0-9]+),', head)
        file.seek(len(head) + int(cast("re.Match[bytes]", begin)[1]))
        file.write(hashlib.sha256(head + digests).digest() + digests)


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
        if mapped and self._n_bytes > 0:
            return np.memmap(self._file, dtype=np.uint8, mode="r")
        content, n_read = np.empty(self._n_bytes, dtype=np.uint8), 0
        while n := self._file.readinto(content[n_read : n_read + _AT_ONCE].data):
            n_read += n
        content.flags.writeable = False
        return content[:n_read]


class Loaded(NamedTuple, Generic[Content]):
    """What was read from a file."""

    content: Content
    versions: Versions
    digest: str  # SHA-256 that stands for everything in the file
    # Of a mapped file: raises OSError if it was written to since.
    check_file: Callable[[], None] | None


def load(
    path: Path, form: Format[Content], *, verify: bool = False, mapped: bool = True
) -> Loaded[Content]:
    """Return what the format reads from the file's arrays.

    The header and small arrays are compared with their checksums; with `verify`, or if the file is
    not `mapped` but copied, so are large arrays, and everything is checked at once. OSError says
    that the file cannot be read, or is written to meanwhile; ValueError that it is of another
    format or version, damaged, or refused by `Format.read`.
    """
    check_flag("mapped", mapped)
    if not path.is_file():
        raise FileNotFoundError(f"there is no {form.noun} {path}")
    file = OpenFile(path)
    try:
        content = file.content(mapped=mapped)
        versions, head, tensors = _header(path, form, content)
        digest = _check_digests(path, head, tensors, verify=verify or not mapped)
        model = _read(path, form, tensors, verify=verify or not mapped)
    finally:
        file.require_unchanged()  # which says more of a file that was half written
    return Loaded(model, versions, digest, file.require_unchanged if mapped else None)


def _read(path: Path, form: Format[Content], tensors: Arrays, *, verify: bool) -> Content:
    origin = Origin(f"{path} is not a valid {form.content}", lazy=not verify)
    try:
        return form.read(Parts(tensors, origin=origin))
    except ValueError as error:
        text = str(error)
        if text.startswith(str(origin.source)):
            raise
        raise ValueError(f"{origin.source}: {printable(text)}") from None


def _header(
    path: Path, form: Format[Any], content: NDArray[np.uint8]
) -> tuple[Versions, bytes, Arrays]:
    """Return who wrote a file, its bytes before the arrays, and read-only views of the arrays."""
    n_header, n_left = int.from_bytes(content[:8].tobytes(), "little"), len(content) - 8
    head = content[: 8 + n_header].tobytes() if n_header <= min(n_left, _MAX_HEADER) else b""
    text = head[8:].decode("latin-1")
    start = _START.match(text)
    if start is not None and start[1] == form.key:
        versions = _versions(path, form, start[2], text)
    elif text.startswith('{"'):
        raise ValueError(f"{path} is not a {form.noun}: it holds other tensors")
    elif (other := _other_content(path)) is not None:
        raise ValueError(f"{path} is not a {form.noun}: it looks like {other}")
    try:
        if start is None:
            raise ValueError(f"its header cannot have {n_header} bytes, or is no JSON")
        return versions, head, _tensors(text, start.end(), content[len(head) :])
    except ValueError as error:
        reason = printable(str(error))[:200]
        raise ValueError(f"{path} is not a {form.noun}, or is damaged: {reason}") from None


def _versions(path: Path, form: Format[Any], written: str, text: str) -> Versions:
    """Return what wrote a file; ValueError if it is of another version of the format."""
    words = written.split(" ")
    is_whole = len(words) == len(Versions._fields) and all(words)
    if is_whole and words[0] == str(FORMAT_VERSION):
        return Versions(FORMAT_VERSION, *words[1:])
    how = "upgrade hdicore"
    if written.startswith("{"):  # until format 2 all facts stood here, as JSON within JSON
        facts = [re.search(rf'\\"{n}\\": (?:\\")?([^\\,}}]*)', text) for n in _OLDER]
        words = [fact[1] if fact else "?" for fact in facts]
        how = "make it again, or read it with that version"
    version, writer = (printable(word[:60]) for word in [*words, "?"][:2])
    raise ValueError(
        f"{path} has format {version}, written by hdicore {writer}; this version reads format "
        f"{FORMAT_VERSION} of a {form.noun}: {how}"
    )


def _tensors(text: str, position: int, content: NDArray[np.uint8]) -> Arrays:
    """Return the arrays that a header names behind its start; ValueError unless they tile a file.

    The package safetensors is not asked: it opens a file by its name, which may mean another one by
    then.
    """
    if not text.startswith('"}', position):
        raise ValueError("its header is not as safetensors writes it")
    position += 2
    ranges, tensors = [], {}
    while entry := _ENTRY.match(text, position):
        position = entry.end()
        name, dtype, shape, *offsets = entry.groups()
        begin, end = map(int, offsets)
        if name in tensors:
            raise ValueError(f"{name} is there twice")
        if dtype not in _DTYPES:
            raise ValueError(f"{name} has type {dtype}")
        if not begin <= end <= len(content):
            raise ValueError(f"the range of {name} is none")
        ranges.append((begin, end))
        lengths = [int(n) for n in shape.split(",") if n]
        tensors[name] = content[begin:end].view(_DTYPES[dtype]).reshape(lengths)
    if text[position:].rstrip(" ") != "}":
        raise ValueError("its header is not as safetensors writes it")
    stops = [0, *(end for _, end in sorted(ranges)), len(content)]
    if [begin for begin, _ in sorted(ranges)] != stops[:-2] or stops[-1] != stops[-2]:
        raise ValueError("there is a gap between arrays, or an overlap")
    return tensors


def _check_digests(path: Path, head: bytes, tensors: Arrays, *, verify: bool) -> str:
    """Take the checksums away, and return that of all; large arrays are compared to `verify`."""
    digests = tensors.pop("digests", np.zeros(0))
    if digests.dtype != np.uint8 or digests.shape != (1 + len(tensors), _DIGEST):
        raise ValueError(f"{path} is damaged: its checksums are not those of its arrays")
    if digests[0].tobytes() != hashlib.sha256(head + digests[1:].tobytes()).digest():
        raise ValueError(f"{path} is damaged: its checksum does not match its contents")
    for name, digest in zip(sorted(tensors), digests[1:], strict=True):
        array = tensors[name]
        if (verify or array.nbytes <= _SMALL) and digest.tobytes() != _digest(array):
            raise ValueError(f"{path} is damaged: the checksum of {name} does not match")
    return str(digests[0].tobytes().hex())


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


def _digest(array: NDArray[Any]) -> bytes:
    state = hashlib.sha256()
    contents = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    for begin in range(0, len(contents), _AT_ONCE):
        state.update(contents[begin : begin + _AT_ONCE])
    return state.digest()
