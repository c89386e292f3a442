"""Reads CSV block by block with `pyarrow.csv`; every error names the file and the row or column.

`pyarrow.csv.open_csv` would be shorter, and as flat in memory. But it reads ahead in a thread, and
while a pipe has no data, neither a signal nor an error ends the process. It also takes the rest of
the file for a cell if a quote is not closed, skips empty lines or makes rows of them, refuses rows
longer than a block, and stops at ``true`` or `` NA`` in a column of numbers. So blocks are read
here and pyarrow parses each; a guard behind it, never an even row, tells where its last row ends.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

from hdiforest._tables.columns import fails, first_failure
from hdiforest._tables.forms import shown
from hdiforest._tables.read import (
    TableError,
    TableReader,
    Wanted,
    not_numbers,
    require_text,
    unpacked,
)
from hdiforest._utils.optional import need, pa, pc

MAX_ROW_BYTES = 1 << 26

_BLOCK_BYTES = 1 << 20
_BLOCK_ROWS = 64  # at least, if rows are as long as the header: each column has a fixed cost
_MAX_SEPARATORS = 20  # in a cell of many lines that each have as many as a row
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_AS_TEXT = "--quote none reads quotes as text"
_LINE_OF_EXCEL = re.compile(rb"""\s*"?sep=(.)"?[,;\t]*\s*""", re.IGNORECASE)
_TITLE_ROWS = 20  # at most in front of a header that is looked for
# What pyarrow and pandas read as missing.
_MISSING = [
    *["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"],
    *["<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"],
]


class CsvReader(TableReader):
    """A CSV whose header has been read; pipes will do."""

    is_text = True

    def _open(self, stream: Any) -> None:
        self.sep, self._decimal = self._form.sep or self._sep, self._form.decimal
        # Not buffered, so that signals are handled between two reads of a pipe.
        self._file = stream or open(self.path, "rb", buffering=0)  # noqa: SIM115
        self.callback(self._file.close)
        self._ahead = b""  # bytes that were read, from the beginning of a row on
        self._block = b""  # that was parsed last
        self._n_rows, self._n_lines = 0, 0  # in front of the block
        self._empty_line: int | None = None
        with self._naming_the_file():
            self._stream = unpacked(self._file, self._packing)
            if codecs.lookup(self._form.encoding).name != "utf-8":
                self._stream = codecs.EncodedFile(self._stream, "utf-8", self._form.encoding)
            self.callback(self._stream.close)
            self._header = self._read_header()
        self._schema = pa.schema([(name, pa.string()) for name in self._header])
        # As for pyarrow, quotes count only where a cell begins.
        begin = rf"(?<![^{re.escape(self.sep)}\r\n])"
        quoted = rf'{begin}"[^"]*(?:""[^"]*)*"?' if self._form.has_quotes else "(?!)"
        self._quoted = re.compile(quoted.encode())
        point = re.escape(self._decimal)
        self._number = rf"^\s*[+-]?(\d+{point}?\d*|{point}\d+)([eE][+-]?\d+)?\s*$"
        # Never an even row: neither as a row of its own nor behind an open quote, which it closes.
        separators = self.sep * len(self._header)
        self._guard = f'{separators}"{separators}'

    def hint(self, missing: Collection[str] = ()) -> str:
        for sep, word in _SEPARATORS.items():
            if len(self.names) == 1 and sep in self.names[0]:
                return f" (its columns seem to be separated by {word}: --sep {sep!r} reads them)"
        rows = csv.reader(io.StringIO(self._ahead.decode(errors="replace")), delimiter=self.sep)
        with suppress(csv.Error):
            for row in islice(rows, _TITLE_ROWS) if missing else ():
                # Cells of a column may be names of others.
                if {*missing} <= {*row} and ("" in self._header or len(row) > len(self._header)):
                    line = self._n_lines + rows.line_num
                    where = f"in line {line}, not in its first line"
                    return f" (its header seems to be {where}: remove the lines above it)"
        return ""

    def share_read(self) -> float | None:
        """Return which share of the file was read, by bytes; None if that is not known."""
        with suppress(AttributeError, OSError, ZeroDivisionError):
            status = os.fstat(self._file.fileno())
            return self._file.tell() / status.st_size if stat.S_ISREG(status.st_mode) else None
        return None

    def without_missing(self, column: Any, categories: Iterable[Any] = ()) -> Any:
        """Return text with null in place of what means missing, unless it is a category."""
        words = {*_MISSING, *self._form.missing}.difference(categories)
        return pc.if_else(pc.is_in(column, value_set=pa.array(words)), None, column)

    def typed(self, name: str, column: Any) -> Any:  # noqa: ARG002
        return self.as_numbers(column)

    def _read_header(self) -> list[str]:
        """Return the cells of the first row that is not blank."""
        n_bytes = 1 << 16
        while True:
            goes_on = self._read_ahead(n_bytes)
            self._ahead = self._ahead.removeprefix(codecs.BOM_UTF8)
            require_text(self.path, self._ahead)
            # As Latin-1 a character is a byte. pyarrow's time for a header grows with the square of
            # its columns.
            text = io.StringIO(self._ahead.decode("latin-1"), newline="")
            try:
                quoting: Any = csv.QUOTE_MINIMAL if self._form.has_quotes else csv.QUOTE_NONE
                rows = csv.reader(text, delimiter=self.sep, quoting=quoting)
                row = next((row for row in rows if len(row) > 1 or any(map(str.strip, row))), [])
            except csv.Error as error:
                raise TableError(f"cannot read the header of {self.path}: {error}") from None
            n_header = text.tell()
            if n_header < len(self._ahead) or not goes_on:
                break
            n_bytes = self._more_than(n_bytes)
        if not row:
            raise TableError(f"{self.path} is empty")
        header, self._ahead = self._ahead[:n_header], self._ahead[n_header:]
        if match := _LINE_OF_EXCEL.fullmatch(header):
            sep = match[1].decode("latin-1")
            what = f"the first line of {self.path} is 'sep={sep}', which is for Excel"
            raise TableError(f"{what}; remove it, and give --sep {sep!r}")
        if self._form.has_quotes and header.count(b'"') % 2:
            what = "the quote opened in the header is not closed"
            raise TableError(f"{self.path}: {what}; {_AS_TEXT}")
        self._require_utf_8(header)
        self._n_lines = _n_lines(header)
        self._block_bytes = max(_BLOCK_BYTES, _BLOCK_ROWS * n_header)
        return [cell.encode("latin-1").decode() for cell in row]

    def _require_utf_8(self, content: bytes) -> None:
        """Raise TableError if the next lines of the file are not UTF-8."""
        try:
            content.decode()
        except UnicodeDecodeError as error:
            line = self._n_lines + _n_lines(content[: error.start]) + 1
            raise TableError(
                f"{self.path}: line {line} is not UTF-8; save the file as UTF-8, or name its "
                "encoding by --encoding"
            ) from None

    def _read(self, wanted: Wanted, n_rows: int) -> Iterator[Any]:  # noqa: ARG002
        names = [name for name, as_number in wanted if as_number]
        for cells in self._blocks(names, [name for name, as_number in wanted if not as_number]):
            numbers = self._numbers({name: cells[name] for name in names})
            arrays = [numbers[n] if as_number else cells[n] for n, as_number in wanted]
            yield pa.Table.from_arrays(arrays, [name for name, _ in wanted])

    def _blocks(self, number_columns: list[str], texts: list[str]) -> Iterator[dict[str, Any]]:
        """Yield columns of whole rows: numbers, or text of which `_numbers` makes them."""
        goes_on, n_bytes = True, self._block_bytes
        while goes_on:
            goes_on = self._read_ahead(n_bytes)
            # The last byte might be the first half of \r\n.
            last = max(self._ahead.rfind(b"\n"), self._ahead.rfind(b"\r", 0, -1))
            end = last + 1 if goes_on else len(self._ahead)
            self._block, self._ahead = self._ahead[:end], self._ahead[end:]
            if self._block:
                columns, n_rows, rest = self._parse_block(number_columns, texts)
                if rest and not goes_on:
                    where = f"line {self._line(n_rows)}"
                    what = f"the quote opened in {where} is not closed"
                    raise TableError(f"{self.path}: {what}; {_AS_TEXT}")
                if n_rows > 0:
                    yield columns
                self._n_rows += n_rows
                self._n_lines += _n_lines(self._block) - _n_lines(rest)
                self._ahead = rest + self._ahead
            n_bytes = n_bytes if len(self._ahead) < n_bytes else self._more_than(n_bytes)

    def _read_ahead(self, n_bytes: int) -> bool:
        """Read until so many bytes are ahead; return whether there may be more."""
        parts, n_missing = [self._ahead], n_bytes - len(self._ahead)
        while n_missing > 0 and (part := self._stream.read(n_missing)):
            parts.append(part)
            n_missing -= len(part)
        self._ahead = b"".join(parts)
        return n_missing <= 0

    def _more_than(self, n_bytes: int) -> int:
        if n_bytes >= MAX_ROW_BYTES:
            row, most = f"the row in line {self._n_lines + 1}", f"{MAX_ROW_BYTES >> 20} MiB"
            what = f"{row} is longer than {most}; is a quote not closed? {_AS_TEXT}"
            raise TableError(f"{self.path}: {what}")
        return 2 * n_bytes

    def _parse_block(
        self, number_columns: list[str], texts: list[str]
    ) -> tuple[dict[str, Any], int, bytes]:
        """Return columns, the number of their rows, and what is no whole row yet."""
        self._require_utf_8(self._block)
        types = dict.fromkeys(number_columns, pa.float64()) | dict.fromkeys(texts, pa.string())
        try:
            table, uneven = self._parse(types)
        except pa.ArrowInvalid:  # of cells such as " NA" or true
            table, uneven = self._parse(dict.fromkeys(types, pa.string()))
        rest = uneven.pop().text.removesuffix(self._guard)
        n_rows, n_bytes = table.num_rows + len(uneven), len(self._block) - len(rest.encode())
        self._require_no_swallowed_rows(n_rows, n_bytes, number_columns)
        self._require_no_gap(n_rows + (rest != ""))
        for row in uneven[:1]:
            n_cells = f"{row.actual_columns} cell{'s' * (row.actual_columns != 1)}"
            what = f"has {n_cells}, but the header has {len(self._header)}"
            raise TableError(f"{self.path}: line {self._line(row.number - 1)} {what}")
        columns = dict(zip(types, table.columns, strict=True))
        return columns, table.num_rows, rest.encode()

    def _parse(self, types: dict[str, Any]) -> tuple[Any, list[Any]]:
        """Return a Table of the even rows of a block, and the others; the last one is the guard."""
        pa_csv = need("pyarrow.csv")
        uneven: list[Any] = []

        def skip(row: Any) -> str:
            uneven.append(row)
            return "skip"

        convert = pa_csv.ConvertOptions(column_types=types, include_columns=list(types))
        convert.decimal_point = self._decimal
        convert.null_values = [*_MISSING, *self._form.missing]
        parse = pa_csv.ParseOptions(delimiter=self.sep, newlines_in_values=True)
        parse.quote_char = '"' if self._form.has_quotes else False
        parse.ignore_empty_lines, parse.invalid_row_handler = len(self._header) > 1, skip
        end = b"" if self._block.endswith((b"\n", b"\r")) else b"\n"
        content = self._block + end + self._guard.encode()
        # The whole block at once. Only the serial reader counts rows.
        read = pa_csv.ReadOptions(column_names=self._header, use_threads=False)
        read.block_size = len(content) + 1
        return pa_csv.read_csv(pa.BufferReader(content), read, parse, convert), uneven

    def _require_no_gap(self, n_rows: int) -> None:
        """Raise TableError for an empty line before a row of the block, but in one column."""
        n_in_front, block = 0, self._block
        may_be = block[:1] in b"\r\n" or any(two in block for two in (b"\n\n", b"\n\r", b"\r\r"))
        if len(self._header) > 1 and self._empty_line is None and may_be:
            rows = self._quoted.sub(b"x", self._block).splitlines()
            if b"" in rows:
                n_in_front = rows.index(b"")
                self._empty_line = self._line(n_in_front)
        if self._empty_line is not None and n_rows > n_in_front:
            raise TableError(f"{self.path}: line {self._empty_line} is empty; remove it or fill it")

    def _require_no_swallowed_rows(self, n_rows: int, n_bytes: int, numbers: list[str]) -> None:
        """Raise TableError if a cell of the block's whole rows holds further rows.

        It does if each of its lines has the cells of a row, and text follows the quote that closes
        it, or the lines have numbers where they must, or are many: some lines may be meant.
        """
        block, n = self._block[:n_bytes], len(self._header)
        if n == 1 or _n_lines(block) <= n_rows:
            return
        newline = b"\n" if b"\n" in block else b"\r"
        block += newline
        places = [self._header.index(name) for name in numbers]
        for cell in self._quoted.finditer(block):
            if newline not in cell[0]:
                continue
            begin, end = block.rfind(newline, 0, cell.start()) + 1, cell.end()
            lines = block[begin : block.index(newline, end)].split(newline)
            rows = [line.decode().split(self.sep) for line in lines]
            if any(len(row) != n for row in rows):
                continue
            are_numbers = [re.match(self._number, row[j]) for row in rows for j in places]
            has_numbers = n > 2 and places and all(are_numbers)
            is_odd = block[end : end + 1] not in (b"\r", newline, self.sep.encode())
            if is_odd or has_numbers or (len(rows) - 1) * (n - 1) > _MAX_SEPARATORS:
                first = self._n_lines + block.count(newline, 0, begin) + 1
                where = f"line {first} is closed in line {first + len(rows) - 1}"
                what = f"the quote opened in {where}, and makes one cell of rows"
                raise TableError(f"{self.path}: {what}; {_AS_TEXT}")

    def _line(self, row: int) -> int:
        """Return the line of the file, counted from 1, on which a row of the block begins."""
        masked = self._quoted.sub(lambda cell: b"x" * len(cell[0]), self._block)
        n_bytes = sum(map(len, masked.splitlines(keepends=True)[:row]))
        return self._n_lines + _n_lines(self._block[:n_bytes]) + 1

    def _numbers(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Return columns as float64, or raise one TableError for all that hold something else."""
        numbers, bad = {}, {}
        for name, cells in columns.items():
            try:
                is_text = pa.types.is_string(cells.type)
                numbers[name] = self.as_numbers(cells) if is_text else cells
            except pa.ArrowInvalid:
                row = first_failure(lambda part: fails(self.as_numbers, part), cells)
                where = f"row {self._n_rows + row + 1} (line {self._line(row)})"
                bad[name] = f"holds {shown(cells[row].as_py())} in {where}"
        if bad:
            raise TableError(f"{self.path}: {not_numbers(bad)}", bad)
        return numbers

    def as_numbers(self, text: Any) -> Any:
        """Return text as float64: spaces do not count, true is 1 and false is 0."""
        bare = pc.ascii_trim_whitespace(text)
        lower = pc.ascii_lower(bare)
        for word, digit in (("true", "1"), ("false", "0")):
            bare = pc.if_else(pc.equal(lower, word), digit, bare)
        present = self.without_missing(bare)
        if self._decimal != ".":
            # A point would be read as the decimal sign.
            present = pc.replace_substring(present, ".", "?")
            present = pc.replace_substring(present, self._decimal, ".")
        return present.cast("double")


def _n_lines(block: bytes) -> int:
    return block.count(b"\n") + block.count(b"\r") - block.count(b"\r\n")
