"""Facts and arrays in one file: safetensors layout, no code, memory-mapped, with a checksum."""

from __future__ import annotations

import hashlib
import json
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from hdicore import __version__
from hdiforest.atomic import replacing
from hdiforest.text import alternatives, printable

_HASHED_AT_ONCE = 1 << 24  # a signal waits until so many bytes are hashed
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
    readers: Mapping[int, Callable[[Facts, Tensors], Content]]


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

    facts = {"format_version": max(form.readers), "hdicore": __version__, **facts}
    metadata = {form.key: json.dumps({"facts": facts, "sha256": _digest(facts, tensors)})}
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


def load(path: Path, form: Format[Content]) -> Content:
    """Return what the reader of the file's version makes of its facts and arrays.

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
    facts, tensors = _read(path, form)
    try:
        return form.readers[facts["format_version"]](facts, tensors)
    except ValueError as error:
        raise ValueError(f"{path} is not a valid {form.content}: {printable(str(error))}") from None


def _read(path: Path, form: Format[Any]) -> tuple[Facts, Tensors]:
    """Return the facts, not checked yet, and read-only views of the arrays."""
    _require_safetensors()
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise FileNotFoundError(f"there is no {form.noun} {path}")
    try:
        # Checks that the header is well-formed and that its ranges tile the file.
        with safe_open(path, framework="np"):
            pass
    except SafetensorError as error:
        raise ValueError(
            f"{path} is not a {form.noun}, or is damaged: {printable(str(error))}"
        ) from None
    metadata, tensors = _map_tensors(path, form)
    facts, sha256 = _facts(path, form, metadata)
    if sha256 != _digest(facts, tensors):
        raise ValueError(f"{path} is damaged: its checksum does not match its contents")
    return facts, tensors


def read_facts(path: Path, form: Format[Any]) -> Facts:
    """Return the facts of a file that `load` has accepted."""
    metadata, _ = _map_tensors(path, form)
    return _facts(path, form, metadata)[0]


def read_digest(path: Path, form: Format[Any]) -> str:
    """Return the SHA-256 over everything in a file that `load` has accepted."""
    metadata, _ = _map_tensors(path, form)
    return _facts(path, form, metadata)[1]


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


def _facts(path: Path, form: Format[Any], metadata: dict[str, str]) -> tuple[Facts, str]:
    try:
        content = json.loads(metadata[form.key])
        facts, sha256 = dict(content["facts"]), str(content["sha256"])
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
    return facts, sha256


def _digest(facts: Facts, tensors: Tensors) -> str:
    """SHA-256 over everything in a file."""
    state = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        state.update(f"{name} {array.dtype.str} {array.shape}".encode())
        contents = array.reshape(-1).view(np.uint8).data
        for begin in range(0, len(contents), _HASHED_AT_ONCE):
            state.update(contents[begin : begin + _HASHED_AT_ONCE])
    return state.hexdigest()


def _require_safetensors() -> None:
    try:
        import safetensors  # noqa: F401
    except ModuleNotFoundError:
        raise ImportError(
            "model files need the package safetensors: pip install 'hdicore[io]'"
        ) from None
