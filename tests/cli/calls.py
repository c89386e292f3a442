"""Calls of the command hdiforest in this process, and what they leave behind."""

import sys

from hdiforest._cli.main import main


def command(*arguments):
    """The words of a call in a process of its own."""
    return [sys.executable, "-P", "-m", "hdiforest", *map(str, arguments)]


def run(arguments):
    return main([str(argument) for argument in arguments])


def failure(capsys, arguments, code=1):
    """The one line on standard error of a call that fails."""
    capsys.readouterr()
    assert run(arguments) == code
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("hdiforest: error: ")
    return lines[0].removeprefix("hdiforest: error: ")


def read(path):
    """A table as pandas reads it from Arrow."""
    from pyarrow import csv, parquet

    table = parquet.read_table(path) if path.suffix == ".parquet" else csv.read_csv(path)
    return table.to_pandas()
