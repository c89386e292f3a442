"""Random states as callers give them."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from numpy.random import RandomState
from sklearn.utils import check_random_state


def checked_random_state(random_state: Any) -> RandomState:
    """Return a RandomState for a seed, a RandomState or None.

    Raises
    ------
    ValueError
        If it is something else; True and False are no seeds.
    """
    try:
        if isinstance(random_state, bool):
            raise ValueError
        found: RandomState = check_random_state(random_state)
    except ValueError:
        raise ValueError(
            "random_state must be a whole number from 0 to 2**32 - 1, a RandomState or None, got "
            f"{random_state!r}"
        ) from None
    return found


def checked_seed(random_state: Any) -> int | None:
    """Return a seed or None as it is, and of a RandomState a number that it draws.

    Raises
    ------
    ValueError
        As `checked_random_state`.
    """
    random = checked_random_state(random_state)
    if random_state is None or isinstance(random_state, Integral):
        return None if random_state is None else int(random_state)
    return int(random.randint(2**31 - 1))
