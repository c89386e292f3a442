"""Tables on disk: the table of their formats."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from hdiforest._tables.csv import CsvReader
from hdiforest._tables.read import (
    ArrowReader,
    JsonLinesReader,
    ParquetReader,
    TableError,
    TableReader,
    TextForm,
)
from hdiforest._tables.write import (
    StartWriting,
    Write,
    write_arrow,
    write_csv,
    write_json_lines,
    write_parquet,
    written,
)
from hdiforest._utils.checks import alternatives


class Format(NamedTuple):
    """How tables of one format are read and written."""

    read: Callable[..., TableReader]  # of a Path, a stream and a form
    write: StartWriting


def _packed(ending: str, read: Any, write: Any) -> dict[str, Format]:
    """Return the compressed forms of a format."""
    return {
        f"{ending}{more}": Format(partial(read, packing=packing), partial(write, packing=packing))
        for more, packing in ((".gz", "gzip"), (".zst", "zstd"))
    }


# By the ending of a file's name. A new format is one more line.
FORMATS = {
    ".csv": Format(CsvReader, write_csv),
    **_packed(".csv", CsvReader, write_csv),
    ".tsv": Format(partial(CsvReader, sep="\t"), partial(write_csv, sep="\t")),
    **_packed(".tsv", partial(CsvReader, sep="\t"), partial(write_csv, sep="\t")),
    ".parquet": Format(ParquetReader, write_parquet),
    ".feather": Format(ArrowReader, write_arrow),
    ".arrow": Format(ArrowReader, write_arrow),
    ".jsonl": Format(JsonLinesReader, write_json_lines),
    **_packed(".jsonl", JsonLinesReader, write_json_lines),
    ".ndjson": Format(JsonLinesReader, write_json_lines),
    **_packed(".ndjson", JsonLinesReader, write_json_lines),
}


ANY_ENDING = alternatives(FORMATS)


_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")


def ending(path: Path) -> str:
    """Return which of the keys of `FORMATS` ends the path, or raise TableError."""
    for known in FORMATS:
        if path.name.lower().endswith(known):
            return known
    hint = ""
    if path.suffix.lower() in _SPREADSHEETS:
        hint = "; save the sheet as CSV or Parquet"
    raise TableError(f"{path}: a table's name must end in {ANY_ENDING}{hint}")


def open_table(path: Path, stream: Any = None, form: TextForm | None = None) -> TableReader:
    """Open a table by the ending of its name and read its header.

    Parameters
    ----------
    path : Path
    stream : binary file, optional
        To be read in place of the file at `path`, which is its name in errors.
    form : TextForm, optional
        How the text of a CSV is written.

    Returns
    -------
    TableReader
        To be closed, best by ``with``.

    Raises
    ------
    OSError
        If the file cannot be opened.
    TableError
        If its ending is unknown or it is not what the ending says.
    """
    return FORMATS[ending(path)].read(path, stream=stream, form=form)


def write_table(
    path: Path, schema: Any, within: Path | None = None
) -> AbstractContextManager[Write]:
    """Write a table batch by batch; it appears under its name when the block ends without error.

    Parameters
    ----------
    path : Path
        Its ending says the format. Replaced if it exists; a pipe or a device is written as the
        batches come.
    schema : pyarrow.Schema
    within : Path, optional
        See `hdiforest._utils.files.replacing`.

    Returns
    -------
    context manager
        Gives a function that takes a pyarrow Table of that schema.

    Raises
    ------
    OSError
        If the file cannot be written. Then, and if the block raises, nothing is left behind.
    TableError
        If the ending of the name is unknown.
    """
    return written(path, schema, FORMATS[ending(path)].write, within)
