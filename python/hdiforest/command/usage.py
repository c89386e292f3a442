"""Arguments that do not go together, and outputs that cannot be written: told before the work."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from hdiforest._tables.read import TextForm
from hdiforest._utils.files import is_stream


class UsageError(ValueError):
    """Arguments that do not go together."""


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


def require_distinct(report: Path, output: Path) -> None:
    """Refuse a report that would replace the model file."""
    if os.path.realpath(report) == os.path.realpath(output):
        raise UsageError(f"the report {report} must not be the model file")


def text_form(options: Any) -> TextForm:
    """Return how the arguments say that the text of tables is written.

    Raises
    ------
    UsageError
        If they do not go together.
    """
    if options.sep == options.decimal:
        raise UsageError("--sep and --decimal must differ")
    return TextForm(options.sep, options.decimal, options.encoding)
