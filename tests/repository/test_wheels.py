"""What is shipped: the contents of a wheel, what it links with, and how all wheels are built."""

import re
import sys
import tarfile
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

from ..oracle import ROOT, run, run_python, tool


def test_the_wheel_holds_what_users_need_and_no_sources(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    packages = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert packages == {"hdicore", "hdiforest"}
    headers = [name for name in names if name.endswith((".h", ".hpp"))]
    assert headers == ["hdicore/include/hdicore/c_api.h"]  # the C++ engine cannot be linked
    files = "__init__.py __init__.pxd _core.pyi _reference.py py.typed"
    assert {f"hdicore/{name}" for name in files.split()} <= names
    assert {"hdiforest/__init__.py", "hdiforest/py.typed"} <= names
    licences = {name.partition(".dist-info/licenses/")[2] for name in names}
    own = {f"licenses/{name}.txt" for name in ("pybind11", "concrete", "diamonds")}
    assert {"LICENSE"} | own <= licences
    user_layer = ROOT / "python"
    modules = {path.relative_to(user_layer).as_posix() for path in user_layer.rglob("*.py")}
    assert modules | {"hdiforest/_cli/data/concrete.csv.gz"} <= names
    assert len([name for name in names if re.match(r"hdicore/_core\..*(so|pyd)$", name)]) == 1
    unwanted = re.compile(r"\.(cpp|c|pyx|o)$|bindings|tests|bench/|__pycache__")
    assert not [name for name in names if unwanted.search(name)]


def test_the_installed_package_works_and_finds_its_header(target, environment, tmp_path):
    code = (
        "import hdicore; print(hdicore.__file__); print(hdicore.get_include()); "
        "print(hdicore.weighted_hdi([0.0, 1.0, 9.0], coverage=0.5).tolist())"
    )
    file, include, interval = run_python(code, env=environment, cwd=tmp_path).splitlines()
    assert Path(file).is_relative_to(target)
    assert Path(include) == target / "hdicore" / "include"
    assert interval == "[0.0, 1.0]"


def test_the_wheel_has_nothing_to_complain_of(wheel):
    run(tool("check-wheel-contents"), "--config", ROOT / "pyproject.toml", wheel)


@pytest.mark.skipif(sys.platform != "linux", reason="auditwheel reads Linux wheels")
def test_the_compiled_module_needs_the_c_and_cpp_runtime_alone(wheel):
    elffile = pytest.importorskip("elftools.elf.elffile", reason="needs pyelftools of auditwheel")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".so"))
        with archive.open(name) as file:
            tags = list(elffile.ELFFile(file).get_section_by_name(".dynamic").iter_tags())
    needed = {tag.needed.split(".")[0] for tag in tags if tag.entry.d_tag == "DT_NEEDED"}
    # The loader and threads are parts of the C library.
    assert needed <= {"libc", "libm", "libstdc++", "libgcc_s", "libpthread", "ld-linux-x86-64"}
    assert "manylinux" in run(tool("auditwheel"), "show", wheel)


def test_the_source_distribution_holds_all_but_the_results_of_the_paper(sdist):
    with tarfile.open(sdist) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    needed = (
        "setup.py",
        "conda/recipe.yaml",
        "licenses/pybind11.txt",
        "src_cpp/scoring/scorer.cpp",
        "tests/engine/fuzz/corpus.txt",
        "bench/paper/run.py",
    )
    assert names.issuperset(needed)
    unwanted = re.compile(r"bench/paper/results|boston\.csv|\.(so|pyd|pyc)$|__pycache__")
    assert not [name for name in names if unwanted.search(name)]


def test_the_data_sets_of_source_distributions_have_a_licence():
    with zipfile.ZipFile(ROOT / "bench" / "data" / "sets.zip") as sets:
        names = {name.removesuffix(".csv") for name in sets.namelist()}
    table = (ROOT / "bench" / "data" / "README.md").read_text()
    sources = dict(re.findall(r"^\| (\w+) \|.*\| ([^|]*) \|$", table, re.MULTILINE))
    assert len(names) == 10
    assert all("UCI" in sources[name] for name in names)
    assert "The UCI sets are CC BY 4.0" in table


def test_the_notice_of_pybind11_is_its_own():
    pytest.importorskip("pybind11")
    pybind11 = distribution("pybind11")
    (path,) = (path for path in pybind11.files if path.name == "LICENSE")
    notice = (ROOT / "licenses" / "pybind11.txt").read_text().partition("licence:\n\n")[2]
    assert notice.startswith("Copyright")
    assert path.read_text().startswith(notice)


def test_the_configuration_is_valid():
    run(tool("validate-pyproject"), ROOT / "pyproject.toml")


@pytest.mark.parametrize("platform", ["linux", "macos", "windows"])
def test_wheels_are_built_for_every_supported_python(platform):
    listed = run(
        tool("cibuildwheel"), "--print-build-identifiers", "--platform", platform, cwd=ROOT
    ).split()
    pythons = ["cp311", "cp312", "cp313", "cp314", "cp314t", "cp315", "cp315t"]
    machines = {
        "linux": ["manylinux_x86_64", "manylinux_aarch64"],
        "macos": ["macosx_x86_64", "macosx_arm64"],
        "windows": ["win_amd64", "win_arm64"],
    }
    expected = {f"{python}-{m}" for python in pythons for m in machines[platform]}
    assert set(listed) == expected
