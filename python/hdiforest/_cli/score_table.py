"""Predicts for one table: reads, scores and writes at the same time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
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

_Slice = tuple[Any, int]  # a pyarrow.Table, and which row is its first

_POLL = 0.2  # seconds until a thread that waits looks whether it shall stop
_SLICE_ROWS = 32768  # one thread scores at most so many at once, some blocks of the engine
_FIRST_ROWS = 256  # of the first slices, so that short tables are for all threads too


class Pipeline:
    """Results of a function by `n_workers` threads for slices that another one reads, in order."""

    def __init__(
        self, slices: Iterable[_Slice], work: Callable[[_Slice], Any], n_workers: int, n_ahead: int
    ) -> None:
        self._slices, self._work = slices, work
        self._results: queue.SimpleQueue[Future[Any] | None] = queue.SimpleQueue()
        self._ahead, self._is_stopped = threading.Semaphore(n_ahead), False
        self._workers = ThreadPoolExecutor(n_workers, thread_name_prefix="hdiforest-score")
        # A read of a pipe may wait for ever, so the interpreter must not wait for this thread.
        self._reader = threading.Thread(target=self._read, name="hdiforest-read", daemon=True)

    def __iter__(self) -> Iterator[Any]:
        self._reader.start()
        while True:
            try:
                future = self._results.get(timeout=_POLL)
            except queue.Empty:
                continue
            if future is None:
                return
            self._ahead.release()
            yield future.result()

    def close(self, *, read_may_wait: bool) -> bool:
        """Stop all threads; return whether none reads any more, as one may if `read_may_wait`."""
        self._is_stopped = True
        self._ahead.release()
        self._workers.shutdown(cancel_futures=True)
        if self._reader.ident is not None:
            self._reader.join(_POLL if read_may_wait else None)
        return not self._reader.is_alive()

    def _read(self) -> None:
        try:
            for part in self._slices:
                self._ahead.acquire()
                if self._is_stopped:
                    return
                self._results.put(self._workers.submit(self._work, part))
        except BaseException as error:
            failed: Future[Any] = Future()
            failed.set_exception(error)
            self._results.put(failed)
        finally:
            self._results.put(None)


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
    n_threads, pipeline = settings.n_threads, None
    try:
        features = features_of(scorer, table, settings.keep)
        kept = features.kept_names
        fields = [pa.field(name, kind) for name, kind in scorer.types.items()]
        schema = pa.schema([*table.fields(kept), *fields], metadata=metadata)
        n_rows = settings.batch_rows or rows_of(len(features.encoder.columns) + len(kept))

        def work(part: _Slice) -> Any:
            rows, first_row = part
            with features.naming_the_file():
                results = scorer.score(features.raw(rows), features.encoder, first_row)
            columns = [*features.kept(rows), *map(arrow_array, results.values())]
            return pa.Table.from_arrays(columns, schema=schema)

        most = max(1, min(_SLICE_ROWS, n_rows // (2 * n_threads)))
        slices = _slices(features.batches(settings.batch_rows), most, n_threads)
        first = list(islice(slices, 2))
        if len(first) < 2:
            parts: Iterator[Any] = map(work, first)
        else:
            pipeline = Pipeline(chain(first, slices), work, n_threads, max(1, n_rows // most))
            parts = iter(pipeline)
        n_done = 0
        head = list(islice(parts, 1))  # before anything is written: a pipe cannot be emptied
        with write_table(out, schema, within) as write:
            for scored in chain(head, parts):
                write(scored)
                n_done += scored.num_rows
                share = n_done / table.n_rows if table.n_rows else table.share_read()
                advance(scored.num_rows, share)
        return n_done
    finally:
        if pipeline is None or pipeline.close(read_may_wait=table.n_rows is None):
            table.close()


def _slices(batches: Iterator[Any], most: int, n_threads: int) -> Iterator[_Slice]:
    """Cut Tables into slices that grow, for all threads."""
    n_done = 0
    with closing(batches):  # type: ignore[type-var]
        for batch in batches:
            begin = 0
            while begin < batch.num_rows:
                n_rows = min(most, max(_FIRST_ROWS, n_done // n_threads), batch.num_rows - begin)
                yield batch.slice(begin, n_rows), n_done
                begin += n_rows
                n_done += n_rows
