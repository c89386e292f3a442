"""What stands around the code: markers of tests, workflows, hooks, templates and the citation."""

import ast
import re
import sys
import tomllib
from itertools import chain

import pytest

from ..conftest import TASKS
from ..oracle import ROOT, run, run_python, tool

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ENGINE_FILES = sorted((ROOT / "tests" / "engine").glob("test_*.py"))
# What the wheel brings, and what the dependency group "engine" adds.
ENGINE_MAY_IMPORT = {"numpy", "scipy", "sklearn", "joblib", "hdicore", "hypothesis", "pytest"}
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "bench").glob("*/README.md")),
]
# Folders that the pages take paths from.
BASES = [ROOT / name for name in (".", "src_cpp", "src_cpp/include", "hdicore", "python", "tests")]


def imported_modules(path):
    """All modules that a test file names, also in the code that it hands to other interpreters."""
    trees = [ast.parse(path.read_text(encoding="utf-8"))]
    for node in ast.walk(trees[0]):
        if isinstance(node, ast.Constant) and "\nimport " in str(node.value):
            trees.append(ast.parse(node.value))
    for node in chain.from_iterable(map(ast.walk, trees)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


@pytest.mark.parametrize("path", ENGINE_FILES, ids=lambda path: path.stem)
def test_tests_of_the_engine_import_what_the_wheel_brings(path):
    allowed = ENGINE_MAY_IMPORT | sys.stdlib_module_names | {"..oracle"}
    found = {name if name[0] == "." else name.split(".")[0] for name in imported_modules(path)}
    assert found <= allowed


COLLECT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[2:]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import pytest
sys.exit(pytest.main(["-q", "--collect-only", "-m", "engine", sys.argv[1]]))
"""


def test_tests_of_the_engine_are_found_without_optional_packages(tmp_path):
    optional = (
        "pandas polars pyarrow safetensors rich matplotlib torch filelock quantile_forest skops "
        "lightgbm xgboost catboost treelite mypy Cython pybind11"
    )
    shown = run_python(COLLECT, ROOT / "tests", *optional.split(), cwd=tmp_path)
    found = set(re.findall(r"^(?:[\w/]*/)?(test_\w+)\.py::", shown, re.MULTILINE))
    assert found == {path.stem for path in ENGINE_FILES}


def test_every_task_is_described_and_has_a_session():
    markers = PROJECT["tool"]["pytest"]["ini_options"]["markers"]
    named = {name for name, text in (line.split(": ") for line in markers) if text[:5] == "task;"}
    assert named == TASKS
    sessions = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    assert {*re.findall(r'^(?:def |    ")(\w+)(?:\(session|": \()', sessions, re.M)} >= TASKS
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert {*re.findall(r"^\| `(\w+)` \|", page, re.M)} >= TASKS


def test_no_list_of_test_files_is_kept_by_hand():
    for path in (*WORKFLOWS, ROOT / "pyproject.toml", ROOT / "noxfile.py", ROOT / ".ci" / "run"):
        if path.exists():
            assert not re.search(r"test_\w+\.py", path.read_text(encoding="utf-8")), path


def named_paths(page):
    """Words in backticks that name a test file or begin with a folder of the repository."""
    ignored = {"build", "dist"}
    folders = {path.name for base in BASES for path in base.iterdir() if path.is_dir()} - ignored
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for word in " ".join(re.findall(r"`([^`]+)`", text)).split():
        path = word.partition("::")[0]
        first, slash, _ = path.partition("/")
        if (slash and first in folders) or re.fullmatch(r"test_\w+\.\w+", path):
            yield path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_that_a_page_names_exist(page):
    absent = [p for p in named_paths(page) if not any((base / p).exists() for base in BASES)]
    assert not absent


def test_workflows_are_well_formed():
    names = [path.name for path in WORKFLOWS]
    assert names == ["nightly.yml", "pages.yml", "tests.yml", "wheels.yml"]
    run(tool("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", *WORKFLOWS)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(path):
    uses = re.findall(r"uses: *(.*)", path.read_text(encoding="utf-8"))
    assert uses
    for action in uses:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [
        ("citation-file-format", "CITATION.cff"),
        ("dependabot", ".github/dependabot.yml"),
        ("github-issue-forms", ".github/ISSUE_TEMPLATE/*.yml"),
        ("readthedocs", ".readthedocs.yaml"),
    ],
)
def test_what_other_tools_read_is_well_formed(schema, pattern):
    paths = list(ROOT.glob(pattern))
    assert paths
    run(tool("check-jsonschema"), "--builtin-schema", f"vendor.{schema}", *paths)


def test_hooks_are_well_formed():
    run(tool("pre-commit"), "validate-config", ROOT / ".pre-commit-config.yaml")


def test_the_citation_names_the_repository():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nrepository-code: {PROJECT['project']['urls']['Source']}\n" in text


def test_tools_have_one_version():
    """Hooks, tasks and workflows use what the groups pin."""
    lines = chain.from_iterable(PROJECT["dependency-groups"].values())
    pinned = dict(line.split("==") for line in lines if isinstance(line, str) and "==" in line)
    for name in (".pre-commit-config.yaml", "noxfile.py", ".github/workflows/wheels.yml"):
        found = re.findall(r"([\w-]+)==([\w.]+)", (ROOT / name).read_text(encoding="utf-8"))
        assert found
        assert all(pinned[package] == version for package, version in found)


def test_groups_build_on_each_other_and_none_names_the_package():
    groups = PROJECT["dependency-groups"]
    assert {"include-group": "engine"} in groups["test"]
    assert {"include-group": "build"} in groups["compiled"]
    assert set(groups["build"]) == set(PROJECT["build-system"]["requires"])
    lines = [line for group in groups.values() for line in group if isinstance(line, str)]
    assert not [line for line in lines if line.startswith("hdicore")]
