"""Use one index, build and pickle from eight Python threads under ThreadSanitizer."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from outcome import Row, SkippedError
from races import CONTROL, RACES

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = Path(__file__).with_name("races.py")
REPORT = re.compile(r"WARNING: ThreadSanitizer: (.*) \(pid=\d+\)")
PLACE = re.compile(r"SUMMARY: ThreadSanitizer: (.*)")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--build", type=Path, metavar="FOLDER", help="keep the instrumented module there for again"
    )


def run(options: argparse.Namespace) -> Iterator[Row]:
    preload = sanitizer_libraries()
    with tempfile.TemporaryDirectory(prefix="tsan-") as scratch:
        folder = (options.build or Path(scratch)).resolve()
        build(folder)
        for name in (CONTROL, *RACES):
            if options.only in name:
                yield watched(name, folder, preload)


def sanitizer_libraries() -> str:
    """Return what must be loaded first: the sanitizer, and the C++ library that it watches."""
    compiler = shutil.which("gcc")
    if not sys.platform.startswith("linux") or compiler is None:
        raise SkippedError("ThreadSanitizer needs Linux and gcc.")
    asked = [
        subprocess.check_output([compiler, f"-print-file-name={name}"], text=True).strip()
        for name in ("libtsan.so", "libstdc++.so.6")
    ]
    for path in asked:
        if not os.path.isabs(path):  # gcc repeats the name of what it does not have
            raise SkippedError(f"gcc has no {path}.")
    return " ".join(asked)


def build(folder: Path) -> None:
    """Build the package with ThreadSanitizer in a folder, without touching the checkout."""
    environment = os.environ | {"HDICORE_SANITIZE": "thread"}
    command = [sys.executable, "setup.py", "--quiet", "build_ext"]
    command += ["--build-lib", str(folder), "--build-temp", str(folder / "objects")]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    for source in (ROOT / "python" / "hdicore").glob("*.py"):
        shutil.copy(source, folder / "hdicore")


def watched(name: str, folder: Path, preload: str) -> Row:
    """Run a program of `races.py` under the sanitizer; the control must give a report."""
    environment = os.environ | {
        "LD_PRELOAD": preload,
        "PYTHONPATH": str(folder),
        "TSAN_OPTIONS": "exitcode=0",
    }
    done = subprocess.run(
        [sys.executable, str(PROGRAM), name], env=environment, capture_output=True, text=True
    )
    if "FATAL: ThreadSanitizer" in done.stderr:
        raise SkippedError(f"ThreadSanitizer does not start here: {done.stderr.splitlines()[0]}")
    if done.returncode:
        return Row(name, 1, f"exit code {done.returncode}: {done.stderr[-200:]}", finding=True)
    reports = len(REPORT.findall(done.stderr))
    places = sorted(set(PLACE.findall(done.stderr)))
    outcome = f"{reports} reports{': ' if places else ''}{'; '.join(places[:3])}"
    return Row(name, 1, outcome, finding=(reports > 0) != (name == CONTROL))
