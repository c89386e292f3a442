"""Calls of the command hdiforest in this process, and what they leave behind."""

import sys

from hdiforest._cli.main import main


def command(*arguments):
    """The words of a call in a process of its own."""
    return [sys.executable, "-P", "-m", "hdiforest", *map(str, arguments)]


def run(arguments):
    return main([str(argument) for argument in arguments])


def output_of(capsys, arguments):
    """What a call that ends well prints."""
    capsys.readouterr()
    assert run(arguments) == 0
    return capsys.readouterr().out


def failure(capsys, arguments, code=1):
    """The one line on standard error of a call that fails."""
    capsys.readouterr()
    assert run(arguments) == code
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("hdiforest: error: ")
    return lines[0].removeprefix("hdiforest: error: ")


def write(table, path):
    """Write a frame in the format that its name ends in, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        table.to_parquet(path)
    elif path.suffix == ".jsonl":
        table.to_json(path, orient="records", lines=True, double_precision=15)
    else:
        table.to_csv(path, index=False)


def read(path):
    """A table as pandas reads it from Arrow."""
    from pyarrow import csv, parquet

    # A dataset would add columns from the names of folders.
    is_parquet = path.suffix == ".parquet"
    table = parquet.ParquetFile(path).read() if is_parquet else csv.read_csv(path)
    return table.to_pandas()
