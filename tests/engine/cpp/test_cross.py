"""The engine's own tests, compiled for other machines and run by emulators of these."""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from ..fuzz.engine import ROOT, STRICT, compile_all, link_all, read_once, rooms

# `nox -s cross` runs all tests for all machines, in six minutes more.
ALL = os.environ.get("HDICORE_CROSS") == "all"
# Those that differ most between instruction sets.
FEW = ("test_c_api", "test_kernels", "test_hdi", "test_merger", "test_rank_set", "test_types")
TESTS = [
    path
    for path in sorted((ROOT / "tests" / "engine" / "cpp").glob("test_*.cpp"))
    if path.stem in FEW or ALL
]


@dataclass(frozen=True)
class Machine:
    """A compiler for another machine, and what runs its programs here."""

    name: str
    compilers: tuple[str, ...]
    emulators: tuple[str, ...]
    instructions: list[str]

    def missing(self):
        """Say which tool is missing, if one is."""
        for tools in (self.compilers, self.emulators):
            if not any(map(shutil.which, tools)):
                return f"{' or '.join(tools)} was not found; nox -s cross installs it"
        return None


MACHINES = (
    Machine("aarch64", ("aarch64-linux-gnu-g++",), ("qemu-aarch64",), ["portable"]),
    Machine("windows", ("x86_64-w64-mingw32-g++-posix",), ("wine64", "wine"), ["portable"]),
)


def found(tools):
    return next(filter(None, map(shutil.which, tools)))


@pytest.fixture(scope="module", params=MACHINES, ids=lambda machine: machine.name)
def programs(request, built_once):
    """The machine, and a folder with one program for each test file."""
    machine = request.param
    if machine.name == "windows" and not ALL:
        pytest.skip("nox -s cross runs it")
    if why := machine.missing():
        pytest.skip(why)
    compiler = found(machine.compilers)

    def build(folder):
        flags = [*STRICT, "-O0"]
        header = read_once(compiler, flags, folder)
        engine = compile_all(compiler, flags, rooms(folder / "rooms"), folder, header)
        objects = compile_all(compiler, flags, TESTS, folder, header)
        tests = {test.with_suffix(".exe"): [test, *engine] for test in objects}
        link_all(compiler, ["-static", "-s"], tests)

    return machine, built_once(f"cross_{machine.name}", build)


def test_the_engine_passes_its_own_tests(programs, tmp_path):
    machine, folder = programs
    environment = os.environ | {
        "WINEPREFIX": str(tmp_path / "wine"),
        "WINEDEBUG": "-all",
        "HDICORE_INSTRUCTIONS": "",
    }
    emulator = found(machine.emulators)

    def run(test):
        command = [emulator, folder / f"{test.stem}.exe"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
        return test.stem, done.returncode, done.stdout

    # The first run alone: wine makes its folder then.
    first, *others = TESTS
    with ThreadPoolExecutor(2) as pool:
        results = [run(first), *pool.map(run, others)]
    assert [result for result in results if result[1] != 0] == []
    said = {name: output.split() for name, _, output in results}
    assert said["test_kernels"] == machine.instructions
