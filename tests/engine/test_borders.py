"""What the compiled module is given and may be asked: memory, signals, pickles, interpreters."""

import copy
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from hdicore import Forest, LeafIndex, Scorer, _core, weighted_hdi

from ..oracle import run_python


def overlapping(shape, dtype, out_shape, shift=0):
    """An array and another one of float64 over the same memory, from `shift` bytes on."""
    n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    n_out = int(np.prod(out_shape)) * 8
    memory = np.zeros(max(n_bytes, shift + n_out) + 8, dtype=np.uint8)
    given = memory[:n_bytes].view(dtype).reshape(shape)
    return given, memory[shift : shift + n_out].view(np.float64).reshape(out_shape)


def test_results_over_the_memory_of_the_rows_are_refused(scorer):
    leaves, out = overlapping((200, 40), np.int32, (200, 2))
    with pytest.raises(ValueError, match="out must not share memory with leaves"):
        scorer.index.intervals(leaves, out=out)
    X, out = overlapping((200, 3), np.float64, (200,), shift=200 * 3 * 8 - 8)
    with pytest.raises(ValueError, match="out must not share memory with X"):
        scorer.mean(X, out=out)
    with pytest.raises(ValueError, match="mean must not share memory with X"):
        scorer.intervals(X, mean=out)
    ids = np.zeros((200, 40), dtype=np.int32)
    X = ids.reshape(-1)[:1200].view(np.float64).reshape(200, 3)
    with pytest.raises(ValueError, match="out must not share memory with X"):
        scorer.forest.leaves(X, out=ids)


def test_results_over_the_memory_of_points_or_other_results_are_refused(scorer):
    X = np.zeros((50, 3))
    out = np.zeros((50, 2))
    with pytest.raises(ValueError, match="mean must not share memory with out"):
        scorer.intervals(X, out=out, mean=out.reshape(-1)[:50])
    memory = np.linspace(0, 0.9, 101)
    with pytest.raises(ValueError, match="out must not share memory with y"):
        scorer.cdf(X, memory[:50], out=memory[:50])
    with pytest.raises(ValueError, match="out must not share memory with uniforms"):
        scorer.draws(X, memory[1:51], out=memory[:50])
    expected = scorer.draws(X, memory[:50].copy())
    np.testing.assert_array_equal(scorer.draws(X, memory[:50], out=memory[:50]), expected)


def test_neighbouring_memory_is_no_overlap(scorer):
    memory = np.zeros(50 * 3 + 50)
    X, out = memory[:150].reshape(50, 3), memory[150:]
    np.testing.assert_array_equal(scorer.mean(X, out=out), scorer.mean(np.zeros((50, 3))))


@pytest.mark.slow
def test_leaves_that_change_during_a_call_crash_nothing():
    program = """
import threading
import numpy as np
from hdicore import LeafIndex
rng = np.random.default_rng(0)
train = rng.integers(0, 60, (400, 12)).astype(np.int32)
index = LeafIndex(train, rng.normal(size=400), n_leaves=[60] * 12)
leaves = rng.integers(0, 60, (3000, 12)).astype(np.int32)
stop = threading.Event()
def flip():
    changed = leaves[1500:1501, 0]
    while not stop.is_set():
        changed[...] = 2**30
        changed[...] = 3
thread = threading.Thread(target=flip)
thread.start()
for _ in range(1000):
    try:
        index.intervals(leaves, n_threads=1)
    except ValueError:
        pass
stop.set()
thread.join()
print("alive")
"""
    assert run_python(program).strip() == "alive"


@pytest.mark.parametrize("protocol", range(6))
def test_every_pickle_protocol_gives_the_same_bits(scorer, protocol):
    X = np.random.default_rng(1).random((50, 3))
    for given in (scorer, scorer.forest, scorer.index):
        again = pickle.loads(pickle.dumps(given, protocol))
        assert type(again) is type(given)
    again = pickle.loads(pickle.dumps(scorer, protocol))
    np.testing.assert_array_equal(again.intervals(X, [0.5, 0.9]), scorer.intervals(X, [0.5, 0.9]))
    np.testing.assert_array_equal(copy.deepcopy(scorer).mean(X), scorer.mean(X))


def test_subclasses_pickle_as_themselves(scorer):
    for cls, state in ((Forest, (scorer.forest.arrays(), 3)), (LeafIndex, None)):
        subclass = type(cls.__name__, (cls,), {"__module__": __name__})
        globals()[cls.__name__], kept = subclass, cls
        try:
            made = subclass.__new__(subclass)
            made.__setstate__(state or scorer.index.__getstate__())
            assert type(pickle.loads(pickle.dumps(made))) is subclass
        finally:
            globals()[cls.__name__] = kept


def test_a_scorer_of_something_else_is_refused(scorer):
    with pytest.raises(TypeError, match="forest must be a Forest, got LeafIndex"):
        Scorer(scorer.index, scorer.index)
    with pytest.raises(TypeError, match="index must be a LeafIndex, got NoneType"):
        Scorer(scorer.forest, None)
    with pytest.raises(TypeError, match=r"Forest.__init__ was not called"):
        Scorer(Forest.__new__(Forest), scorer.index)


CLASSES = [value for value in vars(_core).values() if isinstance(value, type)]


