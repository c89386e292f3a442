"""Turns signals into an exception, so that the command removes its unfinished files."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGBREAK")


class Stopped(KeyboardInterrupt):
    """A signal asked the command to end. Libraries handle it like Ctrl-C.

    Parameters
    ----------
    number : int
        The signal's.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise `Stopped` in the main thread when a signal comes that is not ignored yet."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    # nohup and background jobs of shells ignore some signals; a handler that is None is not ours.
    ours = [n for n in numbers if signal.getsignal(n) not in (signal.SIG_IGN, None)]
    before = {number: signal.signal(number, _stop) for number in ours}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(number: int, _: FrameType | None) -> None:
    if not _unwinding():
        raise Stopped(number)


def _unwinding() -> bool:
    """Return whether an earlier signal is being handled, which the next one must not interrupt."""
    error = sys.exception()
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__context__
    return False
