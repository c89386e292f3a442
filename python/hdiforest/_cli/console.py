"""What the command prints: text, aligned columns, errors and progress."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from hdiforest._model.fitted import FittedForest
from hdiforest._model.training_rows import WEIGHTINGS
from hdiforest._utils.checks import count_text, printable
from hdiforest._utils.hints import telling
from hdiforest._utils.optional import MissingPackageError, need


def say(text: str, file: TextIO | None = None) -> None:
    """Print to standard output, or to `file`; a closed one is no error, as the work is done.

    What a terminal would obey is escaped, but for line ends: names within `text` are `printable`.
    """
    file = sys.stdout if file is None else file
    encoding = file.encoding or "utf-8"
    text = "\n".join(map(printable, text.split("\n")))
    try:
        print(text.encode(encoding, "backslashreplace").decode(encoding), file=file, flush=True)
    except BrokenPipeError:
        # Discards what is still buffered, which the interpreter would fail to write at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())


def report(what: str, message: object) -> None:
    """Print an error or a warning as one line to standard error."""
    with suppress(BrokenPipeError):
        print(f"hdiforest: {what}: {printable(' '.join(str(message).split()))}", file=sys.stderr)


def report_error(message: str, code: int) -> int:
    """Print an error to standard error and return the code."""
    report("error", message)
    return code


def facts_of(fitted: FittedForest) -> dict[str, str]:
    """Return by a title what a forest is."""
    forest = fitted.scorer.forest
    return {
        "trees": f"{forest.n_trees:,}",
        "leaves": count_text(int(forest.n_leaves.sum())),
        "training rows": count_text(fitted.n_training_rows),
        "weights": f"{fitted.facts.weights}: {WEIGHTINGS[fitted.facts.weights]}",
    }


# Takes a number of rows that are done, and the share of all work, None if that is not known.
Progress = Callable[[int, float | None], Any]


def _bars(*columns: str) -> Any:
    """Return bars on standard error with further columns; None if it is no terminal."""
    if not sys.stderr.isatty():
        return None
    try:
        console, bars = need("rich.console"), need("rich.progress")
    except MissingPackageError:
        return None
    usual = bars.Progress.get_default_columns()
    where = console.Console(stderr=True)
    return bars.Progress(*usual, *map(bars.TextColumn, columns), console=where, transient=True)


@contextmanager
def stages() -> Iterator[None]:
    """Show a bar for each stage of what a model does inside."""
    if (bars := _bars()) is None:
        yield
        return
    tasks: dict[str, Any] = {}

    def show(stage: str, done: int, of: int) -> None:
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage)
        total = None if of == 1 else of  # of one step nothing is known
        bars.update(tasks[stage], completed=done, total=total, visible=done < of)

    with bars, telling(show):
        yield


@contextmanager
def progress() -> Iterator[Progress]:
    """Give a function that moves a bar, or one that does nothing."""
    if (bars := _bars("{task.completed:,} rows")) is None:
        yield no_progress
        return
    with bars:
        task = bars.add_task("scoring", total=None)

        def show(n_rows: int, share: float | None) -> None:
            bars.update(task, advance=n_rows)
            bars.update(task, total=bars.tasks[0].completed / share if share else None)

        yield show


def no_progress(*_: object) -> None:
    """Show nothing."""
