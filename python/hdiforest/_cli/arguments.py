"""The arguments of the command hdiforest and of its subcommands, their types and what they ask."""

from __future__ import annotations

import argparse
import os
import tempfile
from argparse import ArgumentTypeError
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

from hdicore import __version__, instructions
from hdiforest._cli.console import report_error
from hdiforest._model.fitted import FittedForest
from hdiforest._model.predict import AnyKind, resolve_kind_and_levels
from hdiforest._model.training_rows import WEIGHTINGS
from hdiforest._tables.formats import ANY_ENDING
from hdiforest._tables.forms import THOUSANDS, DateForm, Written
from hdiforest._tables.read import BATCH_ROWS, TextForm
from hdiforest._utils.checks import CallError, alternatives, percentage_hint
from hdiforest._utils.files import is_stream
from hdiforest._utils.kinds import ENDS, TWO_SIDED
from hdiforest.calibration._bases import DEFAULT_COVERAGES
from hdiforest.calibration._selection import OBJECTIVES

_MOST = 2**32 - 1  # as a seed may be
_LEVELS = ", ".join(f"{level:g}" for level in DEFAULT_COVERAGES)
_NAMES: dict[str, Any] = {"nargs": "+", "action": "extend", "default": []}


class UsageError(ValueError):
    """Arguments that are wrong, or do not go together."""


def name(text: str) -> str:
    """Return the name of a file or folder, which must not be empty."""
    if not text:
        raise ArgumentTypeError("a name must not be empty")
    return text


def path(text: str) -> Path:
    """Return the name of a file or folder as a path."""
    return Path(name(text))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def share(text: str, *, one: bool = False) -> float:
    """Return a coverage or a confidence in (0, 1), or in (0, 1]."""

    def is_allowed(number: float) -> bool:
        return 0 < number < 1 or (one and number == 1)

    share = _number(text)
    if not is_allowed(share):
        hint, most = percentage_hint(share, is_allowed), "at most" if one else "below"
        raise ArgumentTypeError(f"a number above 0 and {most} 1 is needed, got {text}{hint}")
    return share


def coverages(text: str, *, one: bool = False) -> list[float]:
    """Return coverages with commas between them."""
    return [share(each, one=one) for each in text.strip(",").split(",")]


def whole(text: str, least: int = 1) -> int:
    """Return a whole number from the least on, as far as seeds go."""
    if not text.isdecimal() or int(text) < least:
        raise ArgumentTypeError(f"a whole number from {least} on is needed, got {text}")
    if int(text) > _MOST:
        raise ArgumentTypeError(f"a whole number up to {_MOST} is needed, got {text}")
    return int(text)


def jobs(text: str) -> int:
    """Return a number of threads; -1 stands for all."""
    return -1 if text == "-1" else whole(text)


def number_or_share(text: str) -> int | float:
    """Return a whole number from 1 on, or a share in (0, 1]."""
    if text.isdecimal() and text.strip("0"):
        return whole(text)
    share = _number(text)
    if not 0 < share <= 1:
        needed = "a whole number from 1 on or a share in (0, 1]"
        raise ArgumentTypeError(f"{needed} is needed, got {text}")
    return share


def max_features(text: str) -> str | int | float:
    """Return what scikit-learn takes as max_features."""
    return text if text in ("sqrt", "log2") else number_or_share(text)


def separator(text: str) -> str:
    r"""Return what is between cells: one character of ASCII, or \t for a tab."""
    if text == "\\t":
        return "\t"
    if len(text) != 1 or not text.isascii() or text in '"\r\n':
        raise ArgumentTypeError(f"one character of ASCII or \\t is needed, got {text!r}")
    return text


def encoding(text: str) -> str:
    """Return the name of an encoding of text; Python has codecs that are none, such as rot13."""
    try:
        "".encode(text)
    except (LookupError, ValueError):
        raise ArgumentTypeError(f"{text!r} is no encoding of text") from None
    return text


def date_format(text: str) -> tuple[str, str]:
    """Return a column and how its dates are written, from COL=FORMAT."""
    column, equals, format_ = text.rpartition("=")
    if not equals:
        raise ArgumentTypeError(f"COL=FORMAT is needed, such as day=%d/%m/%Y, got {text}")
    try:
        return column, DateForm(format_).format
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def part(text: str) -> slice:
    """Return which of the tables are a share of them, written as i/n, for jobs side by side."""
    i, slash, n = text.partition("/")
    if not (slash and i.isdecimal() and n.isdecimal() and 1 <= int(i) <= int(n)):
        form = "i/n with i from 1 to n, such as 3/20"
        raise ArgumentTypeError(f"a part is written as {form}, got {text}")
    return slice(int(i) - 1, None, int(n))


