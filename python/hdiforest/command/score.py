"""The subcommand score: from its arguments to outputs and a report."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from hdiforest._tables.formats import ending
from hdiforest._tables.read import TableError, listed
from hdiforest._utils.files import is_standard_output
from hdiforest._utils.threads import thread_count
from hdiforest.command.dataset import Done, Settings, require_folder, score_dataset
from hdiforest.command.inputs import Inputs
from hdiforest.command.prediction import kind_and_levels
from hdiforest.command.progress import progress
from hdiforest.command.report import say
from hdiforest.command.scoring import Columns, score_table
from hdiforest.command.standard_input import NAME
from hdiforest.command.usage import UsageError, require_writable, text_form
from hdiforest.serving._batch_scorer import BatchScorer, opened

_ROWS_FOR_A_RATE = 5000


def run_score(options: Any) -> None:
    """Score tables as the arguments say.

    Raises
    ------
    UsageError
        If the arguments do not go together.
    OSError, ValueError
        If the model or a table cannot be read, or an output cannot be written.
    """
    n_threads = thread_count(-1 if options.jobs is None else options.jobs)
    inputs = _inputs(options)
    scorer = _scorer(options, n_threads)
    keep = Columns(None if options.keep is None else tuple(options.keep), options.keep_all)
    for name in set(options.keep or ()).intersection(scorer.results):
        raise UsageError(f"--keep {name} must not be the name of a result")
    start = time.perf_counter()
    with progress() as advance:
        if inputs.is_one_file:
            table = inputs.sources[0].open()
            done = Done(
                score_table(
                    scorer,
                    table,
                    options.output,
                    keep=keep,
                    n_threads=n_threads,
                    batch_rows=options.batch_rows,
                    advance=advance,
                ), 1, 0, [],
            )  # fmt: skip
        else:
            sources = inputs.sources if options.part is None else options.part.of(inputs.sources)
            settings = Settings(keep, n_threads, options.batch_rows, options.resume)
            done = score_dataset(scorer, sources, options.output, settings, advance)
    _report(done, scorer, options.output, time.perf_counter() - start, inputs.is_one_file)


def _inputs(options: Any) -> Inputs:
    """Return what is to be scored, if the arguments go together."""
    try:
        if ":/" in str(options.output):  # Path has one slash of two
            raise ValueError(f"the output must be a file or folder here, got {options.output}")
        if options.keep_all and options.keep:
            raise ValueError("--keep-all must not be given with --keep")
        inputs = Inputs(options.inputs, text_form(options))
        if inputs.is_one_file:
            ending(options.output)
            if options.resume or options.part is not None:
                raise ValueError("--resume and --part need a folder or several tables to score")
        else:
            require_folder(inputs, options.output)
    except (TableError, ValueError) as error:
        raise UsageError(str(error)) from None
    if inputs.is_one_file:
        given = [s.path for s in inputs.sources if s.system is None and s.path != NAME]
        require_writable(options.output, *given, options.model)
    return inputs


def _scorer(options: Any, n_threads: int) -> BatchScorer:
    # One model for the whole run, whatever becomes of its file; all of it is read to be checked.
    model = opened(str(options.model), mapped=False)  # held, so that the scorer gets the same
    kind, levels = kind_and_levels(model.fitted, options.kind, options.coverage, lambda: n_threads)
    return BatchScorer(options.model, levels, kind=kind, mapped=False)


def _report(
    done: Done, scorer: BatchScorer, output: Path, seconds: float, is_one_file: bool
) -> None:
    tables = "" if is_one_file else f" of {done.n_tables:,} tables"
    # Of few rows the time is that of the start.
    rate = f" ({done.n_rows / seconds:,.0f} rows/s)" if done.n_rows >= _ROWS_FOR_A_RATE else ""
    lines = [f"{done.n_rows:,} rows{tables} scored in {seconds:.1f} s{rate}, written to {output}"]
    if done.n_there:
        lines.append(f"{done.n_there:,} outputs were there and stay as they are")
    if done.again:
        lines.append(f"Scored again: {listed(done.again)}")
    if counts := str(scorer.counts):
        lines.append(counts)
    say("\n".join(lines), sys.stderr if is_standard_output(output) else None)
