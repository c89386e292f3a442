"""Rows per second and memory of the command's score, on a million rows of two data sets.

    python bench/speed/command.py [--quick]

Rows are drawn from the data set with replacement and moved by a thousandth of each column's spread,
so that they are all different. Fits with the command's defaults, without calibration and with it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))
import datasets
import study

N_ROWS = 1_000_000
LEVELS = ("0.8", "0.9", "0.95")


def main() -> None:
    study.chosen(study.parser(__doc__), globals(), N_ROWS=10_000)
    print("| data | rows/s, raw | calibrated | memory, raw | calibrated | model |")
    print("|---|---:|---:|---:|---:|---:|")
    for name in ("power_plant", "protein"):
        with tempfile.TemporaryDirectory() as folder:
            print(_row(name, Path(folder)), flush=True)


def _row(name: str, folder: Path) -> str:
    data = datasets.load(name)
    frame = pd.DataFrame(data.X.astype(float), columns=data.features)
    frame.assign(target=data.y).to_parquet(folder / "train.parquet")
    rng = np.random.default_rng(0)
    rows = frame.iloc[rng.integers(0, len(frame), N_ROWS)]
    moved = rows + 1e-3 * frame.std().to_numpy() * rng.normal(size=rows.shape)
    moved.to_parquet(folder / "new.parquet")
    fit = ("fit", folder / "train.parquet", "--target", "target", "-o", folder / "model")
    _run(*fit)
    cells = [_scored(folder, kind) for kind in ("hdi", "calibrated")]
    speeds, memory = zip(*cells, strict=True)
    size = (folder / "model").stat().st_size / 1e6
    return f"| `{name}` | {' | '.join(speeds)} | {' | '.join(memory)} | {size:.0f} MB |"


def _scored(folder: Path, kind: str) -> tuple[str, str]:
    """Return rows per second, as the command says, and its largest resident memory."""
    tables = folder / "new.parquet", "-o", folder / "out.parquet"
    call = ("score", folder / "model", *tables, "--kind", kind, "--coverage", *LEVELS)
    printed, memory = _run(*call)
    found = re.search(r"\(([\d,]+) rows/s\)", printed)
    if found is None:
        raise RuntimeError(f"no speed in {printed!r}")
    return found[1], f"{memory / 1e6:.0f} MB"


def _run(*arguments: object) -> tuple[str, int]:
    """Run the command; return what it printed, and its largest resident memory in bytes."""
    call = [sys.executable, "-P", "-m", "hdiforest", *map(str, arguments)]
    process = subprocess.Popen(call, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise RuntimeError(f"{call} failed: {printed}")
    return printed, usage.ru_maxrss * 1024  # Linux counts kB


if __name__ == "__main__":
    main()
