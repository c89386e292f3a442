"""Fuzz targets hold on their committed inputs, and model files are refused or work."""

import subprocess
import sys

import pytest

from . import corpus
from .engine import COMPILER, ROOT, SANITIZE, STRICT, compile_all, link_all

FUZZ = ROOT / "tests" / "engine" / "fuzz"
N_SEEDS = 500  # random inputs beside those of the corpus
REPLAY = FUZZ / "targets" / "replay.cpp"
TARGETS = sorted(path for path in (FUZZ / "targets").glob("*.cpp") if path != REPLAY)


def test_every_target_has_a_small_corpus():
    assert sorted(corpus.read()) == sorted([*(path.stem for path in TARGETS), "model_files"])
    assert corpus.CORPUS.stat().st_size < 200_000


def test_the_corpus_is_written_as_it_was_read(tmp_path):
    copy = tmp_path / "corpus.txt"
    corpus.write(corpus.read(), copy)
    assert copy.read_bytes() == corpus.CORPUS.read_bytes()
    corpus.write({"b": {"y": b"", "x": b"\x00\xff"}, "a": {"z": b" \n"}}, copy)
    assert copy.read_text() == "a z 200a\nb x 00ff\nb y \n"
    assert corpus.read(copy) == {"a": {"z": b" \n"}, "b": {"x": b"\x00\xff", "y": b""}}


def test_a_finding_is_added_under_a_name(tmp_path, monkeypatch, capsys):
    written = {}
    monkeypatch.setattr(corpus, "write", written.update)
    finding = tmp_path / "crash-1"
    finding.write_bytes(b"\x01")
    corpus.main(["c_table", "null_output", str(finding)])
    assert written["c_table"] == corpus.read()["c_table"] | {"null_output": b"\x01"}
    with pytest.raises(SystemExit):
        corpus.main(["c_table", "two words", str(finding)])
    assert "letters, digits and _, but is 'two words'" in capsys.readouterr().err


@pytest.fixture(scope="module")
def programs(sanitized_engine, tmp_path_factory):
    """Folder with one program for each target, which runs it on files."""
    folder = tmp_path_factory.mktemp("replay")
    flags, header = [*STRICT, *SANITIZE], sanitized_engine.with_name("headers.hpp")
    replay, *targets = compile_all(COMPILER, flags, [REPLAY, *TARGETS], folder, header)
    link_all(
        COMPILER,
        SANITIZE,
        {target.with_suffix(""): [target, replay, sanitized_engine] for target in targets},
    )
    return folder


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (c++ or $CXX) found")
@pytest.mark.skipif(sys.platform == "win32", reason="the flags are those of GCC and Clang")
@pytest.mark.parametrize("name", [path.stem for path in TARGETS])
def test_a_target_holds_on_its_corpus_and_on_random_inputs(programs, name, tmp_path):
    command = [programs / name, corpus.unpack(name, tmp_path), str(N_SEEDS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) == len(corpus.read()[name]) + N_SEEDS


def test_changed_model_files_are_refused_or_work(tmp_path):
    pytest.importorskip("safetensors")
    script = FUZZ / "model_files.py"
    command = [sys.executable, script, "--unguided", "200", corpus.unpack("model_files", tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
