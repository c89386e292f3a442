"""Tables on disk: CSV, gzipped CSV and Parquet, read in batches and written whole or not at all."""

from __future__ import annotations

import csv
import gzip
import io
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from hdiforest.atomic import replacing
from hdiforest.extras import need

__all__ = [
    "TableError",
    "TableReader",
    "checked_features",
    "ending",
    "numbers",
    "open_table",
    "write_table",
]

ENDINGS = (".csv", ".csv.gz", ".parquet")
BATCH_ROWS = 65536


class TableError(ValueError):
    """A table that cannot be used; the message names the file and what is wrong with it.

    Attributes
    ----------
    column : str or None
        The column at fault, if there is one.
    """

    def __init__(self, message: str, column: str | None = None) -> None:
        super().__init__(message)
        self.column = column


def ending(path: Path) -> str:
    """Return which of `ENDINGS` the path has, or raise TableError."""
    for known in ENDINGS:
        if path.name.lower().endswith(known):
            return known
    raise TableError(f"{path}: a table's name must end in .csv, .csv.gz or .parquet")


class TableReader(ABC):
    """A table whose header has been read.

    Attributes
    ----------
    path : Path
    names : list of str
        All columns, in order.
    n_rows : int or None
        None if only reading the whole file would tell.
    """

    path: Path
    names: list[str]
    n_rows: int | None

    def require(self, columns: Iterable[str]) -> None:
        """Raise TableError unless each column is there, once."""
        counts = Counter(self.names)
        for name in columns:
            if name not in counts:
                shown = ", ".join(self.names[:12]) + (", ..." if len(self.names) > 12 else "")
                raise TableError(f"{self.path} has no column '{name}'; it has {shown}", name)
            if counts[name] > 1:
                raise TableError(f"{self.path} has {counts[name]} columns '{name}'", name)

    def batches(
        self, number_columns: list[str], kept: list[str], batch_rows: int = BATCH_ROWS
    ) -> Iterator[Any]:
        """Yield pyarrow Tables of exactly `batch_rows` rows, the last one of what is left.

        Parameters
        ----------
        number_columns : list of str
            Columns that must hold numbers; `numbers` makes a matrix of them.
        kept : list of str
            Columns to pass on: of a CSV as text, of Parquet in their own type.

        Raises
        ------
        TableError
            If a column is missing or holds something else, or the file is damaged.
        """
        pa = need("pyarrow")
        self.require([*number_columns, *kept])
        held: list[Any] = []
        n_held = 0
        for batch in self._read(number_columns, kept, batch_rows):
            held.append(batch)
            n_held += batch.num_rows
            while n_held >= batch_rows:
                table = pa.Table.from_batches(held)
                yield table.slice(0, batch_rows)
                held = table.slice(batch_rows).to_batches()
                n_held -= batch_rows
        if n_held > 0:
            yield pa.Table.from_batches(held)

    @abstractmethod
    def fields(self, kept: list[str], number_columns: list[str]) -> list[Any]:
        """Return the pyarrow fields with which `batches` yields the kept columns."""

    @abstractmethod
    def _read(self, number_columns: list[str], kept: list[str], batch_rows: int) -> Iterator[Any]:
        """Yield RecordBatches of any size."""


class _CsvReader(TableReader):
    def __init__(self, path: Path, *, zipped: bool) -> None:
        self.path = path
        self.n_rows = None
        self._compression = "gzip" if zipped else None
        self.names = []
        with self._blaming():
            self.names = self._open().schema.names

    def _open(self, **convert: Any) -> Any:
        pa, pa_csv = need("pyarrow"), need("pyarrow.csv")
        return pa_csv.open_csv(
            pa.input_stream(str(self.path), compression=self._compression),
            # Only the serial reader knows the row of a cell that is no number.
            read_options=pa_csv.ReadOptions(use_threads=False),
            parse_options=pa_csv.ParseOptions(newlines_in_values=True),
            convert_options=pa_csv.ConvertOptions(**convert),
        )

    def fields(self, kept: list[str], number_columns: list[str]) -> list[Any]:
        pa = need("pyarrow")
        text, number = pa.string(), pa.float64()
        return [pa.field(name, number if name in number_columns else text) for name in kept]

    def _read(
        self,
        number_columns: list[str],
        kept: list[str],
        batch_rows: int,  # noqa: ARG002 (pyarrow cuts a CSV by bytes)
    ) -> Iterator[Any]:
        pa = need("pyarrow")
        types = {field.name: field.type for field in self.fields(kept, number_columns)}
        types |= dict.fromkeys(number_columns, pa.float64())
        with self._blaming():
            yield from self._open(column_types=types, include_columns=list(types))

    @contextmanager
    def _blaming(self) -> Iterator[None]:
        pa = need("pyarrow")
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            raise self._explained(error) from None

    def _explained(self, error: Exception) -> TableError:
        message = str(error)
        if message == "Empty CSV file":
            return TableError(f"{self.path} is empty")
        found = re.search(
            r"CSV column #(\d+): (?:Row #(\d+): )?.*invalid value '(.*)'", message, re.DOTALL
        )
        if found is None:
            return TableError(f"cannot read {self.path}: {message}")
        column = self.names[int(found[1])]
        line = f" in line {found[2]}" if found[2] else ""
        return TableError(
            f"{self.path}: column '{column}' must hold numbers, but holds '{found[3]}'{line}",
            column,
        )


class _ParquetReader(TableReader):
    def __init__(self, path: Path) -> None:
        self.path = path
        with self._blaming():
            self._file = need("pyarrow.parquet").ParquetFile(path)
        self._schema = self._file.schema_arrow
        self.names = self._schema.names
        self.n_rows = self._file.metadata.num_rows

    def fields(self, kept: list[str], number_columns: list[str]) -> list[Any]:  # noqa: ARG002
        return [self._schema.field(name) for name in kept]

    def _read(self, number_columns: list[str], kept: list[str], batch_rows: int) -> Iterator[Any]:
        types = need("pyarrow").types
        for name in number_columns:
            kind = self._schema.field(name).type
            is_number = types.is_integer, types.is_floating, types.is_boolean, types.is_decimal
            if not any(is_one(kind) for is_one in (*is_number, types.is_null)):
                raise TableError(
                    f"{self.path}: column '{name}' must hold numbers, but its type is {kind}", name
                )
        columns = list(dict.fromkeys([*number_columns, *kept]))
        with self._blaming():
            for batch in self._file.iter_batches(batch_rows, columns=columns):
                yield batch.select(columns)

    @contextmanager
    def _blaming(self) -> Iterator[None]:
        pa = need("pyarrow")
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            raise TableError(f"cannot read {self.path}: {error}") from None


def open_table(path: Path) -> TableReader:
    """Open a table by the ending of its name and read its header.

    Raises
    ------
    OSError
        If the file cannot be opened.
    TableError
        If its ending is unknown or it is not what the ending says.
    """
    known = ending(path)
    with path.open("rb"):
        pass  # the system's own message is clearer than pyarrow's
    if known == ".parquet":
        return _ParquetReader(path)
    return _CsvReader(path, zipped=known == ".csv.gz")


def numbers(batch: Any, columns: list[str]) -> NDArray[np.float64]:
    """Return columns of a pyarrow Table as a C-ordered (n, len(columns)) matrix; null is NaN."""
    float64 = need("pyarrow").float64()
    matrix = np.empty((batch.num_rows, len(columns)))
    for j, name in enumerate(columns):
        matrix[:, j] = batch.column(name).cast(float64, safe=False).to_numpy()
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
            columns[j],
        )
    return X


@contextmanager
def write_table(path: Path, schema: Any) -> Iterator[Callable[[Any], None]]:
    """Write a table batch by batch; it appears under its name when the block ends without error.

    Parameters
    ----------
    path : Path
        Its ending says the format. Replaced if it exists.
    schema : pyarrow.Schema

    Yields
    ------
    callable
        Takes a pyarrow Table of that schema.

    Raises
    ------
    OSError
        If the file cannot be written. Then, and if the block raises, nothing is left behind.
    """
    # Readers raise TableError, so any OSError in the block is the writer's.
    with _naming(path), replacing(path) as partial, partial.open("xb") as file:
        writer, *layers = _WRITERS[ending(path)](file, schema)
        try:
            yield writer.write_table
            for layer in (writer, *layers):
                layer.close()
        except BaseException:
            # Otherwise they would write their ends when they are collected, to a closed file.
            for layer in (writer, *layers):
                with suppress(Exception):
                    layer.close()
            raise


def _parquet_writer(file: IO[bytes], schema: Any) -> tuple[Any, ...]:
    return (need("pyarrow.parquet").ParquetWriter(file, schema, compression="zstd"),)


def _csv_writer(file: IO[bytes] | gzip.GzipFile, schema: Any) -> tuple[Any, ...]:
    pa_csv = need("pyarrow.csv")
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(schema.names)  # pyarrow quotes every name
    file.write(header.getvalue().encode())
    options = pa_csv.WriteOptions(include_header=False)
    return (pa_csv.CSVWriter(file, schema, write_options=options),)


def _gzip_writer(file: IO[bytes], schema: Any) -> tuple[Any, ...]:
    # No time and no name in the header: equal tables are equal files.
    zipped = gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0)
    return (*_csv_writer(zipped, schema), zipped)


# Each returns what takes the batches and what to close after it, from the inside out.
_WRITERS = {".csv": _csv_writer, ".csv.gz": _gzip_writer, ".parquet": _parquet_writer}


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    pa = need("pyarrow")
    try:
        yield
    except pa.ArrowException as error:
        raise TableError(f"cannot write {path}: {error}") from None
    except OSError as error:
        raise OSError(error.errno, f"cannot write {path}: {error.strerror or error}") from None
