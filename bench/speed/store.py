"""Result files of the speed benchmark: one JSON file per case, written whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def path_of(name: str, folder: Path) -> Path:
    return folder / f"{name}.json"


def write(name: str, result: dict[str, object], folder: Path) -> None:
    """Write one result, replacing the one before."""
    folder.mkdir(parents=True, exist_ok=True)
    path = path_of(name, folder)
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(result, indent=1) + "\n")
    os.replace(unfinished, path)


def read_all(folder: Path) -> list[dict]:
    """All results of a folder."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
