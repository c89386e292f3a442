"""Where warnings point to: the code that called this package."""

from __future__ import annotations

import inspect


def callers_level() -> int:
    """Return the `stacklevel` of the code that called this package, for who asks."""
    frame, level = inspect.currentframe(), 0
    own = __name__.partition(".")[0]
    while frame is not None and (frame.f_globals.get("__package__") or "").split(".")[0] == own:
        frame, level = frame.f_back, level + 1
    return level
