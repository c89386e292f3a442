"""The stack level of warnings, and what the warning on training rows names."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class Instead(NamedTuple):
    """What a hint names for the rows of the fit."""

    usual: str = "oob_interval"
    hdi: str = "oob_interval(kind='hdi')"  # where calibrated intervals are not known out of bag
    without: str = ""  # where no intervals are, or the training rows are missing


# What the next hints name, each once; None outside of `hints_that_name` and `hints_of`.
HINTS_LEFT: ContextVar[list[Instead] | None] = ContextVar("_LEFT", default=None)


@contextmanager
def hints_of(left: list[Instead]) -> Iterator[None]:
    """Let hints inside name what is in a list, an entry each; none is given for an empty one."""
    token = HINTS_LEFT.set(left)
    try:
        yield
    finally:
        HINTS_LEFT.reset(token)


def hints_that_name(
    usual: str, hdi: str | None = None, without: str = ""
) -> AbstractContextManager[None]:
    """Let the first hint inside name what to call instead, see `Instead`; give no more hints."""
    return hints_of([Instead(usual, usual if hdi is None else hdi, without)])


def callers_level() -> int:
    """Return the `stacklevel` of the code that called this package, for who asks."""
    frame, level = inspect.currentframe(), 0
    own = __name__.partition(".")[0]
    while frame is not None and (frame.f_globals.get("__package__") or "").split(".")[0] == own:
        frame, level = frame.f_back, level + 1
    return level
