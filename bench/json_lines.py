"""Results as JSON-lines files of one result a line, sorted by name and split.

A line is {"name": ..., "seed": ..., "result": ...}. An evaluation has one file for each data set,
and a name is that of a system.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from filelock import FileLock

from hdiforest._utils.files import replacing

Key = tuple[str, int]  # name, and seed of the split


def path_of(folder: Path, task: str) -> Path:
    """Return the file of one data set of an evaluation."""
    return folder / f"{task}.jsonl"


def read(path: Path) -> dict[Key, Any]:
    """Return the results of a file by name and seed; none if there is no file.

    Raises
    ------
    ValueError
        If a line is not a result.
    """
    results = {}
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
            results[entry["name"], entry["seed"]] = entry["result"]
        except (ValueError, TypeError, KeyError):
            raise ValueError(
                f"line {number} of {path} was expected to be a JSON object with name, seed and "
                f"result, but is {line[:80]!r}"
            ) from None
    return results


def add(path: Path, results: dict[Key, Any]) -> None:
    """Add results to a file, or replace those of the same name and seed: all of them or none.

    Processes that add to one file wait for each other. The file is replaced as a whole, so that a
    process that is killed leaves it as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f".{path.name}.lock")):
        merged = read(path) | results
        lines = [
            json.dumps({"name": name, "seed": seed, "result": merged[name, seed]}) + "\n"
            for name, seed in sorted(merged)
        ]
        with replacing(path) as temporary:
            temporary.write_text("".join(lines), encoding="utf-8", newline="\n")
