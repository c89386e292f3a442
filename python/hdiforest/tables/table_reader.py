"""The base of the readers of all formats: columns by name, batches of one size, one error."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hdiforest._utils.optional import need
from hdiforest.tables.regroup import Regroup

BATCH_ROWS = 65536
BATCH_CELLS = 1 << 22
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_MAX_SHOWN = 12


class TableError(ValueError):
    """A table that cannot be used; the message names the file and what is wrong with it.

    Attributes
    ----------
    columns : list of str
        Columns at fault that are there, but cannot be read as numbers.
    """

    def __init__(self, message: str, columns: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.columns = list(columns)


class TableReader(ABC):
    """A table whose header has been read. Its rows can be read once.

    Attributes
    ----------
    path : Path
    names : list of str
        All columns, in order.
    n_rows : int or None
        None if only reading the whole file would tell.
    is_text : bool
        Whether the file has no types.
    """

    path: Path
    names: list[str]
    n_rows: int | None
    is_text = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def require(
        self, number_columns: Sequence[str], kept: Sequence[str] = (), left_out: Sequence[str] = ()
    ) -> None:
        """Raise one TableError for all columns that cannot be read.

        Those to be left out must be there, perhaps more than once. Parquet's types are checked too.
        """
        counts = Counter(self.names)
        wanted = list(dict.fromkeys([*number_columns, *kept]))
        missing = [name for name in dict.fromkeys([*wanted, *left_out]) if name not in counts]
        repeated = [name for name in wanted if counts[name] > 1]
        types = self._other_types([name for name in number_columns if counts[name] == 1])
        faults = [f"{counts[name]} columns '{name}'" for name in repeated]
        if missing:
            faults.insert(0, f"no column{'s' * (len(missing) > 1)} {listed(map(quoted, missing))}")
        clauses = [f"{self.path} has {listed(faults)}"] if faults else []
        if missing:
            clauses.append(f"it has {listed(self.names)}{self.separator_hint()}")
        if types:
            where = "" if faults else f"{self.path}: "
            clauses.append(where + not_numbers({n: f"is {t}" for n, t in types.items()}))
        if clauses:
            raise TableError("; ".join(clauses), [*repeated, *types])

    def separator_hint(self) -> str:
        """Say so if the header looks as if it were not separated by commas."""
        for character, word in _SEPARATORS.items():
            if len(self.names) == 1 and character in self.names[0]:
                shown = "'\\t'" if character == "\t" else quoted(character)
                return f" (its columns seem to be separated by {word}: --sep {shown} reads them)"
        return ""

    def batches(
        self, number_columns: list[str], kept: list[str], batch_rows: int | None = None
    ) -> Iterator[Any]:
        """Yield pyarrow Tables of exactly `batch_rows` rows, the last one of what is left.

        Parameters
        ----------
        number_columns : list of str
            Columns that must hold numbers: the first ones of the Tables. `numbers` makes a matrix
            of them.
        kept : list of str
            Columns to pass on, behind the others: of a CSV as text, of Parquet in their own type.
        batch_rows : int, optional
            65536 if None, or as many rows as make 2^22 cells.

        Raises
        ------
        TableError
            If a column is missing or holds something else, or the file is damaged.
        """
        self.require(number_columns, kept)
        n_rows = batch_rows or rows_of(len(number_columns) + len(kept))
        groups = Regroup(n_rows)
        for part in self._read(number_columns, kept, n_rows):
            yield from groups.add(part)
        yield from groups.rest()

    def typed_batches(
        self, columns: list[str], number_columns: list[str], text_columns: Collection[str] = ()
    ) -> Iterator[Any]:
        """Yield pyarrow Tables of columns in their own types; missing text is null.

        Parameters
        ----------
        columns : list of str
            Those of a CSV are float64 if their first cells are numbers, and text if not.
        number_columns : list of str
            Those of them that must hold numbers.
        text_columns : collection of str
            Those of them that a CSV shall have as text.

        Raises
        ------
        TableError
            As `batches`; and if a CSV has numbers in most of the first cells of a column, but not
            in all cells.
        """
        self.require(number_columns, columns)
        yield from self._read_typed(columns, number_columns, text_columns)

    def _read_typed(
        self,
        columns: list[str],
        number_columns: list[str],  # noqa: ARG002 (types have been checked)
        text_columns: Collection[str],  # noqa: ARG002 (columns have types)
    ) -> Iterator[Any]:
        return self._read([], columns, rows_of(len(columns)))

    def without_missing(self, column: Any) -> Any:
        """Return a column that `batches` was to pass on, with null for cells that say missing."""
        return column

    def share_read(self) -> float | None:
        """Return which share of the file was read, where that is not known from its rows."""
        return None

    @abstractmethod
    def fields(self, kept: list[str]) -> list[Any]:
        """Return the pyarrow fields with which `batches` yields the kept columns."""

    @abstractmethod
    def close(self) -> None:
        """Close the file."""

    @abstractmethod
    def _other_types(self, columns: list[str]) -> dict[str, Any]:
        """Return the types of those columns that are known to hold no numbers."""

    @abstractmethod
    def _read(self, number_columns: list[str], kept: list[str], batch_rows: int) -> Iterator[Any]:
        """Yield Tables of any size."""

    @contextmanager
    def _naming_the_file(self) -> Iterator[None]:
        """Make a TableError of what reading raises."""
        pa = need("pyarrow")
        try:
            yield
        except (pa.ArrowException, OSError, EOFError, UnicodeError, zlib.error) as error:
            raise TableError(f"cannot read {self.path}: {error}") from None


def rows_of(n_columns: int) -> int:
    """Return how many rows of so many columns are held at once."""
    return max(1, min(BATCH_ROWS, BATCH_CELLS // max(1, n_columns)))


def not_numbers(contents: dict[str, str]) -> str:
    """Say what each column has in place of numbers: ``holds 'x'``, ``is date``."""
    if len(contents) == 1:
        [(name, what)] = contents.items()
        return f"column '{name}' must hold numbers, but {what}"
    each = listed(f"'{name}' {what}" for name, what in contents.items())
    return f"{len(contents)} columns must hold numbers, but {each}"


def quoted(name: str) -> str:
    """Return a name between quotes."""
    return f"'{name}'"


def listed(items: Iterable[str]) -> str:
    """Return the first items, with commas between them."""
    shown = list(items)
    return ", ".join(shown[:_MAX_SHOWN]) + (", ..." if len(shown) > _MAX_SHOWN else "")