class Distinct(argparse.Action):
    """Takes values that must differ; given again, the option adds to them."""

    def __call__(self, _: Any, namespace: Any, values: Any, __: str | None = None) -> None:
        """See `argparse.Action`."""
        lists = (each if isinstance(each, list) else [each] for each in values)
        together = [*(getattr(namespace, self.dest) or []), *chain.from_iterable(lists)]
        shown = [f"{each:.15g}" if isinstance(each, float) else each for each in together]
        for text in shown:
            if shown.count(text) > 1:
                raise argparse.ArgumentError(self, f"{text} must not be given twice")
        setattr(namespace, self.dest, together)


_COVERAGE: dict[str, Any] = {
    "nargs": "+", "action": Distinct, "type": coverages, "metavar": "C"
}  # fmt: skip


def require_writable(output: Path, *inputs: Path) -> None:
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


def text_form(options: Any) -> TextForm:
    """Return how the arguments say that text is written; UsageError if they contradict."""
    if options.decimal is not None and options.sep == options.decimal:
        raise UsageError("--sep and --decimal must differ")
    point, has_quotes = written_form(options).point, options.quote == "double"
    return TextForm(options.sep, point, options.encoding, has_quotes=has_quotes)


def written_form(options: Any) -> Written:
    """Return what the arguments say of texts; UsageError if they contradict."""
    try:
        return Written(dict(options.date_format), options.thousands, options.decimal)
    except ValueError as error:
        raise UsageError(f"--{error}") from None


def kind_and_levels(fitted: FittedForest, options: Any) -> tuple[AnyKind, list[float]]:
    """Return what `resolve_kind_and_levels` does; what it refuses is a UsageError."""
    try:
        return resolve_kind_and_levels(fitted, options.kind, options.coverage)
    except ValueError as error:
        raise UsageError(in_options(error)) from None


def in_options(error: Exception, table: object = None) -> str:
    """Return what an error says, with options, or the tables, for the words of a `CallError`."""
    if not isinstance(error, CallError):
        return str(error)
    options = {name: words.format(error.data, table=table) for name, words in _OPTIONS.items()}
    return error.said(error.words | options, "--")


