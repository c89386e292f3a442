"""Model files that this process has opened: each once, as long as the file stays as it is."""

from __future__ import annotations

import os
import threading
from collections.abc import MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from weakref import WeakValueDictionary

from hdiforest import model_file
from hdiforest._model.fitted import FittedForest


class _Identity(NamedTuple):
    """What changes when a file is replaced or written to."""

    n_bytes: int
    changed: int  # in nanoseconds
    device: int
    inode: int


@dataclass(frozen=True, eq=False)
class Opened:
    """A model, the digest of its file, and what the file was like when it was read."""

    fitted: FittedForest
    digest: str  # SHA-256 that stands for everything in the file
    identity: _Identity


# By absolute path. A copy is freed with the last scorer that holds it.
_mapped: dict[str, Opened] = {}
_copies: WeakValueDictionary[str, Opened] = WeakValueDictionary()
_lock = threading.Lock()


def opened(path: str, *, mapped: bool = True, digest: str | None = None) -> Opened:
    """Return the model at `path`; it is read once, and again if the file has changed.

    If it is not `mapped`, it is a copy in memory that was checked whole, and one of that `digest`
    is returned whatever the file is now, as long as something else holds it.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is not a model, is damaged, or comes from a newer version.
    """
    path = os.path.abspath(path)
    held: MutableMapping[str, Opened] = _mapped if mapped else _copies
    known = held.get(path)
    if known is not None and not mapped and known.digest == digest:
        return known
    identity = _identity(path)
    if known is not None and known.identity == identity:
        return known
    with _lock:
        known = held.get(path)  # another thread may have read it
        if known is not None and known.identity == identity:
            return known
        held.pop(path, None)
        loaded = model_file.load(Path(path), mapped=mapped)
        model = Opened(loaded.content, loaded.digest, identity)
        if _identity(path) != identity:
            raise ValueError(f"{path} was replaced while it was read")
        held[path] = model
        return model


def _identity(path: str) -> _Identity:
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"there is no model file {path}") from None
    return _Identity(status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino)
