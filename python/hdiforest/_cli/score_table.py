"""Predicts for one table: reads, scores and writes at the same time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any

from hdiforest._cli.console import Progress, no_progress
from hdiforest._cli.inputs import Settings, features_of
from hdiforest._tables.formats import write_table
from hdiforest._tables.frames import arrow_array
from hdiforest._tables.read import TableReader, rows_of
from hdiforest._utils.optional import pa
from hdiforest.serving._batch_scorer import BatchScorer

_Slice = tuple[int, Any]  # its number, and a pyarrow.Table

_PATIENCE = 0.2  # seconds of a wait, also for a read of a pipe to end when all is stopped
_SLICE_ROWS = 8192  # one thread scores so many at once; short tables are for all threads too


def in_order(
    table: TableReader,
    slices: Iterator[_Slice],
    work: Callable[[_Slice], Any],
    n_workers: int,
    n_ahead: int,
) -> Generator[Any, None, None]:
    """Yield results of a function for the slices of a table, which is closed at the end.

    If there are several, one thread reads them and `n_workers` work on them. A read that still
    waits at the end keeps its table.
    """
    with ExitStack() as unread:
        unread.callback(table.close)
        first = list(islice(slices, 2))
        if len(first) < 2:
            yield from map(work, first)
            return
        unread.pop_all()
    results: queue.Queue[Future[Any] | None] = queue.Queue(n_ahead)
    workers = ThreadPoolExecutor(n_workers, thread_name_prefix="hdiforest-score")
    is_stopped = threading.Event()

    def read() -> None:
        last = None
        try:
            for part in chain(first, slices):
                results.put(workers.submit(work, part))
                if is_stopped.is_set():
                    return
        except BaseException as error:
            last = Future[Any]()
            last.set_exception(error)
        results.put(last)

    def next_result() -> Future[Any] | None:
        while True:
            with suppress(queue.Empty):  # Windows ends no wait without a limit for a signal
                return results.get(timeout=_PATIENCE)

    # A read of a pipe may wait for ever, so the interpreter must not wait for this thread.
    reader = threading.Thread(target=read, name="hdiforest-read", daemon=True)
    reader.start()
    try:
        for future in iter(next_result, None):
            yield future.result()
    finally:
        is_stopped.set()
        workers.shutdown(cancel_futures=True)
        while not results.empty():  # the reader may wait for room
            results.get()
        reader.join(_PATIENCE if table.n_rows is None else None)
        if not reader.is_alive():
            table.close()


def score_table(
    scorer: BatchScorer,
    table: TableReader,
    out: Path,
    settings: Settings,
    *,
    metadata: Mapping[bytes, bytes] | None = None,
    within: Path | None = None,
    advance: Progress = no_progress,
) -> int:
    """Score every row of a table to another, and return their number. Closes the table.

    Memory does not grow with the rows. Tables may be pipes; the ending of `out` says its format.
    `metadata` is for its schema, `within` as `replacing` takes it; `advance` is called with the
    number of rows written, and the share of the table.
    TableError if the table lacks a column, or holds something that the model does not take; OSError
    if `out` cannot be written. Whatever is raised, no part of `out` is left, unless it is a pipe or
    a device.
    """
    with ExitStack() as unread:
        unread.callback(table.close)
        features = features_of(scorer, table, settings.keep)
        kept, n_threads = features.kept_names, settings.n_threads
        fields = [pa.field(name, kind) for name, kind in scorer.types.items()]
        schema = pa.schema([*table.fields(kept), *fields], metadata=metadata)
        n_rows = settings.batch_rows or rows_of(len(features.encoder.columns) + len(kept))
        most = max(1, min(_SLICE_ROWS, n_rows // (2 * n_threads)))
        slices = enumerate(features.batches(most))
        unread.pop_all()

    def work(part: _Slice) -> Any:
        number, rows = part
        with features.naming_the_file():
            results = scorer.score(features.raw(rows), features.encoder, number * most)
        columns = [*features.kept(rows), *map(arrow_array, results.values())]
        return pa.Table.from_arrays(columns, schema=schema)

    n_done = 0
    with closing(in_order(table, slices, work, n_threads, max(1, n_rows // most))) as parts:
        head = list(islice(parts, 1))  # before anything is written: a pipe cannot be emptied
        with write_table(out, schema, within) as write:
            for scored in chain(head, parts):
                write(scored)
                n_done += scored.num_rows
                share = n_done / table.n_rows if table.n_rows else table.share_read()
                advance(scored.num_rows, share)
    return n_done
