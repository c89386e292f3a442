"""What extension authors are promised: a C table and its header, and the same for Cython."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hdicore

from ...oracle import ROOT, run, run_python

CONSUMER = Path(__file__).parent
COMPILER = os.environ.get("CXX") or shutil.which("c++")

needs_compiler = pytest.mark.skipif(
    COMPILER is None or sys.platform == "win32", reason="no C++ compiler (c++ or $CXX) found"
)


def test_the_header_of_a_checkout_is_found_too():
    assert (Path(hdicore.get_include()) / "hdicore" / "c_api.h").is_file()


BUILD = """
import sys
from setuptools import Extension, setup

package, include, language, source = sys.argv[1:]
folder = [include] if source.endswith(".c") else []
extensions = [Extension(source.partition(".")[0], [source], include_dirs=folder, language=language)]
if source.endswith(".pyx"):
    from Cython.Build import cythonize
    extensions = cythonize(extensions, include_path=[package], quiet=True)
setup(name="consumers", script_args=["-q", "build_ext", "--inplace"], ext_modules=extensions)
"""

# Where the package is installed, or the folder python/ of a checkout.
PACKAGE = Path(hdicore.__file__).parents[1]


def with_path(*folders):
    """The environment in which hdicore and what lies in folders is found, for quick compilers."""
    path = os.pathsep.join(map(str, [*folders, PACKAGE]))
    return os.environ | {"CFLAGS": "-O0", "PYTHONPATH": path}


def build_and_use(folder, source, language="c", path=()):
    """Away from the checkout, whose .pxd file would be found in place of an installed one."""
    shutil.copy(CONSUMER / source, folder)
    options = {"env": with_path(*path), "cwd": folder}
    run_python(BUILD, PACKAGE, hdicore.get_include(), language, source, **options)
    (built,) = (path for path in folder.iterdir() if path.suffix in (".so", ".pyd"))
    used = run(sys.executable, "-P", CONSUMER / "use.py", built, **options)
    assert Path(used.strip()).is_relative_to(PACKAGE)


@pytest.fixture(params=[pytest.param("oldest", marks=pytest.mark.nightly), "newest"])
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


@needs_compiler
def test_a_cython_module_calls_the_installed_package(cython, tmp_path):
    build_and_use(tmp_path, "consumer.pyx", "c" if cython else "c++", cython)


@needs_compiler
def test_the_example_in_cython_builds_and_passes_its_tests(tmp_path):
    pytest.importorskip("Cython")
    sources, built = tmp_path / "sources", tmp_path / "built"
    shutil.copytree(ROOT / "examples" / "cython", sources)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index"]
    options = {"env": with_path(built), "cwd": tmp_path}
    run(*pip, "--no-build-isolation", "--target", built, sources, **options)
    pytest_alone = (sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "5 passed" in run(*pytest_alone, sources, **options)


@needs_compiler
def test_a_c_extension_calls_the_installed_package(tmp_path):
    build_and_use(tmp_path, "extension.c")


def words(text):
    """Names, numbers and signs of declarations in C or Cython that both spell alike."""
    text = re.sub(r"//.*|#.*|\bnoexcept nogil\b", "", text)
    return re.findall(r"\w+|[*()]", text)


def test_cython_declares_what_the_c_header_does():
    header = (ROOT / "src_cpp" / "include" / "hdicore" / "c_api.h").read_text()
    pxd = (ROOT / "python" / "hdicore" / "__init__.pxd").read_text()
    version = re.search(r"#define HDICORE_API_VERSION (\d+)", header)[1]
    assert re.search(rf"^ +HDICORE_API_VERSION = {version}$", pxd, re.M)
    types = re.findall(r"typedef (enum|struct) (\w+) \{\n(.*?)\n\}", header, re.S)
    assert len(types) == 10
    for kind, name, members in types:
        declared = re.search(rf"^ctypedef {kind} {name}:\n((?:    .*\n)+)", pxd, re.M)
        assert words(declared[1]) == words(members)
    functions = re.findall(r"\(\*(\w+)\)", header)
    name = r"((?:weighted|index|model)_(?!from)\w+)"
    assert re.findall(rf"^cdef inline (?:const )?\w+ \*?{name}\(", pxd, re.M) == (functions)


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
