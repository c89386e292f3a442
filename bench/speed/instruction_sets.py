"""Time the HDI with each instruction set beside forest.predict: a process for each set, in turns.

python bench/speed/instruction_sets.py [--only NAME ...] [--turns N] [--quick]
"""

from __future__ import annotations

import multiprocessing
import os
import time
from dataclasses import replace
from multiprocessing.connection import Connection

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import RandomForestRegressor

import hdicore
from cases import CASES, Case, load, study
from checks import LEVELS
from hdiforest import HDIForestRegressor

WORKS = ("hdi", "hdi_5", "forest")
NAMES = [case.name for case in CASES]
DEFAULT = ("friedman_20k_leaf1", "friedman_20k_leaf5", "friedman_20k_leaf50")


def serve(
    name: str,
    asked: Connection,
    forest: RandomForestRegressor,
    model: HDIForestRegressor,
    queries: np.ndarray,
) -> None:
    """Answer each kind of work with its processor time, until the other end closes."""
    assert hdicore.instructions()["used"] == name
    works = {
        "hdi": lambda: model.predict_interval(queries, 0.9),
        "hdi_5": lambda: model.predict_interval(queries, LEVELS),
        "forest": lambda: forest.predict(queries),
    }
    for work in works.values():
        work()
    asked.send("ready")
    while (kind := asked.recv()) is not None:
        start = time.process_time()
        works[kind]()
        asked.send(time.process_time() - start)


def times_of(case: Case, turns: int) -> dict[tuple[str, str], list[float]]:
    """Microseconds a row, by instruction set and kind of work, one thread."""
    X, y, queries = load(case)
    forest = RandomForestRegressor(case.trees, min_samples_leaf=case.leaf, n_jobs=-1)
    forest.set_params(random_state=0).fit(X, y)
    model = HDIForestRegressor.from_forest(forest, X, y)
    model.n_jobs = forest.n_jobs = 1
    spawn = multiprocessing.get_context("spawn")
    servers = {}
    for name in hdicore.instructions()["available"]:
        os.environ["HDICORE_INSTRUCTIONS"] = name  # the process reads it when it starts
        ours, theirs = spawn.Pipe()
        spawn.Process(target=serve, args=(name, theirs, forest, model, queries)).start()
        assert ours.recv() == "ready"
        servers[name] = ours
    found: dict[tuple[str, str], list[float]] = {}
    for _ in range(turns):
        for work in WORKS:
            for name, server in servers.items():
                server.send(work)
                found.setdefault((name, work), []).append(server.recv() / len(queries) * 1e6)
    for server in servers.values():
        server.send(None)
    return found


def main() -> None:
    parser = study.parser(__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=NAMES)
    parser.add_argument("--turns", type=int, default=9)
    tiny = {"CASES": (replace(CASES[0], name="tiny", rows=300, trees=5, queries=200),)}
    options = study.chosen(parser, globals(), **tiny, DEFAULT=("tiny",))
    table = Table("case", "set", "HDI, us/row", "HDI / portable", "5 levels / portable")
    table.add_column("scikit-learn, mean / HDI")
    for case in CASES:
        if case.name not in (options.only or DEFAULT):
            continue
        times = times_of(case, options.turns)
        for name in dict.fromkeys(name for name, _ in times):
            ratios = (
                (times[name, "hdi"], times["portable", "hdi"]),
                (times[name, "hdi_5"], times["portable", "hdi_5"]),
                (times[name, "forest"], times[name, "hdi"]),
            )
            shown = (f"{np.median(np.divide(above, below)):.2f}" for above, below in ratios)
            table.add_row(case.name, name, f"{min(times[name, 'hdi']):.2f}", *shown)
    Console().print(table)


if __name__ == "__main__":
    main()
