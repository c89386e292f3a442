"""Reads CSV and gzipped CSV in one pass, block by block; every error names the row or the line."""

from __future__ import annotations

import codecs
import csv
import os
import re
import stat
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal, cast

import numpy as np

from hdiforest._tables.read import (
    Packing,
    TableError,
    TableReader,
    TextForm,
    as_utf_8,
    not_numbers,
    unpacked,
)
from hdiforest._utils.optional import need

MAX_ROW_BYTES = 1 << 26


_QUOTE, _MASK = np.frombuffer(b'"x', np.uint8)


class RowError(ValueError):
    """Rows that cannot be separated, or that a reader would skip."""


class CsvRows:
    """The rows of a CSV, read once from the start to the end.

    Parameters
    ----------
    stream : binary file
        Need not be seekable. A byte order mark of UTF-8 is left out.
    sep : str, default=","
        A character of ASCII between cells.

    Attributes
    ----------
    line : int
        Line of the file, counted from 1, at which the last header or block begins.
    """

    def __init__(self, stream: IO[bytes], sep: str = ",") -> None:
        self._stream = stream
        self._quotes = _Quotes(sep.encode())
        # Begins at a row.
        self._ahead = stream.read(len(codecs.BOM_UTF8)).removeprefix(codecs.BOM_UTF8)
        self._ended = False
        self.line = 1
        self._next_line = 1

    def header(self) -> bytes:
        """Return the first row that is not blank, empty if there is none."""
        while row := self._first_row():
            if row.strip():
                return row
        return b""

    def blocks(self, n_bytes: int, *, empty_lines: bool) -> Iterator[bytes]:
        """Yield whole rows, `n_bytes` of them or the one row that is longer.

        Parameters
        ----------
        n_bytes : int
        empty_lines : bool
            Whether an empty line is a row. If not, those at the end of the file are left out.

        Raises
        ------
        RowError
            If there is an empty line that is no row before other rows, if a quote is not closed, or
            a row is longer than `MAX_ROW_BYTES`.
        """
        first_empty = None
        while block := self._next_block(n_bytes):
            if not empty_lines:
                row = self._quotes.first_empty(block) if first_empty is None else 0
                if row is not None:
                    first_empty = first_empty or self.line_of(block, row)
                    block, after = self._quotes.split(block, row)
                    if after.strip(b"\r\n"):
                        raise RowError(f"line {first_empty} is empty; remove it or fill it")
            if block:
                yield block

    def line_of(self, block: bytes, row: int) -> int:
        """Return the line of the file on which a row of the last block begins."""
        return self.line + _n_lines(self._quotes.split(block, row)[0])

    def _first_row(self) -> bytes:
        n_bytes = 1 << 16
        while True:
            self._read_ahead(n_bytes)
            rows = self._quotes.masked(self._ahead).splitlines(keepends=True)
            if len(rows) > 1 or self._ended:
                return self._taken(len(rows[0]) if rows else 0)
            n_bytes = self._more_than(n_bytes)

    def _next_block(self, n_bytes: int) -> bytes:
        while True:
            self._read_ahead(n_bytes)
            rows = self._quotes.masked(self._ahead)
            # The last byte might be the first half of \r\n.
            end = 1 + max(rows.rfind(b"\n"), rows.rfind(b"\r", 0, len(rows) - 1))
            if end > 0 or self._ended:
                return self._taken(len(rows) if self._ended else end)
            n_bytes = self._more_than(n_bytes)

    def _read_ahead(self, n_bytes: int) -> None:
        parts, n_missing = [self._ahead], n_bytes - len(self._ahead)
        while n_missing > 0 and not self._ended:
            part = self._stream.read(n_missing)
            parts.append(part)
            n_missing -= len(part)
            self._ended = not part
        self._ahead = b"".join(parts)
        if self._ended:
            for quoted in self._quotes.quoted.finditer(self._ahead):
                if not quoted[1]:
                    line = self._next_line + _n_lines(self._ahead[: quoted.start()])
                    raise RowError(f"the quote opened in line {line} is not closed")

    def _more_than(self, n_bytes: int) -> int:
        if n_bytes >= MAX_ROW_BYTES:
            raise RowError(
                f"the row in line {self._next_line} is longer than {MAX_ROW_BYTES >> 20} MiB; is a "
                "quote not closed?"
            )
        return 2 * n_bytes

    def _taken(self, n_bytes: int) -> bytes:
        block, self._ahead = self._ahead[:n_bytes], self._ahead[n_bytes:]
        self.line = self._next_line
        self._next_line += _n_lines(block)
        return block


