"""Types of the command's arguments: from text to a value, or to one sentence."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hdiforest._tables.formats import ending
from hdiforest._tables.read import TableError
from hdiforest._utils.checks import percentage_hint
from hdiforest.command.inputs import Part

_MOST = 2**32 - 1  # as a seed may be


def name(text: str) -> str:
    """Return the name of a file or folder, which must not be empty."""
    if not text:
        raise argparse.ArgumentTypeError("a name must not be empty")
    return text


def path(text: str) -> Path:
    """Return the name of a file or folder as a path."""
    return Path(name(text))


def table(text: str) -> Path:
    """Return the name of a table, whose ending must be known."""
    try:
        ending(path(text))
    except TableError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return Path(text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def level(text: str) -> float:
    """Return a level of coverage in (0, 1]."""
    level = _number(text)
    if not 0 < level <= 1:
        hint = percentage_hint(level, lambda share: share <= 1)
        raise argparse.ArgumentTypeError(f"a coverage lies in (0, 1], got {text}{hint}")
    return level


def share(text: str) -> float:
    """Return a coverage or a confidence in (0, 1)."""
    share = _number(text)
    if not 0 < share < 1:
        hint = percentage_hint(share, lambda share: share < 1)
        raise argparse.ArgumentTypeError(
            f"a number above 0 and below 1 is needed, got {text}{hint}"
        )
    return share


def _whole(text: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"a whole number from {least} on is needed, got {text}")
    if int(text) > _MOST:
        raise argparse.ArgumentTypeError(f"a whole number up to {_MOST} is needed, got {text}")
    return int(text)


def natural(text: str) -> int:
    """Return a whole number from 0 on."""
    return _whole(text, 0)


def two_or_more(text: str) -> int:
    """Return a whole number from 2 on."""
    return _whole(text, 2)


def positive(text: str) -> int:
    """Return a whole number from 1 on."""
    return _whole(text, 1)


def number_or_share(text: str) -> int | float:
    """Return a whole number from 1 on, or a share in (0, 1]."""
    if text.isdecimal() and text.strip("0"):
        return _whole(text, 1)
    share = _number(text)
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(
            f"a whole number from 1 on or a share in (0, 1] is needed, got {text}"
        )
    return share


def max_features(text: str) -> str | int | float:
    """Return what scikit-learn takes as max_features."""
    return text if text in ("sqrt", "log2") else number_or_share(text)


def separator(text: str) -> str:
    r"""Return what is between cells: one character of ASCII, or \t for a tab."""
    if text == "\\t":
        return "\t"
    if len(text) != 1 or not text.isascii() or text in '"\r\n':
        raise argparse.ArgumentTypeError(f"one character of ASCII or \\t is needed, got {text!r}")
    return text


def decimal_sign(text: str) -> str:
    """Return what is before the decimals of a number."""
    if text not in (".", ","):
        raise argparse.ArgumentTypeError(f"a point or a comma is needed, got {text!r}")
    return text


def encoding(text: str) -> str:
    """Return the name of an encoding of text; Python has codecs that are none, such as rot13."""
    try:
        "".encode(text)
    except (LookupError, ValueError):
        raise argparse.ArgumentTypeError(f"{text!r} is no encoding of text") from None
    return text


class Distinct(argparse.Action):
    """Takes values that must differ; given again, the option adds to them."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        """See `argparse.Action`."""
        together = [*(getattr(namespace, self.dest) or []), *values]
        shown = [f"{each:.15g}" if isinstance(each, float) else each for each in together]
        for text in shown:
            if shown.count(text) > 1:
                raise argparse.ArgumentError(self, f"{text} must not be given twice")
        setattr(namespace, self.dest, together)


def part(text: str) -> Part:
    """Return a share of the tables, written as i/n."""
    i, slash, n = text.partition("/")
    if not (slash and i.isdecimal() and n.isdecimal() and 1 <= int(i) <= int(n)):
        raise argparse.ArgumentTypeError(
            f"a part is written as i/n with i from 1 to n, such as 3/20, got {text}"
        )
    return Part(int(i), int(n))
