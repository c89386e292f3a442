"""How long Ctrl-C and SIGTERM take to be answered during long calls of every kind."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from long_calls import CALLS
from outcome import Row

from models import write_table

PROGRAM = Path(__file__).with_name("long_calls.py")
GOAL = 0.5  # seconds
STARTED = 5.0  # seconds on processors, after which the command has long begun its work
MOMENTS = ((0.3, "SIGINT"), (0.5, "SIGTERM"))  # as shares of the undisturbed time


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=4, help="of an undisturbed call")


def run(options: argparse.Namespace) -> Iterator[Row]:
    yield from (interrupted(name, options.seconds) for name in CALLS if options.only in name)
    with tempfile.TemporaryDirectory(prefix="interrupts-") as folder:
        for name in ("the command score", "the command fit"):
            if options.only in name:
                yield interrupted_command(name, Path(folder))


def interrupted(name: str, seconds: float) -> Row:
    """Signal a program that makes one long call again and again."""
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), name, str(seconds), str(len(MOMENTS))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    undisturbed = float(process.stdout.readline() or "nan")
    answers = []
    for share, asked in MOMENTS:
        if process.stdout.readline() != "calling\n":
            return Row(name, 0, process.communicate()[1][-200:], finding=True)
        time.sleep(share * undisturbed)
        sent = time.monotonic()
        process.send_signal(getattr(signal, asked))
        ended = json.loads(process.stdout.readline())
        late = ", but the call was over" if ended["late"] else ""
        answers.append((f"{asked}{late}", max(0.0, ended["at"] - sent)))
    process.communicate()
    return judged(name, answers, f" (undisturbed {undisturbed:.1f} s)")


def judged(name: str, answers: list[tuple[str, float]], remark: str) -> Row:
    said = [f"{text} after {seconds:.2f} s" for text, seconds in answers]
    finding = any(seconds > GOAL or "exit code" in text for text, seconds in answers)
    return Row(name, len(answers), "; ".join(said) + remark, finding)


def interrupted_command(name: str, folder: Path) -> Row:
    """Signal the command while it scores a batch, or while it fits."""
    train, rows, model = folder / "train.csv", folder / "rows.csv", folder / "model.hdi"
    write_table(train, 6000, target=True)
    write_table(rows, 65_536, target=False)
    command = [sys.executable, "-P", "-m", "hdiforest"]
    fit = [*command, "fit", str(train), "--target", "y", "--min-samples-leaf", "600"]
    call = [*fit, "--trees", "2000", "-o", str(folder / "late.hdi")]
    if name == "the command score":
        subprocess.run([*fit, "--trees", "100", "-o", str(model)], check=True, capture_output=True)
        call = [*command, "score", str(model), str(rows), "-o", str(folder / "out.csv")]
    answers = []
    for _, asked in MOMENTS:
        process = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and processor_seconds(process.pid) < STARTED:
            time.sleep(0.05)
        sent, number = time.monotonic(), getattr(signal, asked)
        process.send_signal(number)
        process.wait()
        wrong = "" if process.returncode == 128 + number else f" (exit code {process.returncode})"
        answers.append((f"{asked}{wrong}", time.monotonic() - sent))
    return judged(name, answers, "")


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
