"""Measure quantile-forest's loop over leaves against the same written on hdicore's C functions.

    python bench/backend/cython_loop.py            # a table in bench/backend/results
    python bench/backend/cython_loop.py --quick    # small, printed only

The three get the same leaf ids and the samples that quantile-forest stored in its leaves, and
return its default (pooled, linear) quantiles. Answers are compared, then all run in turns in this
process, on one thread: quantile-forest's loop has no more.
"""

from __future__ import annotations

import time
from importlib.metadata import version
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import numpy as np
from Cython.Build import cythonize
from quantile_forest import RandomForestQuantileRegressor
from setuptools import Distribution, Extension
from sklearn.datasets import make_friedman1
from tabulate import tabulate

import hdicore
from turns import seconds_in_turns, study

HERE = Path(__file__).parent
FOLDER = HERE / "results"
N_TREES = 100
LEVELS = [0.05, 0.5, 0.95]


def main() -> None:
    parser = study.parser(__doc__)
    quick = parser.parse_args().quick
    n, n_new, turns = (1000, 500, 1) if quick else (20_000, 10_000, 7)
    X, y = make_friedman1(n + n_new, n_features=10, noise=1.0, random_state=0)
    module = compiled("leaf_quantiles")
    found = [measure(module, X[:n], y[:n], X[n:], most, turns) for most in (1, 10, None)]
    table = table_of(found)
    print(table)
    if quick:
        return
    about = {"rows": n, "new_rows": n_new, "trees": N_TREES, "levels": LEVELS, "turns": turns}
    about |= {"quantile-forest": version("quantile-forest"), "entries": found}
    text = (
        f"{len(LEVELS)} quantiles of {n_new:,} new rows, {N_TREES} trees on {n:,} rows, one "
        f"thread, medians of {turns} turns; ratios to quantile-forest "
        f"{about['quantile-forest']} with their least and largest.\n\n{table}\n"
    )
    study.write_run(FOLDER / "cython_loop.md", about, text)


def compiled(name: str) -> ModuleType:
    """Compile a module in Cython that lies beside this script, and import it."""
    with TemporaryDirectory() as folder:
        sources = [str(HERE / f"{name}.pyx")]
        package = str(Path(hdicore.__file__).parents[1])  # where Cython finds hdicore's .pxd
        modules = cythonize(
            [Extension(name, sources)], include_path=[package], build_dir=folder, quiet=True
        )
        command = Distribution({"ext_modules": modules}).get_command_obj("build_ext")
        command.build_lib = command.build_temp = folder
        command.ensure_finalized()
        command.run()
        spec = spec_from_file_location(name, command.get_ext_fullpath(name))
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


def measure(
    module: ModuleType,
    X: np.ndarray,
    y: np.ndarray,
    X_new: np.ndarray,
    most: int | None,
    turns: int,
) -> dict[str, Any]:
    """Compare the answers of the three, then time them in turns."""
    forest = RandomForestQuantileRegressor(
        N_TREES, min_samples_leaf=5, max_samples_leaf=most, random_state=0, n_jobs=-1
    ).fit(X, y)
    theirs, leaves, levels = forest.forest_, forest.apply(X_new), np.array(LEVELS)
    targets = np.array(theirs.y_train[0])
    stored = np.ascontiguousarray(np.asarray(theirs.y_train_leaves)[:, :, 0])
    start = time.perf_counter()
    index = module.LeafQuantiles(targets, stored)
    building = time.perf_counter() - start
    calls = {
        "theirs": lambda: theirs.predict(LEVELS, leaves)[:, 0],
        "sorted": lambda: module.gather_and_sort(targets, stored, leaves, levels),
        "index": lambda: index.predict(leaves, levels),
    }
    answers = {name: call() for name, call in calls.items()}
    apart = {name: np.abs(answers[name] - answers["theirs"]).max() for name in ("sorted", "index")}
    assert max(apart.values()) < 1e-8 * y.std(), f"other quantiles than quantile-forest's: {apart}"
    seconds = seconds_in_turns(calls, turns)
    ratios = {name: np.array(seconds["theirs"]) / seconds[name] for name in ("sorted", "index")}
    return {
        "max_samples_leaf": most,
        "samples_a_row": float((stored > 0).sum(axis=2)[np.arange(N_TREES), leaves].sum(1).mean()),
        "apart": {name: float(value) for name, value in apart.items()},
        "rows_per_second": {k: len(leaves) / float(np.median(v)) for k, v in seconds.items()},
        "times_as_fast": {
            name: [float(np.median(r)), float(r.min()), float(r.max())]
            for name, r in ratios.items()
        },
        "index_build_seconds": building,
    }


def table_of(found: list[dict[str, Any]]) -> str:
    headers = ["max_samples_leaf", "samples of a row", "its rows/s", "`weighted_quantiles`, rows/s"]
    headers += ["ratio", "`index_quantiles`, rows/s", "ratio", "index built in", "answers apart"]
    lines = []
    for one in found:
        speed = one["rows_per_second"]
        line = [str(one["max_samples_leaf"]), f"{one['samples_a_row']:,.0f}"]
        line += [f"{speed['theirs']:,.0f}"]
        for name in ("sorted", "index"):
            middle, low, high = one["times_as_fast"][name]
            line += [f"{speed[name]:,.0f}", f"{middle:.1f} ({low:.1f}-{high:.1f})"]
        line += [f"{one['index_build_seconds']:.2f} s", f"{max(one['apart'].values()):.0e}"]
        lines.append(line)
    return tabulate(lines, headers, tablefmt="github", disable_numparse=True)


if __name__ == "__main__":
    main()
