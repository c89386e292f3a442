"""From a model and a table to a table of predictions and intervals, batch by batch."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdiforest.command.extras import MissingPackageError, need
from hdiforest.command.features import Features
from hdiforest.command.prediction import Rows
from hdiforest.command.tables import TableError, open_table, write_table
from hdiforest.estimator import HDIForestRegressor
from hdiforest.predicting import AnyKind, mean_and_intervals
from hdiforest.result_names import ENDS, interval_names, require_distinct
from hdiforest.threads import thread_count


class Scored(NamedTuple):
    """What was scored."""

    n_rows: int
    unseen: Counter[str]  # see `Features`


def score_table(
    model: HDIForestRegressor,
    source: Path,
    out: Path,
    *,
    coverage: Sequence[float] = (0.9,),
    kind: AnyKind = "hdi",
    keep: Sequence[str] | None = None,
    batch_rows: int | None = None,
) -> Scored:
    """Score every row of a table; memory does not grow with their number.

    Parameters
    ----------
    model : HDIForestRegressor
        Of one output; its `n_jobs` says how many threads score.
    source, out : Path
        Tables; the endings of their names say the formats. A CSV may come through a pipe, and each
        format may go to one.
    coverage : sequence of k floats, default=(0.9,)
    kind : {"calibrated", "hdi", "equal_tailed", "lower", "upper"}, default="hdi"
    keep : sequence of str, optional
        Columns of `source` to repeat in front of the results: by default those that name its rows,
        if the model knows such.
    batch_rows : int, optional
        Rows in memory at once: 65536 if None, fewer for more than 64 columns. No result depends on
        it.

    Returns
    -------
    Scored

    Raises
    ------
    TableError
        If `source` lacks a column, has no rows, or holds something that is not a number.
    OSError
        If `out` cannot be written. Whatever is raised, no part of `out` is left behind, unless it
        is a pipe or a device.
    """
    if model.n_outputs_ != 1:
        raise ValueError(f"the model has {model.n_outputs_} targets; tables are scored for one")
    results = interval_names(kind, coverage)
    pa = need("pyarrow")
    with open_table(source) as table:
        if keep is None:
            keep = [name for name in _ids(model) if name in table.names]
        require_distinct([*keep, *results])
        features = Features(model, table, kept=keep)
        batches = features.batches(batch_rows)
        first = next(batches, None)  # before anything is written, because a pipe cannot be emptied
        if first is None:
            raise TableError(f"{source} has no rows")
        fields = [pa.field(name, pa.float64()) for name in results]
        schema = pa.schema([*table.fields(list(keep)), *fields])
        n_done = 0
        with write_table(out, schema) as write, _progress(table.n_rows) as advance:
            for batch in chain([first], batches):
                X = features.matrix(batch, n_done)
                scored = _scored(model, X, list(coverage), kind)
                write(pa.table([*features.kept(batch), *scored], schema=schema))
                n_done += len(X)
                advance(len(X))
    return Scored(n_done, features.unseen)


def _ids(model: HDIForestRegressor) -> tuple[str, ...]:
    coding = model._require_fitted().coding
    return () if coding is None else coding.ids


def _scored(
    model: HDIForestRegressor,
    X: Rows,
    levels: list[float],
    kind: AnyKind,
) -> list[NDArray[np.float64]]:
    mean, intervals = mean_and_intervals(
        model._require_fitted(), X, levels, kind, thread_count(model.n_jobs)
    )
    ends = [intervals[:, end, j] for j in range(len(levels)) for _, end in ENDS[kind]]
    return [np.ascontiguousarray(column) for column in (mean, *ends)]


@contextmanager
def _progress(total: int | None) -> Iterator[Callable[[int], Any]]:
    """Show a bar on standard error if that is a terminal and rich is installed."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    try:
        progress, console = need("rich.progress"), need("rich.console")
    except MissingPackageError:
        yield lambda _: None
        return
    with progress.Progress(
        *progress.Progress.get_default_columns(),
        progress.TextColumn("{task.completed:,} rows"),
        console=console.Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("scoring", total=total)
        yield lambda n_rows: bar.advance(task, n_rows)
