"""Model files that this process has opened: each once, as long as the file stays as it is."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import NamedTuple

from hdiforest import model_file
from hdiforest.fitted import FittedForest


class Opened(NamedTuple):
    """A model, and the digest of its file."""

    fitted: FittedForest
    digest: str  # SHA-256 that stands for everything in the file


class _Identity(NamedTuple):
    """What changes when a file is replaced or written to."""

    n_bytes: int
    changed: int  # in nanoseconds
    device: int
    inode: int


_opened: dict[tuple[str, bool], tuple[_Identity, Opened]] = {}  # by path and `mapped`
_lock = threading.Lock()


def opened(path: str, *, mapped: bool = True, digest: str | None = None) -> Opened:
    """Return the model at `path`; it is read once, and again if the file has changed.

    If it is not `mapped`, it is a copy in memory that was checked whole, and one of that `digest`
    is returned whatever the file is now.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is not a model, is damaged, or comes from a newer version.
    """
    key = path, mapped
    known = _opened.get(key)
    if known is not None and not mapped and known[1].digest == digest:
        return known[1]
    identity = _identity(path)
    if known is not None and known[0] == identity:
        return known[1]
    with _lock:
        known = _opened.get(key)  # another thread may have read it
        if known is not None and known[0] == identity:
            return known[1]
        _opened.pop(key, None)
        loaded = model_file.load(Path(path), mapped=mapped)
        model = Opened(loaded.content, loaded.digest)
        if _identity(path) != identity:
            raise ValueError(f"{path} was replaced while it was read")
        _opened[key] = identity, model
        return model


def _identity(path: str) -> _Identity:
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"there is no model file {path}") from None
    return _Identity(status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino)
