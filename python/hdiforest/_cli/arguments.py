"""The arguments of the command, which data/arguments.toml lists: their types, what they ask."""

from __future__ import annotations

import argparse
import os
import tempfile
import tomllib
from argparse import ArgumentTypeError
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

from hdicore import __version__, instructions
from hdiforest._cli.console import report_error
from hdiforest._model.fitted import FittedForest
from hdiforest._model.training_rows import WEIGHTINGS
from hdiforest._tables.formats import ANY_ENDING
from hdiforest._tables.forms import THOUSANDS, DateForm, Written
from hdiforest._tables.read import BATCH_ROWS
from hdiforest._utils.checks import CallError, alternatives, shares
from hdiforest._utils.files import is_stream
from hdiforest._utils.kinds import ENDS, TWO_SIDED
from hdiforest.calibration._candidates import DEFAULT_COVERAGES
from hdiforest.calibration._methods import METHODS
from hdiforest.calibration._predict import AnyKind, resolve_kind_and_levels
from hdiforest.calibration._selection import OBJECTIVES

_MOST = 2**32 - 1  # as a seed may be


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


def share(text: str, *, one: bool = False) -> float:
    """Return a coverage or a confidence in (0, 1), or in (0, 1]."""
    number: Any = text
    with suppress(ValueError):
        number = float(text)
    try:
        return float(shares("a share", number, one=one))
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def coverages(text: str, *, one: bool = False) -> list[float]:
    """Return coverages with commas between them."""
    return [share(each, one=one) for each in text.strip(",").split(",")]


def whole(text: str, least: int = 1) -> int:
    """Return a whole number from the least on, as far as seeds go."""
    if not text.isdecimal() or not least <= int(text) <= _MOST:
        raise ArgumentTypeError(f"a whole number from {least} to {_MOST} is needed, got {text}")
    return int(text)


def jobs(text: str) -> int:
    """Return a number of threads; -1 stands for all."""
    return -1 if text == "-1" else whole(text)


def number_or_share(text: str) -> int | float:
    """Return a whole number from 1 on, or a share in (0, 1]."""
    return whole(text) if text.isdecimal() else share(text, one=True)


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


# By the names that the list of arguments has for them.
_FUNCTIONS: list[Any] = [name, path, share, coverages, whole, jobs, number_or_share]
_FUNCTIONS += [max_features, separator, encoding, date_format, part]
_TYPES = {each.__name__.replace("_", " "): each for each in _FUNCTIONS}
_TYPES |= {f"whole from {least}": partial(whole, least=least) for least in (0, 2)}
_TYPES["coverages up to 1"] = partial(coverages, one=True)
_CHOICES = {
    "kinds": ("calibrated", "raw", *ENDS),
    "kinds with two ends": ("calibrated", *TWO_SIDED),
    # No option of the forest constrains it to be monotonic.
    "weightings": [name for name in WEIGHTINGS if name != "monotonic"],
    "methods": (*METHODS, "none"),
    "objectives": OBJECTIVES,
    "thousands": THOUSANDS,
}
_IN_HELP = {
    "levels": ", ".join(f"{level:g}" for level in DEFAULT_COVERAGES),
    "batch_rows": BATCH_ROWS,
    "thousands": alternatives(map(repr, THOUSANDS)),
    "read": f"({ANY_ENDING}), folder, pattern or address such as s3://bucket/folder; or - for CSV "
    "or a stream of Arrow from standard input",
}


def require_writable(output: Path, *inputs: Path) -> None:
    """Refuse early what would fail, or destroy an input, after the work is done."""
    name = os.path.realpath(output)
    if name in map(os.path.realpath, inputs):
        raise UsageError(f"the output {output} must not be one of the inputs")
    if output.is_dir():
        raise UsageError(f"the output {output} is a folder")
    if is_stream(output):
        return
    folder = os.path.dirname(name)
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        reason = error.strerror if os.path.isdir(folder) else f"there is no folder {folder}"
        raise OSError(error.errno, f"cannot write {output}: {reason}") from None


def written_form(options: Any) -> Written:
    """Return what the arguments say of texts; UsageError if they contradict."""
    with of_usage():
        return Written(dict(options.date_format), options.thousands, options.decimal)


def kind_and_levels(fitted: FittedForest, options: Any) -> tuple[AnyKind, list[float]]:
    """Return what `resolve_kind_and_levels` does; what it refuses is a UsageError."""
    with of_usage():
        return resolve_kind_and_levels(fitted, options.kind, options.coverage)


@contextmanager
def of_usage(kind: type[ValueError] = ValueError, table: object = None) -> Iterator[None]:
    """Make a UsageError, in the words of the command, of errors of a kind."""
    try:
        yield
    except kind as error:
        raise UsageError(in_options(error, table)) from None


def in_options(error: Exception, table: object = None) -> str:
    """Return what an error says, with options, or the tables, for the words of a `CallError`."""
    if not isinstance(error, CallError):
        return str(error)
    options = {name: words.format(error.data, table=table) for name, words in _OPTIONS.items()}
    return error.message(error.words | options, "--")


# What stands on the command line for the words of a `CallError`.
_OPTIONS = {
    "calibrate": "give 'hdiforest fit' or 'hdiforest calibrate' --coverage {}",
    "hdi": "--kind hdi",
    "method": "--calibrate {}",
    "no_mean": "--mean must not be given",
    "raw": "another --kind",
    "rest": "--calibrate split or cv+",
    "rows": "{table} must hold",
    "split": "give --calibrate split",
    "trust": "add --trust {}",
}


class _Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.register("action", "distinct", Distinct)
        for name, made in _TYPES.items():
            self.register("type", name, made)
        self.set_defaults(date_format=[], thousands=None)  # where there are no such options

    def error(self, message: str) -> NoReturn:
        self.exit(report_error(f"{message} (see '{self.prog} --help')", 2))

    def add(self, given: list[dict[str, Any]]) -> None:
        """Add arguments, as the list has them, in groups of their own if they name one."""
        groups: dict[str | None, Any] = {None: self}
        for argument in given:
            options = {k: v for k, v in argument.items() if k not in ("name", "of", "group")}
            options["help"] = options["help"].format(**_IN_HELP)
            if isinstance(choices := options.get("choices"), str):
                options["choices"] = _CHOICES[choices]
            title = argument.get("group")
            if title not in groups:
                groups[title] = self.add_argument_group(title)
            groups[title].add_argument(*argument["name"].split(), **options)


_read = cache(tomllib.loads)  # for callers of `main`: it takes half of the time


def command_parser() -> argparse.ArgumentParser:
    """Return the parser; what it parses has the attribute `command`, a subcommand's name."""
    parser = _Parser(
        prog="hdiforest",
        description="Shortest prediction intervals from random forests, for tables on disk.",
    )
    version = f"hdiforest {__version__} ({instructions()['used']} instructions)"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(required=True, metavar="command", dest="command")
    listed = (files("hdiforest._cli") / "data" / "arguments.toml").read_text("utf-8")
    arguments = _read(listed)
    for name, summary in arguments["subcommands"].items():
        subcommand = commands.add_parser(name, help=summary, description=summary)
        subcommand.add([each for each in arguments["argument"] if name in each["of"]])
    return parser
