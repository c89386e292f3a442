"""Time one row of a model file in C, by libhdicore, beside the same call from Python.

    python bench/backend/c_models.py            # builds the library in build, then 3 minutes
    python bench/backend/c_models.py --quick    # small, printed only; the library unoptimised
    python bench/backend/c_models.py --quick --library FOLDER    # with libhdicore of that folder

The program in C and a block of calls in Python run in turns, on one thread each; the intervals are
compared bit for bit. What is measured is each call alone.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor
from tabulate import tabulate

from hdiforest import HDIForestRegressor
from turns import study

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOLDER = HERE / "results"
N_TREES, LEAF, COVERAGE = 100, 5, 0.9
HDI, CALIBRATED = 0, -2  # numbers of kinds in C


def main() -> None:
    parser = study.parser(__doc__)
    parser.add_argument("--library", type=Path, metavar="FOLDER", help="has libhdicore, built")
    options = parser.parse_args()
    quick = options.quick
    n, n_calls, turns = (500, 20, 2) if quick else (20_000, 2000, 15)
    X, y = make_friedman1(2 * n, n_features=10, noise=1.0, random_state=0)
    forest = RandomForestRegressor(N_TREES, min_samples_leaf=LEAF, random_state=0, n_jobs=-1)
    model = HDIForestRegressor(forest, calibration=False).fit(X[:n], y[:n])
    model.n_jobs = 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = build(folder, options.library or built_library(quick))
        model.save(folder / "raw", training_rows=False)
        model.calibrate(X[n : n + n // 2], y[n : n + n // 2])
        model.save(folder / "calibrated", training_rows=False)
        rows = np.ascontiguousarray(X[-n_calls:])
        rows.tofile(folder / "rows")
        found = measure(program, folder, rows, turns)
    table = table_of(found)
    print(table)
    if quick:
        return
    about = {"rows": n, "trees": N_TREES, "min_samples_leaf": LEAF, "turns": turns}
    about |= {"calls": n_calls, "entries": found}
    text = (
        f"Microseconds for the 0.9 interval of one row: {N_TREES} trees on {n:,} rows, leaves of "
        f"{LEAF} rows or more, one thread, {turns} turns of {n_calls:,} calls; the median call, "
        f"and the outer tenths.\n\n{table}\n"
    )
    study.write_run(FOLDER / "c_models.md", about, text)


def built_library(quick: bool) -> Path:
    """Build the library; return its folder."""
    kind = "Debug" if quick else "Release"
    library = ROOT / "build" / f"c_{kind.lower()}"
    run("cmake", "-S", ROOT / "src_cpp", "-B", library, f"-DCMAKE_BUILD_TYPE={kind}")
    run("cmake", "--build", library, "--parallel", "2")
    return library


def build(folder: Path, library: Path) -> Path:
    """Build the program; return it."""
    program = folder / "one_row"
    include, where = f"-I{ROOT}/src_cpp/include", (f"-L{library}", f"-Wl,-rpath,{library}")
    run("cc", "-std=c11", "-O2", HERE / "one_row.c", include, *where, "-lhdicore", "-o", program)
    return program


def run(*command: object) -> tuple[str, str]:
    """Run a command; return what it prints and says."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command[0]}: {done.stdout}{done.stderr}")
    return done.stdout, done.stderr


def measure(program: Path, folder: Path, rows: np.ndarray, turns: int) -> list[dict[str, Any]]:
    """Time all ways in turns; each entry has the quantiles of one."""
    raw = HDIForestRegressor.load(folder / "raw", mapped=False)
    calibrated = HDIForestRegressor.load(folder / "calibrated", mapped=False)
    one = [rows[i : i + 1] for i in range(len(rows))]
    in_python: dict[tuple[str, str], Callable[[np.ndarray], np.ndarray]] = {
        ("shortest", "scorer.intervals"): lambda x: raw.scorer_.intervals(x, COVERAGE, n_threads=1),
        ("shortest", "predict_interval"): lambda x: raw.predict_interval(x, COVERAGE),
        ("calibrated", "predict_interval"): lambda x: calibrated.predict_interval(x, COVERAGE),
    }
    in_c = {"shortest": ("raw", HDI), "calibrated": ("calibrated", CALIBRATED)}
    times: dict[tuple[str, str], list[np.ndarray]] = {}
    ends: dict[tuple[str, str], np.ndarray] = {}
    for _ in range(turns):
        for name, (model, kind) in in_c.items():
            command = (program, folder / model, folder / "rows", len(rows), kind)
            output = np.array(run(*command)[0].split(), dtype=np.float64).reshape(-1, 3)
            times.setdefault((name, "C"), []).append(output[:, 0])
            ends[name, "C"] = output[:, 1:]
        for key, call in in_python.items():
            taken, found = np.empty(len(one)), np.empty((len(one), 2))
            for i, x in enumerate(one):
                begin = time.perf_counter()
                found[i] = call(x)[0]
                taken[i] = time.perf_counter() - begin
            times.setdefault(key, []).append(taken * 1e6)
            ends[key] = found
    for (name, way), found in ends.items():
        np.testing.assert_array_equal(found, ends[name, "C"], err_msg=f"{name} {way}")
    entries = []
    for (name, way), taken in sorted(times.items()):
        low, median, high = np.quantile(np.concatenate(taken), [0.1, 0.5, 0.9]).tolist()
        of_turns = [float(np.median(each)) for each in taken]
        entries.append(
            {"interval": name, "way": way, "low": low, "median": median, "high": high}
            | {"least_turn": min(of_turns), "largest_turn": max(of_turns)}
        )
    return entries


def table_of(entries: list[dict[str, Any]]) -> str:
    """Return the entries as a table of Markdown."""
    names = ["interval", "by", "median", "outer tenths", "medians of turns"]
    lines = [
        [
            *(e["interval"], e["way"], f"{e['median']:.1f}"),
            f"{e['low']:.1f} - {e['high']:.1f}",
            f"{e['least_turn']:.1f} - {e['largest_turn']:.1f}",
        ]
        for e in entries
    ]
    return tabulate(lines, headers=names, tablefmt="github", disable_numparse=True)


if __name__ == "__main__":
    main()
