"""Results of the evaluations: whole files, whatever runs at once or is killed."""

import importlib
import json
import subprocess
import sys

import pytest

from ..oracle import ROOT, run_python, scripts_of

pytest.importorskip("filelock")
# Adds results of one split after another, and says which are there.
ADDING = """
import sys
sys.path.insert(0, sys.argv[1])
import json_lines
from pathlib import Path
for seed in range(int(sys.argv[4])):
    results = {(f"{sys.argv[3]} {part}", seed): {"width": 0.1 * seed} for part in "ab"}
    json_lines.add(Path(sys.argv[2]), results)
    print(seed, flush=True)
"""
FOLDER = ROOT / "bench"


@pytest.fixture(scope="module")
def json_lines():
    with scripts_of(""):
        yield importlib.import_module("json_lines")


def test_results_are_lines_sorted_by_name_and_split(json_lines, tmp_path):
    path = json_lines.path_of(tmp_path / "new", "boston")
    assert json_lines.read(path) == {}
    for seed in (10, 9):
        results = {("QRF", seed): {"picp": 0.1 * seed}, ("HDI-Forest", seed): [None, 1e-300]}
        json_lines.add(path, results)
    assert path.read_text().splitlines() == [
        '{"name": "HDI-Forest", "seed": 9, "result": [null, 1e-300]}',
        '{"name": "HDI-Forest", "seed": 10, "result": [null, 1e-300]}',
        '{"name": "QRF", "seed": 9, "result": {"picp": 0.9}}',
        '{"name": "QRF", "seed": 10, "result": {"picp": 1.0}}',
    ]
    json_lines.add(path, {("QRF", 9): {"picp": 0.5}})
    assert json_lines.read(path)["QRF", 9] == {"picp": 0.5}
    assert len(json_lines.read(path)) == 4


def test_a_damaged_line_is_named(json_lines, tmp_path):
    path = tmp_path / "boston.jsonl"
    path.write_text('{"name": "QRF", "seed": 0, "result": {}}\n{"name": "QR\n')
    with pytest.raises(ValueError, match=r"^line 2 of .*boston.jsonl was expected to be a JSON ob"):
        json_lines.read(path)
    with pytest.raises(ValueError, match="line 2"):
        json_lines.add(path, {("QRF", 1): {}})
    assert len(path.read_text().splitlines()) == 2


def test_processes_add_to_one_file_at_once(json_lines, tmp_path):
    path = tmp_path / "boston.jsonl"
    command = [sys.executable, "-P", "-c", ADDING, FOLDER, path]
    running = [
        subprocess.Popen([*command, name, "15"], stdout=subprocess.DEVNULL) for name in "xyz"
    ]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert len(json_lines.read(path)) == 3 * 2 * 15


@pytest.mark.parametrize("n_lines", [1, 4, 9])
def test_a_killed_process_loses_nothing_that_it_finished(json_lines, tmp_path, n_lines):
    path = tmp_path / "boston.jsonl"
    command = [sys.executable, "-P", "-c", ADDING, FOLDER, path, "x", "10000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(n_lines):
            process.stdout.readline()
        process.kill()
        n_finished = n_lines + len(process.stdout.read().splitlines())
    present = json_lines.read(path)
    seeds = {name: sorted(s for n, s in present if n == name) for name in ("x a", "x b")}
    assert seeds["x a"] == seeds["x b"]  # a unit is there with all its results
    assert len(seeds["x a"]) in (n_finished, n_finished + 1)
    run_python(ADDING, FOLDER, path, "y", 1)  # the lock is free
    assert ("y a", 0) in json_lines.read(path)


@pytest.mark.parametrize("path", sorted((ROOT / "bench").rglob("*.jsonl")), ids=lambda p: p.name)
def test_committed_results_are_as_the_store_writes_them(json_lines, path, tmp_path):
    copy = tmp_path / path.name
    json_lines.add(copy, json_lines.read(path))
    assert copy.read_bytes() == path.read_bytes()
    assert all(json.loads(line)["result"] for line in path.read_text().splitlines())
