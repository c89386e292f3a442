"""Measures the speed and memory of hdicore beside other libraries, and prints the ratios.

    python bench/speed/run.py [--full] [--only NAME ...] [--turns N] [--threads 1 2] [--fresh]

Each finished case is kept in bench/speed/results unless --fresh is given.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from functools import partial

import machine
from cases import CASES, FIT_CASES, MEMORY_CASES
from default_fit import measure_default_fit
from measure import measure
from memory import measure_memory
from report import report
from store import RESULTS, read, write

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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="all cases, not the small ones alone")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=NAMES, help=", ".join(NAMES))
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--fresh", action="store_true", help="measure again what has a result")
    options = parser.parse_args()
    cases = SPEED | MEMORY | FIT
    for name in options.only or [n for n in NAMES if options.full or cases[n].small]:
        if name in read(RESULTS) and not options.fresh:
            print(f"{name}: kept", file=sys.stderr)
            continue
        print(name, file=sys.stderr)
        if name in MEMORY:
            work = partial(measure_memory, MEMORY[name])
        elif name in FIT:
            work = partial(measure_default_fit, FIT[name], max(options.threads), options.turns)
        else:
            work = partial(measure, SPEED[name], options.threads, options.turns)
        write(name, described(name, work), RESULTS)
    report(RESULTS)


if __name__ == "__main__":
    main()
