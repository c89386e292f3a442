"""The comparison behind other libraries' forests runs from end to end on few rows."""

import os
import sys

import pytest

from .oracle import ROOT, run


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
