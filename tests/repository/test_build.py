"""An editable install compiles what has changed since the last one, and nothing else."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from ..oracle import ROOT, run_python

# Makes an empty file in place of each object and module, and says of what.
COMPILER = """\
#!/bin/sh
echo "$@" >> commands
while [ "$1" != -o ]; do shift; done
touch "$2"
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the compiler is a script of a shell")
def test_a_change_compiles_what_it_touches(tmp_path):
    pytest.importorskip("pybind11")
    left_out = ("*.so", "*.egg-info", "__pycache__", ".*", "bench", "build", "docs", "tests")
    shutil.copytree(ROOT, tmp_path, ignore=shutil.ignore_patterns(*left_out), dirs_exist_ok=True)
    compiler, commands = tmp_path / "c++", tmp_path / "commands"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)

    def compiled(**environment):
        commands.write_text("")
        build = "from setuptools.build_meta import build_editable; build_editable('.')"
        both = {"CC": str(compiler), "CXX": str(compiler)}
        run_python(build, cwd=tmp_path, env=os.environ | both | environment)
        lines = map(str.split, commands.read_text().splitlines())
        return {Path(line[line.index("-c") + 1]).stem for line in lines if "-c" in line}

    all_of_it = compiled()
    assert {"bindings", "pmf", "avx2"} <= all_of_it
    assert compiled() == set()
    (tmp_path / "src_cpp" / "pmf" / "hdi.cpp").touch()
    assert compiled() == {"pmf"}
    (tmp_path / "src_cpp" / "pmf" / "hdi.hpp").touch()
    assert compiled() == all_of_it
    assert compiled(HDICORE_DEBUG="1") == all_of_it
