"""A slice of the engine's Python tests on ARM: Debian's Python, numpy and the module, emulated."""

import os
import platform
import shutil
import subprocess
import sys
from runpy import run_path

import pytest

from ..fuzz.engine import ROOT, compile_all, link_all, rooms

TOOLS = ("debootstrap", "dpkg", "aarch64-linux-gnu-g++", "qemu-aarch64")
# One process, as it takes the emulator half a minute to import scikit-learn. They compare kernels,
# routing and building with the reference; tests of threads and of memory are for real processors.
SLICE = ("hdi", "quantile", "scorer", "leaf_blocks", "priced_intervals")
WHEELS = ("numpy", "scikit-learn", "pytest", "hypothesis")


@pytest.fixture(scope="module")
def arm(built_once):
    """A folder with Debian for ARM, packages of Python, and the module; from the registries."""
    if os.environ.get("HDICORE_CROSS") != "all":
        pytest.skip("nox -s cross runs it")
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        pytest.skip(f"{', '.join(missing)} not found; nox -s cross installs them")
    return built_once("arm_python", build)


def build(folder):
    root, site = folder / "root", folder / "site"
    suite = platform.freedesktop_os_release()["VERSION_CODENAME"]  # the suite of the compiler
    foreign = ["--foreign", "--arch=arm64", "--variant=minbase", "--include=python3-dev,libgomp1"]
    call("debootstrap", *foreign, suite, root)
    for package in (root / "var/cache/apt/archives").glob("*.deb"):
        call("dpkg", "-x", package, root)
    (python,) = root.glob("usr/include/python3.*")
    version = python.name.removeprefix("python")
    platforms = [f"--platform=manylinux_2_{glibc}_aarch64" for glibc in (17, 27, 28)]
    chosen = [*platforms, f"--python-version={version}", "--only-binary=:all:"]
    call(sys.executable, "-m", "pip", "install", "-q", "--target", site, *chosen, *WHEELS)

    # The package beside its module, as the tests import it.
    shutil.copytree(
        ROOT / "python" / "hdicore", site / "hdicore", ignore=shutil.ignore_patterns("*.so")
    )
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    write = run_path(str(ROOT / "hdicore/bindings/stub_header.py"))["write"]
    write(ROOT / "python/hdicore/_core.pyi", folder / "objects" / "stub.hpp")
    pybind11 = pytest.importorskip("pybind11", reason="building the module needs pybind11")
    includes = [ROOT / "src_cpp", ROOT / "src_cpp/include", folder / "objects", python]
    includes += [root / "usr/include", pybind11.get_include()]
    flags = ["-std=c++20", "-O1", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off"]
    flags += [f"-I{path}" for path in includes]
    sources = [*rooms(folder / "rooms"), *sorted((ROOT / "hdicore/bindings").glob("*.cpp"))]
    objects = compile_all("aarch64-linux-gnu-g++", flags, sources, folder / "objects")
    module = site / "hdicore" / f"_core.cpython-{version.replace('.', '')}-aarch64-linux-gnu.so"
    link_all("aarch64-linux-gnu-g++", ["-shared"], {module: objects})


def call(*words):
    subprocess.run([str(word) for word in words], check=True)


def test_the_module_passes_a_slice_of_its_tests(arm):
    (python,) = arm.glob("root/usr/bin/python3.??")
    tests = [arm / "tests" / "engine" / f"test_{name}.py" for name in SLICE]
    emulator = ["qemu-aarch64", "-L", str(arm / "root")]
    environment = os.environ | {"PYTHONPATH": str(arm / "site"), "HDICORE_INSTRUCTIONS": ""}
    environment["HDICORE_EMULATOR"] = " ".join(emulator)
    options = ["-m", "engine", "-k", "not memory", "-p", "no:cacheprovider"]
    pytest_command = [python, "-m", "pytest", "-q", *options, *tests]
    command = [*emulator, *map(str, pytest_command)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=arm, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
