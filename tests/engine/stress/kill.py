"""Send signals to `hdiforest score` and `fit` at random moments: a whole output or the old one.

Every second run finds an output of an earlier run in its place. A third of the moments lie after
the temporary file appears (the first of them at once), the others anywhere between start and end.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from outcome import Row, row_of

from commands import Command, make_commands, run_undisturbed, temporaries

SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP")
OLD = b"an output of an earlier run"
GOOD = ("whole", "as before", "whole, ended before the signal")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--moments", type=int, default=30, metavar="N", help="a command and signal")
    parser.add_argument("--scale", type=float, default=1, help="size of the tables (default: 1)")
    parser.add_argument("--seed", type=int, default=0)


def run(options: argparse.Namespace) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="kill-") as scratch:
        for command in make_commands(Path(scratch), options.scale):
            for name in SIGNALS:
                if options.only in f"{command.name}, {name}":
                    folder = Path(scratch) / "killed"
                    folder.mkdir()
                    yield from killed(command, name, folder, options.moments, options.seed)
                    shutil.rmtree(folder)


def killed(command: Command, name: str, folder: Path, moments: int, seed: int) -> Iterator[Row]:
    """Kill the command at some moments in one folder, then let it run once undisturbed there."""
    moment = random.Random(seed)
    whole = run_undisturbed(command, folder)
    expected = command.expected
    cases = []
    for k in range(moments):
        writing = k % 3 == 0
        # Writing may take milliseconds or most of the run.
        share = 10 ** moment.uniform(-5, -0.5) if writing else moment.uniform(0, 1)
        wait = share * whole if k > 0 else 0
        cases.append((f"run {k}", one_kill(command, name, folder, wait, writing, k % 2 == 0)))
    yield row_of(f"{command.name}, {name}", cases, GOOD)

    left = len(temporaries(folder))
    finding = left > 0 and name != "SIGKILL"  # which leaves a program no time
    yield Row(f"{command.name}, {name}: temporaries left", moments, str(left), finding)
    run_undisturbed(command, folder)
    after = "whole" if command.expected == expected else "another output"
    if temporaries(folder):
        after += f", {len(temporaries(folder))} temporaries still there"
    yield row_of(f"{command.name}, {name}: the run after them", [("it", after)], ("whole",))


def one_kill(
    command: Command, name: str, folder: Path, wait: float, writing: bool, before: bool
) -> str:
    """Send a signal `wait` seconds after the start, or after a temporary appeared."""
    output, known = folder / command.output, set(temporaries(folder))
    output.unlink(missing_ok=True)
    if before:
        output.write_bytes(OLD)
    process = subprocess.Popen(
        command.call(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: [signal.signal(getattr(signal, s), signal.SIG_DFL) for s in SIGNALS[1:]],
    )
    while writing and process.poll() is None and set(temporaries(folder)) <= known:
        time.sleep(0.001)
    time.sleep(wait)
    process.send_signal(getattr(signal, name))
    said = process.communicate()[1]
    found = state(command, folder)
    if process.returncode == 0:
        return f"{found}, ended before the signal"
    if found == "whole" and "no output was written" in said:
        return "whole, though it says that no output was written"
    return "as before" if found == ("old" if before else "absent") else found


def state(command: Command, folder: Path) -> str:
    output = folder / command.output
    if not output.exists():
        return "absent"
    held = output.read_bytes()
    return {command.expected: "whole", OLD: "old"}.get(held, f"broken ({len(held)} bytes)")
