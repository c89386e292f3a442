"""Peak memory of building a model and of scoring with it, each step in a fresh process."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from cases import Case, load
from hdiforest import HDIForestRegressor

N_SCORED = 1_000_000
# glibc: give freed arrays back at once, or later ones would hide in their place.
ALLOCATION = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}


def measure_memory(case: Case, n_scored: int = N_SCORED) -> dict[str, object]:
    """Increase of the resident memory, in bytes, above what each step begins with."""
    found: dict[str, object] = {"kind": "memory", "case": asdict(case), "n_scored": n_scored}
    with tempfile.TemporaryDirectory() as folder:
        for step in STEPS:
            command = [sys.executable, __file__, step, json.dumps(asdict(case)), str(n_scored)]
            done = subprocess.run(
                [*command, folder], env=os.environ | ALLOCATION, stdout=subprocess.PIPE, check=True
            )
            figures = json.loads(done.stdout)
            if figures is not None:
                found[step] = figures
    return found


def fit(case: Case, _n_scored: int, folder: Path) -> None:
    """Fit the forest for the other steps."""
    X, y, _ = load(case)
    forest = RandomForestRegressor(
        case.trees, min_samples_leaf=case.leaf, n_jobs=-1, random_state=0
    ).fit(X, y)
    (folder / "forest").write_bytes(pickle.dumps(forest))


def build(case: Case, _n_scored: int, folder: Path) -> dict[str, int]:
    """Import the forest."""
    X, y, _ = load(case)
    forest = pickle.loads((folder / "forest").read_bytes())
    model, increase = _with_peak(lambda: HDIForestRegressor.from_forest(forest, X, y, n_jobs=-1))
    (folder / "model").write_bytes(pickle.dumps(model))
    return {
        "increase": increase,
        "kept": model.scorer_.index.nbytes + model.scorer_.forest.nbytes,
        "X": X.nbytes,
    }


def score_float32(case: Case, n_scored: int, folder: Path) -> dict[str, int]:
    """Score rows in the type and order that the engine reads."""
    return _score(case, n_scored, folder, np.float32)


def score_float64(case: Case, n_scored: int, folder: Path) -> dict[str, int]:
    """Score rows of the type that most tables have."""
    return _score(case, n_scored, folder, np.float64)


STEPS: dict[str, Callable[[Case, int, Path], dict[str, int] | None]] = {
    step.__name__: step for step in (fit, build, score_float32, score_float64)
}


def _score(case: Case, n_scored: int, folder: Path, dtype: type) -> dict[str, int]:
    queries = load(case).queries
    X = queries[np.arange(n_scored) % len(queries)].astype(dtype, copy=False)
    model = pickle.loads((folder / "model").read_bytes())
    model.predict_interval(X[:1000], 0.9)  # starts what is started once
    bounds, increase = _with_peak(lambda: model.predict_interval(X, 0.9))
    return {"increase": increase, "output": bounds.nbytes, "X": X.nbytes}


def _with_peak(work: Callable[[], Any]) -> tuple[Any, int]:
    """Do work; its result, and by how many bytes the peak exceeds the memory before it."""
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
    except OSError:
        before = _peak_of_process()
        return work(), _peak_of_process() - before
    before = _status("VmRSS")
    result = work()
    return result, _status("VmHWM") - before


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def _peak_of_process() -> int:
    import resource  # not on Windows

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


if __name__ == "__main__":
    _, name, settings, n_scored, folder = sys.argv
    print(json.dumps(STEPS[name](Case(**json.loads(settings)), int(n_scored), Path(folder))))