class _Quotes:
    """Finds the line ends that end rows."""

    def __init__(self, sep: bytes) -> None:
        between = re.escape(sep) + rb"\r\n"
        # A quoted cell; as for pyarrow, quotes count only where a cell begins.
        self.quoted = re.compile(rb"(?<![^" + between + rb'])"[^"]*(?:""[^"]*)*("?)')
        self._before_cells = np.frombuffer(sep + b'\r\n"', np.uint8)

    def masked(self, block: bytes) -> bytes:
        """Return the block with quoted cells masked, so that every line end ends a row."""
        if b'"' not in block:
            return block
        characters = np.frombuffer(block, np.uint8)
        quotes = characters == _QUOTE
        # Every other quote opens a cell, or is the second of a pair within one.
        quoted = np.cumsum(quotes, dtype=np.uint8) & 1 == 1
        before = np.append(self._before_cells[:1], characters)[np.flatnonzero(quotes & quoted)]
        if np.isin(before, self._before_cells).all():
            return np.where(quoted, _MASK, characters).tobytes()
        # Quotes within a cell that is not quoted have no meaning.
        return self.quoted.sub(lambda cell: b"x" * len(cell[0]), block)

    def first_empty(self, block: bytes) -> int | None:
        """Return the number of the first empty row."""
        if block[:1] not in b"\r\n" and not any(
            ends in block for ends in (b"\n\n", b"\n\r", b"\r\r")
        ):
            return None
        rows = self.masked(block).splitlines()
        return rows.index(b"") if b"" in rows else None

    def split(self, block: bytes, row: int) -> tuple[bytes, bytes]:
        """Return the rows before a row, and the others."""
        rows = self.masked(block).splitlines(keepends=True)
        n_bytes = sum(map(len, rows[:row]))
        return block[:n_bytes], block[n_bytes:]


def _n_lines(block: bytes) -> int:
    return block.count(b"\n") + block.count(b"\r") - block.count(b"\r\n")


Kind = Literal["number", "text"]


def _number(decimal: str) -> str:
    point = re.escape(decimal)
    return rf"^\s*[+-]?(\d+{point}?\d*|{point}\d+)([eE][+-]?\d+)?\s*$"


def kind_of(
    text: Any, as_numbers: Callable[[Any], Any], decimal: str
) -> Literal["number", "text", "mixed"] | None:
    """Return what the cells of a column are; None if all are missing.

    Columns of the words true and false alone are text, and those with numbers in more than half of
    their distinct cells, but not in all, are mixed.

    Parameters
    ----------
    text : pyarrow.Array
        Missing cells are null.
    as_numbers : callable
        Returns numbers, or raises pyarrow.ArrowInvalid.
    decimal : str
        Sign before the decimals of a number.
    """
    pa, pc = need("pyarrow"), need("pyarrow.compute")
    cells = pc.unique(text.drop_null())
    if len(cells) == 0:
        return None
    if pc.all(pc.match_substring_regex(cells, r"^(?i:\s*(true|false)\s*)$")).as_py():
        return "text"
    try:
        as_numbers(cells)
    except pa.ArrowInvalid:
        n_numbers = pc.sum(pc.match_substring_regex(cells, _number(decimal))).as_py()
        return "mixed" if 2 * n_numbers > len(cells) else "text"
    return "number"


