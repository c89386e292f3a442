"""The instruction counts of bench/instructions repeat exactly, and its driver compiles cleanly."""

import importlib.util
import os
import shutil
import sys

import pytest

from .oracle import ROOT

pytestmark = [
    pytest.mark.build,
    pytest.mark.skipif(
        (os.environ.get("CXX") or shutil.which("c++")) is None,
        reason="no C++ compiler (c++ or $CXX) found",
    ),
    pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind found"),
    pytest.mark.skipif(sys.platform == "win32", reason="the flags are those of GCC and Clang"),
]


@pytest.fixture(scope="module")
def counting():
    """The script count.py as a module."""
    path = ROOT / "bench" / "instructions" / "count.py"
    spec = importlib.util.spec_from_file_location("count_instructions", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.mark.slow
def test_counts_repeat_exactly(counting, tmp_path):
    strict = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    program = counting.build(ROOT, tmp_path, strict)
    first, second = (counting.count(program, "leaves_hdi", 50) for _ in range(2))
    assert first == second
    assert first.instructions > 500 * 20 * 50  # each query row reads that many rows of its leaves
    other = counting.count(program, "mean", 50)
    assert (other.n, other.unit) == (500, "query row")
    assert other.checksum != first.checksum


def test_each_set_is_counted_where_it_matters(counting):
    cases = counting.cases_of(["route", "hdi"], [1, 5], ["portable", "avx2"])
    assert cases == [
        ("route", 1, "portable"),
        ("route", 5, "portable"),
        ("hdi", 1, "portable"),
        ("hdi", 5, "portable"),
        ("hdi", 1, "avx2"),
        ("hdi", 5, "avx2"),
    ]


@pytest.mark.slow
@pytest.mark.cross
@pytest.mark.skipif(os.environ.get("HDICORE_CROSS") != "all", reason="nox -s cross runs it")
def test_another_machine_is_counted_under_qemu(counting, tmp_path):
    aarch64 = counting.MACHINES["aarch64"]
    program = counting.build(ROOT, tmp_path, ["-std=c++20", "-O1"], machine=aarch64)
    counts = [
        counting.count(program, "leaves_hdi", 50, name, aarch64)
        for name in ("portable", "neon", "neon")
    ]
    assert counts[1] == counts[2]
    assert counts[0].instructions > counts[1].instructions > 500 * 20 * 50
    assert counts[0].checksum == counts[1].checksum


def test_a_missing_valgrind_is_said_in_one_sentence(counting, monkeypatch, capsys):
    monkeypatch.setattr(counting.shutil, "which", lambda name: None)
    assert counting.main([]) == 2
    assert capsys.readouterr().err == "count.py: valgrind was not found.\n"


@pytest.mark.skipif(shutil.which("git") is None, reason="no git found")
def test_an_unknown_commit_is_said_in_one_sentence(counting, capsys):
    assert counting.main(["--compare", "no-such-commit"]) == 2
    assert "no-such-commit names no commit" in capsys.readouterr().err
