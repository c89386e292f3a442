"""Files that are written whole or not at all."""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from io import BufferedIOBase, BufferedWriter
from pathlib import Path
from typing import cast

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


@contextmanager
def replacing(path: Path, within: Path | None = None) -> Iterator[Path]:
    """Give a temporary path; what is written there takes the place of `path` at the end.

    Parameters
    ----------
    path : Path
    within : Path, optional
        Folder of `folder_beside` for the temporary file, if it lies beside the file that `path`
        is. By default one is made, which has a cost of its own for each of many small files.

    Notes
    -----
    A link keeps pointing to the file that is replaced, and the file its permissions. If the block
    raises, KeyboardInterrupt included, the temporary file is removed and `path` stays as it was. A
    pipe or a device is not replaced: what was written is copied to it at the end.

    Raises
    ------
    OSError
        If `path` is, or cannot be, replaced or written.
    """
    if is_stream(path):
        with tempfile.TemporaryDirectory(prefix="hdiforest-") as folder:
            temporary = Path(folder, "content")
            yield temporary
            with temporary.open("rb") as content, _stream(path) as file:
                shutil.copyfileobj(content, file)
        return
    path = Path(os.path.realpath(path))
    is_beside = within is not None and within.parent == path.parent
    with nullcontext(cast("Path", within)) if is_beside else folder_beside(path) as own:
        temporary = own / secrets.token_hex(8)
        yield temporary
        # Some writers give their file other permissions than new files have here.
        mode = (path if path.exists() else own / LOCK).stat().st_mode
        with temporary.open("rb+") as content:
            os.fsync(content.fileno())
        temporary.chmod(stat.S_IMODE(mode))
        temporary.replace(path)


@contextmanager
def writing(path: Path, within: Path | None = None) -> Iterator[BufferedWriter]:
    """Open `path` for writing in binary: as by `replacing`, or as it is if it `is_stream`."""
    if is_stream(path):
        with _stream(path) as file:
            yield file
    else:
        with replacing(path, within) as temporary, temporary.open("xb") as file:
            yield file


def is_stream(path: Path) -> bool:
    """Return whether `path` is a pipe, a device of characters, or this process's standard output.

    Raises
    ------
    OSError
        If nothing can be written there: a folder, a disk, a socket, a loop of links.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return False
    if stat.S_ISFIFO(status.st_mode) or stat.S_ISCHR(status.st_mode) or is_standard_output(path):
        return True
    if stat.S_ISREG(status.st_mode):
        return False
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFBLK: "a disk", stat.S_IFSOCK: "a socket"}
    kind = kinds.get(stat.S_IFMT(status.st_mode), "no file")
    raise OSError(f"cannot write {path}: it is {kind}")


def is_standard_output(path: Path) -> bool:
    """Return whether `path` is the standard output of this process."""
    with suppress(OSError, ValueError):  # there is none, or it is no file of the system
        return os.path.samestat(path.stat(), os.fstat(sys.stdout.fileno()))
    return False


def _stream(path: Path) -> BufferedWriter:
    # Opening a file by its name would overwrite what was printed to it before.
    return open(os.dup(sys.stdout.fileno()) if is_standard_output(path) else path, "wb")
