"""How many threads n_jobs stands for, in whichever worker it is asked."""

import multiprocessing

import joblib
import pytest

from hdiforest._utils.checks import thread_count

from ..oracle import run_python

PROCESSORS = joblib.cpu_count()


@pytest.fixture(autouse=True)
def _no_limit(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def test_numbers():
    assert thread_count(None) == 1
    assert thread_count(1) == 1
    assert thread_count(7) == 7
    assert thread_count(-1) == PROCESSORS
    assert thread_count(-PROCESSORS - 5) == 1


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
warnings.simplefilter("error")
from hdiforest._utils.checks import thread_count
def counts(_):
    assert multiprocessing.current_process().daemon
    return [thread_count(n_jobs) for n_jobs in (None, 2, 3)]
with multiprocessing.get_context("fork").Pool(1) as pool:
    print(pool.map(counts, [0]))
"""
    assert run_python(program) == "[[1, 2, 3]]\n"
