"""Peak memory of importing a forest over its data, as a ratio of the final model; and its time.

python bench/scale/import_memory.py --rows 1000000 --trees 100

The forest is fitted on simulated rows in a process of its own, and imported in others: one for each
way of weighting. The final model is what the process holds after the import and not before.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor

# glibc: give freed arrays back at once, or later ones would hide in their place.
ALLOCATION = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the figures of each way of weighting."""
    with tempfile.TemporaryDirectory() as folder:
        fit_seconds = _in_process("fit", vars(options), Path(folder))
        figures = [
            _in_process("import", vars(options) | {"weights": weights}, Path(folder))
            for weights in options.weights
        ]
    return [found | {"time_over_fit": found.pop("cpu") / fit_seconds} for found in figures]


def _in_process(step: str, options: dict[str, Any], folder: Path) -> Any:
    command = [sys.executable, __file__, "--step", step, json.dumps(options), str(folder)]
    done = subprocess.run(command, env=os.environ | ALLOCATION, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def rows_of(options: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return simulated rows; with `digits`, targets are rounded to so many."""
    rng = np.random.default_rng(0)
    X = rng.random((options["rows"], 10), dtype=np.float32)
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3]
    y = y + rng.normal(size=len(X)) * (1 + X[:, 5])
    return X, y if options["digits"] is None else y.round(options["digits"])


def fit(options: dict[str, Any], folder: Path) -> float:
    """Fit the forest for the other steps; return seconds of CPU."""
    X, y = rows_of(options)
    forest = RandomForestRegressor(
        options["trees"],
        max_samples=options["max_samples"],
        min_samples_leaf=options["leaf"],
        random_state=0,
    )
    begin = time.process_time()
    forest.fit(X, y)
    seconds = time.process_time() - begin
    (folder / "forest").write_bytes(pickle.dumps(forest))
    return seconds


def import_forest(options: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Import it, and return the peak over the data as a ratio of what the model holds."""
    X, y = rows_of(options)
    forest = pickle.loads((folder / "forest").read_bytes())
    HDIForestRegressor.from_forest(  # loads all code
        RandomForestRegressor(2, random_state=0).fit(X[:100], y[:100]), X[:100], y[:100]
    )
    before = _resident()
    Path("/proc/self/clear_refs").write_text("5")
    begin = time.process_time()
    model = HDIForestRegressor.from_forest(forest, X, y, weights=options["weights"], n_jobs=2)
    seconds = time.process_time() - begin
    peak = _status("VmHWM") - before
    kept = _resident() - before
    counted = model.scorer_.index.nbytes + model.scorer_.forest.nbytes + X.nbytes + y.nbytes
    return {
        "weights": options["weights"],
        "peak_over_kept": peak / kept,
        "kept_bytes": kept,
        "bytes_of_arrays": counted,
        "cpu": seconds,
    }


def _resident() -> int:
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    return _status("VmRSS")


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {name}")


def main() -> None:
    """Print a line of figures for each way of weighting."""
    if sys.argv[1:2] == ["--step"]:
        step = {"fit": fit, "import": import_forest}[sys.argv[2]]
        print(json.dumps(step(json.loads(sys.argv[3]), Path(sys.argv[4]))))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--leaf", type=int, default=5)
    parser.add_argument("--max-samples", type=float, default=0.1)
    parser.add_argument("--digits", type=int, help="of rounded targets; by default they differ")
    parser.add_argument("--weights", nargs="+", default=["all", "inbag", "oob"])
    for figures in measure(parser.parse_args()):
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
