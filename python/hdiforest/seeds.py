"""Random states as callers give them."""

from __future__ import annotations

from typing import Any

from numpy.random import RandomState
from sklearn.utils import check_random_state


def checked_random_state(random_state: Any) -> RandomState:
    """Return a RandomState for a seed, a RandomState or None.

    Raises
    ------
    ValueError
        If it is something else.
    """
    try:
        found: RandomState = check_random_state(random_state)
    except ValueError:
        raise ValueError(
            "random_state must be a whole number from 0 to 2**32 - 1, a RandomState or None, got "
            f"{random_state!r}"
        ) from None
    return found
