"""Write a file whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; what is written there takes its place at the end.

    A link keeps pointing to the file that is replaced, and the file its permissions. If the block
    raises, KeyboardInterrupt included, the temporary file is removed and `path` stays as it was.
    """
    path = path.resolve()
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        # Not every writer gives its file the permissions that new files have here.
        with open(temporary, "xb") as empty:
            mode = os.stat(path if path.exists() else empty.fileno()).st_mode
        temporary.unlink()
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