# What stands on the command line for the words of a `CallError`.
_OPTIONS = {
    "calibrate": "give 'hdiforest fit' or 'hdiforest calibrate' --coverage {}",
    "hdi": "--kind hdi",
    "method": "--calibrate {}",
    "no_mean": "--mean must not be given",
    "raw": "another --kind",
    "rest": "--calibrate split or cv+",
    "rows": "{table} must hold",
    "trust": "add --trust {}",
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(report_error(f"{message} (see '{self.prog} --help')", 2))


def command_parser() -> argparse.ArgumentParser:
    """Return the parser; what it parses has the attribute `command`, a subcommand's name."""
    parser = _Parser(
        prog="hdiforest",
        description="Shortest prediction intervals from random forests, for tables on disk.",
    )
    version = f"hdiforest {__version__} ({instructions()['used']} instructions)"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(required=True, metavar="command", dest="command")
    for name, summary, add in (
        ("fit", "Fit a forest to a table and write a model file.", _add_fit),
        ("score", "Score the rows of tables: prediction and interval ends.", _add_score),
        ("calibrate", "Calibrate a model on rows that took no part in its fit.", _add_calibrate),
        ("recalibrate", "Move a calibration by new rows, in their order.", _add_recalibrate),
        ("check", "Measure coverage and width of intervals on a table with targets.", _add_check),
        ("inspect", "Check a model file and say what it holds.", _add_inspect),
        ("demo", "Compare both kinds of interval on a data set that comes along.", _add_demo),
    ):
        subcommand = commands.add_parser(name, help=summary, description=summary)
        add(subcommand.add_argument)
        if name not in ("inspect", "demo"):
            _add_text_and_jobs(subcommand)
        if name == "fit":
            _add_forest(subcommand.add_argument_group("forest").add_argument)
    return parser


def _add_fit(add: Any) -> None:
    _add_tables(add, "TRAIN", "with the target and the features")
    add("--target", required=True, metavar="COL", help="column to predict")
    add("-o", "--output", required=True, type=path, metavar="MODEL", help="model file to write")
    add("--categorical", **_NAMES, metavar="COL", help="columns of categories besides those of "
        "text, such as codes of numbers (default: auto, those of text alone)")  # fmt: skip
    add("--drop", **_NAMES, metavar="COL", help="columns to ignore")
    add("--id", **_NAMES, metavar="COL", help="columns that name the "
        "rows: ignored, and repeated by 'hdiforest score'")  # fmt: skip
    add("--missing", **_NAMES, metavar="WORD", help="cells that are missing besides empty ones, "
        "such as unknown or -999; kept in MODEL for all tables that it reads")  # fmt: skip
    add("--drop-missing-target", action="store_true", help="leave out rows without a target")
    add("--sample-weight", metavar="COL", help="column of row weights")
    _add_date_format(add)
    # No option of the forest constrains it to be monotonic.
    add("--weights", choices=[name for name in WEIGHTINGS if name != "monotonic"], default="all",
        help="training rows that count in a leaf (default: all)")  # fmt: skip
    add("--calibrate", choices=("oob", "split", "cv+", "none"), default="oob",
        help="how intervals are made to cover what they say: by the trees that did not draw a row "
        "(oob), by a fifth of the rows held out of the fit (split), or by a forest for each fold "
        "(cv+) (default: oob)")  # fmt: skip
    add("--coverage", **_COVERAGE, help="shares of new targets to cover by calibrated intervals, "
        f"above 0 and below 1 (default: those of {_LEVELS} that there are enough "
        "rows for)")  # fmt: skip
    add("--groups", metavar="COL", help="column of groups (persons, sites) that are not divided, "
        "so that intervals are for new ones; with cv+ and split")  # fmt: skip
    add("--folds", type=partial(whole, least=2), metavar="N", help="of cv+ (default: 10)")
    add("--by", metavar="COL", help="column of groups, each of which is to be covered by itself; "
        "with oob and split")  # fmt: skip
    add("--order", metavar="COL", help="column that the rows are ordered by, such as their time: "
        "tells what later rows are covered, by four more fits; with oob")  # fmt: skip
    _add_calibrating(add)
    add("--training-rows", action="store_true", help="keep the training rows in the model file; "
        "'hdiforest calibrate' needs them")  # fmt: skip
    add("--diagnostics", action="store_true", help="keep at most 10,000 of them, without their "
        "targets; 'hdiforest score --diagnose' needs them")  # fmt: skip
    add("--report", type=path, metavar="REPORT", help="page of HTML to write: coverage and width "
        "out of bag, calibration and importance of the features, with pictures")  # fmt: skip
    add("--seed", type=partial(whole, least=0), default=0, metavar="N",
        help="random seed (default: 0)")  # fmt: skip
    _add_thousands(add)


def _add_forest(add: Any) -> None:
    add("--trees", type=whole, default=300, metavar="N", help="number (default: 300)")
    add("--min-samples-leaf", type=whole, default=5, metavar="N", help="default: 5")
    add("--max-depth", type=whole, metavar="N", help="default: no limit")
    add("--max-features", type=max_features, default=1.0, metavar="F", help="features tried at "
        "a split: a number, a share, sqrt or log2 (default: 1.0)")  # fmt: skip
    add("--max-samples", type=number_or_share, metavar="S", help="rows drawn for a tree: a number "
        "or a share (default: as many as there are)")  # fmt: skip
    add("--extra-trees", action="store_true", help="extremely randomised trees, with bootstrap")


def _add_score(add: Any) -> None:
    _add_model(add)
    _add_tables(add, "IN", "to score")
    add("-o", "--output", required=True, type=path, metavar="OUT", help="table to write, all "
        "formats go with all; of a folder, a pattern or several tables a folder, with an output "
        "for each input")  # fmt: skip
    add("--resume", action="store_true", help="leave outputs that are there and were made by this "
        "model, with these arguments, of the same inputs")  # fmt: skip
    add("--part", type=part, metavar="I/N", help="score the I-th of N shares of the tables")
    add("--coverage", **_COVERAGE | {"type": partial(coverages, one=True)},
        help="shares in (0, 1]: of calibrated intervals, of new targets to cover, those that were "
        "calibrated; of others, of the distribution to hold (default: 0.9, or the lowest that was "
        "calibrated if 0.9 was not)")  # fmt: skip
    add("--kind", choices=("calibrated", *ENDS),
        help="calibrated, shortest, equal-tailed or one-sided intervals (default: calibrated if "
        "the model is, else hdi)")  # fmt: skip
    add("--keep", nargs="+", action=Distinct, metavar="COL", help="columns to repeat in OUT; those "
        "of a CSV are copied as text (default: those of the model's --id that IN has)")  # fmt: skip
    add("--keep-all", action="store_true", help="repeat all columns of an input in its output")
    add("--prefix", default="", metavar="TEXT", help="what the names of results begin with "
        "(default: nothing; hdiforest_ if a repeated column has such a name)")  # fmt: skip
    add("--diagnose", action="store_true", help="add columns that tell which rows are unlike the "
        "training rows; MODEL must be fitted with --diagnostics or --training-rows")  # fmt: skip
    add("--batch-rows", type=whole, metavar="N",
        help=f"rows in memory at once (default: {BATCH_ROWS}, fewer if they are wide)")  # fmt: skip


def _add_calibrate(add: Any) -> None:
    _add_labelled(add)
    _add_output(add)
    add("--coverage", **_COVERAGE, help="shares of new targets to cover, above 0 and below 1 "
        f"(default: those that were calibrated, or {_LEVELS})")  # fmt: skip
    add("--confidence", type=share, metavar="P", help="cover the shares with this probability over "
        "draws of TABLE (default: on average over them)")  # fmt: skip
    _add_calibrating(add)


def _add_recalibrate(add: Any) -> None:
    _add_labelled(add)
    _add_output(add)
    add("--method", choices=("rolling", "aci"), default="rolling", help="quantiles of the last "
        "rows, or adaptive conformal inference, whose intervals may be infinite (default: "
        "rolling)")  # fmt: skip
    add("--window", type=whole, default=500, metavar="N",
        help="rows that quantiles are of (default: 500)")  # fmt: skip
    add("--rate", type=share, default=0.01, metavar="R", help="of aci (default: 0.01)")


def _add_check(add: Any) -> None:
    _add_labelled(add)
    add("--coverage", **_COVERAGE, help="nominal levels, above 0 and below 1 (default: of "
        "calibrated intervals all that were "
        "calibrated, of others 0.9)")  # fmt: skip
    add("--kind", choices=("calibrated", *TWO_SIDED), help="calibrated, shortest or "
        "equal-tailed intervals (default: calibrated if the model is, else hdi)")  # fmt: skip
    add("--by", metavar="COL", help="measure each group of rows of one value of this column, too, "
        "at the level next to 0.9")  # fmt: skip
    add("--over", metavar="COL", help="measure ten periods of this column, of dates, texts or "
        "numbers, too")  # fmt: skip
    _add_date_format(add)
    add("--json", action="store_true", help="print an object of JSON; what is not finite is null")


def _add_inspect(add: Any) -> None:
    _add_model(add)
    add("--json", action="store_true", help="print an object of JSON")


def _add_demo(add: Any) -> None:
    add("-o", "--output", type=path, default=Path("hdiforest-demo"), metavar="FOLDER",
        help="default: hdiforest-demo")  # fmt: skip


def _add_model(add: Any) -> None:
    add("model", type=path, metavar="MODEL", help="file written by 'hdiforest fit'")
    add("--trust", **_NAMES, metavar="TYPE", help="types of steps in MODEL that may be loaded "
        "besides those of scikit-learn; a type that is trusted may run its code")  # fmt: skip


def _add_tables(add: Any, metavar: str, what: str) -> None:
    add("tables", nargs="+", type=name, metavar=metavar,
        help=f"table {what} ({ANY_ENDING}), folder, pattern or address such as s3://bucket/folder; "
        "or - for CSV or a stream of Arrow from standard input")  # fmt: skip


def _add_labelled(add: Any) -> None:
    _add_model(add)
    _add_tables(add, "TABLE", "with the target")
    add("--target", required=True, metavar="COL", help="column of the target")
    _add_thousands(add)


def _add_output(add: Any) -> None:
    add("-o", "--output", type=path, metavar="MODEL2",
        help="model file to write (default: MODEL is replaced)")  # fmt: skip


def _add_calibrating(add: Any) -> None:
    add("--objective", choices=OBJECTIVES, default="balanced", help="which of several calibrated "
        "kinds of intervals is kept: the narrowest, that of the best interval score, which also "
        "counts how far targets lie outside, or one good at both (default: balanced)")  # fmt: skip
    add("--mean", choices=("boosting",), help="centre intervals on a ridge and gradient boosting "
        "too: narrower where that predicts better, and slower")  # fmt: skip


def _add_date_format(add: Any) -> None:
    add("--date-format", type=date_format, action="append", default=[], metavar="COL=FORMAT",
        help="how the dates of a column of text are written, such as day=%%d/%%m/%%Y (default: "
        "found if all cells fit one form)")  # fmt: skip


def _add_thousands(add: Any) -> None:
    add("--thousands", choices=THOUSANDS, metavar="CHAR", help="between thousands of numbers that "
        f"are text: {alternatives(map(repr, THOUSANDS))} (default: found if certain)")  # fmt: skip


def _add_text_and_jobs(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(date_format=[], thousands=None)  # where there are no such options
    add = parser.add_argument_group("text of CSV and TSV").add_argument
    add("--sep", type=separator, metavar="CHAR",
        help="between cells (default: a comma, or a tab in TSV)")  # fmt: skip
    add("--decimal", choices=(".", ","), metavar="CHAR",
        help="before decimals (default: a point)")  # fmt: skip
    add("--encoding", type=encoding, default="utf-8", metavar="NAME",
        help="such as latin-1 (default: utf-8)")  # fmt: skip
    add("--quote", choices=("double", "none"), default="double", help="what cells may stand "
        "between; with none, quotes are text (default: double)")  # fmt: skip
    parser.add_argument("--jobs", type=jobs, default=-1, metavar="N",
                        help="threads; -1 stands for all (default: -1)")  # fmt: skip
