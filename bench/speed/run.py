"""Measures the speed and memory of hdicore beside other libraries, and prints the ratios.

    python bench/speed/run.py [--full] [--only NAME ...] [--turns N] [--threads 1 2] [--fresh]
    python bench/speed/run.py --quick

Each finished case is kept in bench/speed/results unless --fresh is given.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import machine
from cases import CASES, FIT_CASES, MEMORY_CASES, Case, study
from default_fit import measure_default_fit
from measure import measure
from memory import measure_memory
from report import report

RESULTS = Path(__file__).parent / "results"
SPEED = {case.name: case for case in CASES}
MEMORY = {f"memory_{case.name}": case for case in MEMORY_CASES}
FIT = {f"default_fit_{case.name}": case for case in FIT_CASES}
NAMES = [*SPEED, *MEMORY, *FIT]


def described(name: str, work: Callable[[], dict[str, object]]) -> dict[str, object]:
    """Do work; its result, with the machine and how busy it was at the start."""
    load_average = list(os.getloadavg()) if hasattr(os, "getloadavg") else None
    about = {"name": name, "machine": machine.describe(), "load_average": load_average}
    return about | work()


def main() -> None:
    parser = study.parser(__doc__, RESULTS)
    parser.add_argument("--full", action="store_true", help="all cases, not the small ones alone")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=NAMES, help=", ".join(NAMES))
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--fresh", action="store_true", help="measure again what has a result")
    tiny = Case("tiny", rows=300, trees=5, queries=200, peer_queries=50, small=True)
    fit = Case("20k", rows=600, trees=60, queries=200, small=True)
    quick = {"SPEED": {"tiny": tiny}, "FIT": {"default_fit_20k": fit}, "MEMORY": {}}
    options = study.chosen(parser, globals(), **quick)
    cases = SPEED | MEMORY | FIT
    path = study.path_of(options.results, "results")
    for name in options.only or [n for n in cases if options.full or cases[n].small]:
        if (name, 0) in study.read(path) and not options.fresh:
            print(f"{name}: kept", file=sys.stderr)
            continue
        print(name, file=sys.stderr)
        if name in MEMORY:
            work = partial(measure_memory, MEMORY[name])
        elif name in FIT:
            work = partial(measure_default_fit, FIT[name], max(options.threads), options.turns)
        else:
            work = partial(measure, SPEED[name], options.threads, options.turns)
        study.add(path, {(name, 0): described(name, work)})
    report(options.results)


if __name__ == "__main__":
    main()
