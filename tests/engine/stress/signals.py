"""Send pairs of signals that are 0 to 300 us apart: the command ends each time, and none hangs.

Most pairs go to a program that enters and leaves `stoppable`, where a handler may be interrupted by
another; while it waits the program computes or reads a pipe. Some go to the command itself.
"""

from __future__ import annotations

import argparse
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from outcome import Row, row_of

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
APART = 300e-6  # seconds at most
PATIENCE = 20.0  # seconds after which a program counts as one that hangs
PROGRAM = """
import os, signal, sys, time
ignored = lambda *_: None  # between two rounds
for number in map(int, sys.argv[2:]): signal.signal(number, ignored)
from hdiforest._cli.main import stoppable
waits = {"computes": lambda: sum(range(50)), "reads a pipe": lambda: os.read(0, 1)}[sys.argv[1]]
while True:
    try:
        with stoppable():
            os.write(1, b"r")
            while True: waits()
    except KeyboardInterrupt:
        pass
    time.sleep(0.002)  # until the second signal was ignored
"""
GOOD = ("ended",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pairs", type=int, default=2000, metavar="N", help="of signals, in all")
    parser.add_argument("--commands", type=int, default=20, metavar="N", help="that are stopped")
    parser.add_argument("--seed", type=int, default=0)


def run(options: argparse.Namespace) -> Iterator[Row]:
    chance = random.Random(options.seed)
    for waiting in ("computes", "reads a pipe"):
        if options.only in f"a program that {waiting}":
            yield in_one_program(waiting, options.pairs // 2, chance)
    if options.only in "the command score":
        with tempfile.TemporaryDirectory(prefix="signals-") as folder:
            cases = [
                (f"run {k}", one_command(Path(folder), chance)) for k in range(options.commands)
            ]
        yield row_of("the command score", cases, GOOD)


def send_pair(process: subprocess.Popen[bytes], chance: random.Random) -> str:
    first, second = chance.choice(SIGNALS), chance.choice(SIGNALS)
    process.send_signal(first)
    until = time.perf_counter() + chance.uniform(0, APART)
    while time.perf_counter() < until:
        pass
    process.send_signal(second)
    return f"{first.name}, {second.name}"


def in_one_program(waiting: str, n_pairs: int, chance: random.Random) -> Row:
    """Send pairs to one program, each as soon as it is ready again."""
    command = [sys.executable, "-c", PROGRAM, waiting, *(str(int(each)) for each in SIGNALS)]
    pipe = subprocess.PIPE
    cases, pair = [], ""
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        for _ in range(n_pairs + 1):
            is_ready = select.select([process.stdout], [], [], PATIENCE)[0]
            if not is_ready or os.read(process.stdout.fileno(), 1) == b"":
                outcome = "ended by itself" if is_ready else "hangs"
                cases.append((pair, outcome))
                break
            if pair:
                cases.append((pair, "ended"))
            pair = send_pair(process, chance)
        process.kill()
    return row_of(f"a program that {waiting}", cases, GOOD)


def one_command(folder: Path, chance: random.Random) -> str:
    """Send a pair to the command while it waits for a table."""
    table = folder / "rows.csv"
    if not table.exists():
        os.mkfifo(table)
        train = folder / "train.csv"
        train.write_text("x,y\n" + "".join(f"{k},{k % 7}\n" for k in range(60)))
        fit = ("fit", train, "--target", "y", "--trees", "10", "-o", folder / "model.hdi")
        subprocess.run([sys.executable, "-m", "hdiforest", *fit], check=True, capture_output=True)
    score = ("score", folder / "model.hdi", table, "-o", folder / "out.csv")
    process = subprocess.Popen(
        [sys.executable, "-m", "hdiforest", *score], stderr=subprocess.PIPE, start_new_session=True
    )
    with table.open("wb"):  # opened when the command reads
        time.sleep(chance.uniform(0, 0.01))
        send_pair(process, chance)
        try:
            said = process.communicate(timeout=PATIENCE)[1].decode()
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return "hangs"
    known = [f"hdiforest: error: stopped by {number.name}\n" for number in SIGNALS]
    # The second of the signals may come when all is said and done.
    is_stopped = process.returncode - 128 in SIGNALS or -process.returncode in SIGNALS
    if not is_stopped or said not in known:
        return f"exit code {process.returncode}, {said[-100:]!r}"
    return "ended"
