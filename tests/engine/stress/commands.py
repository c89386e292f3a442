"""The command hdiforest on tables made for it: how to call it, and what it must have written."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from models import write_table

N_SCORED, N_FITTED, N_TREES = 60_000, 4000, 60


@dataclass
class Command:
    """One way to call the command, and the file that it writes when nothing disturbs it."""

    name: str
    arguments: list[str]
    output: str  # name of the file
    expected: bytes = field(default=b"", repr=False)

    def call(self, folder: Path) -> list[str]:
        path = str(folder / self.output)
        return [sys.executable, "-P", "-m", "hdiforest", *self.arguments, "-o", path]


def make_commands(folder: Path, scale: float = 1) -> list[Command]:
    """Make tables and a model in a folder; return calls of fit and score."""
    train, rows, model = folder / "train.csv", folder / "rows.csv", folder / "model.hdi"
    write_table(train, int(N_FITTED * scale), target=True)
    write_table(rows, int(N_SCORED * scale), target=False)
    size = ["--trees", str(N_TREES), "--jobs", "1"]
    fit = Command("fit", ["fit", str(train), "--target", "y", *size], model.name)
    run_undisturbed(fit, folder)
    score = ["score", str(model), str(rows), "--batch-rows", "5000", "--jobs", "1"]
    return [fit, *(Command(f"score to {end}", score, f"out.{end}") for end in ("csv", "parquet"))]


def run_undisturbed(command: Command, folder: Path) -> float:
    """Keep what the command writes as what it must write; return the seconds it takes."""
    start = time.monotonic()
    subprocess.run(command.call(folder), check=True, capture_output=True)
    command.expected = (folder / command.output).read_bytes()
    return time.monotonic() - start


def temporaries(folder: Path) -> list[Path]:
    return sorted(folder.glob(".*.tmp"))
