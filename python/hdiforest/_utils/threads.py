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
    # joblib's threading backend counts, whichever backend is active, because daemonic processes may
    # start threads too. The sequential backend is that of nested workers, which must start none.
    threads = backend if isinstance(backend, SequentialBackend) else ThreadingBackend()
    n_threads: int = threads.effective_n_jobs(asked)
    # Other pools tell their workers by this variable alone how many processors they may use.
    limit = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if asked is not None and asked < 0 and limit.isdecimal() and int(limit) > 0:
        n_threads = min(n_threads, int(limit))
    return n_threads
