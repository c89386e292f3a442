"""Write a file whole or not at all, or through to a pipe or a device."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter
from pathlib import Path

from hdiforest.unfinished import LOCK, folder_beside


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path; what is written there takes the place of `path` at the end.

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
    with folder_beside(path) as own:
        temporary = own / "content"
        yield temporary
        # Not every writer gives its file the permissions that new files have here.
        mode = (path if path.exists() else own / LOCK).stat().st_mode
        with temporary.open("rb+") as content:
            os.fsync(content.fileno())
        temporary.chmod(stat.S_IMODE(mode))
        temporary.replace(path)


@contextmanager
def writing(path: Path) -> Iterator[BufferedWriter]:
    """Open `path` for writing in binary: as by `replacing`, or as it is if it `is_stream`."""
    if is_stream(path):
        with _stream(path) as file:
            yield file
    else:
        with replacing(path) as temporary, temporary.open("xb") as file:
            yield file


def is_stream(path: Path) -> bool:
    """Return whether `path` is a pipe, a device of characters, or this process's standard output.

    Raises
    ------
    OSError
        If nothing can be written there: a folder, a disk, a socket, a loop of links.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    if stat.S_ISFIFO(found.st_mode) or stat.S_ISCHR(found.st_mode) or is_standard_output(path):
        return True
    if stat.S_ISREG(found.st_mode):
        return False
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFBLK: "a disk", stat.S_IFSOCK: "a socket"}
    kind = kinds.get(stat.S_IFMT(found.st_mode), "no file")
    raise OSError(f"cannot write {path}: it is {kind}")


def is_standard_output(path: Path) -> bool:
    """Return whether what is written to `path` arrives where this process prints."""
    with suppress(OSError, ValueError):  # none at all, or none of the system's
        return os.path.samestat(path.stat(), os.fstat(sys.stdout.fileno()))
    return False


def _stream(path: Path) -> BufferedWriter:
    # Opened by its name, a standard output that is a file would be written from its start.
    return open(os.dup(sys.stdout.fileno()) if is_standard_output(path) else path, "wb")
