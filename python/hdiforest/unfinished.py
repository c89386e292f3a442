"""Folders for unfinished files: removed after use, or by a later run if their process died."""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedIOBase, BufferedWriter
from pathlib import Path

if sys.platform != "win32":
    import fcntl

LOCK = "lock"


@contextmanager
def folder_beside(path: Path) -> Iterator[Path]:
    """Make a hidden folder beside `path`, and remove those that dead processes made for it.

    A process holds a lock in its folder, which the system releases when the process dies. Numbers
    of processes and times would be ambiguous. Folders of other computers are never touched, because
    some network file systems hide the locks of others. Without locks no folder is removed.
    """
    beginning = _beginning(path)
    _remove_abandoned(path.parent, beginning)
    own, lock = _new_path(path.parent, beginning), None
    try:
        try:
            while (lock := _made(own)) is None:
                own = _new_path(path.parent, beginning)
            yield own
        finally:
            if lock is not None:
                lock.close()  # before its file is removed: NFS keeps open files
            shutil.rmtree(own, ignore_errors=True)
    finally:  # a signal may have come while the folder was removed
        shutil.rmtree(own, ignore_errors=True)


def _new_path(parent: Path, beginning: str) -> Path:
    return parent / f"{beginning}{secrets.token_hex(8)}.tmp"


def _beginning(path: Path) -> str:
    """Return how the names of folders for `path` begin: short, however long its own name is."""
    key = hashlib.sha256(os.fsencode(f"{platform.node()}/{path.name}")).hexdigest()[:8]
    return f".{path.name[:40]}.{key}."


def _made(folder: Path) -> BufferedWriter | None:
    """Make the folder and lock it; None if another run removed it before it was locked."""
    folder.mkdir()
    try:
        lock = (folder / LOCK).open("xb")
    except FileNotFoundError:
        return None
    if _locked(lock) is not False and os.path.exists(folder / LOCK):
        return lock
    lock.close()
    return None


def _remove_abandoned(parent: Path, beginning: str) -> None:
    with os.scandir(parent) as entries:
        folders = [Path(e.path) for e in entries if e.name.startswith(beginning)]
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()  # its process died before it had a lock
            continue
        with suppress(OSError), (folder / LOCK).open("rb+") as lock:
            if _locked(lock):
                shutil.rmtree(folder, ignore_errors=True)


def _locked(file: BufferedIOBase) -> bool | None:
    """Lock the file; False if another process has locked it, None if there are no locks."""
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
