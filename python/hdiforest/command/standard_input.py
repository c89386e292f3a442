"""Tables from standard input: CSV, compressed or not, and streams of Arrow."""

from __future__ import annotations

import os
import sys
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import IO, Any, cast

from hdiforest._tables.csv import CsvReader
from hdiforest._tables.read import ArrowStreamReader, Packing, TableError, TableReader, TextForm

NAME = Path("standard input")
_STARTS_OF_OTHERS = {b"PAR1": "Parquet", b"ARROW1": "an Arrow file"}
_PACKINGS: dict[bytes, Packing] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_N_BYTES = 6  # tell the formats apart


class _Ahead(RawIOBase):
    """A stream of which some bytes were read already."""

    def __init__(self, stream: IO[bytes], ahead: bytes) -> None:
        self._stream, self._ahead = stream, ahead

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._ahead[: len(buffer)]
        self._ahead = self._ahead[len(part) :]
        part = part or self._stream.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)

    def fileno(self) -> int:
        return self._stream.fileno()

    def tell(self) -> int:
        return self._stream.tell() - len(self._ahead)

    def close(self) -> None:
        self._stream.close()
        super().close()


def open_standard_input(form: TextForm | None = None) -> TableReader:
    """Open the table that comes through standard input, and read its header.

    Raises
    ------
    TableError
        If it is Parquet, an Arrow file, or nothing that can be read.
    """
    # Not buffered, so that no byte stays in a buffer of Python's own.
    stream = cast("IO[bytes]", open(os.dup(sys.stdin.fileno()), "rb", buffering=0))  # noqa: SIM115
    try:
        ahead = b""
        while len(ahead) < _N_BYTES and (part := stream.read(_N_BYTES - len(ahead))):
            ahead += part
        for start, what in _STARTS_OF_OTHERS.items():
            if ahead.startswith(start):
                raise TableError(
                    f"{NAME} is {what}, which is read from its end; a pipe can bring CSV, CSV "
                    "packed by gzip or zstd, or a stream of Arrow; or name a file"
                )
        whole = cast("IO[bytes]", _Ahead(stream, ahead))
        if ahead.startswith(b"\xff\xff\xff\xff"):
            # Arrow takes fewer bytes than it asked for as the end.
            return ArrowStreamReader(NAME, BufferedReader(cast("RawIOBase", whole)))
        packings = (packing for start, packing in _PACKINGS.items() if ahead.startswith(start))
        return CsvReader(NAME, packing=next(packings, "none"), stream=whole, form=form)
    except BaseException:
        stream.close()
        raise
