"""Files of models: saved, loaded, and opened once in a process; skops stores fitted objects."""

from __future__ import annotations

import os
import threading
import zipfile
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from hdiforest._model.fitted import FittedForest
from hdiforest._utils.checks import CallError, printable
from hdiforest._utils.optional import need
from hdiforest.serving import _serialization as serialization
from hdiforest.serving import _tensor_file as tensor_file
from hdiforest.serving._parts import Parts
from hdiforest.serving._serialization import leaves_from_arrays
from hdiforest.serving._tensor_file import Format, Loaded

HARMLESS = ("numpy.dtype",)  # types that any file may hold, besides those that skops trusts
_WHO = "a model file with steps of scikit-learn, or another regressor as mean,"


def save(fitted: FittedForest, path: Path, *, training_rows: bool) -> None:
    """Write a fitted forest, with or without its training rows; see `HDIForestRegressor.save`."""
    parts = serialization.to_arrays(fitted, training_rows=training_rows)
    stored = {"objects": _stored(parts.objects)} if parts.objects else {}
    tensor_file.write(path, MODEL, parts.arrays | stored)


def load(
    path: Path, *, verify: bool = False, mapped: bool = True, trusted: Sequence[Any] = ()
) -> Loaded[FittedForest]:
    """Return the fitted forest stored at `path`; see `HDIForestRegressor.load`."""
    is_list = isinstance(trusted, Sequence) and not isinstance(trusted, str)
    if not is_list or not all(isinstance(each, str | type) for each in trusted):
        raise ValueError(f"trusted must be a list of names or types, got {trusted!r}")
    form = replace(MODEL, read=partial(_read_model, trusted=trusted))
    loaded = tensor_file.load(path, form, verify=verify, mapped=mapped)
    return loaded._replace(content=replace(loaded.content, check_file=loaded.check_file))


def _read_model(parts: Parts, trusted: Sequence[Any] = ()) -> FittedForest:
    stored = parts.optional("objects", "uint8", (None,))
    if stored is not None:
        parts.objects = _opened(stored, trusted, str(parts.origin.source))
    return serialization.from_arrays(parts)


MODEL = Format("model file", "model", "hdicore_model", _read_model)
LEAVES = Format("file of LeafModel.save", "index", "hdicore_leaf_index", leaves_from_arrays)


def _stored(objects: dict[str, Any]) -> NDArray[np.uint8]:
    """Return fitted objects as bytes, (n,); ValueError if skops cannot store them."""
    io = need("skops.io", _WHO, "io")
    try:
        data: bytes = io.dumps(objects)
        io.loads(data, trusted=io.get_untrusted_types(data=data))  # functions without a name fail
    except Exception as error:  # whatever the objects raise
        names = ", ".join(sorted({name.rpartition(".")[2] for name in objects}))
        raise ValueError(
            f"skops cannot store {names}, fitted with the model ({_line(error)}); store the whole "
            "model by joblib, or encode the table first and fit the forest alone"
        ) from error
    return np.frombuffer(data, dtype=np.uint8)


def _opened(stored: NDArray[np.uint8], trusted: Sequence[Any], what: str) -> dict[str, Any]:
    """Return the objects of a file; ValueError, of `what`, if not all their types are trusted."""
    io = need("skops.io", _WHO, "io")
    data, types = stored.tobytes(), [*HARMLESS, *trusted]
    names = {e if isinstance(e, str) else f"{e.__module__}.{e.__qualname__}" for e in types}
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            # What is packed might fill the memory.
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
                raise ValueError("it is compressed")
        untrusted = [name for name in io.get_untrusted_types(data=data) if name not in names]
    except Exception as error:  # of the bytes of anybody
        raise ValueError(f"its objects are not what skops stores: {_line(error)}") from None
    if untrusted:
        raise CallError(
            "{what}: it holds objects of types that are not trusted: {names}; if you know them, "
            "{trust}",
            printable(" ".join(untrusted)),
            what=what,
            names=printable(", ".join(untrusted)),
            trust=f"open it by HDIForestRegressor.load(path, trusted={untrusted}), or by "
            "BatchScorer in the same way",
        )
    try:
        objects = io.loads(data, trusted=types)
    except Exception as error:
        raise ValueError(f"its objects cannot be made again: {_line(error)}") from None
    if not isinstance(objects, dict) or not all(isinstance(name, str) for name in objects):
        raise ValueError("its objects are not those of a model")
    return objects


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]


@dataclass(frozen=True, eq=False)
class OpenModel:
    """A model, the digest of its file, and what the file was like when it was read."""

    fitted: FittedForest
    digest: str  # SHA-256 that stands for everything in the file
    identity: tuple[int, ...]


# By absolute path. A copy is freed with the last scorer that holds it.
_mapped: dict[str, OpenModel] = {}
_copies: WeakValueDictionary[str, OpenModel] = WeakValueDictionary()
_lock = threading.Lock()


def open_model(
    path: str, *, mapped: bool = True, digest: str | None = None, trusted: Sequence[Any] = ()
) -> OpenModel:
    """Return the model at `path`; it is read once, and again if the file has changed.

    If it is not `mapped`, it is a copy in memory that was checked whole, and one of that `digest`
    is returned whatever the file is now, as long as something else holds it. Raises as `load`.
    """
    path = os.path.abspath(path)
    opened: MutableMapping[str, OpenModel] = _mapped if mapped else _copies
    model = opened.get(path)
    if model is not None and not mapped and model.digest == digest:
        return model
    identity = _identity(path)
    if model is not None and model.identity == identity:
        return model
    with _lock:
        model = opened.pop(path, None)  # another thread may have read it
        if model is None or model.identity != identity:
            loaded = load(Path(path), mapped=mapped, trusted=trusted)
            model = OpenModel(loaded.content, loaded.digest, identity)
            if _identity(path) != identity:
                raise ValueError(f"{path} was replaced while it was read")
        opened[path] = model
        return model


def _identity(path: str) -> tuple[int, ...]:
    """Return what changes when a file is replaced or written to."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"there is no model file {path}") from None
    return status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino
