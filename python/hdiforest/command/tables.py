"""Tables on disk: opened by the endings of their names, and made into matrices of numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdiforest.command.csv_reader import CsvReader
from hdiforest.command.extras import need
from hdiforest.command.parquet_reader import ParquetReader
from hdiforest.command.table_reader import BATCH_ROWS, ENDINGS, TableError, TableReader, ending
from hdiforest.command.table_writer import write_table

__all__ = [
    "BATCH_ROWS",
    "ENDINGS",
    "TableError",
    "TableReader",
    "checked_features",
    "ending",
    "numbers",
    "open_table",
    "write_table",
]


def open_table(path: Path) -> TableReader:
    """Open a table by the ending of its name and read its header.

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
    known = ending(path)
    if known == ".parquet":
        return ParquetReader(path)
    return CsvReader(path, zipped=known == ".csv.gz")


def numbers(batch: Any, n_columns: int) -> NDArray[np.float64]:
    """Return the first columns of a pyarrow Table as a C-ordered (n, n_columns) matrix.

    Null is NaN.
    """
    float64 = need("pyarrow").float64()
    matrix = np.empty((batch.num_rows, n_columns))
    for j in range(n_columns):
        matrix[:, j] = batch.column(j).cast(float64, safe=False).to_numpy()
    return matrix


def checked_features(
    X: NDArray[np.float64], columns: list[str], path: Path, first_row: int = 0
) -> NDArray[np.float64]:
    """Return X, or raise TableError if a value is infinite or becomes so in the trees' float32."""
    bad = np.abs(X) > np.finfo(np.float32).max
    if bad.any():
        i, j = np.unravel_index(int(np.argmax(bad)), X.shape)
        raise TableError(
            f"{path}: column '{columns[j]}' must hold numbers that fit into float32, but holds "
            f"{X[i, j]:g} in row {first_row + i + 1}",
            [columns[j]],
        )
    return X
