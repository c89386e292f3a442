"""Tables on disk: the table of their formats, and matrices of the numbers in them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdiforest._tables.columns import (
    FLOAT32_MAX,
    MAX_EXACT,
    are_rounded,
    as_float64,
    warn_of_rounded,
)
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


def numbers(batch: Any, n_columns: int) -> NDArray[np.float64]:
    """Return the first columns of a pyarrow Table as a C-ordered (n, n_columns) matrix.

    Null is NaN.
    """
    matrix = np.empty((batch.num_rows, n_columns))
    for j in range(n_columns):
        matrix[:, j] = as_float64(batch.column(j).combine_chunks())
    return matrix


def checked_features(
    X: NDArray[np.float64], columns: list[str], path: Path, first_row: int = 0
) -> NDArray[np.float64]:
    """Return X, or raise TableError if a value is infinite or becomes so in the trees' float32.

    Warns if whole numbers beyond 2^24 are rounded to float32.
    """
    magnitude = np.abs(X)
    largest = np.fmax.reduce(magnitude, axis=0, initial=0.0)
    if (largest > FLOAT32_MAX).any():
        bad = magnitude > FLOAT32_MAX
        i, j = np.unravel_index(int(np.argmax(bad)), X.shape)
        raise TableError(
            f"{path}: column '{columns[j]}' must hold numbers that fit into float32, but holds "
            f"{X[i, j]:g} in row {first_row + i + 1}",
            [columns[j]],
        )
    beyond = np.flatnonzero(largest > MAX_EXACT)
    warn_of_rounded([columns[j] for j in beyond if are_rounded(X[:, j])])
    return X
