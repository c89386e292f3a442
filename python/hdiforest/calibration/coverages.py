"""The coverages asked for: their check, and the warning where rows are too few for them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from hdiforest._utils.checks import shares
from hdiforest._utils.warnings import callers_level
from hdiforest.calibration.pads import rows_needed


def checked_coverages(given: Any) -> tuple[float, ...]:
    """Return distinct coverages, ascending, at least one, of a number or a list of numbers."""
    found = np.sort(shares("coverage", given).reshape(-1))
    if len(found) == 0 or (np.diff(found) == 0).any():
        raise ValueError(f"coverage must be one or more distinct numbers, got {given!r}")
    return tuple(found.tolist())


def warn_of_infinite(infinite: Sequence[float], n: int, confidence: float | None = None) -> None:
    """Warn if pads of some coverages, from n rows, are infinite."""
    if not infinite:
        return
    needed = [(share, rows_needed(share, confidence=confidence)) for share in infinite]
    if n >= needed[0][1]:
        reason = (
            "targets outside the range of the training targets, or weights, leave too few of the "
            f"{n} calibration rows; use more rows, or clip=False"
        )
    else:
        wanted = ", ".join(f"{rows} for {share:g}" for share, rows in needed)
        reason = f"{n} calibration rows are too few; needed are {wanted}"
    shown = ", ".join(f"{share:g}" for share in infinite)
    warnings.warn(
        f"intervals of coverage {shown} are infinite: {reason}",
        UserWarning,
        stacklevel=callers_level(),
    )
