"""How many threads a call may use: scikit-learn's n_jobs, read as joblib reads it."""

from __future__ import annotations

import os
from typing import Any

import numpy as np


def check_n_jobs(n_jobs: Any) -> None:
    """Raise ValueError unless it is a whole number other than 0, or None."""
    is_whole = isinstance(n_jobs, int | np.integer) and not isinstance(n_jobs, bool)
    if n_jobs is not None and (not is_whole or n_jobs == 0):
        raise ValueError(f"n_jobs must be a whole number other than 0, or None, got {n_jobs!r}")


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads that `n_jobs` stands for, or raise ValueError.

    None means 1, or what ``joblib.parallel_config`` says; -1 all processors that the process has.
    """
    check_n_jobs(n_jobs)
    from joblib.parallel import SequentialBackend, ThreadingBackend, get_active_backend

    backend, configured = get_active_backend()
    n_jobs = configured if n_jobs is None else n_jobs
    # joblib's threading backend counts, whichever backend is active, because daemonic processes may
    # start threads too. The sequential backend is that of nested workers, which must start none.
    threads = backend if isinstance(backend, SequentialBackend) else ThreadingBackend()
    n_threads: int = threads.effective_n_jobs(n_jobs)
    # Other pools tell their workers by this variable alone how many processors they may use.
    limit = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if n_jobs is not None and n_jobs < 0 and limit.isdecimal() and int(limit) > 0:
        n_threads = min(n_threads, int(limit))
    return n_threads
