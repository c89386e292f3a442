"""Threads: errors come home from them, Python runs beside them, and forks find none of them."""

import os
import threading
import time

import numpy as np
import pytest

from hdicore import LeafIndex, weighted_hdi

from ..oracle import run_python


@pytest.mark.parametrize("n_threads", [1, 2, 8])
def test_an_error_in_a_worker_comes_home(scorer, n_threads):
    X = np.random.default_rng(1).random((5000, 3))
    X[4999, 2] = np.inf
    for call in (
        scorer.intervals,
        scorer.mean,
        scorer.weights,
        scorer.forest.apply,
    ):
        with pytest.raises(ValueError, match=r"X\[4999, 2\] is infinite"):
            call(X, n_threads=n_threads)
    leaves = np.zeros((5000, 40), dtype=np.int32)
    leaves[4999, 39] = 10**6
    with pytest.raises(ValueError, match=r"leaves\[4999, 39\]"):
        scorer.index.intervals(leaves, n_threads=n_threads)
    X[4999, 2] = 0.5
    assert np.all(np.isfinite(scorer.intervals(X, n_threads=n_threads)))


def ticks_during(call):
    """How often another Python thread woke while call ran."""
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    while not ticks:
        time.sleep(0.001)
    begin = time.perf_counter()
    call()
    end = time.perf_counter()
    stop.set()
    thread.join()
    return sum(begin < at < end for at in ticks), end - begin


def test_python_goes_on_while_the_engine_works(scorer):
    rng = np.random.default_rng(2)
    X, leaves = rng.random((20_000, 3)), rng.integers(0, 50, (20_000, 40), dtype=np.int32)
    samples, y = rng.random((3000, 200)), rng.random(20_000)
    calls = {
        "intervals": lambda: scorer.intervals(X, np.linspace(0.1, 1, 10), n_threads=1),
        "apply": lambda: [scorer.forest.apply(X, n_threads=1) for _ in range(3)],
        "index": lambda: LeafIndex(leaves, y, n_threads=1),
        "weights": lambda: scorer.weights(X, n_threads=1),
        "weighted_hdi": lambda: weighted_hdi(samples, n_threads=1),
    }
    for name, call in calls.items():
        ticks, seconds = ticks_during(call)
        # Idle, some 900 a second; none if the lock were held.
        assert ticks >= max(1, 30 * seconds), name


@pytest.mark.threads
def test_one_scorer_serves_many_python_threads(scorer):
    X = np.random.default_rng(3).random((2000, 3))
    expected = scorer.intervals(X, [0.5, 0.9], n_threads=1)
    wrong = []

    def score(n_threads):
        for _ in range(5):
            found = scorer.intervals(X, [0.5, 0.9], n_threads=n_threads)
            if found.tobytes() != expected.tobytes():
                wrong.append(n_threads)

    threads = [threading.Thread(target=score, args=(1 + k % 3,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


FORK = """
import multiprocessing, os, sys, warnings
import numpy as np
from hdicore import Forest, LeafIndex, Scorer, _core

warnings.simplefilter("ignore", DeprecationWarning)  # forking beside threads, of which none is ours
tree = [[1, -1, -1], [2, -1, -1], [0, -2, -2], [0.5, 0, 0], [0, 0, 0]]
forest = Forest(*tree, [0, 3], 1)
X = np.random.default_rng(0).random((5000, 1))
scorer = Scorer(forest, LeafIndex(forest.leaves(X), X[:, 0], n_threads=4))
_core._set_block_rows(100)

def score(n_threads):
    return scorer.intervals(X, n_threads=n_threads).tobytes()

expected = score(4)
for _ in range(3):
    child = os.fork()
    if child == 0:
        os._exit(0 if score(4) == expected and score(0) == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(score, [1, 2, 4, 8]) == [expected] * 4
assert score(4) == expected
print("done")
"""


@pytest.mark.threads
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_forked_child_scores_with_threads():
    assert run_python(FORK, timeout=60) == "done\n"


THREADS = "import os, hdicore; {}\nprint(hdicore.available_threads())"


@pytest.mark.parametrize("limit", ["1", "1,2"])
def test_the_default_number_of_threads_heeds_openmp(limit):
    everyone = os.environ | {"OMP_NUM_THREADS": "100000"}
    assert int(run_python(THREADS.format(""), env=everyone)) >= 1
    assert run_python(THREADS.format(""), env=os.environ | {"OMP_NUM_THREADS": limit}) == "1\n"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this platform")
def test_the_default_number_of_threads_heeds_affinity():
    one = "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})"
    assert run_python(THREADS.format(one)) == "1\n"


LOKY = """
import joblib
import numpy as np
from hdicore import Forest, LeafIndex, Scorer, available_threads

tree = [[1, -1, -1], [2, -1, -1], [0, -2, -2], [0.5, 0, 0], [0, 0, 0]]
X = np.random.default_rng(0).random((20_000, 1))  # large enough to be mapped into the workers

def score(scorer, X):
    return available_threads(), X.flags.writeable, scorer.intervals(X).tobytes()

if __name__ == "__main__":
    forest = Forest(*tree, [0, 3], 1)
    scorer = Scorer(forest, LeafIndex(forest.leaves(X[:500]), X[:500, 0]))
    expected = scorer.intervals(X).tobytes()
    calls = [joblib.delayed(score)(scorer, X)] * 4
    for n_threads, writeable, found in joblib.Parallel(joblib.cpu_count(), max_nbytes=1000)(calls):
        assert n_threads == 1 and found == expected
        assert joblib.cpu_count() == 1 or not writeable
    for _, _, found in joblib.Parallel(2, backend="threading")(calls):
        assert found == expected
    print("done")
"""


def test_workers_of_joblib_score_with_their_share_of_the_processors(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(LOKY)
    run_script = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"
    assert run_python(run_script, script) == "done\n"
