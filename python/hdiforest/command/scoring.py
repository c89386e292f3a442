"""From a model and a table to a table of predictions and intervals, batch by batch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdiforest.command.extras import MissingPackageError, need
from hdiforest.command.prediction import AnyKind, feature_columns, mean_and_intervals
from hdiforest.command.tables import (
    TableError,
    checked_features,
    numbers,
    open_table,
    write_table,
)
from hdiforest.estimator import HDIForestRegressor

# The columns of each kind: name in front of the level, and which end of the interval it holds.
COLUMNS: dict[AnyKind, tuple[tuple[str, int], ...]] = {
    "calibrated": (("lower", 0), ("upper", 1)),
    "hdi": (("lower", 0), ("upper", 1)),
    "equal_tailed": (("equal_tailed_lower", 0), ("equal_tailed_upper", 1)),
    "lower": (("one_sided_lower", 0),),
    "upper": (("one_sided_upper", 1),),
    "smoothed_hdi": (("smoothed_hdi_lower", 0), ("smoothed_hdi_upper", 1)),
}


def score_table(
    model: HDIForestRegressor,
    source: Path,
    out: Path,
    *,
    coverage: Sequence[float] = (0.9,),
    kind: AnyKind = "hdi",
    keep: Sequence[str] = (),
    batch_rows: int | None = None,
) -> int:
    """Score every row of a table; memory does not grow with their number.

    Parameters
    ----------
    model : HDIForestRegressor
        Of one output; its `n_jobs` says how many threads score.
    source, out : Path
        Tables; the endings of their names say the formats. A CSV may come through a pipe, and each
        format may go to one.
    coverage : sequence of k floats, default=(0.9,)
    kind : {"calibrated", "hdi", "equal_tailed", "lower", "upper", "smoothed_hdi"}, default="hdi"
    keep : sequence of str
        Columns of `source` to repeat in front of the results.
    batch_rows : int, optional
        Rows in memory at once: 65536 if None, fewer for more than 64 columns. No result depends on
        it.

    Returns
    -------
    int
        Number of rows scored.

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
    results = result_columns(kind, coverage)
    _require_distinct([*keep, *results])
    pa = need("pyarrow")
    with open_table(source) as table:
        features = feature_columns(model, table, keep)
        batches = table.batches(features, list(keep), batch_rows)
        first = next(batches, None)  # before anything is written, because a pipe cannot be emptied
        if first is None:
            raise TableError(f"{source} has no rows")
        fields = [pa.field(name, pa.float64()) for name in results]
        schema = pa.schema([*table.fields(list(keep)), *fields])
        n_done = 0
        with write_table(out, schema) as write, _progress(table.n_rows) as advance:
            for batch in chain([first], batches):
                X = numbers(batch, len(features))
                checked_features(X, features, source, n_done)
                scored = _scored(model, X, list(coverage), kind)
                write(pa.table([*batch.columns[len(features) :], *scored], schema=schema))
                n_done += len(X)
                advance(len(X))
    return n_done


def result_columns(kind: AnyKind, coverage: Sequence[float]) -> list[str]:
    """Names of the columns that scoring adds, such as prediction, lower_0.9, upper_0.9."""
    ends = [f"{end}_{level:.15g}" for level in coverage for end, _ in COLUMNS[kind]]
    return ["prediction", *ends]


def _scored(
    model: HDIForestRegressor,
    X: NDArray[np.float64],
    levels: list[float],
    kind: AnyKind,
) -> list[NDArray[np.float64]]:
    mean, intervals = mean_and_intervals(model, X, levels, kind)
    ends = [intervals[:, end, j] for j in range(len(levels)) for _, end in COLUMNS[kind]]
    return [np.ascontiguousarray(column) for column in (mean, *ends)]


def _require_distinct(names: list[str]) -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ValueError(f"the output would have two columns '{name}'")


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
