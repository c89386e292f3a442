"""What extension authors are promised: headers that compile, a C table, functions for Cython."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hdicore

from .oracle import ROOT, run, run_python

CONSUMER = Path(__file__).parent / "consumer"
COMPILER = os.environ.get("CXX") or shutil.which("c++")

needs_compiler = pytest.mark.skipif(
    COMPILER is None or sys.platform == "win32", reason="no C++ compiler (c++ or $CXX) found"
)


@needs_compiler
def test_a_cpp_program_compiles_against_the_installed_headers(target, tmp_path):
    program = tmp_path / "program"
    include = f"-I{target / 'hdicore' / 'include'}"
    flags = ("-std=c++20", "-Wall", "-Wextra", "-Werror", include)
    run(COMPILER, *flags, CONSUMER / "program.cpp", "-o", program)
    assert run(program) == "3 3\n"


def test_the_headers_of_a_checkout_are_found_too():
    assert (Path(hdicore.get_include()) / "hdicore" / "types.hpp").is_file()


USE = """
import importlib.util, sys
import numpy as np
import hdicore

def load(name):
    path = next(path for path in sys.argv[1:] if path.rpartition("/")[2].startswith(name + "."))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

def refused(call, *arguments):
    try:
        call(*arguments)
    except (AttributeError, ValueError) as error:
        return str(error)

rng = np.random.default_rng(0)
one = np.ones(1)
leaves = rng.integers(0, 4, (50, 6), dtype=np.int32)
index = hdicore.LeafIndex.from_leaves(leaves, rng.random(50))
print(hdicore.__file__)
"""

USE_FUNCTIONS = """
consumer = load("consumer")
for _ in range(200):
    values, weights = rng.integers(0, 20, 30) / 4, rng.random(30)
    for level in (0.1, 0.5, 0.9, 1.0):
        assert consumer.shortest(values, weights, level) == tuple(
            hdicore.weighted_hdi(values, weights, level))
        assert consumer.shortest(values, None, level) == tuple(
            hdicore.weighted_hdi(values, coverage=level))
    order = np.argsort(values)
    half = np.searchsorted(np.cumsum(weights[order]), weights.sum() / 2)
    assert consumer.median(values, weights) == values[order][half]
for bad in (0.0, -1.0, 1.5, np.nan):
    assert consumer.shortest(one, None, bad) is None
for bad in (np.nan, np.inf):
    assert consumer.shortest(one * bad, None, 0.9) is None
    assert consumer.shortest(one, one * bad, 0.9) is None
assert consumer.shortest(one, -one, 0.9) is None
assert consumer.shortest(one, one * 0, 0.9) is None
assert consumer.refuses_nothing()

from scipy import LowLevelCallable
from scipy.ndimage import generic_filter

assert "double const *" in LowLevelCallable.from_cython(hdicore._core, "weighted_hdi_c").signature
image = rng.random(40)
half = LowLevelCallable.from_cython(consumer, "shortest_half")
found = generic_filter(image, half, size=7, mode="wrap")
windows = image[(np.arange(40)[:, None] + np.arange(-3, 4)) % 40]
np.testing.assert_array_equal(found, np.diff(hdicore.weighted_hdi(windows, None, 0.5))[:, 0])
"""

USE_TABLE = """
table = load("table")
out = np.empty((50, 2))
table.intervals(index, leaves, 0.8, out)
assert out.tobytes() == index.intervals(leaves, 0.8).tobytes()
assert "coverages must lie in (0, 1]" in refused(table.intervals, index, leaves, 8.0, out)
assert "tree 0, in which" in refused(table.intervals, index, leaves + 9, 0.8, out)
assert "__hdicore_index__" in refused(table.intervals, "none", leaves, 0.8, out)
"""

USE_C = """
extension = load("extension")
values = rng.random(100)
assert extension.hdi(values.tobytes(), 0.7) == tuple(hdicore.weighted_hdi(values, None, 0.7))
assert "at least one value" in refused(extension.hdi, b"", 0.7)
assert extension.mean(index, leaves[3].tobytes()) == index.mean(leaves[3:4])[0]
assert "tree 0, in which" in refused(extension.mean, index, (leaves[3] + 9).tobytes())
assert "__hdicore_index__" in refused(extension.mean, 5, b"")
"""

BUILD = """
import sys
from setuptools import Extension, setup

