"""How many threads n_jobs stands for, in whichever worker it is asked."""

import multiprocessing
import threading

import joblib
import numpy as np
import pytest

import hdicore
from hdiforest import from_leaves

from ..oracle import run_python

PROCESSORS = joblib.cpu_count()
ROWS = np.zeros((2, 1), np.int32)
seen = threading.local()


def thread_count(n_jobs):
    """With how many threads the engine is called."""
    from_leaves(np.asarray, ROWS, [0.0, 1.0], n_jobs=n_jobs).predict(ROWS)
    return seen.n_threads


@pytest.fixture(autouse=True)
def _watched(monkeypatch):
    mean = hdicore.LeafIndex.mean

    def watched(*arguments, n_threads, **options):
        seen.n_threads = n_threads
        return mean(*arguments, n_threads=n_threads, **options)

    monkeypatch.setattr(hdicore.LeafIndex, "mean", watched)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def test_numbers(monkeypatch):
    assert thread_count(None) == 1
    assert thread_count(1) == 1
    assert thread_count(7) == 7
    assert thread_count(-1) == PROCESSORS
    assert thread_count(-PROCESSORS - 5) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert thread_count(-1) == 1
    with joblib.parallel_config(n_jobs=-1):
        assert thread_count(None) == 1
    with joblib.parallel_config(n_jobs=2):  # a number is meant as it stands
        assert thread_count(None) == 2


@pytest.mark.parametrize("n_jobs", [0, True, 1.5, "2"])
def test_other_numbers_are_refused(n_jobs):
    message = f"n_jobs must be a whole number other than 0, or None, got {n_jobs!r}"
    with pytest.raises(ValueError, match=message):
        thread_count(n_jobs)


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_joblib_says_how_many(backend):
    with joblib.parallel_config(backend=backend, n_jobs=3):
        assert thread_count(None) == 3
        assert thread_count(2) == 2


def counts():
    return [thread_count(n_jobs) for n_jobs in (None, 1, 2, -1)]


def test_workers_of_joblib():
    with joblib.Parallel(n_jobs=2, backend="threading") as pool:
        assert pool(joblib.delayed(counts)() for _ in range(2)) == [[1, 1, 2, PROCESSORS]] * 2

    def nested():
        with joblib.Parallel(n_jobs=2, backend="threading") as pool:
            return pool(joblib.delayed(counts)() for _ in range(2))

    # One level further down the processors are taken.
    with joblib.Parallel(n_jobs=2, backend="threading") as pool:
        assert pool(joblib.delayed(nested)() for _ in range(2)) == [[[1, 1, 1, 1]] * 2] * 2


def test_daemonic_workers_may_start_threads_and_are_not_warned():
    """joblib's own count warns there that no processes can be started, at each call."""
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("needs fork")
    program = """
import multiprocessing, warnings
import numpy as np
warnings.simplefilter("error")
from hdiforest import from_leaves
def counts(_):
    assert multiprocessing.current_process().daemon
    rows = np.zeros((2, 1), np.int32)
    models = [from_leaves(np.asarray, rows, [0.0, 1.0], n_jobs=n_jobs) for n_jobs in (None, 2, 3)]
    return [float(model.predict(rows)[0]) for model in models]
with multiprocessing.get_context("fork").Pool(1) as pool:
    print(pool.map(counts, [0]))
"""
    assert run_python(program) == "[[0.5, 0.5, 0.5]]\n"
