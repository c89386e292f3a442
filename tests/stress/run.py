"""Stress the package on purpose: failing memory, signals, full disks, threads, long runs.

    python tests/stress/run.py NAME [--help] [--only TEXT] [-o FILE.md|FILE.json]

Prints a table of what was tried and what came out. The exit code is 1 if any row is a finding,
and 0 too if the machine lacks what a run needs, which one sentence then says.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from outcome import SkippedError, as_markdown, machine, write

NAMES = (
    "allocations",
    "address_space",
    "threads",
    "soak",
    "kill",
    "disk",
    "interrupts",
    "uninitialised",
)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="name", required=True)
    modules = {name: import_module(name) for name in NAMES}
    for name, module in modules.items():
        command = commands.add_parser(name, help=module.__doc__.splitlines()[0])
        command.add_argument("--only", default="", metavar="TEXT", help="what has TEXT in its name")
        command.add_argument("-o", "--output", type=Path, metavar="FILE", help=".md or .json")
        module.add_arguments(command)
    options = parser.parse_args(argv)
    try:
        rows = modules[options.name].run(options)
    except SkippedError as skipped:
        print(f"{options.name} skipped: {skipped}")
        return 0
    print(f"{machine()}\n\n{as_markdown(rows)}")
    if options.output is not None:
        shown = ["python tests/stress/run.py", *(sys.argv[1:] if argv is None else argv)]
        write(options.output, " ".join(shown), rows)
    return int(any(row.finding for row in rows))


if __name__ == "__main__":
    sys.exit(main())
