"""The command hdiforest: its arguments, its four subcommands and its one-line errors."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, get_args

from hdicore import __version__
from hdiforest.atomic import is_standard_output, is_stream
from hdiforest.command.argument_types import (
    level,
    max_features,
    natural,
    number_or_share,
    positive,
    table,
)
from hdiforest.command.extras import need
from hdiforest.command.report import say
from hdiforest.command.signals import Stopped, stoppable
from hdiforest.command.tables import ANY_ENDING, BATCH_ROWS
from hdiforest.conditional import Kind
from hdiforest.estimator import HDIForestRegressor
from hdiforest.fitted import WEIGHTINGS
from hdiforest.text import printable

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the program's name; ``sys.argv[1:]`` if None.

    Returns
    -------
    int
        0; 1 if something failed; 2 if the arguments are wrong; 128 and the signal's number if
        stopped. Failures are one line on standard error.
    """
    with stoppable():  # around the message too, which a second signal must not interrupt
        return _code_of(argv)


def _code_of(argv: Sequence[str] | None) -> int:
    try:
        options = _parser().parse_args(argv)
        options.run(options)
    except SystemExit as stop:  # argparse has printed its message
        return stop.code if isinstance(stop.code, int) else 1
    except Stopped as stop:
        return _failed(str(stop), 128 + stop.number)
    except UsageError as error:
        return _failed(str(error), 2)
    except OSError as error:
        return _failed(_sentence(error), 1)
    except (ValueError, ImportError) as error:
        return _failed(str(error), 1)
    except MemoryError:
        return _failed("not enough memory", 1)
    return 0


