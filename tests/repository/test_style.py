"""The tree is formatted, linted and typed, by the tools' own word."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.style

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    str(path)
    for folder in (
        "src_cpp",
        "hdicore/bindings",
        "tests/engine/cpp",
        "tests/engine/fuzz",
        "tests/engine/stress",
        "tests/engine/consumer",
        "bench",
    )
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".cpp", ".hpp", ".c", ".h")
)


@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "format", "--check", "."],
        ["ruff", "check", "."],
        ["mypy"],
        ["clang-format", "--dry-run", "--Werror", *SOURCES],
    ],
    ids=["ruff format", "ruff check", "mypy", "clang-format"],
)
def test_tools_find_nothing(command):
    tool = shutil.which(command[0], path=Path(sys.executable).parent) or shutil.which(command[0])
    if tool is None:
        pytest.skip(f"needs {command[0]}")
    done = subprocess.run([tool, *command[1:]], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
