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
from hdiforest.serving._schema import Arrays, Facts, Origin
from hdiforest.serving._serialization import Parts
from hdiforest.serving._tensor_file import Format, Loaded

HARMLESS = ("numpy.dtype",)  # types that any file may hold, besides those that skops trusts
_WHO = "a model file with steps of scikit-learn, or another regressor as mean,"


def save(fitted: FittedForest, path: Path, *, training_rows: bool) -> None:
    """Write a fitted forest, with or without its training rows; see `HDIForestRegressor.save`."""
    facts, arrays, objects = serialization.to_arrays(fitted, training_rows=training_rows)
    if objects:
        arrays["objects"] = _stored(objects)
    tensor_file.write(path, MODEL, facts, arrays)


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


def _read_model(
    facts: Facts, arrays: Arrays, origin: Origin, trusted: Sequence[Any] = ()
) -> FittedForest:
    own = dict(arrays)
    stored, what = own.pop("objects", None), str(origin.source)
    objects = {} if stored is None else _opened(stored, trusted, what)
    return serialization.from_arrays(Parts(facts, own, objects), origin, copy=False)


_read_leaves = partial(serialization.leaves_from_arrays, copy=False)

MODEL = Format("model file", "model", "hdicore_model", _read_model)
LEAVES = Format("file of LeafModel.save", "index", "hdicore_leaf_index", _read_leaves)


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
    data, known = stored.tobytes(), [*HARMLESS, *trusted]
    names = {e if isinstance(e, str) else f"{e.__module__}.{e.__qualname__}" for e in known}
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
        objects = io.loads(data, trusted=known)
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
    held: MutableMapping[str, OpenModel] = _mapped if mapped else _copies
    known = held.get(path)
    if known is not None and not mapped and known.digest == digest:
        return known
    identity = _identity(path)
    if known is not None and known.identity == identity:
        return known
    with _lock:
        known = held.pop(path, None)  # another thread may have read it
        if known is None or known.identity != identity:
            loaded = load(Path(path), mapped=mapped, trusted=trusted)
            known = OpenModel(loaded.content, loaded.digest, identity)
            if _identity(path) != identity:
                raise ValueError(f"{path} was replaced while it was read")
        held[path] = known
        return known


def _identity(path: str) -> tuple[int, ...]:
    """Return what changes when a file is replaced or written to."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"there is no model file {path}") from None
    return status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino
