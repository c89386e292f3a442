"""Instructions: what is used and available, asked for by name, and refused in one sentence."""

import os
import shutil
import subprocess
import sys

import pytest

import hdicore

from ..oracle import run_python

USED = "import hdicore; print(hdicore.instructions()['used'])"
ASKED = """
try:
    import hdicore
except ImportError as error:
    print(error)
"""


def environment(name):
    return os.environ | {"HDICORE_INSTRUCTIONS": name}


def test_what_is_used_is_available():
    found = hdicore.instructions()
    assert found["available"][0] == "portable"
    assert set(found["available"]) <= {"portable", "avx2", "avx512"}
    assert found["used"] in found["available"]


def test_the_widest_is_used_unless_one_is_asked_for():
    available = hdicore.instructions()["available"]
    assert run_python(USED, env=environment("")).strip() == available[-1]
    for name in available:
        assert run_python(USED, env=environment(name)).strip() == name


@pytest.mark.parametrize("name", ["sse9", "AVX2", "avx2 "])
def test_an_unknown_name_is_refused_in_one_sentence_that_lists_all(name):
    said = run_python(ASKED, env=environment(name)).strip()
    listed = " or ".join(", ".join(hdicore.instructions()["available"]).rsplit(", ", 1))
    assert said == f"HDICORE_INSTRUCTIONS must be {listed} on this processor, got '{name}'"


def test_instructions_of_other_processors_are_refused():
    available = hdicore.instructions()["available"]
    for name in {"portable", "avx2", "avx512"} - set(available):
        assert f"got '{name}'" in run_python(ASKED, env=environment(name))


@pytest.mark.skipif(shutil.which("qemu-x86_64") is None, reason="no qemu-x86_64 found")
@pytest.mark.skipif("avx2" not in hdicore.instructions()["available"], reason="not built for AVX2")
@pytest.mark.parametrize(("processor", "used"), [("Westmere", "portable"), ("Haswell", "avx2")])
def test_a_processor_gets_what_it_can_run(processor, used, tmp_path):
    emulated = tmp_path / "python"
    emulated.write_text(f'#!/bin/sh\nexec qemu-x86_64 -cpu {processor} {sys.executable} "$@"\n')
    emulated.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", str(emulated))
        assert run_python(USED, env=environment("")).strip() == used


def test_the_command_says_it_in_one_line():
    pytest.importorskip("sklearn")
    call = [sys.executable, "-P", "-m", "hdiforest", "--version"]
    done = subprocess.run(call, capture_output=True, text=True, env=environment("sse9"))
    assert done.returncode == 1
    assert done.stderr.startswith("hdiforest: error: HDICORE_INSTRUCTIONS must be portable")
    assert done.stderr.count("\n") == 1