class UsageError(ValueError):
    """Arguments that do not go together."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(_failed(f"{message} (see '{self.prog} --help')", 2))


def _failed(message: str, code: int) -> int:
    with suppress(BrokenPipeError):
        print(f"hdiforest: error: {printable(' '.join(message.split()))}", file=sys.stderr)
    return code


def _sentence(error: OSError) -> str:
    if error.strerror is None or error.filename is None:
        return error.strerror or str(error)
    return f"{error.filename}: {error.strerror}"


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="hdiforest",
        description="Shortest prediction intervals from random forests, for tables on disk.",
    )
    parser.add_argument("--version", action="version", version=f"hdiforest {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    for add in (_add_fit, _add_score, _add_inspect, _add_demo):
        add(commands)
    return parser


def _command(commands: Any, run: Callable[[Any], None], summary: str) -> argparse.ArgumentParser:
    name = run.__name__.removeprefix("_run_")
    parser: argparse.ArgumentParser = commands.add_parser(name, help=summary, description=summary)
    parser.set_defaults(run=run)
    return parser


def _add_fit(commands: Any) -> None:
    parser = _command(commands, _run_fit, "Fit a forest to a table and write a model file.")
    add = parser.add_argument
    add("train", type=table, metavar="TRAIN", help=f"table: {ANY_ENDING}")
    add("--target", required=True, metavar="COL", help="column to predict")
    add("-o", "--output", required=True, type=Path, metavar="MODEL", help="model file to write")
    add("--drop", nargs="+", action="extend", default=[], metavar="COL", help="columns to ignore")
    add("--sample-weight", metavar="COL", help="column of row weights")
    add(
        "--weights",
        choices=tuple(WEIGHTINGS),
        default="all",
        help="training rows that count in a leaf (default: all)",
    )
    add("--seed", type=natural, default=0, metavar="N", help="random seed (default: 0)")
    _add_jobs(parser)
    forest = parser.add_argument_group("forest")
    add = forest.add_argument
    add("--trees", type=positive, default=300, metavar="N", help="number (default: 300)")
    add("--min-samples-leaf", type=positive, default=5, metavar="N", help="default: 5")
    add("--max-depth", type=positive, metavar="N", help="default: no limit")
    add("--max-features", type=max_features, default=1.0, metavar="F", help="features tried at "
        "a split: a number, a share, sqrt or log2 (default: 1.0)")  # fmt: skip
    add("--max-samples", type=number_or_share, metavar="S", help="rows drawn for a tree: a number "
        "or a share (default: as many as there are)")  # fmt: skip
    add("--extra-trees", action="store_true", help="extremely randomised trees, with bootstrap")


def _add_score(commands: Any) -> None:
    parser = _command(
        commands, _run_score, "Score the rows of a table: prediction and interval ends."
    )
    add = parser.add_argument
    add("model", type=Path, metavar="MODEL", help="file written by 'hdiforest fit'")
    add("table", type=table, metavar="TABLE", help=f"table: {ANY_ENDING}")
    add("-o", "--output", required=True, type=table, metavar="OUT", help="table to write; all "
        "formats go with all")  # fmt: skip
    add("--coverage", nargs="+", type=level, default=[0.9], metavar="C",
        help="shares in (0, 1] of the distribution that intervals hold (default: 0.9)")  # fmt: skip
    add("--kind", choices=get_args(Kind), default="hdi",
        help="shortest, equal-tailed, or one-sided intervals (default: hdi)")  # fmt: skip
    add("--keep", nargs="+", action="extend", default=[], metavar="COL",
        help="columns to repeat in OUT; those of a CSV are copied as text")  # fmt: skip
    add("--batch-rows", type=positive, metavar="N",
        help=f"rows in memory at once (default: {BATCH_ROWS}, fewer if they are wide)")  # fmt: skip
    _add_jobs(parser)


def _add_inspect(commands: Any) -> None:
    parser = _command(commands, _run_inspect, "Check a model file and say what it holds.")
    parser.add_argument("model", type=Path, metavar="MODEL")


def _add_demo(commands: Any) -> None:
    parser = _command(
        commands, _run_demo, "Compare both kinds of interval on a data set that comes along."
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("hdiforest-demo"),
                        metavar="FOLDER", help="default: hdiforest-demo")  # fmt: skip


def _add_jobs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", type=positive, metavar="N", help="threads (default: all)")


def _run_fit(options: Any) -> None:
    from hdiforest.command.fitting import new_forest, out_of_bag_report, read_training_table

    need("safetensors")
    _require_writable(options.output, options.train)
    X, y, weights = read_training_table(
        options.train, options.target, drop=options.drop, sample_weight=options.sample_weight
    )
    jobs = -1 if options.jobs is None else options.jobs
    forest = new_forest(
        options.extra_trees,
        n_estimators=options.trees,
        min_samples_leaf=options.min_samples_leaf,
        max_depth=options.max_depth,
        max_features=options.max_features,
        max_samples=options.max_samples,
        random_state=options.seed,
        n_jobs=jobs,
    )
    model = HDIForestRegressor(forest, weights=options.weights, n_jobs=jobs)
    model.fit(X, y, sample_weight=weights)
    report = out_of_bag_report(model, y)
    model.save(options.output, training_rows=False)
    n_trees, n_leaves = model.scorer_.forest.n_trees, model.scorer_.forest.n_leaves.sum()
    say(
        f"{n_trees:,} trees with {n_leaves:,} leaves from {len(y):,} rows and "
        f"{model.n_features_in_} features\n\n{report}\n\nModel written to {options.output}"
    )


def _run_score(options: Any) -> None:
    from hdiforest.command.scoring import score_table

    _require_writable(options.output, options.table, options.model)
    model = HDIForestRegressor.load(options.model)
    report = sys.stderr if is_standard_output(options.output) else None
    start = time.perf_counter()
    n_rows = score_table(
        model,
        options.table,
        options.output,
        coverage=options.coverage,
        kind=options.kind,
        keep=options.keep,
        batch_rows=options.batch_rows,
        n_threads=options.jobs or 0,
    )
    seconds = time.perf_counter() - start
    say(
        f"{n_rows:,} rows scored in {seconds:.1f} s ({n_rows / seconds:,.0f} rows/s), "
        f"written to {options.output}",
        report,
    )


def _run_inspect(options: Any) -> None:
    from hdiforest.command.summary import describe

    say(describe(options.model))


def _run_demo(options: Any) -> None:
    from hdiforest.command.demo import run

    run(options.output)


def _require_writable(output: Path, *inputs: Path) -> None:
    """Refuse early what would fail, or destroy an input, after the work is done."""
    name = os.path.realpath(output)
    for given in inputs:
        if name == os.path.realpath(given):
            raise UsageError(f"the output {output} must not be one of the inputs")
    if output.is_dir():
        raise UsageError(f"the output {output} is a folder")
    try:
        if is_stream(output):
            return
        folder = os.path.dirname(name)
        if not os.path.isdir(folder):
            raise OSError(f"cannot write {output}: there is no folder {folder}")
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        if error.strerror is None:
            raise
        raise OSError(error.errno, f"cannot write {output}: {error.strerror}") from None
