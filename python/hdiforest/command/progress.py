"""Shows how far scoring is, on standard error if that is a terminal and rich is installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from hdiforest._utils.optional import MissingPackageError, need


class Progress(Protocol):
    """Takes what is done."""

    def __call__(self, n_rows: int, share: float | None) -> Any:
        """Add rows; `share` of all work is done, None if that is not known."""


@contextmanager
def progress() -> Iterator[Progress]:
    """Give a function that moves a bar, or one that does nothing."""
    if not sys.stderr.isatty():
        yield no_progress
        return
    try:
        bars, console = need("rich.progress"), need("rich.console")
    except MissingPackageError:
        yield no_progress
        return
    with bars.Progress(
        *bars.Progress.get_default_columns(),
        bars.TextColumn("{task.fields[rows]:,} rows"),
        console=console.Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("scoring", total=None, rows=0)
        n_done = 0

        def show(n_rows: int, share: float | None) -> None:
            nonlocal n_done
            n_done += n_rows
            total = None if share is None else 1.0
            bar.update(task, total=total, completed=share or 0.0, rows=n_done)

        yield show


def no_progress(n_rows: int, share: float | None) -> None:
    """Show nothing."""
