"""Compare calibrated intervals with those of other libraries and papers, then make the report.

    python bench/calibration/run.py               # what is missing of the evaluation
    python bench/calibration/run.py --quick       # a small run of everything
    python bench/calibration/run.py --full-size   # the larger sets with up to 10,000 training rows

Each finished unit of work (a system on one split of one data set) is written at once and skipped
when present, so that a run can be stopped and started again.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

import report
import store
from protocol import EVALUATION, FULL_SIZE, QUICK, Scale, measure
from systems import SYSTEMS
from systems.interface import System


class Unit(NamedTuple):
    """A system on one split of one data set."""

    system: System
    task: str
    seed: int

    def is_done(self, results: dict[store.Key, dict]) -> bool:
        """Whether its result is there, of the same version."""
        found = results.get((self.system.name, self.seed))
        return found is not None and found["version"] == self.system.version

    def __str__(self) -> str:
        return f"{self.system.name}, {self.task} {self.seed}"


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    scale = QUICK if options.quick else FULL_SIZE if options.full_size else EVALUATION
    folder = options.results or store.RESULTS / scale.name
    planned = list(_planned(options, scale))
    present = {task: store.read(store.path_of(folder, task)) for task in scale.sets}
    left = [unit for unit in planned if not unit.is_done(present[unit.task])]
    print(f"{len(left)} of {len(planned)} units are left", flush=True)
    failures = []
    attempts = (delayed(_attempt)(unit, folder, scale) for unit in left)
    done = Parallel(options.jobs, return_as="generator_unordered")(attempts)
    for number, (unit, seconds, failure) in enumerate(done, 1):
        print(f"{number}/{len(left)}: {unit}: {seconds:.1f} s", flush=True)
        if failure:
            failures.append(str(unit))
            print(f"{unit} failed:\n{failure}", file=sys.stderr)
    print(f"tables and pictures: {report.write(folder)}")
    if failures:
        sys.exit(f"{len(failures)} of {len(left)} units failed: {'; '.join(failures)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="few rows, one split")
    size.add_argument("--full-size", action="store_true", help="more rows of the larger sets")
    systems = [name for name, system in SYSTEMS.items() if system.fit is not None]
    parser.add_argument("--systems", nargs="+", choices=systems, default=systems)
    parser.add_argument("--sets", nargs="+", choices=EVALUATION.sets, default=EVALUATION.sets)
    parser.add_argument("--splits", type=int, help="at most so many of each data set")
    parser.add_argument("--jobs", type=int, default=1, help="processes of one thread")
    parser.add_argument("--results", type=Path, help="folder for the results")
    return parser


def _planned(options: argparse.Namespace, scale: Scale) -> Iterator[Unit]:
    """Every unit that was asked for, all data sets before the next split."""
    for seed in range(min(options.splits or scale.n_splits, scale.n_splits)):
        for name in options.systems:
            for task in scale.sets:
                if task in options.sets:
                    yield Unit(SYSTEMS[name], task, seed)


def _attempt(unit: Unit, folder: Path, scale: Scale) -> tuple[Unit, float, str]:
    """Measure one unit with one thread and write its result; say what went wrong."""
    start = time.perf_counter()
    failure = ""
    logging.disable(logging.INFO)  # MAPIE notes quantiles that cross
    try:
        with threadpool_limits(1), warnings.catch_warnings():
            # LightGBM names the columns of an array, and scikit-learn misses these names.
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            found = measure(unit.system, unit.task, unit.seed, scale)
        result = {"version": unit.system.version, **found}
        store.add(store.path_of(folder, unit.task), {(unit.system.name, unit.seed): result})
    except Exception:  # the other units are worth their time whatever happened to this one
        failure = traceback.format_exc()
    return unit, time.perf_counter() - start, failure


if __name__ == "__main__":
    main()
