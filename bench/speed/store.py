"""Results of the speed benchmark: one JSON file, by case, written whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def _path_of(folder: Path) -> Path:
    return folder / "results.json"


def read(folder: Path) -> dict[str, dict]:
    """All results of a folder, by the name of the case."""
    path = _path_of(folder)
    return json.loads(path.read_text()) if path.exists() else {}


def write(name: str, result: dict[str, object], folder: Path) -> None:
    """Add one result, or replace the one before."""
    folder.mkdir(parents=True, exist_ok=True)
    results = read(folder) | {name: result}
    path = _path_of(folder)
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(dict(sorted(results.items())), indent=1) + "\n")
    os.replace(unfinished, path)
