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

_LOCK = "lock"  # what the file in a folder is called


@contextmanager
def folder_beside(path: Path) -> Iterator[Path]:
    """Make a hidden folder beside `path`, and remove those that dead processes made for it.

    A process locks its folder until it dies, as process numbers and times would be ambiguous. The
    folders of other computers are never touched: some network file systems hide the locks of
    others. Without locks no folder is removed.
    """
    # Short, however long the name of `path` is.
    key = hashlib.sha256(os.fsencode(f"{platform.node()}/{path.name}")).hexdigest()[:8]
    beginning = f".{path.name[:40]}.{key}."
    _remove_abandoned(path.parent, beginning)
    folder, lock = _make_locked_folder(path.parent, beginning)
    with folder as name:
        try:
            with lock:  # closed before the folder is removed: NFS keeps open files
                yield Path(name)
        finally:  # a signal may come in here, and then the folder is removed after this
            shutil.rmtree(name, ignore_errors=True)


def _make_locked_folder(
    parent: Path, beginning: str
) -> tuple[tempfile.TemporaryDirectory[str], BufferedIOBase]:
    while True:
        folder = tempfile.TemporaryDirectory(".tmp", beginning, parent, ignore_cleanup_errors=True)
        path, lock = Path(folder.name, _LOCK), None
        try:
            lock = path.open("xb")
            if _is_locked(lock):
                path.stat()
            return folder, lock
        except (BlockingIOError, FileNotFoundError):
            if lock is not None:
                lock.close()
            folder.cleanup()  # another process took it for abandoned before it was locked


def _remove_abandoned(parent: Path, beginning: str) -> None:
    for folder in [each for each in parent.iterdir() if each.name.startswith(beginning)]:
        with suppress(OSError):
            folder.rmdir()  # of a process that died before it made a file
        with suppress(OSError), (folder / _LOCK).open("rb+") as lock:
            if _is_locked(lock):
                shutil.rmtree(folder, ignore_errors=True)


def _is_locked(file: BufferedIOBase) -> bool:
    """Lock the file; False if there are no locks, BlockingIOError if another process has one."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return False
    return True


@contextmanager
def replacing(path: Path, within: Path | None = None) -> Iterator[Path]:
    """Give a temporary path; what is written there takes the place of `path` at the end.

    A link keeps pointing to the file that is replaced, and the file its permissions. If the block
    raises, KeyboardInterrupt included, the temporary file is removed and `path` stays as it was. To
    a pipe or a device the file is copied. It is `within` a folder of `folder_beside`, if that lies
    beside `path`; making one has a cost of its own for each of many small files.
    """
    if is_stream(path):
        with tempfile.TemporaryDirectory(prefix="hdiforest-") as name:
            temporary = Path(name, "content")
            yield temporary
            with temporary.open("rb") as content, _stream(path) as file:
                shutil.copyfileobj(content, file)
        return
    path = Path(os.path.realpath(path))
    is_beside = within is not None and within.parent == path.parent
    with nullcontext(cast("Path", within)) if is_beside else folder_beside(path) as folder:
        temporary = folder / secrets.token_hex(8)
        temporary.touch()
        # Some writers give their file other permissions than new files have here.
        mode = (path if path.exists() else temporary).stat().st_mode
        yield temporary
        with temporary.open("rb+") as content:
            os.fsync(content.fileno())
        temporary.chmod(stat.S_IMODE(mode))
        os.replace(temporary, path)


@contextmanager
def writing(path: Path, within: Path | None = None) -> Iterator[BufferedWriter]:
    """Open `path` for writing in binary: as by `replacing`, or as it is if it `is_stream`."""
    if is_stream(path):
        with _stream(path) as file:
            yield file
    else:
        with replacing(path, within) as temporary, temporary.open("wb") as file:
            yield file


def is_stream(path: Path) -> bool:
    """Return whether `path` is a pipe, a character device or standard output, or OSError."""
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