package, *sources = sys.argv[1:]
extensions = [
    Extension(source.partition(".")[0], [source], include_dirs=[package + "/hdicore/include"])
    for source in sources
]
if not sources[0].endswith(".c"):
    from Cython.Build import cythonize
    extensions = cythonize(extensions, include_path=[package], quiet=True)
setup(name="consumers", script_args=["-q", "build_ext", "--inplace"], ext_modules=extensions)
"""


def build_and_use(target, environment, folder, sources, use):
    """Away from the checkout, whose .pxd files would be found in place of the installed ones."""
    for source in sources:
        shutil.copy(CONSUMER / source, folder)
    options = {"env": environment | {"CFLAGS": "-O0"}, "cwd": folder}
    run_python(BUILD, target, *sources, **options)
    built = [path for path in folder.iterdir() if path.suffix in (".so", ".pyd")]
    assert len(built) == len(sources)
    assert Path(run_python(use, *built, **options).strip()).is_relative_to(target)


@pytest.fixture(params=["oldest", "newest"])
def cython(request, tmp_path_factory):
    """Where to find the oldest Cython that is supported; nowhere else for the newest."""
    pytest.importorskip("Cython")
    if request.param == "newest":
        return []
    oldest = re.search(r'"Cython>=(.*?)"', (ROOT / "pyproject.toml").read_text())[1]
    folder = tmp_path_factory.mktemp("cython")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder]
    done = subprocess.run([*map(str, pip), f"Cython=={oldest}"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"Cython {oldest} cannot be installed: {done.stderr.strip()[-200:]}")
    return [str(folder)]


def test_published_signatures_stay():
    assert re.findall(r'"(.*?)"', " ".join(map(repr, hdicore._core.__pyx_capi__.values()))) == [
        "int (double const *, double const *, Py_ssize_t, double, double *)",
        "int (double const *, double const *, Py_ssize_t, double, int, double *)",
    ]
    assert list(hdicore._core.__pyx_capi__) == ["weighted_hdi_c", "weighted_quantile_c"]


@needs_compiler
def test_cython_modules_call_the_installed_package(cython, target, environment, tmp_path):
    path = os.pathsep.join([*cython, str(target)])
    environment["PYTHONPATH"] = path
    sources = ["consumer.pyx", "table.pyx"]
    build_and_use(target, environment, tmp_path, sources, USE + USE_FUNCTIONS + USE_TABLE)


@needs_compiler
def test_a_c_extension_calls_the_installed_package(target, environment, tmp_path):
    build_and_use(target, environment, tmp_path, ["extension.c"], USE + USE_C)


def test_the_c_header_is_c99(tmp_path):
    compiler = os.environ.get("CC") or shutil.which("cc")
    if compiler is None or sys.platform == "win32":
        pytest.skip("no C compiler (cc or $CC) found")
    program = tmp_path / "program.c"
    program.write_text(
        '#include "hdicore/c_api.h"\nint main(void) { return HDICORE_API_VERSION; }\n'
    )
    flags = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only")
    run(compiler, *flags, f"-I{hdicore.get_include()}", program)


def test_the_stub_matches_the_compiled_module(tmp_path):
    pytest.importorskip("mypy")
    # Beside a copy of the package, as type checkers do not follow editable installs.
    package = tmp_path / "hdicore"
    installed = Path(hdicore.__file__).parent
    shutil.copytree(installed, package, ignore=shutil.ignore_patterns("bindings", "include"))
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = true\n")
    options = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(tmp_path)}}
    # The metaclass that pybind11 gives its classes has no name that a stub could import.
    allowed = tmp_path / "allowed"
    allowed.write_text("".join(f"hdicore._core.{c}\n" for c in ("Forest", "LeafIndex", "Scorer")))
    stubtest = (sys.executable, "-m", "mypy.stubtest", "hdicore._core", "--allowlist", allowed)
    run(*stubtest, **options)
    run(sys.executable, "-m", "mypy", "--strict", "-p", "hdicore", **options)
