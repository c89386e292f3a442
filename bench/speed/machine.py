"""The machine and the versions that a result was made with."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

import hdicore

INSTRUCTION_SETS = ("avx2", "avx512f", "avx512bw", "avx512vl", "avx512_vbmi2")
PACKAGES = ("numpy", "scikit-learn", "quantile-forest", "hdicore")


def describe() -> dict[str, object]:
    """Processor, system, versions and the commit; None for what the system does not tell."""
    model, flags = _processor()
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "caches": _caches(),
        "instruction_sets": flags,
        "instructions": hdicore.instructions()["used"],
        "system": platform.platform(),
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
        "commit": _commit(),
    }


def _processor() -> tuple[str | None, list[str] | None]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or None, None
    facts = {
        key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)
    }
    flags = facts.get("flags", "").split()
    return facts.get("model name"), [name for name in INSTRUCTION_SETS if name in flags]


def _caches() -> dict[str, str] | None:
    """Size of each cache that the first core uses, such as {"L1 Data": "32K"}."""
    found = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (_read(folder / name) for name in ("level", "type", "size"))
        found[f"L{level} {kind}"] = size
    return found or None


def _read(path: Path) -> str:
    return path.read_text().strip()


def _commit() -> str | None:
    """Commit, marked if more than results has changed since."""

    def git(*words: str) -> str:
        command = ["git", *words]
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True)
        return done.stdout.strip()

    try:
        commit = git("rev-parse", "--short=12", "HEAD")
        changed = git("status", "--porcelain", "--", ":/", ":!results")
    except OSError:
        return None
    return commit + ("-dirty" if changed else "") or None
