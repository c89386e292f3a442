"""What calls say meanwhile: warnings and their line, digests of rows, and progress."""

from __future__ import annotations

import hashlib
import inspect
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hdiforest._utils.checks import time_text

_CELLS_AT_ONCE = 1 << 18  # so that the copy stays in the cache


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, naming the line of the code that called this package."""
    frame, level = inspect.currentframe(), 1
    inside = (__name__.partition(".")[0], "functools")  # which calls cached properties
    while frame is not None:
        module = frame.f_globals.get("__package__") or frame.f_globals.get("__name__", "")
        if module.split(".")[0] not in inside:
            break
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


# Called with a stage of the work, and how many of its steps are done, of how many.
Listener = Callable[[str, int, int], object]
_LISTENER: ContextVar[Listener | None] = ContextVar("_LISTENER", default=None)
_Step = TypeVar("_Step")


def steps(stage: str, items: Sequence[_Step]) -> Iterator[_Step]:
    """Yield the items, and tell who listens how many of them are done."""
    tell = _LISTENER.get() or (lambda *_: None)
    for done, item in enumerate(items):
        tell(stage, done, len(items))
        yield item
    tell(stage, len(items), len(items))


@contextmanager
def telling(listener: Listener) -> Iterator[None]:
    """Let the `steps` inside be told to a listener, unless one around it is told already."""
    token = _LISTENER.set(_LISTENER.get() or listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def printing(name: str, verbose: int, above: int = 0) -> AbstractContextManager[None]:
    """Print a line for each stage of the `steps` inside, if `verbose` is greater than a number.

    If it is greater by more than 1, print all steps, and stages within others.
    """
    if not isinstance(verbose, int | np.integer) or verbose < 0:
        raise ValueError(f"verbose must be a whole number from 0 on, got {verbose!r}")
    began: dict[str, float] = {}

    def show(stage: str, done: int, of: int) -> None:
        start = began.setdefault(stage, time.perf_counter())
        if (verbose > above + 1 and done > 0) or (done == of and len(began) == 1):
            count = "" if of == 1 else f", {done} of {of}"
            took = time_text(time.perf_counter() - start)
            print(f"[{name}] {stage}{count}, {took}", flush=True)
        if done == of:
            del began[stage]

    return telling(show) if verbose > above else nullcontext()


def digest_of(blocks: Iterable[NDArray[np.floating[Any]]]) -> str:
    """Return the digest of the features of a model, given in blocks of rows (n, n_features).

    It is BLAKE2b of features as the engine reads them: float32, row after row, NaN of one pattern,
    in 32 hexadecimal digits. O(n * n_features).
    """
    digest = hashlib.blake2b(digest_size=16)
    for rows in blocks:
        step = max(1, _CELLS_AT_ONCE // max(1, rows.shape[1]))
        for begin in range(0, len(rows), step):
            with np.errstate(over="ignore"):  # the engine refuses such rows
                part = np.array(rows[begin : begin + step], dtype="<f4", order="C")
            part[np.isnan(part)] = np.nan
            digest.update(part.reshape(-1).data)
    return digest.hexdigest()
