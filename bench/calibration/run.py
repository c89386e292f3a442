"""Compare calibrated intervals with those of other libraries and papers, then make the report.

    python bench/calibration/run.py               # what is missing of the evaluation
    python bench/calibration/run.py --quick       # a small run of everything
    python bench/calibration/run.py --full-size   # the larger sets with up to 10,000 training rows

Each finished unit of work (a system on one split of one data set) is written at once and skipped
when present, so that a run can be stopped and started again.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import report
from protocol import EVALUATION, FULL_SIZE, QUICK, RESULTS, Scale, measure, study
from systems import SYSTEMS
from systems.interface import System


class Unit(NamedTuple):
    """A system on one split of one data set."""

    system: System
    task: str
    seed: int
    scale: Scale
    path: Path

    def is_done(self, results: dict[study.Key, dict]) -> bool:
        """Whether its result is there, of the same version."""
        found = results.get((self.system.name, self.seed))
        return found is not None and found["version"] == self.system.version

    def work(self) -> None:
        """Measure, and write the result."""
        found = measure(self.system, self.task, self.seed, self.scale)
        result = {"version": self.system.version, **found}
        study.add(self.path, {(self.system.name, self.seed): result})

    def __str__(self) -> str:
        return f"{self.system.name}, {self.task} {self.seed}"


def main() -> None:
    options = study.chosen(_parser(), globals(), EVALUATION=QUICK)
    scale = FULL_SIZE if options.full_size and not options.quick else EVALUATION
    folder = options.results
    if options.full_size and folder == RESULTS / "evaluation":
        folder = RESULTS / scale.name
    planned = list(_planned(options, scale, folder))
    present = {task: study.read(study.path_of(folder, task)) for task in scale.sets}
    left = [unit for unit in planned if not unit.is_done(present[unit.task])]
    print(f"{len(left)} of {len(planned)} units are left", flush=True)
    failures = study.run(left, options.jobs)
    print(f"tables and pictures: {report.write(folder)}")
    study.end(failures, len(left))


def _parser() -> argparse.ArgumentParser:
    parser = study.parser(__doc__, RESULTS / EVALUATION.name)
    parser.add_argument("--full-size", action="store_true", help="more rows of the larger sets")
    systems = [name for name, system in SYSTEMS.items() if system.fit is not None]
    parser.add_argument("--systems", nargs="+", choices=systems, default=systems)
    parser.add_argument("--sets", nargs="+", choices=EVALUATION.sets, default=EVALUATION.sets)
    parser.add_argument("--splits", type=int, help="at most so many of each data set")
    parser.add_argument("--jobs", type=int, default=1, help="processes of one thread")
    return parser


def _planned(options: argparse.Namespace, scale: Scale, folder: Path) -> Iterator[Unit]:
    """Every unit that was asked for, all data sets before the next split."""
    for seed in range(min(options.splits or scale.n_splits, scale.n_splits)):
        for name in options.systems:
            for task in scale.sets:
                if task in options.sets:
                    yield Unit(SYSTEMS[name], task, seed, scale, study.path_of(folder, task))


if __name__ == "__main__":
    main()
