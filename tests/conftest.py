"""Markers by folder, and what several test files build on: the engine under sanitizers."""

import os
import shutil
import signal

import pytest

from hdicore import _core

from .engine.fuzz.engine import (
    COMPILER,
    SANITIZE,
    STRICT,
    compile_all,
    link_all,
    read_once,
    rooms,
)
from .oracle import ROOT

# Threads of scikit-learn: workers of xdist are as many as there are processors. Ours stay free.
if "PYTEST_XDIST_WORKER" in os.environ:
    import sklearn.ensemble  # noqa: F401  # loads the library of threads that is limited
    import threadpoolctl

    threadpoolctl.threadpool_limits(1, "openmp")

# What a test's path begins with, and its marker; the first that fits.
MARKERS = {
    "adapters/clusters/": "clusters",
    "adapters/peers/": "peers",
    "adapters/test_boosters.py": "peers",
    "adapters/test_dask.py": "clusters",
    "adapters/test_skpro.py": "skpro",
    "bench/": "bench",
    "cli/test_score_remote.py": "clusters",
    "docs/site/": "docs",
    "docs/test_backend_page.py": "peers",
    "engine/consumer/": "compiled",
    "engine/cpp/test_cross": "cross",
    "engine/cpp/test_sanitizers.py": "compiled",
    "engine/fuzz/": "compiled",
    "engine/stress/": "stress",
    "engine/test_": "engine",
    "repository/test_wheels.py": "release",
    "repository/": "style",
}
# docs/developers.md says what each needs and how to run it.
TASKS = {*MARKERS.values(), "slow"} - {"engine"}
# What no change of the package breaks for a user; `nox -s all` runs it at night.
NIGHTLY = {"bench", "clusters", "cross", "docs", "peers", "release"}
NO_TASK = "not task"
LEFT_OUT = {NO_TASK: TASKS, "task and not nightly": NIGHTLY}  # by what -m says


def marker_of(path):
    """The marker of a file of tests, or None."""
    name = path.relative_to(ROOT / "tests").as_posix()
    return next((MARKERS[begin] for begin in MARKERS if name.startswith(begin)), None)


def pytest_ignore_collect(collection_path, config):
    """Leave out files of tasks before their libraries are imported."""
    if collection_path.is_file() and collection_path.is_relative_to(ROOT / "tests"):
        left_out = LEFT_OUT.get(config.option.markexpr, ())
        return True if marker_of(collection_path) in left_out else None
    return None


def pytest_configure(config):
    """Leave tasks to those who name one; set what processes that are started later inherit."""
    names_tests = config.args_source is pytest.Config.ArgsSource.ARGS
    if not names_tests and not config.option.markexpr:
        config.option.markexpr = NO_TASK
    # Threads of OpenMP that wait in a loop would take the cores of the other test processes.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    # Signals as from a terminal: nohup and & leave some ignored.
    for name in ("SIGHUP", "SIGQUIT", "SIGINT"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_IGN:
            default = signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL
            signal.signal(number, default)


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items):
    """Mark tests by where they lie, and those of a task as such."""
    for item in items:
        if marker := marker_of(item.path):
            item.add_marker(marker)
        markers = {marker.name for marker in item.iter_markers()}
        if TASKS & markers:
            item.add_marker("task")
        if NIGHTLY & markers:
            item.add_marker("nightly")


@pytest.fixture(scope="session")
def built_once(tmp_path_factory):
    """Calls build(folder) in one of the processes of pytest-xdist, and gives all the folder."""

    def folder_of(name, build):
        if "PYTEST_XDIST_WORKER" not in os.environ:
            folder = tmp_path_factory.mktemp(name)
            build(folder)
            return folder
        filelock = pytest.importorskip("filelock", reason="processes need it to build once")
        folder = tmp_path_factory.getbasetemp().parent / name
        with filelock.FileLock(f"{folder}.lock"):
            if not (folder / "built").exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                build(folder)
                (folder / "built").touch()
        return folder

    return folder_of


@pytest.fixture
def set_block_rows():
    """Sets how many rows are a block in every query of a test; 0 is the engine's choice."""
    yield _core._set_block_rows
    _core._set_block_rows(0)


@pytest.fixture(scope="session")
def sanitized_engine(built_once):
    """libhdicore, compiled without Python under AddressSanitizer and UBSan.

    Its objects are beside it, and headers that are read once for sources with the same flags.
    """

    def build(folder):
        flags, sources = [*STRICT, *SANITIZE], rooms(folder / "rooms")
        header = read_once(COMPILER, flags, folder)
        objects = compile_all(COMPILER, flags, sources, folder, header)
        link_all(COMPILER, [*SANITIZE, "-shared"], {folder / "libhdicore.so": objects})

    return built_once("sanitized_engine", build) / "libhdicore.so"
