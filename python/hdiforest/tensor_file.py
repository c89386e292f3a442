"""Facts and arrays in one file: safetensors layout, no code, memory-mapped, with checksums."""

from __future__ import annotations

import hashlib
import json
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

import hdicore
from hdiforest.atomic import replacing
from hdiforest.text import alternatives, printable

_HASHED_AT_ONCE = 1 << 24  # a signal waits until so many bytes are hashed
_SMALL = 1 << 16  # bytes of an array whose checksum each `load` checks
_DTYPES = {
    "U8": "<u1",
    "U16": "<u2",
    "U32": "<u4",
    "U64": "<u8",
    "I32": "<i4",
    "I64": "<i8",
    "F32": "<f4",
    "F64": "<f8",
}

Facts = dict[str, Any]
Tensors = dict[str, NDArray[Any]]


Content = TypeVar("Content")


@dataclass(frozen=True)
class Format(Generic[Content]):
    """A kind of file, and how each version of it is read."""

    noun: str  # as in "there is no model file PATH"
    content: str  # as in "PATH is not a valid model"
    key: str  # of its metadata
    # Of each version: a function that checks and raises ValueError. The highest one is written.
    # Where it is given the name of the file, it may leave checks of what large arrays hold to
    # their first use, and errors then name the file.
    readers: Mapping[int, Callable[[Facts, Tensors, str | None], Content]]


def write(path: Path, form: Format[Any], facts: Facts, tensors: Tensors) -> None:
    """Write a file, whole or not at all. The versions of the format and of hdicore become facts.

    Raises
    ------
    ImportError
        If safetensors is not installed.
    OSError
        If the file cannot be written.
    """
    _require_safetensors()
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    facts = {"format_version": max(form.readers), "hdicore": hdicore.__version__, **facts}
    metadata = {form.key: json.dumps(_content(facts, tensors))}
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}")
    with replacing(path) as temporary:
        try:
            # safetensors writes the memory of an array as it lies.
            in_order = {name: np.asarray(array, order="C") for name, array in tensors.items()}
            save_file(in_order, temporary, metadata=metadata)
        except SafetensorError as error:
            raise OSError(f"cannot write {path}: {error}") from None


def load(path: Path, form: Format[Content], *, verify: bool = False) -> Content:
    """Return what the reader of the file's version makes of its facts and arrays.

    Facts, names, types and shapes are compared with their checksum, and so are small arrays. With
    `verify` large ones are, too, and everything is checked at once. Files that have one checksum
    for all, as they had at first, are always verified.

    Raises
    ------
    ImportError
        If safetensors is not installed.
    OSError
        If the file cannot be read.
    ValueError
        If it is of another format, of a version without a reader, damaged, or refused by its
        reader.
    """
    header, tensors = _read(path, form)
    facts = header.facts
    verify = verify or header.arrays is None
    _check_digests(path, header, tensors, verify)
    source = None if verify else f"{path} is not a valid {form.content}"
    try:
        return form.readers[facts["format_version"]](facts, tensors, source)
    except ValueError as error:
        text = str(error)
        if source is not None and text.startswith(source):
            raise
        raise ValueError(f"{path} is not a valid {form.content}: {printable(text)}") from None


def _content(facts: Facts, tensors: Tensors) -> dict[str, Any]:
    """Return what a file holds beside its arrays."""
    arrays = {name: _array_digest(array) for name, array in tensors.items()}
    return {"facts": facts, "arrays": arrays, "sha256": _digest(facts, tensors, arrays)}


class _Header(NamedTuple):
    """What a file says of its arrays."""

    facts: Facts  # not checked yet
    sha256: str
    arrays: dict[str, str] | None  # SHA-256 of each; None: `sha256` is of their bytes as well


def _check_digests(path: Path, header: _Header, tensors: Tensors, verify: bool) -> None:
    """Raise ValueError unless the checksums fit; large arrays are read to `verify` only."""
    if header.sha256 != _digest(header.facts, tensors, header.arrays):
        raise ValueError(f"{path} is damaged: its checksum does not match its contents")
    for name, sha256 in (header.arrays or {}).items():
        array = tensors[name]
        if (verify or array.nbytes <= _SMALL) and sha256 != _array_digest(array):
            raise ValueError(f"{path} is damaged: the checksum of {printable(name)} does not match")


