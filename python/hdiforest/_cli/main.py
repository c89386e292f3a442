"""The command hdiforest: its subcommands and its one-line errors."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from types import FrameType, SimpleNamespace

from hdiforest._cli.arguments import UsageError, command_parser, in_options
from hdiforest._cli.console import report, report_error
from hdiforest.exceptions import InfiniteIntervalsWarning

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGBREAK")
# By their subcommands; those of others are not imported.
_MODULES = {"score": "score", "demo": "demo", "check": "report", "inspect": "report"}
# Plain attributes: a handler interrupts other handlers, and would wait for its own thread's lock.
_signals = SimpleNamespace(heard=False, over=False)


class Stopped(KeyboardInterrupt):
    """A signal asked the command to end. Libraries handle it like Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise `Stopped` in the main thread when a signal comes that is not ignored yet."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # nohup and background jobs of shells ignore some signals; a handler that is None is not ours.
    current = {n: signal.getsignal(n) for name in _SIGNALS if (n := getattr(signal, name, 0))}
    before = {n: handler for n, handler in current.items() if handler not in (signal.SIG_IGN, None)}
    _signals.heard = _signals.over = False
    with _passed_on(list(before)) if hasattr(signal, "pthread_kill") else nullcontext():
        try:
            for number in before:
                signal.signal(number, _stop)
            yield
        finally:
            _signals.over = True  # no call before it, in which a handler could run
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def _passed_on(numbers: Sequence[int]) -> Iterator[None]:
    """Pass signals on to the main thread, whose reads go on if another thread took them."""
    receiver, sender = os.pipe()
    os.set_blocking(sender, False)
    before = signal.set_wakeup_fd(sender, warn_on_full_buffer=False)

    def pass_on() -> None:
        while number := os.read(receiver, 1):
            time.sleep(0.05)  # in which the main thread mostly runs the handler
            if number[0] in numbers and not _signals.heard:
                signal.pthread_kill(threading.main_thread().ident or 0, number[0])

    thread = threading.Thread(target=pass_on, name="hdiforest-signals", daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        _signals.heard = True
        os.close(sender)
        thread.join()
        os.close(receiver)


def _stop(number: int, _: FrameType | None) -> None:
    """Raise `Stopped`, unless an earlier signal is being handled: that must not be interrupted."""
    _signals.heard = True
    error = sys.exception()
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    if error is None and not _signals.over:
        raise Stopped(number)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with arguments, by default ``sys.argv[1:]``.

    Returns 0; 1 if something failed; 2 if the arguments are wrong; 128 and the signal's number if
    stopped. Failures are one line on standard error.
    """
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: report("warning", message)
        try:
            with stoppable():  # around the message too, which a second signal must not interrupt
                try:
                    return _code_of(argv)
                except Stopped as stop:
                    _signals.over = True  # the command ends, and a second signal changes nothing
                    return report_error(str(stop), 128 + stop.number)
        except KeyboardInterrupt as stop:  # while the command begins or ends
            return 128 + (stop.number if isinstance(stop, Stopped) else signal.SIGINT)


def _code_of(argv: Sequence[str] | None) -> int:
    try:
        options = command_parser().parse_args(argv)
        module = import_module(f"hdiforest._cli.{_MODULES.get(options.command, 'fit')}")
        getattr(module, f"run_{options.command}")(options)
    except SystemExit as stop:  # argparse has printed its message
        return stop.code if isinstance(stop.code, int) else 1
    except OSError as error:
        named = f"{error.filename}: " if error.strerror and error.filename is not None else ""
        return report_error(f"{named}{error.strerror or error}", 1)
    except (ValueError, ImportError, InfiniteIntervalsWarning) as error:
        return report_error(in_options(error), 2 if isinstance(error, UsageError) else 1)
    except MemoryError:
        return report_error("not enough memory", 1)
    return 0
