"""Compile the engine, and programs around it, without Python: for its tests and for fuzzing."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from runpy import run_path

ROOT = Path(__file__).resolve().parents[3]
COMPILER = os.environ.get("CXX") or shutil.which("c++")
SOURCES = sorted((ROOT / "src_cpp").rglob("*.cpp"))
HEADERS = sorted((ROOT / "src_cpp").rglob("*.h*"))
STRICT = (
    "-std=c++20",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Werror",
    f"-I{ROOT}/src_cpp",
    f"-I{ROOT}/src_cpp/include",
)
SANITIZE = ("-O0", "-g1", "-fPIC", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def rooms(folder: Path) -> list[Path]:
    """The sources of the engine as `setup.py` compiles them, joined by room in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    join = run_path(str(ROOT / "hdicore" / "bindings" / "rooms.py"))["join"]
    return [Path(room) for room in join(map(str, SOURCES), folder)]


def compiler_messages(compiler: str, *arguments: str | Path) -> str:
    """What the compiler says if it fails, or nothing."""
    done = subprocess.run([compiler, *map(str, arguments)], capture_output=True, text=True)
    return done.stdout + done.stderr if done.returncode else ""


def read_once(compiler: str, flags: Sequence[str], folder: Path) -> Path:
    """A header in `folder` of all headers of the engine, compiled for sources with the same flags.

    Raises RuntimeError, with the compiler's messages, if it fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    header = folder / "headers.hpp"
    header.write_text("".join(f'#include "{path}"\n' for path in HEADERS))
    made = f"{header}.gch"
    if messages := compiler_messages(compiler, *flags, "-x", "c++-header", header, "-o", made):
        raise RuntimeError(messages)
    return header


def compile_all(
    compiler: str,
    flags: Sequence[str],
    sources: Iterable[Path],
    folder: Path,
    header: Path | None = None,
) -> list[Path]:
    """Object files of the sources, in `folder`, by two compilers at once.

    `header` is that of `read_once`, which each source then includes first.

    Raises RuntimeError, with the compilers' messages, if any of them fails.
    """
    sources = list(sources)
    folder.mkdir(parents=True, exist_ok=True)
    objects = [folder / f"{path.stem}.o" for path in sources]
    if header is not None:
        flags = [*flags, "-include", str(header)]
    with ThreadPoolExecutor(2) as pool:
        messages = "".join(
            pool.map(
                lambda source, made: compiler_messages(compiler, *flags, "-c", source, "-o", made),
                sources,
                objects,
            )
        )
    if messages:
        raise RuntimeError(messages)
    return objects


def link_all(compiler: str, flags: Sequence[str], programs: dict[Path, Sequence[Path]]) -> None:
    """Link the objects of each program, two programs at once; raises as `compile_all`."""
    with ThreadPoolExecutor(2) as pool:
        messages = "".join(
            pool.map(
                lambda made: compiler_messages(
                    compiler, *flags, "-pthread", *programs[made], "-o", made
                ),
                programs,
            )
        )
    if messages:
        raise RuntimeError(messages)
