"""Where results lie: one small file for each data set, system and split."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hdiforest.atomic import replacing

RESULTS = Path(__file__).parent / "results" / "evaluation"
QUICK_RESULTS = Path(__file__).parent / "results" / "quick"


def path_of(folder: Path, task: str, system: str, seed: int) -> Path:
    """Return the file of one result."""
    slug = re.sub(r"[^a-z0-9]+", "-", system.lower())
    return folder / task / f"{slug}-{seed}.json"


def write(path: Path, result: dict[str, Any]) -> None:
    """Write one result, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(result) + "\n")


def is_done(path: Path, made_by: str) -> bool:
    """Whether the result is there, and by the same version and effort."""
    return path.exists() and json.loads(path.read_text()).get("made_by") == made_by


def read(folder: Path, task: str, system: str, n_splits: int) -> dict[int, dict[str, Any]]:
    """Return the results that are there, by seed."""
    paths = {seed: path_of(folder, task, system, seed) for seed in range(n_splits)}
    return {seed: json.loads(path.read_text()) for seed, path in paths.items() if path.exists()}
