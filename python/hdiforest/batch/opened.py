"""Model files that this process has opened: each once, as long as the file stays as it is."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import NamedTuple

from hdiforest import model_file
from hdiforest.fitted import FittedForest


class Opened(NamedTuple):
    """A model whose arrays map its file."""

    fitted: FittedForest
    digest: str  # SHA-256 that stands for everything in the file


class _Identity(NamedTuple):
    """What changes when a file is replaced or written to."""

    n_bytes: int
    changed: int  # in nanoseconds
    device: int
    inode: int


_opened: dict[str, tuple[_Identity, Opened]] = {}
_lock = threading.Lock()


def opened(path: str, *, verify: bool = False) -> Opened:
    """Return the model at `path`; it is read once, and again if the file has changed.

    With `verify` a model that is not known yet is checked whole; see `HDIForestRegressor.load`.

    Raises
    ------
    ImportError
        If safetensors is not installed.
    OSError
        If the file cannot be read.
    ValueError
        If it is not a model, is damaged, or comes from a newer version.
    """
    identity = _identity(path)
    known = _opened.get(path)
    if known is not None and known[0] == identity:
        return known[1]
    with _lock:
        known = _opened.get(path)  # another thread may have read it
        if known is not None and known[0] == identity:
            return known[1]
        _opened.pop(path, None)
        model = Opened(
            model_file.load(Path(path), verify=verify), model_file.read_digest(Path(path))
        )
        if _identity(path) != identity:
            raise ValueError(f"{path} was replaced while it was read")
        _opened[path] = identity, model
        return model


def _identity(path: str) -> _Identity:
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"there is no model file {path}") from None
    return _Identity(status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino)
