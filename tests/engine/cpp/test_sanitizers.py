"""The engine alone: compiled without Python under sanitizers, and its own tests run."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from ..fuzz.engine import (
    COMPILER,
    HEADERS,
    ROOT,
    SANITIZE,
    SOURCES,
    STRICT,
    compile_all,
    compiler_messages,
    link_all,
)

TESTS = sorted((ROOT / "tests" / "engine" / "cpp").glob("test_*.cpp"))
# Those that compare all instruction sets that can run.
KERNEL_TESTS = ("test_kernels", "test_merger", "test_scorer", "test_rank_set", "test_bucket_masses")
EMULATED = ("avx2", "avx512")

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (c++ or $CXX) found"),
    pytest.mark.skipif(sys.platform == "win32", reason="the flags are those of GCC and Clang"),
]


def test_every_stage_has_tests_named_after_its_headers():
    tested = {path.stem.removeprefix("test_") for path in TESTS}
    assert tested <= {path.stem for path in HEADERS}
    stages = {path.parent for path in HEADERS if path.stem in tested}
    assert stages == {path.parent for path in HEADERS}


def first_include(source):
    (line, *_) = (line for line in source.read_text("utf-8").splitlines() if "#include" in line)
    return ROOT / "src_cpp" / line.split('"')[1] if '"' in line else None


@pytest.mark.nightly
def test_every_header_compiles_on_its_own():
    """Those that a source includes first need no check: the source would not compile."""
    others = set(HEADERS).difference(map(first_include, SOURCES))
    with ThreadPoolExecutor(2) as pool:
        checked = pool.map(
            lambda path: compiler_messages(
                COMPILER, *STRICT, "-fsyntax-only", "-x", "c++", "-include", path, os.devnull
            ),
            others,
        )
        assert "".join(checked) == ""


@pytest.fixture(scope="module")
def programs(sanitized_engine, tmp_path_factory):
    """Folder with one program for each test file."""
    folder = tmp_path_factory.mktemp("engine_tests")
    flags, header = [*STRICT, *SANITIZE], sanitized_engine.with_name("headers.hpp")
    tests = compile_all(COMPILER, flags, TESTS, folder, header)
    link_all(COMPILER, SANITIZE, {test.with_suffix(""): [test, sanitized_engine] for test in tests})
    return folder


@pytest.fixture(scope="module")
def emulating_programs(programs, sanitized_engine, tmp_path_factory):
    """Folder with the programs of KERNEL_TESTS, with AVX2 and AVX-512 emulated in plain C++."""
    folder = tmp_path_factory.mktemp("emulating_tests")
    emulate = ("-O1", f"-I{ROOT}/tests/engine/cpp/emulated", "-DHDICORE_TARGET(instructions)=")
    names = (*EMULATED, "kernels")
    sources = [ROOT / "src_cpp" / "kernels" / f"{name}.cpp" for name in names]
    kernels = compile_all(COMPILER, [*STRICT, *SANITIZE, *emulate], sources, folder)
    library = folder / "libhdicore.so"
    others = [made for made in sanitized_engine.parent.glob("*.o") if made.stem not in names]
    link_all(COMPILER, [*SANITIZE, "-shared"], {library: [*kernels, *others]})
    tests = {folder / name: [programs / f"{name}.o", library] for name in KERNEL_TESTS}
    link_all(COMPILER, SANITIZE, tests)
    return folder


def output_of(program):
    done = subprocess.run([program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", [path.stem for path in TESTS])
def test_the_engine_passes_its_own_tests(programs, name):
    output_of(programs / name)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.nightly) if name == "test_scorer" else name
        for name in KERNEL_TESTS
    ],
)
def test_emulated_kernels_pass(emulating_programs, name):
    output = output_of(emulating_programs / name)
    assert name != "test_kernels" or output.split() == ["portable", *EMULATED]
