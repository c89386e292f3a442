"""Reads, works and hands on at the same time: a thread reads, others work, results keep order."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_POLL = 0.2  # seconds until a thread that waits looks whether it shall stop


class Pipeline(Generic[Item, Result]):
    """Results of a function for items that a thread reads, in the order of the items.

    Parameters
    ----------
    items : iterable
        Consumed in a thread of its own.
    work : callable
        Called in the working threads.
    n_workers : int
    n_ahead : int
        Items that may be read before their results are taken.

    Attributes
    ----------
    is_reading : bool
        Whether the thread that reads is still alive, after `close` because a read waits.
    """

    def __init__(
        self,
        items: Iterable[Item],
        work: Callable[[Item], Result],
        *,
        n_workers: int,
        n_ahead: int,
    ) -> None:
        self._items, self._work = items, work
        self._results: queue.Queue[Future[Result] | None] = queue.Queue(n_ahead)
        self._stop = threading.Event()
        self._workers = ThreadPoolExecutor(n_workers, thread_name_prefix="hdiforest-score")
        # A read of a pipe may wait for ever, so the interpreter must not wait for this thread.
        self._reader = threading.Thread(target=self._read, name="hdiforest-read", daemon=True)

    @property
    def is_reading(self) -> bool:
        """See the class."""
        return self._reader.is_alive()

    def __iter__(self) -> Iterator[Result]:
        self._reader.start()
        while True:
            try:
                future = self._results.get(timeout=_POLL)
            except queue.Empty:
                continue
            if future is None:
                return
            yield future.result()

    def close(self, *, read_may_wait: bool) -> None:
        """Stop all threads; those that read are not waited for if `read_may_wait`."""
        self._stop.set()
        self._workers.shutdown(cancel_futures=True)
        if self._reader.ident is not None:
            self._reader.join(_POLL if read_may_wait else None)

    def _read(self) -> None:
        try:
            for item in self._items:
                if self._stop.is_set():
                    return
                if not self._hand_on(self._workers.submit(self._work, item)):
                    return
        except BaseException as error:
            failed: Future[Any] = Future()
            failed.set_exception(error)
            self._hand_on(failed)
        finally:
            self._hand_on(None)

    def _hand_on(self, future: Future[Result] | None) -> bool:
        while not self._stop.is_set():
            try:
                self._results.put(future, timeout=_POLL)
            except queue.Full:
                continue
            return True
        return False