def odd_one(text: Any, decimal: str) -> tuple[int, str]:
    """Return position and content of the first cell of a mixed column that is no number."""
    pc = need("pyarrow.compute")
    row = pc.match_substring_regex(text, _number(decimal)).index(False).as_py()
    return row, text[row].as_py()


_BLOCK_BYTES = 1 << 20


_BLOCK_ROWS = 64  # at least, if rows are as long as the header: each column has a fixed cost


_AS_UTF_8 = "save it as UTF-8, or name its encoding by --encoding"


# What pyarrow and pandas read as missing.
_MISSING = [
    *["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"],
    *["<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"],
]


class CsvReader(TableReader):
    """A CSV whose header has been read; pipes will do.

    Parameters
    ----------
    path : Path
    packing : {"none", "gzip", "zstd"}, default="none"
    sep : str, default=","
        Character between cells, if `form` does not say it.
    stream : binary file, optional
        To be read in place of the file at `path`, which is its name in errors.
    form : TextForm, optional
    """

    is_text = True

    def __init__(
        self,
        path: Path,
        *,
        packing: Packing = "none",
        sep: str = ",",
        stream: IO[bytes] | None = None,
        form: TextForm | None = None,
    ) -> None:
        self.path = path
        form = TextForm() if form is None else form
        self.sep = form.sep or sep
        self._decimal = form.decimal
        self._is_utf_8 = codecs.lookup(form.encoding).name == "utf-8"
        self.n_rows = None
        # Not buffered, so that signals are handled between two reads of a pipe.
        self._file = stream or cast("IO[bytes]", open(path, "rb", buffering=0))  # noqa: SIM115
        self._spelled: set[str] = set()  # number columns with cells such as " 1" or true
        self._n_before = 0  # rows of the blocks before
        try:
            with self._naming_the_file():
                self._stream = as_utf_8(unpacked(self._file, packing), form.encoding)
                self._rows = CsvRows(self._stream, self.sep)
                header = self._rows.header()
                self.names = self._names(header.rstrip(b"\r\n"))
        except BaseException:
            self.close()
            raise
        self._block_bytes = max(_BLOCK_BYTES, _BLOCK_ROWS * len(header))

    def fields(self, kept: list[str]) -> list[Any]:
        """Return the pyarrow fields with which `batches` yields the kept columns."""
        pa = need("pyarrow")
        return [pa.field(name, pa.string()) for name in kept]

    def close(self) -> None:
        """Close the file."""
        if hasattr(self, "_stream"):
            self._stream.close()
        self._file.close()

    def share_read(self) -> float | None:
        """Return which share of the file was read, by bytes; None if that is not known."""
        try:
            status = os.fstat(self._file.fileno())
        except (AttributeError, OSError):
            return None
        is_file = stat.S_ISREG(status.st_mode) and status.st_size > 0
        return self._file.tell() / status.st_size if is_file else None

    def _names(self, header: bytes) -> list[str]:
        if not header.strip():
            raise TableError(f"{self.path} is empty")
        if header.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise TableError(f"{self.path} is encoded as UTF-16; {_AS_UTF_8}")
        try:
            # pyarrow's time for a header grows with the square of its columns.
            return next(csv.reader([header.decode()], delimiter=self.sep))
        except UnicodeDecodeError:
            raise TableError(f"the header of {self.path} is not UTF-8; {_AS_UTF_8}") from None
        except csv.Error as error:
            raise TableError(f"cannot read the header of {self.path}: {error}") from None

    def _other_types(self, columns: list[str]) -> dict[str, Any]:  # noqa: ARG002 (a CSV has none)
        return {}

    def _read(
        self,
        number_columns: list[str],
        kept: list[str],
        batch_rows: int,  # noqa: ARG002 (blocks are cut by bytes)
    ) -> Iterator[Any]:
        with self._naming_the_file():
            for block in self._rows.blocks(self._block_bytes, empty_lines=len(self.names) == 1):
                table = self._table(block, number_columns, kept)
                self._n_before += table.num_rows
                yield table

    def without_missing(self, column: Any) -> Any:
        """Return text with null in place of what means missing."""
        return need("pyarrow.compute").if_else(_is_missing(column), None, column)

    def _read_typed(
        self, columns: list[str], number_columns: list[str], text_columns: Collection[str]
    ) -> Iterator[Any]:
        pa = need("pyarrow")
        kinds: dict[str, Kind] = dict.fromkeys(text_columns, "text")
        kinds |= dict.fromkeys(number_columns, "number")
        with self._naming_the_file():
            for block in self._rows.blocks(self._block_bytes, empty_lines=len(self.names) == 1):
                unknown = [name for name in columns if name not in kinds]
                if unknown:
                    kinds |= self._kinds(block, unknown)
                numbers = [name for name in columns if kinds.get(name) == "number"]
                table = self._table(block, numbers, [n for n in columns if n not in numbers])
                self._n_before += table.num_rows
                yield pa.table({name: self._typed(table, name, kinds) for name in columns})

    def _kinds(self, block: bytes, columns: list[str]) -> dict[str, Kind]:
        """Return the kinds of those columns that have cells in the block."""
        table = self._table(block, [], columns)
        found: dict[str, Kind] = {}
        mixed = {}
        for name in columns:
            text = self.without_missing(table[name].combine_chunks())
            kind = kind_of(text, self._as_numbers, self._decimal)
            if kind == "mixed":
                row, cell = odd_one(text, self._decimal)
                mixed[name] = f"holds '{_shown(cell.encode())}' in {self._place(block, row)}"
            elif kind is not None:
                found[name] = kind
        if mixed:
            raise TableError(f"{self.path}: {not_numbers(mixed)}", mixed)
        return found

    def _typed(self, table: Any, name: str, kinds: dict[str, Kind]) -> Any:
        if name not in kinds:
            return need("pyarrow").nulls(table.num_rows)
        return table[name] if kinds[name] == "number" else self.without_missing(table[name])

    def _table(self, block: bytes, number_columns: list[str], kept: list[str]) -> Any:
        pa = need("pyarrow")
        try:
            columns = self._parsed(block, number_columns, kept, self._spelled)
        except pa.ArrowInvalid:
            self._require_even(block)
            self._require_readable(block, number_columns, kept)
            columns = self._parsed(block, number_columns, kept, self._spelled)
        arrays = [
            self._as_numbers(columns[name])
            if pa.types.is_string(columns[name].type)
            else columns[name]
            for name in number_columns
        ]
        names = [*number_columns, *kept]
        return pa.Table.from_arrays([*arrays, *(columns[name] for name in kept)], names)

    def _parsed(
        self,
        block: bytes,
        number_columns: list[str],
        kept: list[str],
        as_text: set[str],
        **how: Any,
    ) -> dict[str, Any]:
        """Return columns: numbers, or text if they are kept or `as_text`."""
        pa, pa_csv = need("pyarrow"), need("pyarrow.csv")
        types = {
            name: pa.string() if name in as_text else pa.float64() for name in number_columns
        } | dict.fromkeys(kept, pa.string())
        convert = pa_csv.ConvertOptions(
            column_types=types, include_columns=list(types), null_values=_MISSING,
            decimal_point=self._decimal, **how,
        )  # fmt: skip
        table = self._arrow_table(block, convert)
        return dict(zip(types, table.columns, strict=True))

    def _arrow_table(self, block: bytes, convert: Any, **how: Any) -> Any:
        pa, pa_csv = need("pyarrow"), need("pyarrow.csv")
        # The whole block at once. Only the serial reader counts rows.
        read = pa_csv.ReadOptions(
            column_names=self.names, use_threads=False, block_size=len(block) + 1
        )
        parse = pa_csv.ParseOptions(
            newlines_in_values=True, ignore_empty_lines=False, delimiter=self.sep, **how
        )
        return pa_csv.read_csv(pa.BufferReader(block), read, parse, convert)

    def _require_even(self, block: bytes) -> None:
        """Raise RowError for a row with more or fewer cells than the header."""
        pa, pa_csv = need("pyarrow"), need("pyarrow.csv")
        uneven: list[Any] = []

        def refuse(row: Any) -> str:
            uneven.append(row)  # pyarrow discards exceptions raised here
            return "error"

        # pyarrow cannot hand over a row that is not UTF-8. As Latin-1 every row has its cells.
        text = block.decode("latin-1").encode()
        one_column = pa_csv.ConvertOptions(
            column_types={self.names[0]: pa.string()}, include_columns=self.names[:1]
        )
        try:
            self._arrow_table(text, one_column, invalid_row_handler=refuse)
        except pa.ArrowInvalid:
            if not uneven:
                raise
            line = self._rows.line_of(block, uneven[0].number - 1)
            n_cells = uneven[0].actual_columns
            raise RowError(
                f"line {line} has {n_cells} cell{'s' * (n_cells != 1)}, but the header has "
                f"{len(self.names)}"
            ) from None

    def _require_readable(self, block: bytes, number_columns: list[str], kept: list[str]) -> None:
        """Raise TableError for all columns of the block that hold no numbers, or no UTF-8.

        Columns of numbers in words become `_spelled`.
        """
        pa = need("pyarrow")
        columns = self._parsed(block, number_columns, kept, set(number_columns), check_utf8=False)
        bad = {}
        for name in number_columns:
            text = columns[name]
            if _fails(self._plain_numbers, text):
                self._spelled.add(name)
            if (row := _first_failure(self._as_numbers, text)) is not None:
                cell = _shown(text.cast(pa.binary())[row].as_py())
                bad[name] = f"holds '{cell}' in {self._place(block, row)}"
        if bad:
            raise TableError(f"{self.path}: {not_numbers(bad)}", bad)
        for name in kept:
            text = columns[name].cast(pa.binary())
            if (row := _first_failure(lambda text: text.cast(pa.string()), text)) is not None:
                raise RowError(
                    f"column '{name}' is not UTF-8 in {self._place(block, row)}; {_AS_UTF_8}"
                )

    def _place(self, block: bytes, row: int) -> str:
        """Say which row of the table a row of a block is; lines count the header too."""
        return f"row {self._n_before + row + 1} (line {self._rows.line_of(block, row)})"

    def _plain_numbers(self, text: Any) -> Any:
        """Return text as float64, without regard to spaces and words."""
        pc = need("pyarrow.compute")
        present = pc.if_else(_is_missing(text), None, text)
        if self._decimal != ".":
            # A point would be read as the decimal sign.
            present = pc.replace_substring(present, ".", "?")
            present = pc.replace_substring(present, self._decimal, ".")
        return present.cast("double")

    def _as_numbers(self, text: Any) -> Any:
        """Return text as float64: spaces do not count, true is 1 and false is 0."""
        pc = need("pyarrow.compute")
        bare = pc.ascii_trim_whitespace(text)
        lower = pc.ascii_lower(bare)
        for word, digit in (("true", "1"), ("false", "0")):
            bare = pc.if_else(pc.equal(lower, word), digit, bare)
        return self._plain_numbers(bare)

    @contextmanager
    def _naming_the_file(self) -> Iterator[None]:
        try:
            with super()._naming_the_file():
                yield
        except RowError as error:
            raise TableError(f"{self.path}: {error}") from None


def _is_missing(text: Any) -> Any:
    pa, pc = need("pyarrow"), need("pyarrow.compute")
    return pc.is_in(text, value_set=pa.array(_MISSING))


def _fails(convert: Any, text: Any) -> bool:
    try:
        convert(text)
    except need("pyarrow").ArrowInvalid:
        return True
    return False


def _first_failure(convert: Any, text: Any) -> int | None:
    """Return the first row that cannot be converted, by bisection over the heads of the column."""
    heads = range(1, len(text) + 1)
    row = bisect_left(heads, True, key=lambda n: _fails(convert, text.slice(0, n)))
    return None if row == len(text) else row


def _shown(cell: bytes) -> str:
    text = cell.decode(errors="replace")
    return text if len(text) <= 60 else f"{text[:57]}..."
