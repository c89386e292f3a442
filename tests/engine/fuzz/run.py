"""Fuzz the borders of the engine and of model files; report executions, coverage and findings.

    python tests/engine/fuzz/run.py [--seconds 60] [--target NAME ...] [--jobs 2]
    python tests/engine/fuzz/run.py --minimise  # choose the committed corpus anew

The first form starts from the committed corpus and what earlier runs found in `build/fuzz`, and
exits with 1 if an input is found that ends a target. The targets in C++ need clang with libFuzzer,
and `model_files` needs atheris.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import corpus
from engine import ROOT, STRICT, compile_all, link_all, read_once, rooms
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
BUILD = ROOT / "build" / "fuzz"
REPLAY = HERE / "targets" / "replay.cpp"
ENGINE_TARGETS = sorted({*(HERE / "targets").glob("*.cpp")} - {REPLAY})
MODEL_FILES = "model_files"
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
# Without the comparisons of numbers, which cost half of the time: inputs hold no magic words.
GUIDE = ("-fsanitize=fuzzer-no-link", "-fno-sanitize-coverage=trace-cmp")
# libstdc++'s stable_sort uses what C++17 deprecates, and clang says so.
FLAGS = (*STRICT, "-Wno-deprecated-declarations", "-O2", "-g1")
ENVIRONMENT = os.environ | {
    "ASAN_OPTIONS": "malloc_context_size=5:quarantine_size_mb=32:detect_stack_use_after_return=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
# A target that fails at once would be started for ever.
MOST_FINDINGS = 20


class CannotRunError(Exception):
    """Says in one sentence what is missing."""


@dataclass
class Result:
    """What came of one target."""

    name: str
    executions: int = 0
    seconds: float = 0
    edges: int = 0
    corpus: int = 0
    findings: list[str] = field(default_factory=list)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as the command line says; return the exit status."""
    names = [*(path.stem for path in ENGINE_TARGETS), MODEL_FILES]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=60, help="for each target (default: 60)")
    parser.add_argument("--target", action="append", choices=names, help="default: all")
    parser.add_argument("--jobs", type=int, default=2, help="targets at once (default: 2)")
    parser.add_argument("--minimise", action="store_true", help="choose the committed corpus anew")
    asked = parser.parse_args(arguments)
    targets: list[str] = asked.target or names
    try:
        commands = build(targets)
        with ThreadPoolExecutor(asked.jobs) as pool:
            if asked.minimise:
                names = [name for name in commands if name != MODEL_FILES]
                chosen = pool.map(lambda name: minimise(name, commands[name]), names)
                corpus.write(corpus.read() | dict(zip(names, chosen, strict=True)))
                return 0
            run = lambda name: fuzz(name, commands[name], asked.seconds)  # noqa: E731
            results = list(pool.map(run, commands))
    except (CannotRunError, RuntimeError) as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 2
    report(results)
    return 1 if any(result.findings for result in results) else 0


def build(targets: Sequence[str]) -> dict[str, list[str]]:
    """The command that runs each target, of those for which the tools are there."""
    commands: dict[str, list[str]] = {}
    sources = [path for path in ENGINE_TARGETS if path.stem in targets]
    clang = find_clang() if sources else None
    if clang is not None:
        folder = BUILD / "programs"
        folder.mkdir(parents=True, exist_ok=True)
        guided, parts = [*FLAGS, *SANITIZE, *GUIDE], folder / "engine"
        header = read_once(clang, guided, parts)
        engine = compile_all(clang, guided, rooms(parts / "rooms"), parts, header)
        objects = compile_all(clang, [*FLAGS, *SANITIZE], sources, folder)
        programs = {made.with_suffix(""): [made, *engine] for made in objects}
        link_all(clang, [*SANITIZE, "-fsanitize=fuzzer"], programs)
        commands |= {program.name: [str(program), "-max_len=512"] for program in programs}
    elif sources:
        print("Skipped the targets in C++: there is no clang++ with libFuzzer.")
    if MODEL_FILES in targets:
        if importlib.util.find_spec("atheris") is None:
            print(f"Skipped {MODEL_FILES}: atheris is not installed.")
        else:
            script = str(HERE / f"{MODEL_FILES}.py")
            commands[MODEL_FILES] = [sys.executable, script, "-max_len=16384"]
    if not commands:
        raise CannotRunError("nothing can be run; see docs/developers.md for what to install")
    return commands


