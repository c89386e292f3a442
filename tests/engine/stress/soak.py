"""Do everything in turns for an hour in one process: memory, descriptors and threads stay level.

The first half warms up. In the second, a line that outliers do not move is fitted to each record.
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from outcome import Row, SkippedError
from scipy.stats import theilslopes
from soak_work import WORK

# What the fitted lines may rise by over the second half.
BOUNDS = {"resident memory, MB": 10.0, "open descriptors": 0.5, "threads": 0.5}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=0)


def run(options: argparse.Namespace) -> Iterator[Row]:
    if not Path("/proc/self/fd").is_dir():
        raise SkippedError("the soak reads memory, descriptors and threads from Linux' /proc.")
    rng = np.random.default_rng(options.seed)
    times: list[float] = []
    records: list[tuple[float, ...]] = []
    done, errors = Counter[str](), Counter[str]()
    work = {name: do for name, do in WORK.items() if options.only in name}
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        while (passed := time.monotonic() - start) < options.seconds:
            for name, do in work.items():
                try:
                    do(rng, Path(folder))
                except Exception as error:
                    errors[f"{name}: {error!r}"[:200]] += 1
                done[name] += 1
            gc.collect()
            times.append(passed)
            records.append(usage())
    yield from (Row(name, n, "done") for name, n in done.items())
    yield from (Row(text, n, "an error", finding=True) for text, n in errors.items())
    columns = zip(BOUNDS.items(), np.array(records).T, strict=True)
    yield from (level(name, bound, times, record) for (name, bound), record in columns)


def usage() -> tuple[float, ...]:
    """Return resident memory in MB, open descriptors and threads."""
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resident / 2**20, len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


def level(name: str, bound: float, times: list[float], record: np.ndarray) -> Row:
    """Judge by the rise of the line over the second half of the time."""
    half = len(record) // 2
    if half < 5:
        return Row(name, len(record), "too few rounds to judge", finding=True)
    line = theilslopes(record[half:], times[half:])
    rise = line.slope * (times[-1] - times[half])
    middle, highest = np.median(record[half:]), record.max()
    text = (
        f"{record[0]:.1f} in the first round, {middle:.1f} in the middle of the second half, "
        f"at most {highest:.1f}; the line rises by {rise:.2f}, allowed {bound}"
    )
    return Row(name, len(record), text, finding=bool(rise > bound))
