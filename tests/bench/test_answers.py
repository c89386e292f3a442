"""Versions that answer alike are told from versions that do not, by one bit."""

import importlib
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import hdicore

from ..oracle import ROOT, scripts_of

pytest.importorskip("pyarrow")

MODULES = ("records", "names", "models", "run", "revisions")


@pytest.fixture(scope="module")
def bench():
    """The modules of bench/answers, which find each other as scripts do."""
    with scripts_of("", "answers"):
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in MODULES})


def answers_of(bench, **questions):
    answers = bench.records.Answers()
    for name, value in questions.items():
        answers.ask(
            name, (lambda: 1 / 0) if value is ZeroDivisionError else lambda value=value: value
        )
    return answers.arrays


def test_answers_are_read_as_they_were_written(bench, tmp_path):
    answers = bench.records.Answers()
    answers.ask("a/table", lambda: {"x": [1.5, np.nan], "y": ["text", "more"], "z": (None, [2, 3])})
    answers.ask("a/bytes", lambda: b"1,2\n")
    answers.write(tmp_path / "answers.npz")
    copied = bench.records.read(tmp_path / "answers.npz")
    assert list(copied) == ["a/table/x", "a/table/y", "a/table/z/0", "a/table/z/1", "a/bytes"]
    assert bench.records.differences(answers.arrays, copied) == {}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ([1.0, 2.0], [1.0, np.nextafter(2, 3)], "1 of 2 values, the first at 1: 2.0 and 2.0000"),
        ([0.0], [-0.0], "1 of 1 values"),
        (np.ones(1), np.ones((1, 1)), r"old: float64 \(1,\), new: float64 \(1, 1\)"),
        (np.ones(1), np.ones(1, np.float32), "old: float64 .* new: float32"),
        ("hdi", "equal_tailed", "'hdi' and 'equal_tailed'"),
        (1.0, ZeroDivisionError, "old: 1.0, new: 'refused: ZeroDivisionError"),
    ],
)
def test_one_bit_is_a_difference(bench, old, new, reason):
    differing = bench.records.differences(answers_of(bench, a=old), answers_of(bench, a=new))
    assert differing.keys() == {"a"}
    assert re.search(reason, differing["a"])


def test_what_is_missing_differs_and_what_is_new_does_not(bench):
    old, new = answers_of(bench, a=1, b=2, c=ZeroDivisionError), answers_of(bench, a=1, d=3)
    found = bench.run.compare("model", old, new)
    assert found.differing == dict.fromkeys("bc", "only the old version has it")
    assert (found.n_refused, found.n_further) == (1, 1)


def test_a_changed_number_is_found(bench, tmp_path, monkeypatch, capsys):
    """A package with another interval score, beside the one as it stands."""
    for tree in ("same", "changed"):
        shutil.copytree(ROOT / "python", tmp_path / tree / "python")
        # As it is installed, since a checkout may not be compiled.
        installed = Path(hdicore.__file__).parent
        shutil.copytree(installed, tmp_path / tree / "python" / "hdicore", dirs_exist_ok=True)
    [path] = (tmp_path / "changed" / "python" / "hdiforest" / "metrics").glob("*intervals.py")
    text = path.read_text()
    path.write_text(text.replace("2 / np.asarray(alpha)", "2.000001 / np.asarray(alpha)"))
    assert path.read_text() != text

    monkeypatch.setattr(bench.run.revisions, "built_tree", lambda name: tmp_path / name)
    command = ["--models", "metrics", "--old", "same", "--new"]
    assert bench.run.main([*command, "same"]) == 0
    assert "0 of 25 answers of 1 models differ." in capsys.readouterr().out
    assert bench.run.main([*command, "changed"]) == 1
    shown = capsys.readouterr().out
    assert "metrics, metrics/interval score, plain: 1 of 1 values" in shown


def test_an_unknown_commit_is_said_in_one_sentence(bench, capsys):
    assert bench.run.main(["--old", "no-such-commit"]) == 2
    assert "no-such-commit names no commit" in capsys.readouterr().err
