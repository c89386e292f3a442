"""Cuts the bytes of a CSV into blocks of whole rows, and counts lines."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import IO

import numpy as np

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
