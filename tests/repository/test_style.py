"""The tree is formatted, linted and typed, and its metadata well formed, by the tools' own word."""

import os
import shutil
import sys
from pathlib import Path

import pytest

import hdicore

from ..oracle import ROOT, run, tool

SOURCES = [
    str(path)
    for folder in ("src_cpp", "hdicore", "examples", "tests", "bench")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".cpp", ".hpp", ".c", ".h")
]
# The metaclass that pybind11 gives its classes has no name that a stub could import, and stubtest
# takes a Literal of several, the kinds, for a Union.
UNLIKE_THE_STUB = """
    Kind BaseKind CalibratedScorer CalibrationGroups CrossCalibration Forest LeafIndex
    OutOfBagScorer PostProcess PredictiveDistribution Scorer
"""
# What check-jsonschema knows of, and where it lies.
SCHEMAS = {
    "citation-file-format": "CITATION.cff",
    "dependabot": ".github/dependabot.yml",
    "github-issue-forms": ".github/ISSUE_TEMPLATE/*.yml",
    "github-workflows": ".github/workflows/*.yml",
    "readthedocs": ".readthedocs.yaml",
}


@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "format", "--check", "."],
        ["ruff", "check", "."],
        ["mypy"],
        ["clang-format", "--dry-run", "--Werror", *SOURCES],
        ["zizmor", "--offline", "--quiet", ".github"],
        ["validate-pyproject", "pyproject.toml"],
        ["pre-commit", "validate-config"],
        ["python", ".ci/versions.py"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_tools_find_nothing(command):
    run(tool(command[0]), *command[1:], cwd=ROOT)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_what_other_programs_read_has_their_form(schema):
    paths = list(ROOT.glob(SCHEMAS[schema]))
    assert paths
    run(tool("check-jsonschema"), "--builtin-schema", f"vendor.{schema}", *paths)


def test_the_stub_matches_the_compiled_module(tmp_path):
    pytest.importorskip("mypy")
    # Beside a copy of the package, as type checkers do not follow editable installs.
    package = tmp_path / "hdicore"
    installed = Path(hdicore.__file__).parent
    shutil.copytree(installed, package, ignore=shutil.ignore_patterns("bindings", "include"))
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = true\n")
    options = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(tmp_path)}}
    allowed = tmp_path / "allowed"
    allowed.write_text("".join(f"hdicore._core.{name}\n" for name in UNLIKE_THE_STUB.split()))
    stubtest = (sys.executable, "-m", "mypy.stubtest", "hdicore._core", "--allowlist", allowed)
    run(*stubtest, **options)
