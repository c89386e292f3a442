"""Fuzz targets hold on their committed inputs, and model files are refused or work."""

import subprocess
import sys

import pytest

from .fuzz.engine import COMPILER, ROOT, SANITIZE, STRICT, compile_all, link_all

FUZZ = ROOT / "tests" / "fuzz"
CORPUS = FUZZ / "corpus"
N_SEEDS = 1000  # random inputs beside those of the corpus
REPLAY = FUZZ / "targets" / "replay.cpp"
TARGETS = sorted(path for path in (FUZZ / "targets").glob("*.cpp") if path != REPLAY)


def test_every_target_has_a_small_corpus():
    names = [path.stem for path in TARGETS]
    assert sorted(path.name for path in CORPUS.iterdir()) == sorted([*names, "model_files"])
    files = [path for path in CORPUS.rglob("*") if path.is_file()]
    assert all(any((CORPUS / name).iterdir()) for name in names)
    assert sum(path.stat().st_size for path in files) < 200_000


@pytest.fixture(scope="module")
def programs(sanitized_engine, tmp_path_factory):
    """Folder with one program for each target, which runs it on files."""
    folder = tmp_path_factory.mktemp("replay")
    replay, *targets = compile_all(COMPILER, [*STRICT, *SANITIZE], [REPLAY, *TARGETS], folder)
    link_all(
        COMPILER,
        SANITIZE,
        {target.with_suffix(""): [target, replay, *sanitized_engine] for target in targets},
    )
    return folder


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (c++ or $CXX) found")
@pytest.mark.skipif(sys.platform == "win32", reason="the flags are those of GCC and Clang")
@pytest.mark.parametrize("name", [path.stem for path in TARGETS])
def test_a_target_holds_on_its_corpus_and_on_random_inputs(programs, name):
    command = [programs / name, CORPUS / name, str(N_SEEDS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) == len(list((CORPUS / name).iterdir())) + N_SEEDS


def test_changed_model_files_are_refused_or_work():
    pytest.importorskip("safetensors")
    script = FUZZ / "model_files.py"
    command = [sys.executable, script, "--unguided", "400", CORPUS / "model_files"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
