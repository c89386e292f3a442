"""Compare the answers of two versions of the user layer, bit for bit.

    python bench/answers/run.py [--old REV] [--new REV] [--models MODEL ...] [-o FOLDER]

Models of many kinds are fitted, calibrated, asked, pickled, written, read and used by the command,
in a process for each version, both at once. The tables say for each model how many answers of a
kind there are; where some differ, how many. It exits with 1 if any answer differs, and with 2 if
nothing could be compared. The first run with a commit compiles its engine, in a few minutes; after
that all models take about three on two cores. WORKTREE, the default of --new, means the files as
they stand, with the engine that was compiled last.

Not compared: words (messages, `repr`, guarantees), and how long something took. What a version
refuses must be refused by the other with the same type of error.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from models import MODELS
from records import Arrays, differences, is_refusal, read

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

import revisions  # noqa: E402 (beside this folder)

BEFORE_THE_ROOMS = "a5e7765"
KINDS = (
    "predict",
    "intervals",
    "quantiles",
    "cdf",
    "weights",
    "sample",
    "oob",
    "calibration",
    "tables",
    "metrics",
    "pickled",
    "loaded",
    "scored",
)


class Comparison(NamedTuple):
    """What became of the answers of one model."""

    model: str
    counts: Counter[str]  # answers of the old version, by kind of question
    n_refused: int
    n_further: int  # that only the new version has
    differing: dict[str, str]  # how, by name


def compare(model: str, old: Arrays, new: Arrays) -> Comparison:
    return Comparison(
        model,
        Counter(name.split("/")[0] for name in old),
        sum(map(is_refusal, old.values())),
        len(new.keys() - old.keys()),
        differences(old, new),
    )


def record_all(revisions_: Sequence[str], models: Sequence[str], folder: Path) -> list[Path]:
    """Let each version answer in a process of its own; the folders of their answers."""
    trees = [revisions.built_tree(revision) for revision in revisions_]
    folders = [folder / side for side in ("old", "new")]
    running = []
    for tree, to in zip(trees, folders, strict=True):
        to.mkdir(parents=True, exist_ok=True)
        script = HERE / "record.py"
        running.append(revisions.start(tree, script, tree, to, *models, OMP_NUM_THREADS="1"))
    for process in running:
        process.communicate()
    for revision, process in zip(revisions_, running, strict=True):
        if process.returncode:
            raise revisions.NoSuchTreeError(f"{revision} could not be recorded; see above.")
    return folders


def table_of(comparisons: Sequence[Comparison]) -> Table:
    table = Table("model", title="answers by kind; how many differ, if any", padding=(0, 0))
    for column in (*KINDS, "refused", "further", "identical"):
        table.add_column(column, justify="right")
    for found in comparisons:
        wrong = Counter(name.split("/")[0] for name in found.differing)
        cells = [
            f"[bold red]{wrong[kind]} of {found.counts[kind]}[/]"
            if wrong[kind]
            else str(found.counts[kind] or "")
            for kind in KINDS
        ]
        identical = "[bold red]no[/]" if found.differing else "yes"
        table.add_row(found.model, *cells, str(found.n_refused), str(found.n_further), identical)
    return table


def show(comparisons: Sequence[Comparison], most: int = 12) -> None:
    Console(width=150).print(table_of(comparisons))
    for found in comparisons:
        lines = [f"{found.model}, {name}: {reason}" for name, reason in found.differing.items()]
        print(*lines[:most], sep="\n", end="\n" if lines else "")
        if len(lines) > most:
            print(f"{found.model}: {len(lines) - most} more")
    n_differing = sum(len(found.differing) for found in comparisons)
    n_all = sum(found.counts.total() for found in comparisons)
    print(f"{n_differing} of {n_all} answers of {len(comparisons)} models differ.")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old", default=BEFORE_THE_ROOMS, metavar="REV")
    parser.add_argument("--new", default=revisions.WORKTREE, metavar="REV")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=[*MODELS], metavar="MODEL")
    parser.add_argument("-o", "--output", type=Path, help="folder to keep the answers in")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        try:
            folders = record_all(
                (options.old, options.new), options.models, options.output or Path(scratch)
            )
        except revisions.NoSuchTreeError as error:
            print(f"run.py: {error}", file=sys.stderr)
            return 2
        comparisons = [
            compare(model, *(read(folder / f"{model}.npz") for folder in folders))
            for model in options.models
        ]
    show(comparisons)
    return int(any(found.differing for found in comparisons))


if __name__ == "__main__":
    sys.exit(main())
