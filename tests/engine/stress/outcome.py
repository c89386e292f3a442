"""What came out of a stress run: its rows, and how they are printed, written and judged."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import hdicore

TITLES = ("tried", "times", "outcome", "finding")


class SkippedError(Exception):
    """Says in one sentence why nothing could be tried."""


@dataclass(frozen=True)
class Row:
    """One thing that was tried, and what came out."""

    tried: str
    times: int
    outcome: str
    finding: bool = False


def row_of(tried: str, outcomes: Iterable[tuple[str, str]], good: Iterable[str]) -> Row:
    """Count the outcomes of cases; one that is not good makes a finding and names its case."""
    cases = list(outcomes)
    counts = Counter(outcome for _, outcome in cases)
    first = {outcome: case for case, outcome in reversed(cases)}
    good = set(good)
    parts = [
        f"{n} {outcome}" if outcome in good else f"{n} {outcome} [first: {first[outcome]}]"
        for outcome, n in counts.most_common()
    ]
    finding = not set(counts) <= good
    return Row(tried, len(cases), "; ".join(parts) or "nothing was tried", finding)


def machine() -> str:
    return (
        f"hdicore {hdicore.__version__}, Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors"
    )


def as_markdown(rows: list[Row]) -> str:
    """Return a table whose columns stand under each other."""
    cells = [
        (row.tried, f"{row.times:,}", row.outcome.replace("|", "/"), "FINDING" * row.finding)
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(TITLES, *cells, strict=True)]
    lines = [TITLES, tuple("-" * width for width in widths), *cells]
    padded = [
        [cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in padded)


def write(path: Path, command: str, rows: list[Row]) -> None:
    """Write the rows as Markdown or, if the path ends in .json, as JSON."""
    if path.suffix == ".json":
        facts = {"command": command, "machine": machine(), "rows": [asdict(row) for row in rows]}
        path.write_text(json.dumps(facts, indent=1) + "\n")
    else:
        path.write_text(f"`{command}`; {machine()}\n\n{as_markdown(rows)}")
