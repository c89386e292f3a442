"""The instruction counts of bench/instructions repeat exactly, and its driver compiles cleanly."""

import importlib.util
import os
import shutil
import sys

import pytest

from ..oracle import ROOT

pytestmark = [
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


LOOP = """
#include <stdlib.h>
__attribute__((noinline)) void counted_work(long n) {
    for (long i = 0; i < n; ++i) __asm__ volatile("");
}
int main(int n_arguments, char** arguments) {
    for (long i = 0; i < 1000000; ++i) __asm__ volatile("");
    counted_work(strtol(arguments[n_arguments - 1], NULL, 10));
    return 0;
}
"""


@pytest.mark.skipif(
    not all(
        map(shutil.which, ("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-objdump", "qemu-aarch64"))
    ),
    reason="no compiler, or no emulator, for aarch64 found",
)
def test_the_plugin_of_qemu_counts_the_counted_work_alone(counting, tmp_path):
    source, program = tmp_path / "loop.c", tmp_path / "loop"
    source.write_text(LOOP)
    counting.run("aarch64-linux-gnu-gcc", "-O1", "-static", source, "-o", program, check=True)
    counting.build_plugin(tmp_path)
    counts = []
    for n in (1000, 2000, 3000):
        done, found = counting.under_qemu(program, str(n))
        assert done.returncode == 0
        counts.append(int(found[1]))
    assert 1000 < counts[0] < 10_000  # and not the loop before
    assert counts[1] - counts[0] == counts[2] - counts[1] >= 1000


def test_a_missing_valgrind_is_said_in_one_sentence(counting, monkeypatch, capsys):
    monkeypatch.setattr(counting.shutil, "which", lambda name: None)
    assert counting.main([]) == 2
    assert capsys.readouterr().err == "count.py: valgrind was not found.\n"


@pytest.mark.skipif(shutil.which("git") is None, reason="no git found")
def test_an_unknown_commit_is_said_in_one_sentence(counting, capsys):
    assert counting.main(["--compare", "no-such-commit"]) == 2
    assert "no-such-commit names no commit" in capsys.readouterr().err