def find_clang() -> str | None:
    """The newest clang++ that comes with libFuzzer."""
    found = [
        shutil.which(name) for name in ("clang++", *(f"clang++-{n}" for n in range(30, 13, -1)))
    ]
    program = "extern int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }"
    for clang in filter(None, found):
        command = [clang, "-fsanitize=fuzzer", "-x", "c", "-", "-o", os.devnull]
        if subprocess.run(command, input=program.encode(), capture_output=True).returncode == 0:
            return clang
    return None


def folders(name: str) -> tuple[Path, Path]:
    """Where inputs that reach more, and those that end the target, are kept."""
    grown, findings = BUILD / "corpus" / name, BUILD / "findings" / name
    for folder in (grown, findings):
        folder.mkdir(parents=True, exist_ok=True)
    return grown, findings


def committed(name: str) -> Path:
    """A folder with the committed inputs of a target, one file each."""
    folder = BUILD / "committed" / name
    shutil.rmtree(folder, ignore_errors=True)
    return corpus.unpack(name, folder)


def fuzz(name: str, command: Sequence[str], seconds: int) -> Result:
    """Run a target for a time, again after each finding."""
    result = Result(name)
    grown, findings = folders(name)
    start_from = committed(name)
    options = [f"-artifact_prefix={findings}/", "-print_final_stats=1", "-timeout=60"]
    start = time.monotonic()
    while len(result.findings) < MOST_FINDINGS:
        left = seconds - (time.monotonic() - start)
        if left < 1:
            break
        arguments = [*command, *options, f"-max_total_time={int(left)}", grown, start_from]
        done = subprocess.run(
            arguments,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=ENVIRONMENT,
        )
        read_log(done.stdout, result)
        if done.returncode == 0:
            break
        result.findings.append(describe(done.stdout))
    result.seconds = time.monotonic() - start
    result.corpus = len(list(grown.iterdir()))
    return result


def read_log(log: str, result: Result) -> None:
    """Add what libFuzzer says in the end."""
    result.executions += sum(map(int, re.findall(r"number_of_executed_units: (\d+)", log)))
    result.edges = max([result.edges, *map(int, re.findall(r" cov: (\d+)", log))])


def describe(log: str) -> str:
    """Why a target ended, and the file that repeats it."""
    said = r"not true: .*|runtime error: .*|SUMMARY: .*|^[\w.]*(?:Error|Exception): .*"
    why = re.search(said, log, re.MULTILINE)
    file = re.search(r"Test unit written to (.*)", log)
    return f"{(why[0] if why else log)[-300:]} ({file[1] if file else 'no file'})"


def report(results: Sequence[Result]) -> None:
    """Print a table, and the findings below it."""
    table = Table(*("target", "executions", "a second", "edges", "corpus", "findings"))
    for one in results:
        speed = one.executions / max(one.seconds, 1)
        cells = [f"{one.executions:,}", f"{speed:,.0f}", f"{one.edges:,}", f"{one.corpus:,}"]
        table.add_row(one.name, *cells, str(len(one.findings)))
    table.add_row("all", f"{sum(one.executions for one in results):,}", "", "", "", "")
    Console().print(table)
    for one in results:
        for finding in one.findings:
            print(f"{one.name}: {finding}")


def minimise(name: str, command: Sequence[str]) -> corpus.Inputs:
    """Choose few inputs of a target that reach the same edges; those that somebody named stay."""
    grown, _ = folders(name)
    chosen = BUILD / "minimal" / name
    shutil.rmtree(chosen, ignore_errors=True)
    chosen.mkdir(parents=True)
    # Without counters, an edge counts once however often it was passed.
    options = ["-set_cover_merge=1", "-use_counters=0"]
    before = committed(name)
    merge = [*command, *options, chosen, before, grown]
    subprocess.run(merge, check=True, capture_output=True, env=ENVIRONMENT)
    named = {
        file: data
        for file, data in corpus.files_of(before).items()
        if not re.fullmatch("[0-9a-f]{40}", file)
    }
    inputs = corpus.files_of(chosen) | named
    print(f"{name}: {len(inputs)} inputs, {sum(map(len, inputs.values())):,} bytes")
    return inputs


if __name__ == "__main__":
    sys.exit(main())
