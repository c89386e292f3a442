"""Write outputs of `hdiforest` where there is no room, no permission or no folder any more.

Each failure must be one line on standard error and exit code 1, leave no temporary, and keep an
output that was there before byte for byte.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from outcome import Row, row_of

from commands import Command, make_commands, run_undisturbed, temporaries

OLD = b"an output of an earlier run"
REFUSED, WHOLE = "refused by one line, nothing changed", "written whole"
NOT_TRIED = "not tried"
ROOM = (0, 0.5, 0.95)  # of what the output needs
Cases = Iterator[tuple[str, str]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scale", type=float, default=1, help="size of the tables (default: 1)")


def run(options: argparse.Namespace) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="disk-") as scratch:
        for command in make_commands(Path(scratch), options.scale):
            for name, (trial, good) in TRIALS.items():
                title = f"{command.name}, {name}"
                if options.only in title:
                    folder = Path(tempfile.mkdtemp(prefix="output-", dir=scratch))
                    if not command.expected:
                        run_undisturbed(command, folder)
                    yield row_of(title, trial(command, folder), (*good, NOT_TRIED))


def file_size_limit(command: Command, folder: Path) -> Cases:
    for share in ROOM:
        limit = max(resource.getpagesize(), int(share * len(command.expected)))
        limits = (resource.RLIMIT_FSIZE, (limit, limit))
        ended = outcome(
            command, folder, preexec_fn=lambda limits=limits: resource.setrlimit(*limits)
        )
        yield f"{limit} bytes", ended


def full_file_system(command: Command, folder: Path) -> Cases:
    page = resource.getpagesize()
    for share in ROOM:
        pages = 1 + int(share * len(command.expected)) // page  # one for the old output
        with mounted(folder, f"size={pages * page}") as permitted:
            label = f"room for {pages - 1} pages"
            yield label, outcome(command, folder) if permitted else NOT_TRIED


def no_inode(command: Command, folder: Path) -> Cases:
    with mounted(folder, "nr_inodes=2") as permitted:  # of the root and of the old output
        yield "tmpfs", outcome(command, folder) if permitted else NOT_TRIED


def read_only_mount(command: Command, folder: Path) -> Cases:
    with mounted(folder, "size=1m") as permitted:
        if permitted:
            (folder / command.output).write_bytes(OLD)
            subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        yield "tmpfs", outcome(command, folder, prepared=True) if permitted else NOT_TRIED


def read_only_folder(command: Command, folder: Path) -> Cases:
    # Permissions hold for root only without a capability.
    bound = ["setpriv", "--bounding-set", "-dac_override"] if os.geteuid() == 0 else []
    (folder / command.output).write_bytes(OLD)
    folder.chmod(0o555)
    possible = not bound or shutil.which(bound[0])
    yield "mode 555", outcome(command, folder, *bound, prepared=True) if possible else NOT_TRIED
    folder.chmod(0o755)


def folder_vanishes(command: Command, folder: Path) -> Cases:
    """Rename the folder when the temporary appears, or else after some seconds."""
    moved = folder.with_name("moved")
    for seconds in (60, 2, 3):
        process = start(command, folder)
        deadline = time.monotonic() + seconds
        while process.poll() is None and time.monotonic() < deadline:
            if seconds == 60 and temporaries(folder):
                break
            time.sleep(0.001)
        folder.rename(moved)
        yield f"after {seconds} s at most", judged(process, command, moved, may_leave=True)
        shutil.rmtree(moved)
        folder.mkdir()


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[bool]:
    """Mount a tmpfs there for the block; False if this user may not."""
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    permitted = (
        bool(shutil.which("mount")) and not subprocess.run(command, capture_output=True).returncode
    )
    try:
        yield permitted
    finally:
        if permitted:
            subprocess.run(["umount", str(folder)], check=True)


def outcome(command: Command, folder: Path, *prefix: str, **options: Any) -> str:
    return judged(start(command, folder, *prefix, **options), command, folder)


def start(
    command: Command, folder: Path, *prefix: str, prepared: bool = False, **options: Any
) -> subprocess.Popen[str]:
    """Start the command where an old output lies."""
    if not prepared:
        (folder / command.output).write_bytes(OLD)
    return subprocess.Popen(
        [*prefix, *command.call(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def judged(
    process: subprocess.Popen[str], command: Command, folder: Path, *, may_leave: bool = False
) -> str:
    lines = process.communicate()[1].splitlines()
    held = (folder / command.output).read_bytes()
    if temporaries(folder) and not may_leave:
        return "left a temporary"
    if process.returncode == 0:
        return WHOLE if held == command.expected else "exit code 0, and no output"
    if held != OLD:
        return "changed the old output"
    if process.returncode == 1 and len(lines) == 1 and lines[0].startswith("hdiforest: error: "):
        return REFUSED
    return f"exit code {process.returncode}, {len(lines)} lines: {' / '.join(lines)[-100:]}"


# What is tried, and what may come out.
TRIALS = {
    "limit of file size": (file_size_limit, (REFUSED,)),
    "full file system": (full_file_system, (REFUSED,)),
    "no inode left": (no_inode, (REFUSED,)),
    "read-only mount": (read_only_mount, (REFUSED,)),
    "read-only folder": (read_only_folder, (REFUSED,)),
    "folder vanishes": (folder_vanishes, (REFUSED, WHOLE)),
}