@pytest.mark.parametrize("cls", CLASSES)
def test_members_of_uninitialised_objects_raise_type_errors(cls):
    rows = np.zeros((1, 1), dtype=np.int32)
    made = {"__init__", "__new__", "__setstate__", "__module__", "__doc__"}
    own = [n for n in vars(cls).keys() - made if not isinstance(vars(cls)[n], staticmethod)]
    assert own
    for name in own:
        empty = cls.__new__(cls)
        if isinstance(vars(cls)[name], property):
            with pytest.raises(TypeError, match="__init__ was not called"):
                getattr(empty, name)
        elif callable(getattr(empty, name)):
            for given in ((), (rows,), (rows, 0.5)):
                with pytest.raises(TypeError):
                    getattr(empty, name)(*given)
    for use in (copy.copy, *(lambda o, p=p: pickle.dumps(o, p) for p in range(6))):
        with pytest.raises(TypeError):
            use(cls.__new__(cls))


SLOW = """
import signal, sys, time
import numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it
from hdicore import Forest, LeafIndex, weighted_hdi
rng = np.random.default_rng(0)
leaves = rng.integers(0, 4, (20000, 50)).astype(np.int32)
index = LeafIndex(leaves, rng.normal(size=20000))
query = rng.integers(0, 4, (10**6, 50)).astype(np.int32)
n_threads = int(sys.argv[2])
calls = {
    "intervals": lambda: index.intervals(query, [0.5, 0.9], n_threads=n_threads),
    "weights": lambda: index.weights(query, n_threads=n_threads),
    "weighted_hdi": lambda: weighted_hdi(
        rng.normal(size=(40, 100_000)), None, np.linspace(0.01, 1, 2000), n_threads=n_threads
    ),
    "index": lambda: LeafIndex(np.tile(leaves, (50, 1)), rng.normal(size=10**6)),
}
call = calls[sys.argv[1]]
print("ready", flush=True)
call()
print("finished")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("call", "n_threads"),
    [("intervals", 2), ("weights", 1), ("weighted_hdi", 2), ("index", 2)],
)
def test_an_interrupt_ends_a_long_call(call, n_threads):
    with subprocess.Popen(
        [sys.executable, "-P", "-c", SLOW, call, str(n_threads)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in err
    assert "finished" not in out


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_handler_runs_during_a_call_and_its_exception_comes_home():
    leaves = np.zeros((2000, 1), dtype=np.int32)
    index = LeafIndex(leaves, np.arange(2000.0))
    query = np.zeros((10**6, 1), dtype=np.int32)
    uniforms = np.zeros((10**6, 1))  # of which each row has its own, so that equal rows take long

    class AlarmError(Exception):
        pass

    def ring(*_):
        raise AlarmError

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(AlarmError):
            index.draws(query, uniforms)
    finally:
        signal.signal(signal.SIGALRM, before)
    # Nothing of the interrupted call is left.
    np.testing.assert_allclose(index.mean(query[:3]), 999.5)


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="the module has another name there")
@pytest.mark.parametrize("first", ["main", "sub"])
def test_a_sub_interpreter_gets_one_sentence(first):
    program = """
import importlib, sys
interpreters = importlib.import_module("_xxsubinterpreters")
if sys.argv[1] == "main":
    import hdicore
made = interpreters.create()
try:
    interpreters.run_string(made, "import hdicore")
except interpreters.RunFailedError as error:
    print(error)
interpreters.destroy(made)
import hdicore
print(hdicore.weighted_hdi([1.0, 2.0, 9.0], coverage=0.6))
"""
    out = run_python(program, first)
    assert "hdicore cannot be imported in a sub-interpreter" in out
    assert out.strip().endswith("[1. 2.]")


def test_the_lightest_of_values_has_a_share():
    np.testing.assert_array_equal(weighted_hdi([0, 10], [1e-13, 1], 1.0), [0, 10])
    np.testing.assert_array_equal(weighted_hdi([0, 10], [1, 1e-13], 1.0), [0, 10])
    np.testing.assert_array_equal(weighted_hdi([0, 10], [1e-13, 1], 0.9), [10, 10])


def test_coverage_one_is_the_whole_support_however_unequal_the_weights():
    rng = np.random.default_rng(0)
    y = rng.normal(size=2000)
    weights = rng.random(2000)
    weights[[y.argmin(), y.argmax()]] = 1e-15
    index = LeafIndex(np.zeros((2000, 1)), y, sample_weight=weights)
    np.testing.assert_array_equal(index.intervals([[0]], 1.0), [[y.min(), y.max()]])
    assert len(index.atoms()) == 2000


@pytest.mark.memory
def test_scoring_with_very_many_trees_takes_little_memory():
    program = """
import resource
import numpy as np
from hdicore import LeafIndex
index = LeafIndex(np.zeros((2, 400_000), dtype=np.int32), [0.0, 1.0])
query = np.zeros((300, 400_000), dtype=np.int32)
index.intervals(query[:1], n_threads=1)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
index.intervals(query, n_threads=1)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    assert int(run_python(program)) < 150_000  # kB; a block of 256 rows would take 400,000


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers that send signals")
def test_a_large_index_is_never_long_without_a_look_at_signals():
    """Not even while the system moves it to large pages. Seconds are those of the processor."""
    program = """
import signal
import time
import numpy as np
from hdicore import LeafIndex
rng = np.random.default_rng(0)
leaves, y = rng.integers(0, 999, (1_000_000, 99), dtype=np.int32), rng.normal(size=1_000_000)
looks = [time.thread_time()]
signal.signal(signal.SIGALRM, lambda *_: looks.append(time.thread_time()))
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
LeafIndex(leaves, y, n_threads=1)
signal.setitimer(signal.ITIMER_REAL, 0)
print(np.diff([*looks, time.thread_time()]).max())
"""
    assert float(run_python(program)) < 0.25
