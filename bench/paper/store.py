"""Where results lie: a JSON-lines file for each question, one line a result, sorted.

A line is {"task": ..., "system": ..., "seed": ..., "result": ...}: what one system gave on one
split of one data set.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from filelock import FileLock

from hdiforest.atomic import replacing

_FOLDER = Path(__file__).parent / "results"
RESULTS = _FOLDER / "evaluation"
QUICK_RESULTS = _FOLDER / "quick"
NOMINAL = _FOLDER / "nominal.jsonl"
IN_HINDSIGHT = _FOLDER / "in_hindsight.jsonl"

KEY = ("task", "system", "seed")
Key = tuple[str, str, int]


def path_of(folder: Path) -> Path:
    """Return the file of an evaluation that is kept in a folder."""
    return folder / "results.jsonl"


def read(path: Path) -> dict[Key, Any]:
    """Return the results of a file by data set, system and seed; none if there is no file.

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
            results[tuple(entry[name] for name in KEY)] = entry["result"]
        except (ValueError, TypeError, KeyError):
            raise ValueError(
                f"line {number} of {path} was expected to be a JSON object with task, system, "
                f"seed and result, but is {line[:80]!r}"
            ) from None
    return results


def add(path: Path, results: dict[Key, Any]) -> None:
    """Add results to a file, or replace those of the same keys: all of them or none.

    Processes that add to one file wait for each other. The file is replaced as a whole, so that a
    process that is killed leaves it as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f".{path.name}.lock")):
        merged = read(path) | results
        lines = [
            json.dumps(dict(zip(KEY, key, strict=True)) | {"result": merged[key]}) + "\n"
            for key in sorted(merged)
        ]
        with replacing(path) as temporary:
            temporary.write_text("".join(lines), encoding="utf-8", newline="\n")
