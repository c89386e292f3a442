"""Small slices of the programs beside it."""

import json
import subprocess
import sys

import pytest

from ...oracle import ROOT, run_python

FOLDER = ROOT / "tests" / "engine" / "stress"
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")


def stress(*arguments):
    """Run a slice; fails with its table if it found something."""
    command = [sys.executable, FOLDER / "run.py", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    if "skipped:" in done.stdout:
        pytest.skip(done.stdout)
    assert "nothing was tried" not in done.stdout


@linux
def test_an_allocation_that_fails_gives_memory_error():
    stress("allocations", "--every", "31")


@linux
def test_a_killed_run_leaves_the_old_output_and_the_next_removes_its_temporary():
    stress("kill", "--moments", "1", "--scale", "0.05", "--only", "score to csv, SIGKILL")


@linux
@pytest.mark.parametrize("only", ["BatchScorer, copied, cp over it", "loaded, mapped, renamed"])
def test_a_model_file_that_is_replaced_gives_old_or_new_numbers_or_an_error(only):
    stress("replaced", "--seconds", "2", "--only", only)


@linux
def test_an_output_that_cannot_be_written_is_refused(tmp_path):
    result = tmp_path / "result.json"
    stress("disk", "--scale", "0.05", "--only", "fit, read-only", "-o", result)
    assert [row["finding"] for row in json.loads(result.read_text())["rows"]] == [False, False]


@linux
def test_work_of_the_soak_and_of_the_sanitizer_goes_through(tmp_path):
    code = (
        "import sys, numpy as np; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
        "import races, soak_work\n"
        "for do in soak_work.WORK.values(): do(np.random.default_rng(0), Path(sys.argv[2]))\n"
        "for race in races.RACES.values(): race()"
    )
    run_python(code, FOLDER, tmp_path)


@linux
def test_two_signals_at_once_end_a_program_and_the_command():
    stress("signals", "--pairs", "60", "--commands", "1")
