"""The package as another commit has it: its files, and its engine compiled, for a fresh process.

Trees stay in `build/revisions`, so that a commit is compiled once.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEEP = ROOT / "build" / "revisions"
WORKTREE = "WORKTREE"  # the files as they stand, with the engine that was compiled last

Process = subprocess.Popen[str]


class NoSuchTreeError(Exception):
    """Says in one sentence why there are no files of a commit, or no engine."""


def commit_of(revision: str) -> str:
    """Hash of the commit that `revision` names."""
    command = ["git", "-C", ROOT, "rev-parse", "--verify", "--quiet", "--end-of-options"]
    done = subprocess.run([*command, f"{revision}^{{commit}}"], capture_output=True, text=True)
    if done.returncode:
        raise NoSuchTreeError(f"{revision} names no commit of the repository at {ROOT}.")
    return done.stdout.strip()


def extract(commit: str, folder: Path) -> None:
    """Write the files of a commit into a folder."""
    done = subprocess.run(["git", "-C", ROOT, "archive", commit], capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")


def compile_engine(tree: Path) -> None:
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.splitlines() or ["no message"])[-1]
        raise NoSuchTreeError(f"The engine in {tree} does not build: {last}")


def built_tree(revision: str) -> Path:
    """Folder with the files of a commit and its compiled engine."""
    if revision == WORKTREE:
        # Without it Python would import what is installed, and its times would bear the wrong name.
        if not list((ROOT / "python" / "hdicore").glob("_core.*[od]")):
            raise NoSuchTreeError(f"{ROOT} has no compiled engine; run pip install -e . there.")
        return ROOT
    tree = KEEP / commit_of(revision)
    if not tree.exists():
        KEEP.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=KEEP) as folder:
            unfinished = Path(folder) / "tree"
            extract(tree.name, unfinished)
            compile_engine(unfinished)
            unfinished.rename(tree)
    return tree


def start(tree: Path, *arguments: str | Path, **environment: str) -> Process:
    """Start Python in a fresh process that imports the package from `tree`."""
    paths = os.pathsep.join(map(str, (ROOT / "bench" / "startup", tree / "python", tree)))
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": paths} | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
