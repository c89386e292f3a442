"""The line that warnings name, and the warning that X holds the rows of the fit."""

from __future__ import annotations

import hashlib
import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_CELLS_AT_ONCE = 1 << 18  # so that the copy stays in the cache


def callers_level() -> int:
    """Return the `stacklevel` of the code that called this package, for who asks."""
    frame, level = inspect.currentframe(), 0
    package = __name__.partition(".")[0]
    while frame is not None and (frame.f_globals.get("__package__") or "").split(".")[0] == package:
        frame, level = frame.f_back, level + 1
    return level


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, naming the line of the code that called this package."""
    warnings.warn(message, category, stacklevel=callers_level())


class Instead(NamedTuple):
    """What a hint names for the rows of the fit."""

    usual: str = "oob_interval"
    hdi: str = "oob_interval(kind='hdi')"  # where calibrated intervals are not known out of bag
    without: str = ""  # where no intervals are, or the training rows are missing


# What the next hints name, each once; None outside of `hints_that_name` and `hints_of`.
_HINTS_LEFT: ContextVar[list[Instead] | None] = ContextVar("_HINTS_LEFT", default=None)


@contextmanager
def hints_of(left: list[Instead]) -> Iterator[None]:
    """Let hints inside name what is in a list, an entry each; none is given for an empty one."""
    token = _HINTS_LEFT.set(left)
    try:
        yield
    finally:
        _HINTS_LEFT.reset(token)


def hints_that_name(usual: str, hdi: str = "", without: str = "") -> AbstractContextManager[None]:
    """Let the first hint inside name what to call instead, see `Instead`; give no more hints."""
    return hints_of([Instead(usual, hdi or usual, without)])


class RowsDigest:
    """BLAKE2b of features as the engine reads them: float32, row after row, NaN of one pattern."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)

    def update(self, rows: NDArray[np.floating[Any]]) -> None:
        """Add rows, (n, n_features). O(n * n_features)."""
        step = max(1, _CELLS_AT_ONCE // max(1, rows.shape[1]))
        for begin in range(0, len(rows), step):
            with np.errstate(over="ignore"):  # the engine refuses such rows
                part = np.array(rows[begin : begin + step], dtype="<f4", order="C")
            part[np.isnan(part)] = np.nan
            self._hash.update(part.reshape(-1).data)

    def text(self) -> str:
        """Return 32 hexadecimal digits."""
        return self._hash.hexdigest()


def digest_of(rows: NDArray[np.floating[Any]]) -> str:
    """Return the digest of all rows."""
    digest = RowsDigest()
    digest.update(rows)
    return digest.text()


def warn_of_training_rows(name_of: Callable[[Instead], str]) -> None:
    """Warn that X holds the rows of the fit, unless all hints that may be given were.

    `name_of` returns which of the names of an `Instead` gives intervals of these rows out of bag;
    empty if nothing does.
    """
    left = _HINTS_LEFT.get()
    if left == []:
        return
    name = name_of(Instead() if left is None else left.pop())
    out_of_bag = name and f"{name}, which asks for each row the trees that did not draw it, or "
    warn_caller(
        "X holds the rows of the fit: intervals cover more of their targets than of those of new "
        f"rows; use {out_of_bag}rows that took no part in the fit"
    )
