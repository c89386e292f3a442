"""What benchmarks share: results that are whole, and clear words where results or data are not."""

import importlib
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from ..oracle import ROOT, scripts_of

pytest.importorskip("filelock")
pytest.importorskip("tabulate")
# Adds results of one split after another, and says which are there.
ADDING = """
import sys
sys.path.insert(0, sys.argv[1])
import study
from pathlib import Path
for seed in range(10_000):
    study.add(Path(sys.argv[2]), {(f"x {part}", seed): {"width": 0.1 * seed} for part in "ab"})
    print(seed, flush=True)
"""


@pytest.fixture(scope="module")
def bench():
    with scripts_of(""):
        names = ("archive", "datasets", "study")
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in names})


def test_results_are_lines_sorted_by_name_and_split(bench, tmp_path):
    path = bench.study.path_of(tmp_path / "new", "boston")
    assert bench.study.read(path) == {}
    for seed in (10, 9):
        bench.study.add(path, {("QRF", seed): {"picp": 0.1 * seed}, ("HDI", seed): [None, 1e-300]})
    assert path.read_text().splitlines() == [
        '{"name": "HDI", "seed": 9, "result": [null, 1e-300]}',
        '{"name": "HDI", "seed": 10, "result": [null, 1e-300]}',
        '{"name": "QRF", "seed": 9, "result": {"picp": 0.9}}',
        '{"name": "QRF", "seed": 10, "result": {"picp": 1.0}}',
    ]
    path.write_text(path.read_text() + '{"name": "QR\n')
    with pytest.raises(ValueError, match=r"^line 5 of .*boston.jsonl was expected to be a JSON ob"):
        bench.study.add(path, {("QRF", 1): {}})
    assert len(path.read_text().splitlines()) == 5


def test_a_result_is_measured_once_for_a_version(bench, tmp_path):
    path, found = tmp_path / "wine.jsonl", []
    for version in (1, 1, 2):
        bench.study.keep(path, ("HDI", 0), lambda: found.append(1) or {"width": 1.5}, version)
    assert len(found) == 2
    assert bench.study.read(path) == {("HDI", 0): {"version": 2, "width": 1.5}}


def test_a_killed_process_loses_nothing_that_it_finished(bench, tmp_path):
    path = tmp_path / "boston.jsonl"
    command = [sys.executable, "-P", "-c", ADDING, ROOT / "bench", path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        finished = [process.stdout.readline() for _ in range(4)]
        process.kill()
        finished += process.stdout.read().splitlines()
    present = bench.study.read(path)
    assert len(present) in (2 * len(finished), 2 * len(finished) + 2)
    bench.study.add(path, {("y", 0): {}})  # the lock is free


def test_an_archive_brings_back_what_was_packed(bench, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bench.archive, "BENCH", tmp_path / "bench")
    path = tmp_path / "bench" / "paper" / "results" / "evaluation" / "wine.jsonl"
    bench.study.add(path, {("QRF", 0): {"picp": 0.9}})
    file = str(tmp_path / "bench-data.tar.xz")
    assert bench.archive.main(["pack", file]) == 0
    path.unlink()
    assert bench.archive.main(["unpack", "--data", file]) == 0
    bench.study.add(path, {("QRF", 1): {"picp": 0.8}})
    bench.archive.main(["unpack", "--data", file])  # leaves what is there
    assert len(bench.study.read(path)) == 2
    assert bench.archive.main(["unpack", "--data", f"{file}.absent"]) == 2
    assert "was not unpacked" in capsys.readouterr().err


def test_whole_data_that_are_not_there_are_asked_for(bench, tmp_path, monkeypatch):
    (tmp_path / "small.zip").write_bytes((ROOT / "bench" / "data" / "small.zip").read_bytes())
    monkeypatch.setattr(bench.datasets, "FOLDER", tmp_path)
    with pytest.raises(bench.study.NotHereError, match=r"without it protein has the 1,500 rows"):
        bench.datasets.load("protein")
    assert bench.datasets.load("energy").X.shape == (768, 8)
    monkeypatch.setenv("HDICORE_SMALL_DATA", "1")
    assert bench.datasets.load("protein").X.shape == (1500, 9)
    small = bench.datasets.load("communities")
    assert small.X.shape == (1500, 126)
    assert np.isnan(small.X).any()


def test_results_that_are_not_there_are_asked_for(bench, tmp_path, capsys):
    (tmp_path / "tables.md").write_text("figures")
    bench.study.say_if_empty(tmp_path)
    assert "has tables without results; all is measured anew" in capsys.readouterr().out
    pytest.importorskip("crepes")
    report = (sys.executable, ROOT / "bench" / "calibration" / "report.py", tmp_path)
    done = subprocess.run(report, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == (
        f"report.py: {tmp_path} holds no results; run.py measures them. {bench.study.HOW_TO_GET}.\n"
    )
