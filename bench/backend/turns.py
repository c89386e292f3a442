"""Times several calls in turns, so that a change of the machine's speed meets them all."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import study as study  # of the scripts beside this one


def seconds_in_turns(
    calls: Mapping[str, Callable[[], object]],
    n_turns: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Return the seconds of each call in each turn; every turn starts with another call."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    names = list(calls)
    for turn in range(n_turns):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            start = clock()
            calls[name]()
            seconds[name].append(clock() - start)
    return seconds
