"""The small tools of bench: each runs on little, keeps its results and prints its table."""

import importlib
from dataclasses import replace
from pathlib import Path

import pytest

import hdicore

from ..oracle import scripts_of

pytest.importorskip("tabulate", reason="tables of bench need tabulate")
pytest.importorskip("filelock", reason="results of bench need filelock")


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A function that imports a tool of a folder of bench and replaces its constants."""

    def imported(folder, name, **constants):
        with scripts_of(folder, ""):
            module = importlib.import_module(name)
        for constant, value in constants.items():
            monkeypatch.setattr(module, constant, value)
        if hasattr(module, "RESULTS"):
            monkeypatch.setattr(module, "RESULTS", tmp_path)
        if hasattr(module, "FOLDER"):
            monkeypatch.setattr(module, "FOLDER", tmp_path)
        return module

    return imported


def test_shifted_rows(small, capsys, tmp_path):
    # Whatever is covered counts.
    constants = {"SETS": ("concrete",), "SPLITS": range(1), "MAX_ROWS": 300, "SHIFTED": 1.1}
    shift = small("calibration", "shift", **constants)
    shift.main()
    shown = capsys.readouterr().out
    assert "| dissimilarity" in shown
    written = (tmp_path / "concrete.jsonl").read_bytes()
    shift.main()  # what is there stays
    assert (tmp_path / "concrete.jsonl").read_bytes() == written


def test_order_of_time(small, capsys):
    one = {"power_plant": None}  # in the order of its rows
    drift = small("calibration", "drift", MAX_ROWS=400, MAX_LATER=300, IN_TIME=one)
    drift.main()
    shown = capsys.readouterr().out
    assert all(method in shown for method in drift.METHODS)


def test_alarms(small):
    alarms = small("calibration", "alarms", N_RUNS=1, N_TRAIN=400, N_ALIKE=200, N_NOISY=200)
    found = alarms.run(0)
    assert 0.5 < found["coverage"] <= 1
    assert set(found["alarms"]) <= {"coverage", "drift"}


def test_times_after_the_fit(small, capsys, monkeypatch):
    after_fit = small("speed", "after_fit", TURNS=1)
    friedman = after_fit.datasets.friedman
    monkeypatch.setattr(after_fit.datasets, "friedman", lambda _, seed: friedman(600, seed))
    after_fit.main()
    shown = capsys.readouterr().out
    assert shown.count("diagnose / raw interval") == 4
    assert shown.count("recalibrate / calibrated intervals") == 4


def test_batches(small):
    batch = small("speed", "batch", TURNS=1, BLOCK=200)
    forest = batch.ExtraTreesRegressor(5, bootstrap=True, min_samples_leaf=5, random_state=0)
    scorer = batch.HDIForestRegressor(forest, calibration=False).fit(*batch._rows(300, 0)).scorer_
    timed = ["one price", "32 prices", "batch", "region of atoms", "region of 100 bins"]
    assert [row["what"] for row in batch.ratios(scorer)] == timed
    assert batch.n_atoms(scorer) > 1
    passes, memory, streamed, in_memory = batch.stream(scorer, 500)
    assert passes.startswith("stream of 500 rows")
    assert "peak memory" in memory
    total, bound = (float(streamed.split(word)[1].split(",")[0]) for word in ("width ", "bound "))
    assert bound <= total
    widest = float(in_memory.split("widest row ")[1])
    assert abs(total - float(in_memory.split(",")[0].removeprefix("in memory "))) <= widest


def test_beside_another_commit(small, capsys, monkeypatch):
    compare = small("speed", "compare", N_SCORED_ROWS=100)
    tiny = replace(compare.CASES[0], name="tiny", rows=300, trees=5, queries=200)
    monkeypatch.setattr(compare, "CASES", (tiny,))
    installed = Path(hdicore.__file__).parents[1]
    monkeypatch.setattr(compare.revisions, "built_tree", lambda _: installed)
    works = ["--works", *compare.WORKS]
    arguments = ["compare.py", "HEAD", "--only", "tiny", "--turns", "1", *works]
    monkeypatch.setattr("sys.argv", arguments)
    compare.main()
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| tiny")]
    assert row.count("(") == len(compare.WORKS)


def test_growth(small, capsys, monkeypatch):
    series = {"rows, leaf 5": [(200, 3, 5), (400, 3, 5)], "trees": [(200, 3, 5)]}
    growth = small("speed", "growth", N_QUERIES=50, SERIES=series)
    monkeypatch.setattr("sys.argv", ["growth.py", "--turns", "1"])
    growth.main()
    first = capsys.readouterr().out
    growth.main()  # nothing is measured again
    assert capsys.readouterr().out == first
    assert "| 400 |" in first


def test_calibrated_beside_another_commit(small, capsys, monkeypatch):
    calibrated = small("speed", "calibrated")
    installed = Path(hdicore.__file__).parents[1]
    monkeypatch.setattr(calibrated.revisions, "built_tree", lambda _: installed)
    arguments = ["--compare", "HEAD", "--turns", "1", "--rows", "300", "--trees", "60"]
    monkeypatch.setattr("sys.argv", ["calibrated.py", *arguments])
    calibrated.main()
    printed = capsys.readouterr().out
    assert printed.count("| HEAD ") == printed.count("| these files ") == len(calibrated.WORKS)


def test_a_record_beside_its_query(small, capsys):
    small("speed", "records").main()
    _, _, *rows = capsys.readouterr().out.splitlines()
    assert [row.split()[1] for row in rows] == ["hdi", "calibrated"]