def _read(path: Path, form: Format[Any]) -> tuple[_Header, Tensors]:
    """Return the header, and read-only views of the arrays."""
    _require_safetensors()
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise FileNotFoundError(f"there is no {form.noun} {path}")
    try:
        # Checks that the header is well-formed and that its ranges tile the file.
        with safe_open(path, framework="np"):
            pass
    except SafetensorError as error:
        other = _other_content(path)
        if other is not None:
            raise ValueError(f"{path} is not a {form.noun}: it looks like {other}") from None
        raise ValueError(
            f"{path} is not a {form.noun}, or is damaged: {printable(str(error))}"
        ) from None
    metadata, tensors = _map_tensors(path, form)
    header = _header(path, form, metadata)
    if header.arrays is not None and set(header.arrays) != set(tensors):
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


def read_facts(path: Path, form: Format[Any]) -> Facts:
    """Return the facts of a file that `load` has accepted."""
    metadata, _ = _map_tensors(path, form)
    return _header(path, form, metadata).facts


def read_digest(path: Path, form: Format[Any]) -> str:
    """Return the SHA-256 that a file which `load` has accepted says it has.

    It stands for everything in the file: of each array it holds the name, the type, the shape and
    the SHA-256.
    """
    metadata, _ = _map_tensors(path, form)
    return _header(path, form, metadata).sha256


def _map_tensors(path: Path, form: Format[Any]) -> tuple[dict[str, str], Tensors]:
    """Return the metadata, and views of the tensors, of a file whose structure was checked."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)
        if len(entries) != len(pairs):
            raise ValueError(f"{path} is damaged: its header names something twice")
        return entries

    content = np.memmap(path, dtype=np.uint8, mode="r")
    start = 8 + int(content[:8].view("<u8")[0])
    header = json.loads(content[8:start].tobytes(), object_pairs_hook=unique)
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        if entry["dtype"] not in _DTYPES:
            raise ValueError(
                f"{path} is not a {form.noun}: {printable(name)} has type {entry['dtype']}"
            )
        begin, end = entry["data_offsets"]
        data = content[start + begin : start + end]
        tensors[name] = data.view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return metadata, tensors


def _header(path: Path, form: Format[Any], metadata: dict[str, str]) -> _Header:
    try:
        content = json.loads(metadata[form.key])
        arrays = dict(content["arrays"]) if "arrays" in content else None
        header = _Header(dict(content["facts"]), str(content["sha256"]), arrays)
        facts = header.facts
        format_version = facts["format_version"]
    except (KeyError, RecursionError, TypeError, ValueError):
        raise ValueError(f"{path} is not a {form.noun}: it holds other tensors") from None
    versions = sorted(form.readers)
    if format_version not in versions:
        raise ValueError(
            f"{path} has format {reprlib.repr(format_version)}, written by hdicore "
            f"{printable(str(facts.get('hdicore'))[:100])}; this version reads format "
            f"{alternatives(map(str, versions))} of a {form.noun}: upgrade hdicore"
        )
    return header


def _digest(facts: Facts, tensors: Tensors, arrays: Mapping[str, str] | None = None) -> str:
    """SHA-256 over everything in a file, or with those of `arrays` in place of their bytes."""
    state = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name in sorted(tensors):
        array = tensors[name]
        state.update(f"{name} {array.dtype.str} {array.shape}".encode())
        if arrays is None:
            _add_bytes(state, array)
        else:
            state.update(str(arrays[name]).encode())
    return state.hexdigest()


def _array_digest(array: NDArray[Any]) -> str:
    state = hashlib.sha256()
    _add_bytes(state, array)
    return state.hexdigest()


def _add_bytes(state: Any, array: NDArray[Any]) -> None:
    contents = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    for begin in range(0, len(contents), _HASHED_AT_ONCE):
        state.update(contents[begin : begin + _HASHED_AT_ONCE])


def _require_safetensors() -> None:
    try:
        import safetensors  # noqa: F401
    except ModuleNotFoundError:
        raise ImportError(
            "model files need the package safetensors: pip install 'hdicore[io]'"
        ) from None
