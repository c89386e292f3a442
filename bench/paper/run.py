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
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from threadpoolctl import threadpool_limits

import report
import store
import tasks
from protocol import measure, results_of
from systems import FAMILIES
from systems.interface import FULL, QUICK, Family

# Of a quick run: splits, and rows of a data set.
_QUICK_SPLITS = 2
_QUICK_ROWS = 300


class Unit(NamedTuple):
    """A family of systems on one split of one data set."""

    family: Family
    task: str
    seed: int

    def made_by(self, effort: str) -> str:
        """Return what a result must say to count as this unit's."""
        return f"{self.family.name} {self.family.version}, {effort}"

    def is_done(self, results: dict[store.Key, Any], effort: str) -> bool:
        """Whether all its results are there, by the same version and effort."""
        keys = [(system, self.seed) for system in results_of(self.family)]
        made_by = self.made_by(effort)
        return all(key in results and results[key]["made_by"] == made_by for key in keys)


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    folder = options.results or (store.QUICK_RESULTS if options.quick else store.RESULTS)
    console = Console()
    planned = list(_planned(options))
    effort = "quick" if options.quick else "full"
    present = _results(folder, options.tasks)
    left = [unit for unit in planned if not unit.is_done(present[unit.task], effort)]
    before = {} if options.quick else _results(store.RESULTS, options.tasks)
    seconds = [] if options.quick else [_estimate(unit, before[unit.task]) for unit in left]
    console.print(_plan(planned, left, seconds, options.jobs))
    if options.plan:
        return
    weights = [second or np.nan for second in seconds] or [1.0] * len(left)
    # A unit of unknown cost counts as much as the others do on average.
    weights = np.nan_to_num(weights, nan=1.0 if np.isnan(weights).all() else np.nanmean(weights))
    failures = []
    with _progress(console) as progress:
        bar = progress.add_task("", total=sum(weights))
        for i, failure in Parallel(options.jobs, return_as="generator_unordered")(
            delayed(_attempt)(i, unit, folder, effort) for i, unit in enumerate(left)
        ):
            unit = left[i]
            name = f"{unit.family.name}, {unit.task} {unit.seed}"
            progress.update(bar, advance=weights[i], description=name)
            if failure:
                failures.append(name)
                console.print(f"{name} failed:\n{failure}", markup=False, highlight=False)
    console.print(f"tables and pictures: {report.write(folder)}")
    if failures:
        console.print(f"{len(failures)} of {len(left)} units failed: {'; '.join(failures)}")
        sys.exit(1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", nargs="+", choices=tasks.NAMES, default=tasks.NAMES)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--splits", type=int, default=20, help="at most so many of each data set")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes of one thread")
    parser.add_argument("--quick", action="store_true", help="few rows and splits, little effort")
    parser.add_argument("--plan", action="store_true", help="print the plan and stop")
    parser.add_argument("--results", type=Path, help="folder for the results")
    return parser


def _planned(options: argparse.Namespace) -> Iterator[Unit]:
    """Every unit that was asked for, all data sets before the next split."""
    families = [FAMILIES[name] for name in options.families]
    most = min(options.splits, _QUICK_SPLITS) if options.quick else options.splits
    numbers = {name: tasks.n_splits(name) for name in options.tasks}
    for seed in range(most):
        for family in families:
            for name in options.tasks:
                if seed < family.most_splits_of.get(name, numbers[name]):
                    yield Unit(family, name, seed)


def _results(folder: Path, names: Sequence[str]) -> dict[str, dict[store.Key, Any]]:
    """Return the results that are there, by data set."""
    return {name: store.read(store.path_of(folder, name)) for name in names}


def _estimate(unit: Unit, before: dict[store.Key, Any]) -> float | None:
    """Return the median seconds of the same family on other splits; None if there are none."""
    first = unit.family.systems[0]
    seconds = [result["unit_seconds"] for (system, _), result in before.items() if system == first]
    return float(np.median(seconds)) if seconds else None


def _plan(planned: list[Unit], left: list[Unit], seconds: list[float | None], n_jobs: int) -> Table:
    table = Table(title="units of work: a family of systems on one split of one data set")
    for column in ("family", "data sets", "units", "done", f"hours left on {n_jobs} processes"):
        table.add_column(column, justify="left" if column == "family" else "right")
    for family in {unit.family.name: None for unit in planned}:
        mine = [unit for unit in planned if unit.family.name == family]
        todo = [i for i, unit in enumerate(left) if unit.family.name == family]
        known = [seconds[i] for i in todo if seconds and seconds[i] is not None]
        hours = f"{sum(known) / 3600 / n_jobs:.2f}"
        if len(known) < len(todo):
            hours = f"more than {hours}" if known else "not measured yet"
        table.add_row(
            family,
            str(len({unit.task for unit in mine})),
            str(len(mine)),
            str(len(mine) - len(todo)),
            hours,
        )
    return table


def _attempt(i: int, unit: Unit, folder: Path, effort: str) -> tuple[int, str]:
    """Work on one unit with one thread; return its number, and what went wrong."""
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            _work(unit, folder, effort)
    except Exception:  # the other units are worth their time whatever happened to this one
        return i, traceback.format_exc()
    return i, ""


def _work(unit: Unit, folder: Path, effort: str) -> None:
    """Measure one unit and write its results."""
    task = tasks.load(unit.task)
    if effort == "quick":
        few = np.random.default_rng(0).permutation(len(task.y))[:_QUICK_ROWS]
        groups = None if task.groups is None else task.groups[few]
        task = task._replace(X=task.X[few], y=task.y[few], groups=groups)
    split = list(tasks.splits(task, unit.seed + 1))[-1]
    start = time.process_time()
    found = measure(unit.family, task, split, unit.seed, QUICK if effort == "quick" else FULL)
    shared = {
        "made_by": unit.made_by(effort),
        "unit_seconds": round(time.process_time() - start, 3),
    }
    results = {
        (system, unit.seed): {**shared, **found[system]} for system in results_of(unit.family)
    }
    store.add(store.path_of(folder, unit.task), results)


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(elapsed_when_finished=False),
        console=console,
    )


if __name__ == "__main__":
    main()
