"""The engine alone: compiled without Python under sanitizers, and its own tests run."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from .oracle import ROOT

COMPILER = os.environ.get("CXX") or shutil.which("c++")
SOURCES = sorted((ROOT / "src_cpp" / "src").glob("*.cpp"))
HEADERS = sorted((ROOT / "src_cpp" / "include" / "hdicore").glob("*.h*"))
TESTS = sorted((ROOT / "tests" / "cpp").glob("test_*.cpp"))
FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{ROOT}/src_cpp/include"]
SANITIZE = ["-O0", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (c++ or $CXX) found"),
    pytest.mark.skipif(sys.platform == "win32", reason="the flags are those of GCC and Clang"),
]


def compile_with(*arguments):
    done = subprocess.run([COMPILER, *FLAGS, *map(str, arguments)], capture_output=True, text=True)
    return done.stdout + done.stderr if done.returncode else ""


def test_every_header_has_a_test():
    assert [path.stem.removeprefix("test_") for path in TESTS] == [path.stem for path in HEADERS]


def test_every_header_compiles_on_its_own():
    with ThreadPoolExecutor(2) as pool:
        checked = pool.map(
            lambda path: compile_with("-fsyntax-only", "-x", "c++", "-include", path, os.devnull),
            HEADERS,
        )
        assert "".join(checked) == ""


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Folder with one program for each test file."""
    folder = tmp_path_factory.mktemp("engine")

    def compile_one(path):
        return compile_with(*SANITIZE, "-c", path, "-o", folder / f"{path.stem}.o")

    with ThreadPoolExecutor(2) as pool:
        errors = "".join(pool.map(compile_one, [*TESTS, *SOURCES]))
        assert not errors, errors
        engine = [folder / f"{path.stem}.o" for path in SOURCES]
        errors = "".join(
            pool.map(
                lambda path: compile_with(
                    *SANITIZE,
                    "-pthread",
                    folder / f"{path.stem}.o",
                    *engine,
                    "-o",
                    folder / path.stem,
                ),
                TESTS,
            )
        )
        assert not errors, errors
    return folder


@pytest.mark.parametrize("name", [path.stem for path in TESTS])
def test_the_engine_passes_its_own_tests(programs, name):
    done = subprocess.run([programs / name], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
