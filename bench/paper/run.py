"""Run the paper's evaluation: every system on every data set and split, then tables and pictures.

    python bench/paper/run.py            # what is missing of the whole evaluation
    python bench/paper/run.py --plan     # say what would be run, and how long it takes
    python bench/paper/run.py --quick    # a small run of everything, in a few minutes

Each finished unit of work (a family of systems on one split of one data set) is written at once
and skipped when present, so that a run can be stopped and started again.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import report
import tasks
from protocol import measure, results_of
from systems import FAMILIES
from systems.interface import FULL, QUICK, Family
from tasks import RESULTS, study

# Of a quick run: splits, and rows of a data set.
_QUICK_SPLITS = 2
_QUICK_ROWS = 300


class Unit(NamedTuple):
    """A family of systems on one split of one data set."""

    family: Family
    task: str
    seed: int
    effort: str
    path: Path

    @property
    def made_by(self) -> str:
        """What a result must say to count as this unit's."""
        return f"{self.family.name} {self.family.version}, {self.effort}"

    def is_done(self, results: dict[study.Key, Any]) -> bool:
        """Whether all its results are there, by the same version and effort."""
        keys = [(system, self.seed) for system in results_of(self.family)]
        return all(key in results and results[key]["made_by"] == self.made_by for key in keys)

    def work(self) -> None:
        """Measure, and write the results."""
        torch.set_num_threads(1)
        task = tasks.load(self.task)
        if self.effort == "quick":
            few = np.random.default_rng(0).permutation(len(task.y))[:_QUICK_ROWS]
            groups = None if task.groups is None else task.groups[few]
            task = task._replace(X=task.X[few], y=task.y[few], groups=groups)
        split = list(tasks.splits(task, self.seed + 1))[-1]
        start = time.process_time()
        effort = QUICK if self.effort == "quick" else FULL
        found = measure(self.family, task, split, self.seed, effort)
        seconds = round(time.process_time() - start, 3)
        shared = {"made_by": self.made_by, "unit_seconds": seconds}
        systems = results_of(self.family)
        study.add(self.path, {(name, self.seed): {**shared, **found[name]} for name in systems})

    def __str__(self) -> str:
        return f"{self.family.name}, {self.task} {self.seed}"


def main() -> None:
    options = study.chosen(_parser(), globals())
    folder = options.results
    planned = list(_planned(options, folder))
    present = {name: study.read(study.path_of(folder, name)) for name in options.tasks}
    left = [unit for unit in planned if not unit.is_done(present[unit.task])]
    print(_plan(planned, left, present, options.jobs))
    if options.plan:
        return
    failures = study.run(left, options.jobs)
    print(f"tables and pictures: {report.write(folder)}")
    study.end(failures, len(left))


def _parser() -> argparse.ArgumentParser:
    parser = study.parser(__doc__, RESULTS / "evaluation")
    parser.add_argument("--tasks", nargs="+", choices=tasks.NAMES, default=tasks.NAMES)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--splits", type=int, default=20, help="at most so many of each data set")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes of one thread")
    parser.add_argument("--plan", action="store_true", help="print the plan and stop")
    return parser


def _planned(options: argparse.Namespace, folder: Path) -> Iterator[Unit]:
    """Every unit that was asked for, all data sets before the next split."""
    families = [FAMILIES[name] for name in options.families]
    most = min(options.splits, _QUICK_SPLITS) if options.quick else options.splits
    numbers = {name: tasks.n_splits(name) for name in options.tasks}
    effort = "quick" if options.quick else "full"
    for seed in range(most):
        for family in families:
            for name in options.tasks:
                if seed < family.most_splits_of.get(name, numbers[name]):
                    yield Unit(family, name, seed, effort, study.path_of(folder, name))


def _plan(
    planned: Sequence[Unit], left: Sequence[Unit], present: dict[str, Any], n_jobs: int
) -> str:
    """Return what is there of each family, and the hours of the rest by those of other splits."""
    rows = []
    for family in {unit.family.name: None for unit in planned}:
        mine = [unit for unit in planned if unit.family.name == family]
        todo = [unit for unit in left if unit.family.name == family]
        known = [s for s in (_seconds(unit, present[unit.task]) for unit in todo) if s is not None]
        hours = f"{sum(known) / 3600 / n_jobs:.2f}"
        if len(known) < len(todo):
            hours = f"more than {hours}" if known else "not measured yet"
        row = {"family": family, "data sets": len({unit.task for unit in mine})}
        row |= {"units": len(mine), "done": len(mine) - len(todo)}
        rows.append(row | {f"hours left on {n_jobs} processes": hours})
    return study.markdown(rows)


def _seconds(unit: Unit, results: dict[study.Key, Any]) -> float | None:
    """Return the median seconds of the same family on other splits; None if there are none."""
    first = unit.family.systems[0]
    found = [result["unit_seconds"] for (system, _), result in results.items() if system == first]
    return float(np.median(found)) if found else None


if __name__ == "__main__":
    main()
