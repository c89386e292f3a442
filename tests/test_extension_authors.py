"""What extension authors are promised: a whole wheel, headers that compile, a Cython function."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import hdicore

from .oracle import ROOT, run_python

CONSUMER = Path(__file__).parent / "consumer"
COMPILER = os.environ.get("CXX") or shutil.which("c++")

needs_compiler = pytest.mark.skipif(
    COMPILER is None or sys.platform == "win32", reason="no C++ compiler (c++ or $CXX) found"
)


def run(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel built from a copy of the sources, so that nothing built before can slip in."""
    pytest.importorskip("pybind11", reason="building the wheel needs pybind11")
    folder = tmp_path_factory.mktemp("wheel")
    leave = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__", "*.egg-info")
    for name in ("hdicore", "python", "src_cpp"):
        shutil.copytree(ROOT / name, folder / "source" / name, ignore=leave)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "source")
    # Unoptimised, as that switch leaves it, for the build is on trial here and not the code.
    environment = os.environ | {"HDICORE_COVERAGE": "1"}
    pip = (sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps")
    run(*pip, "-w", folder, folder / "source", env=environment)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def target(wheel, tmp_path_factory):
    """Folder with the wheel installed in it."""
    folder = tmp_path_factory.mktemp("target")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture
def environment(target):
    """In which hdicore is the installed one."""
    return os.environ | {"PYTHONPATH": str(target)}


@needs_compiler
def test_the_wheel_holds_what_users_need_and_no_sources(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    packages = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert packages == {"hdicore", "hdiforest"}
    headers = {path.name for path in (ROOT / "src_cpp" / "include" / "hdicore").iterdir()}
    assert {f"hdicore/include/hdicore/{name}" for name in headers} <= names
    files = "__init__.py __init__.pxd _core.pxd _core.pyi _reference.py py.typed"
    assert {f"hdicore/{name}" for name in files.split()} <= names
    assert {"hdiforest/__init__.py", "hdiforest/py.typed"} <= names
    modules = {path.name for path in (ROOT / "python" / "hdiforest").glob("*.py")}
    assert {f"hdiforest/{name}" for name in modules} <= names
    assert len([name for name in names if re.match(r"hdicore/_core\..*(so|pyd)$", name)]) == 1
    unwanted = re.compile(r"\.(cpp|c|pyx|o)$|bindings|tests|bench/|__pycache__")
    assert not [name for name in names if unwanted.search(name)]


@needs_compiler
def test_the_installed_package_works_and_finds_its_headers(target, environment, tmp_path):
    code = (
        "import hdicore; print(hdicore.__file__); print(hdicore.get_include()); "
        "print(hdicore.weighted_hdi([0.0, 1.0, 9.0], coverage=0.5).tolist())"
    )
    file, include, interval = run_python(code, env=environment, cwd=tmp_path).splitlines()
    assert Path(file).is_relative_to(target)
    assert Path(include) == target / "hdicore" / "include"
    assert interval == "[0.0, 1.0]"


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

spec = importlib.util.spec_from_file_location("consumer", sys.argv[1])
consumer = importlib.util.module_from_spec(spec)
spec.loader.exec_module(consumer)

rng = np.random.default_rng(0)
for _ in range(200):
    values, weights = rng.integers(0, 20, 30) / 4, rng.random(30)
    for level in (0.1, 0.5, 0.9, 1.0):
        assert consumer.shortest(values, weights, level) == tuple(
            hdicore.weighted_hdi(values, weights, level))
        assert consumer.shortest(values, None, level) == tuple(
            hdicore.weighted_hdi(values, coverage=level))
one = np.ones(1)
for bad in (0.0, -1.0, 1.5, np.nan):
    assert consumer.shortest(one, None, bad) is None
for bad in (np.nan, np.inf):
    assert consumer.shortest(one * bad, None, 0.9) is None
    assert consumer.shortest(one, one * bad, 0.9) is None
assert consumer.shortest(one, -one, 0.9) is None
assert consumer.shortest(one, one * 0, 0.9) is None
assert consumer.refuses_nothing()
print(hdicore.__file__)
"""


@needs_compiler
def test_a_cython_module_calls_the_c_function_of_the_installed_package(
    target, environment, tmp_path
):
    pytest.importorskip("Cython")
    # Away from the checkout, whose .pxd files would be found in place of the installed ones.
    shutil.copy(CONSUMER / "consumer.pyx", tmp_path)
    build = (
        "from setuptools import setup; from Cython.Build import cythonize; import sys; "
        "setup(name='consumer', script_args=['-q', 'build_ext', '--inplace'], ext_modules="
        "cythonize(['consumer.pyx'], include_path=[sys.argv[1]], quiet=True))"
    )
    options = {"env": environment | {"CFLAGS": "-O0"}, "cwd": tmp_path}
    run_python(build, target, **options)
    (built,) = tmp_path.glob("consumer.*.*")
    assert Path(run_python(USE, built, **options).strip()).is_relative_to(target)


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
