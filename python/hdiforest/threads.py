"""How many threads a call may use: scikit-learn's n_jobs, read as joblib reads it."""

from __future__ import annotations

import os

from joblib.parallel import SequentialBackend, ThreadingBackend, get_active_backend


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads that `n_jobs` stands for.

    None means 1, or what ``joblib.parallel_config`` says; -1 means all processors that the process
    was given: joblib heeds its affinity and control group.
    """
    backend, configured = get_active_backend()
    asked = configured if n_jobs is None else n_jobs
    # Threads are counted as joblib counts them, whichever backend is active: daemonic processes may
    # start them too. The sequential backend is that of nested workers, which are to start none.
    threads = backend if isinstance(backend, SequentialBackend) else ThreadingBackend()
    n_threads: int = threads.effective_n_jobs(asked)
    # Workers of other pools are told their share of the processors by this variable alone.
    limit = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if asked is not None and asked < 0 and limit.isdecimal() and int(limit) > 0:
        n_threads = min(n_threads, int(limit))
    return n_threads
