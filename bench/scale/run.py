"""Scoring of many rows, as ratios: memory by rows, end to end over in memory, import, sharing.

    python bench/scale/run.py [--rows 3000000 30000000] [--repeats 5] [--quick]

Writes results/scale.jsonl beside this file.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor

sys.path.insert(0, str(Path(__file__).parents[1]))
import study

FOLDER = Path(__file__).parent / "results"
N_ROWS, N_TRAINING_ROWS = [3_000_000, 30_000_000], 300_000
FEATURES = [f"f{i}" for i in range(8)]
RUN = (
    "import sys; from hdiforest._cli.main import main; code = main(sys.argv[1:]);"
    "print(open('/proc/self/status').read()); sys.exit(code)"
)
IMPORT = (
    "import time; t = time.perf_counter(); import hdiforest.serving;"
    "print(time.perf_counter() - t, open('/proc/self/status').read())"
)
WORKER = (
    "import sys, pyarrow as pa; from hdiforest.serving import BatchScorer;"
    "s = BatchScorer(sys.argv[1], 0.9); s({n: [0.5] * 20000 for n in s.features});"
    "print('ready', flush=True); input()"
)


def rows(n: int, seed: int) -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(seed).normal(size=(n, 8)), columns=FEATURES)


def make_model(path: Path, n_rows: int) -> None:
    X = rows(n_rows, 0)
    y = X["f0"] * 3 + X["f1"] ** 2 + np.random.default_rng(1).normal(size=n_rows)
    forest = RandomForestRegressor(100, min_samples_leaf=5, random_state=0, n_jobs=-1)
    HDIForestRegressor(forest, calibration=False).fit(X, y).save(path, training_rows=False)


def write_parquet(path: Path, n_rows: int) -> None:
    begin, schema = 0, pa.schema([(name, pa.float64()) for name in FEATURES])
    with pq.ParquetWriter(path, schema) as writer:
        while begin < n_rows:
            part = rows(min(1_000_000, n_rows - begin), begin)
            writer.write_table(pa.Table.from_pandas(part, preserve_index=False))
            begin += len(part)


def command(n_rows: int, *arguments: Any) -> tuple[float, float]:
    """Return seconds of scoring so many rows, as the command says, and MB at the peak."""
    call = [sys.executable, "-c", RUN, "score", *map(str, arguments)]
    printed = subprocess.run(call, capture_output=True, check=True, text=True).stdout
    speed = re.search(r"\(([\d,]+) rows/s\)", printed)[1]
    seconds = n_rows / int(speed.replace(",", ""))
    return seconds, int(re.search(r"VmHWM:\s*(\d+) kB", printed)[1]) / 1e3


def end_to_end(folder: Path, n_rows: int, repeats: int) -> dict[str, float]:
    """Median over runs, interleaved, of seconds in memory over seconds end to end."""
    frame = rows(n_rows, 7)
    frame.to_parquet(folder / "in.parquet")
    frame.to_csv(folder / "in.csv", index=False)
    frame.to_csv(folder / "in.csv.gz", index=False)
    model = HDIForestRegressor.load(folder / "model", n_jobs=-1)
    found: dict[str, list[float]] = {}
    for _ in range(repeats):
        begin = time.perf_counter()
        model.predict_interval(frame, 0.9, output="pandas")
        in_memory = time.perf_counter() - begin
        for ending in ("parquet", "csv", "csv.gz"):
            call = (
                n_rows,
                folder / "model",
                folder / f"in.{ending}",
                "-o",
                folder / f"out.{ending}",
            )
            found.setdefault(ending, []).append(in_memory / command(*call)[0])
    return {ending: float(np.median(ratios)) for ending, ratios in found.items()}


def shared(path: Path) -> float:
    """Return the memory of the mapped file in four workers together, over the file's size."""
    call = [sys.executable, "-c", WORKER, str(path)]
    pipe = subprocess.PIPE
    workers = [subprocess.Popen(call, stdin=pipe, stdout=pipe, text=True) for _ in range(4)]
    try:
        for worker in workers:
            worker.stdout.readline()
        kb = 0
        for worker in workers:
            maps = Path(f"/proc/{worker.pid}/smaps").read_text()
            for entry in re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", maps):
                if str(path) in entry:
                    kb += int(re.search(r"Pss:\s*(\d+) kB", entry)[1])
        return 1024 * kb / path.stat().st_size
    finally:
        for worker in workers:
            worker.communicate("\n")


def main() -> None:
    parser = study.parser(__doc__, FOLDER)
    parser.add_argument("--rows", nargs=2, type=int)
    parser.add_argument("--repeats", type=int, default=5)
    few = {"N_ROWS": [30_000, 60_000], "N_TRAINING_ROWS": 2000}
    options = study.chosen(parser, globals(), **few)
    n_rows_of = options.rows or N_ROWS
    repeats = 1 if options.quick else options.repeats
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        make_model(folder / "model", N_TRAINING_ROWS)
        peaks = []
        for n_rows in n_rows_of:
            write_parquet(folder / "in.parquet", n_rows)
            tables = (folder / "in.parquet", "-o", folder / "out.parquet")
            peaks.append(command(n_rows, folder / "model", *tables)[1])
        imports = [
            subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True).stdout
            for _ in range(5)
        ]
        results = {
            "rows": n_rows_of,
            "peak_memory_ratio": peaks[1] / peaks[0],
            "end_to_end_over_in_memory": end_to_end(folder, n_rows_of[0] // 3, repeats),
            "import_seconds": min(float(each.split()[0]) for each in imports),
            "import_mb": int(re.search(r"VmHWM:\s*(\d+) kB", imports[0])[1]) / 1e3,
            "shared_by_four_over_file": shared(folder / "model"),
            "cores": os.cpu_count(),
        }
    print(json.dumps(results, indent=2))
    study.add(study.path_of(FOLDER, "scale"), {("scale", 0): results})


if __name__ == "__main__":
    main()
