"""Stress the package on purpose: failing memory, signals, full disks, threads, long runs.

    python tests/engine/stress/run.py NAME [--help] [--only TEXT] [-o FILE.md|FILE.json]

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
    "threads",
    "soak",
    "kill",
    "replaced",
    "disk",
    "signals",
)


def main(arguments: Sequence[str]) -> int:
    first = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    first.add_argument("name", choices=NAMES)
    name = first.parse_args(arguments[:1]).name
    module = import_module(name)  # the others stay out of the processes that it forks
    parser = argparse.ArgumentParser(
        f"run.py {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="what has TEXT in its name")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help=".md or .json")
    module.add_arguments(parser)
    options = parser.parse_args(arguments[1:])
    rows = []
    try:
        for row in module.run(options):
            rows.append(row)
            print(f"{row.tried}: {row.outcome}", file=sys.stderr, flush=True)
    except SkippedError as skipped:
        print(f"{name} skipped: {skipped}")
        return 0
    if not rows:
        parser.error(f"nothing has {options.only!r} in its name")
    print(f"{machine()}\n\n{as_markdown(rows)}")
    if options.output is not None:
        write(options.output, " ".join(["python tests/engine/stress/run.py", *arguments]), rows)
    return int(any(row.finding for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
