"""The comparisons behind other libraries' forests run from end to end on few rows."""

import os
import shutil
import sys

import pytest

from ..oracle import ROOT, run


def test_a_quick_run_compares_every_library():
    for library in ("catboost", "lightgbm", "quantile_forest", "tabulate", "treelite", "xgboost"):
        pytest.importorskip(library)
    # Their threads spin for minutes where the processors are busy.
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    script = ROOT / "bench" / "backend" / "run.py"
    table = run(sys.executable, script, "--quick", "--threads", 1, env=environment)
    lines = [line.split("|")[1].split()[0] for line in table.splitlines()[2:]]
    libraries = ["lightgbm", "xgboost", "catboost", "scikit-learn", "treelite"]
    assert lines == [*libraries, "quantile-forest", "quantile-forest"]


def test_the_loop_in_cython_gives_the_quantiles_of_quantile_forest():
    for library in ("Cython", "quantile_forest", "tabulate"):
        pytest.importorskip(library)
    if sys.platform == "win32" or not (os.environ.get("CXX") or shutil.which("c++")):
        pytest.skip("no C++ compiler (c++ or $CXX) found")
    script = ROOT / "bench" / "backend" / "cython_loop.py"
    table = run(sys.executable, script, "--quick", env=os.environ | {"CFLAGS": "-O0"})
    lines = [line.split("|")[1].strip() for line in table.splitlines()[2:]]
    assert lines == ["1", "10", "None"]


def test_one_row_in_c_is_what_it_is_in_python(c_library):
    pytest.importorskip("tabulate")
    pytest.importorskip("safetensors")
    script = ROOT / "bench" / "backend" / "c_models.py"
    table = run(sys.executable, script, "--quick", "--library", c_library)
    lines = [[cell.strip() for cell in line.split("|")[1:3]] for line in table.splitlines()[2:]]
    in_python = ["scorer.intervals", "predict_interval"]
    assert sorted(lines) == sorted(
        [["calibrated", "C"], ["shortest", "C"], ["calibrated", "predict_interval"]]
        + [["shortest", way] for way in in_python]
    )


def test_the_drop_in_gives_the_quantiles_of_quantile_forest():
    for library in ("quantile_forest", "tabulate"):
        pytest.importorskip(library)
    table = run(sys.executable, ROOT / "bench" / "backend" / "drop_in.py", "--quick")
    lines = [[cell.strip() for cell in line.split("|")[1:3]] for line in table.splitlines()[2:]]
    assert lines == [["1", "1"], ["5", "1"], ["1", "None"], ["5", "None"]]
