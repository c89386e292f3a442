"""How the text of a CSV is written: separator, decimal sign, encoding; and its compression."""

from __future__ import annotations

import codecs
import gzip
from dataclasses import dataclass
from typing import IO, Any, Literal, cast

from hdiforest._utils.optional import need

Packing = Literal["none", "gzip", "zstd"]


@dataclass(frozen=True)
class TextForm:
    """How to read the text of tables without types.

    Parameters
    ----------
    sep : str, optional
        Character between cells; by default what the ending of the name says.
    decimal : str, default="."
        Sign before the decimals of a number.
    encoding : str, default="utf-8"
        A name that Python knows.
    """

    sep: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"


def unpacked(file: Any, packing: Packing) -> IO[bytes]:
    """Return a stream of the contents of a compressed file."""
    if packing == "gzip":
        return cast("IO[bytes]", gzip.GzipFile(fileobj=file))
    if packing == "zstd":
        pa = need("pyarrow")
        source = file if isinstance(file, pa.NativeFile) else pa.PythonFile(file, mode="r")
        return cast("IO[bytes]", pa.CompressedInputStream(source, "zstd"))
    return cast("IO[bytes]", file)


def packed(file: IO[bytes], packing: Packing, layers: list[Any]) -> Any:
    """Return a stream that compresses what is written to `file`; see `StartWriting`."""
    if packing == "none":
        return file
    if packing == "gzip":
        # No time and no name in the header: equal tables are equal files. Numbers compress three
        # times as fast as at level 6, to 2 to 7 % more bytes.
        stream: Any = gzip.GzipFile("", "wb", compresslevel=4, fileobj=file, mtime=0)
    else:
        pa = need("pyarrow")
        stream = pa.CompressedOutputStream(pa.PythonFile(_LeftOpen(file), mode="w"), "zstd")
    layers.append(stream)
    return stream


def as_utf_8(stream: IO[bytes], encoding: str) -> IO[bytes]:
    """Return a stream of UTF-8 for one in another encoding."""
    if codecs.lookup(encoding).name == "utf-8":
        return stream
    return cast("IO[bytes]", codecs.EncodedFile(stream, "utf-8", encoding))


class _LeftOpen:
    """A file that stays open when the stream on it is closed."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, data: Any) -> int:
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        pass
