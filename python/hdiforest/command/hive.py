"""Columns from the names of folders, as Hive and Spark write: ``year=2024/part.parquet``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote

from hdiforest._tables.read import TableError, TableReader, listed, quoted
from hdiforest._utils.optional import need

_MISSING = "__HIVE_DEFAULT_PARTITION__"

Keys = dict[str, Any]  # whole numbers, texts or None


def keys_of(folders: PurePath) -> dict[str, str | None]:
    """Return the keys in the names of some folders, as text."""
    pairs = (part.split("=", 1) for part in folders.parts if "=" in part)
    return {unquote(name): None if value == _MISSING else unquote(value) for name, value in pairs}


def typed(keys: Sequence[Mapping[str, str | None]]) -> list[Keys]:
    """Return the keys of all tables, as whole numbers where all values of a key are such."""
    names = {name for each in keys for name in each}
    numbers = {
        name
        for name in names
        if all(_is_whole(each[name]) for each in keys if each.get(name) is not None)
    }
    return [
        {n: int(v) if n in numbers and v is not None else v for n, v in each.items()}
        for each in keys
    ]


def _is_whole(text: str | None) -> bool:
    digits = (text or "").removeprefix("-")
    # With zeros in front it is a code, such as that of a town.
    return digits.isdecimal() and len(digits) < 18 and str(int(text or "")) == text


class WithKeys(TableReader):
    """A table with columns of one value behind its own.

    Parameters
    ----------
    table : TableReader
    keys : dict
        The values of the columns. Columns that the table has too are refused by `require` only.
    """

    def __init__(self, table: TableReader, keys: Keys) -> None:
        self._table, self._keys = table, keys
        self.path, self.n_rows, self.is_text = table.path, table.n_rows, table.is_text
        self.names = [*table.names, *(name for name in keys if name not in table.names)]

    def require(
        self, number_columns: Sequence[str], kept: Sequence[str] = (), left_out: Sequence[str] = ()
    ) -> None:
        """See `TableReader`; a column must not be both in the file and in a folder's name."""
        wanted = dict.fromkeys([*number_columns, *kept])
        both = [n for n in wanted if n in self._keys and n in self._table.names]
        if both:
            raise TableError(
                f"{self.path} has {listed(map(quoted, both))} in the file and in the names of its "
                "folders",
                both,
            )
        super().require(number_columns, kept, left_out)

    def separator_hint(self) -> str:
        """See `TableReader`."""
        return self._table.separator_hint()

    def without_missing(self, column: Any) -> Any:
        """See `TableReader`."""
        return self._table.without_missing(column)

    def share_read(self) -> float | None:
        """See `TableReader`."""
        return self._table.share_read()

    def fields(self, kept: list[str]) -> list[Any]:
        """See `TableReader`."""
        pa = need("pyarrow")
        return [
            pa.field(name, self._type(name))
            if self._is_key(name)
            else self._table.fields([name])[0]
            for name in kept
        ]

    def close(self) -> None:
        """Close the file."""
        self._table.close()

    def _is_key(self, name: str) -> bool:
        return name in self._keys and name not in self._table.names

    def _type(self, name: str) -> Any:
        pa = need("pyarrow")
        is_text = self.is_text or isinstance(self._keys[name], str)
        return pa.string() if is_text else pa.int64()

    def _other_types(self, columns: list[str]) -> dict[str, Any]:
        texts = {n: f"'{self._keys[n]}'" for n in columns if self._is_key(n)}
        texts = {n: text for n, text in texts.items() if isinstance(self._keys[n], str)}
        own = self._table._other_types([name for name in columns if not self._is_key(name)])
        return own | texts

    def _read(self, number_columns: list[str], kept: list[str], batch_rows: int) -> Iterator[Any]:
        own_numbers = [name for name in number_columns if not self._is_key(name)]
        own_kept = [name for name in kept if not self._is_key(name)]
        if not own_numbers and not own_kept:  # readers do not count the rows of no columns
            own_kept = self._table.names[:1]
        for part in self._table._read(own_numbers, own_kept, batch_rows):
            columns = iter(part.columns)
            yield need("pyarrow").Table.from_arrays(
                [*self._all(number_columns, columns, part.num_rows, numbers=True),
                 *self._all(kept, columns, part.num_rows, numbers=False)],
                [*number_columns, *kept],
            )  # fmt: skip

    def _all(
        self, names: Iterable[str], own: Iterator[Any], n_rows: int, *, numbers: bool
    ) -> Iterator[Any]:
        pa = need("pyarrow")
        for name in names:
            if not self._is_key(name):
                yield next(own)
                continue
            value = self._keys[name]
            kind = pa.float64() if numbers else self._type(name)
            if value is not None and pa.types.is_string(kind):
                value = str(value)
            yield (
                pa.nulls(n_rows, kind)
                if value is None
                else pa.repeat(pa.scalar(value, kind), n_rows)
            )
