"""Columns of categories: the place of each value in a list stands for it, or a feature each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from hdiforest._tables.columns import (
    MAX_EXACT,
    Codes,
    Column,
    ColumnError,
    Facts,
    are_rounded,
    as_float64,
    dictionary_of,
    is_number,
    is_text,
    numbers_of,
    present_text,
    require_facts,
    require_float32,
    shown,
)

Values = tuple[str, ...] | tuple[float, ...]


def value_set(values: Values) -> Any:
    """Return categories as a pyarrow Array; none at all are texts."""
    import pyarrow as pa

    return pa.array(values, pa.float64() if are_numbers(values) else pa.large_string())


def are_numbers(values: Values) -> bool:
    """Whether categories are numbers, not texts."""
    return len(values) > 0 and isinstance(values[0], float)


def placed(array: Any, values: Any) -> NDArray[np.int64]:
    """Return the place of each cell among n categories; n: none of them, n + 1: missing.

    Parameters
    ----------
    array : pyarrow.Array
        Perhaps a dictionary.
    values : pyarrow.Array
        What `value_set` returns.

    Raises
    ------
    ColumnError
        If the cells are neither texts nor numbers, as the categories are.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    texts, n = is_text(values.type), len(values)
    kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    fits = is_text(kind) if texts else is_number(kind)
    if not (fits or pa.types.is_null(kind)):
        raise ColumnError(f"must hold {'text' if texts else 'numbers'}, but is {kind}")
    encoded = dictionary_of(array)
    cells = encoded.dictionary
    if not texts:
        cells = pa.array(as_float64(cells), from_pandas=True)
    cells = cells.cast(values.type)
    found = as_float64(pc.index_in(cells.drop_null(), value_set=values))
    where = np.full(len(cells) + 1, n + 1)
    present = np.flatnonzero(cells.is_valid().to_numpy(zero_copy_only=False))
    where[present] = np.where(np.isnan(found), n, found)
    at: NDArray[np.int64]
    at = where[encoded.indices.cast(pa.int64()).fill_null(len(cells)).to_numpy()]
    return at


def require_allowed(
    at: NDArray[np.int64], n: int, array: Any, refuses_unknown: bool, refuses_missing: bool
) -> None:
    """Raise ColumnError if there are cells that are refused; `at` is what `placed` returned."""
    for place, refused, what in (
        (n, refuses_unknown, "no cell of an unknown category"),
        (n + 1, refuses_missing, "no missing cell"),
    ):
        if refused and (at == place).any():
            row = int(np.argmax(at == place))
            raise ColumnError(f"must hold {what}, but holds {shown(str(array[row]))}", row)


def checked_values(values: Any) -> Values:
    """Return categories of a file, or raise ValueError."""
    if not isinstance(values, list):
        raise ValueError("values must be a list")
    if not (all(map(_is_text, values)) or all(map(_is_finite_float, values))):
        raise ValueError("values must be texts, or finite numbers")
    if len(set(values)) != len(values):
        raise ValueError("values must be distinct")
    return tuple(values)


def _is_text(value: Any) -> bool:
    """Whether a value is a text that Arrow can hold."""
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def _is_finite_float(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value)


@dataclass(frozen=True)
class CategoryColumn(Column):
    """Categories, which are texts or numbers.

    Parameters
    ----------
    name : str
    values : tuple of str, or tuple of float
        Distinct; the code of each is its position. Every other value is missing.
    """

    values: Values
    kind = "category"
    has_categories = True

    def __str__(self) -> str:
        return f"{self.name} ({len(self.values):,} categories)"

    def codes(self, array: Any) -> Codes:
        """See `Column`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        kinds = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
        if not (is_number(kinds) or is_text(kinds)):
            raise ColumnError(f"must hold categories, but is {array.type}")
        if pa.types.is_null(kinds):
            return Codes(np.full(len(array), np.nan))
        encoded = dictionary_of(array)
        distinct = self._comparable(encoded.dictionary)
        places = pc.index_in(distinct, value_set=self._value_set)
        # One place more is for missing cells.
        codes = np.append(as_float64(places), np.nan)
        unseen = np.append((distinct.is_valid().to_numpy(False)) & np.isnan(codes[:-1]), False)
        at = encoded.indices.cast(pa.int64()).fill_null(len(distinct)).to_numpy()
        n_unseen = int(unseen[at].sum()) if unseen.any() else 0
        return Codes(codes[at], n_unseen)

    def facts(self) -> Facts:
        """See `Column`."""
        return {"values": list(self.values)}

    @classmethod
    def from_facts(cls, name: str, facts: Facts) -> Self:
        """See `Column`."""
        require_facts(facts, ("values",))
        values = checked_values(facts["values"])
        if len(values) > MAX_EXACT:
            raise ValueError(f"values must be at most {MAX_EXACT} categories")
        if "" in values:
            raise ValueError("values must be texts that are not empty, or finite numbers")
        return cls(name, values)

    @cached_property
    def _value_set(self) -> Any:
        return value_set(self.values)

    def _comparable(self, distinct: Any) -> Any:
        """Return distinct cells in the type of the categories."""
        import pyarrow as pa

        if not is_text(self._value_set.type):
            return as_numbers(distinct)
        if not is_text(distinct.type):
            return distinct.cast(pa.large_string())
        return present_text(distinct).cast(pa.large_string())


def as_numbers(distinct: Any) -> Any:
    """Return distinct categories as an Array of float64; what is no number stays unseen, as NaN."""
    import pyarrow as pa

    if not is_text(distinct.type):
        numbers = distinct.cast(pa.float64(), safe=False)
        # Minus zero is zero.
        return pa.array(numbers.to_numpy(zero_copy_only=False) + 0.0, from_pandas=True)
    texts = present_text(distinct).to_pylist()
    return pa.array([None if text is None else _number(text) for text in texts], pa.float64())


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def counted(array: Any) -> tuple[Any, NDArray[np.int64]]:
    """Return the distinct cells of an Array of categories, without missing ones, and their codes.

    Returns
    -------
    distinct : pyarrow.Array
        Of large_string or float64, (n_categories,).
    at : (n,) int64
        Position of each cell in `distinct`; -1 is missing.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    encoded = dictionary_of(array)
    texts = is_text(encoded.dictionary.type)
    cells = (
        present_text(encoded.dictionary).cast(pa.large_string())
        if texts
        else as_numbers(encoded.dictionary)
    )
    distinct = pc.unique(cells.drop_null())
    places = np.append(as_float64(pc.index_in(cells, value_set=distinct)), np.nan)
    indices = encoded.indices.cast(pa.int64()).fill_null(len(cells)).to_numpy()
    at: NDArray[np.int64] = np.nan_to_num(places, nan=-1).astype(np.int64)[indices]
    return distinct, at


@dataclass(frozen=True)
class OneHotColumn(Column):
    """For each category a feature that is 1 in its cells and 0 in all others.

    Parameters
    ----------
    name : str
        Of the column.
    values : tuple of str, or tuple of float
        The categories, distinct.
    names : tuple of str
        Of the features, in the order of the categories; one more than these if missing cells have a
        feature of their own, the last one.
    missing : int or None
        Place of the feature that is 1 in missing cells; None: these are as unknown categories.
    refuses_unknown : bool
        Whether cells of other categories are refused. If not, all features are 0 in them.
    """

    values: Values
    names: tuple[str, ...]
    missing: int | None
    refuses_unknown: bool
    kind = "one-hot"
    has_categories = True

    def __str__(self) -> str:
        return f"{self.name} (one-hot, {len(self.names):,} features)"

    @property
    def features(self) -> tuple[str, ...]:
        """See `Column`."""
        return self.names

    @property
    def holds_numbers(self) -> bool:
        """See `Column`."""
        return are_numbers(self.values)

    def codes(self, array: Any) -> Codes:
        """Return for each cell the place of the feature that is 1; NaN: all are 0."""
        n = len(self.values)
        at = placed(array, self._value_set)
        require_allowed(
            at, n, array, self.refuses_unknown, self.refuses_unknown and self.missing is None
        )
        missing = np.nan if self.missing is None else self.missing
        codes = np.array([*range(n), np.nan, missing])[at]
        return Codes(codes, int((at == n).sum()), missing=at >= n)

    def write(self, codes: Codes, X: NDArray[np.float32]) -> None:
        """See `Column`."""
        X[:] = 0
        rows = np.flatnonzero(~np.isnan(codes.values))
        X[rows, codes.values[rows].astype(np.intp)] = 1

    def facts(self) -> Facts:
        """See `Column`."""
        return {
            "values": list(self.values),
            "names": list(self.names),
            "missing": self.missing,
            "refuses_unknown": self.refuses_unknown,
        }

    @classmethod
    def from_facts(cls, name: str, facts: Facts) -> Self:
        """See `Column`."""
        require_facts(facts, ("values", "names", "missing", "refuses_unknown"))
        values = checked_values(facts["values"])
        names, missing, refuses = facts["names"], facts["missing"], facts["refuses_unknown"]
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            raise ValueError("names must be a list of texts")
        if not names or len(names) - len(values) not in (0, 1):
            raise ValueError("names must be as many as values, or one more")
        if not isinstance(refuses, bool):
            raise ValueError("refuses_unknown must be true or false")
        if missing is not None and not (type(missing) is int and 0 <= missing < len(names)):
            raise ValueError("missing must be null or the place of a name")
        return cls(name, values, tuple(names), missing, refuses)

    @cached_property
    def _value_set(self) -> Any:
        return value_set(self.values)


Operation = Literal["add", "subtract", "multiply", "divide"]


_OPERATIONS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
}


_INVERSE: dict[Operation, Operation] = {
    "add": "subtract",
    "subtract": "add",
    "multiply": "divide",
    "divide": "multiply",
}


@dataclass(frozen=True)
class MappedColumn(Column):
    """A number for each category of a column, as encoders make them.

    Parameters
    ----------
    name : str
        Of the feature.
    column : str
    values : tuple of str, or tuple of float
        The categories, distinct.
    outputs : tuple of float
        The number of each category.
    missing, unknown : float or None
        The numbers of missing cells and of other categories, which may be NaN. None refuses them.
    """

    column: str
    values: Values
    outputs: tuple[float, ...]
    missing: float | None
    unknown: float | None
    kind = "mapped"
    has_categories = True

    @property
    def source(self) -> str:
        """See `Column`."""
        return self.column

    @property
    def holds_numbers(self) -> bool:
        """See `Column`."""
        return are_numbers(self.values)

    def codes(self, array: Any) -> Codes:
        """See `Column`."""
        n = len(self.values)
        at = placed(array, self._value_set)
        require_allowed(at, n, array, self.unknown is None, self.missing is None)
        ends = [math.nan if end is None else end for end in (self.unknown, self.missing)]
        codes = np.array([*self.outputs, *ends])[at]
        return Codes(codes, int((at == n).sum()), missing=at >= n)

    def facts(self) -> Facts:
        """See `Column`."""
        numbers = {"missing": self.missing, "unknown": self.unknown}
        return {
            "column": self.column,
            "values": list(self.values),
            "outputs": [_written(output) for output in self.outputs],
            **{name: _written(number) for name, number in numbers.items()},
        }

    @classmethod
    def from_facts(cls, name: str, facts: Facts) -> Self:
        """See `Column`."""
        require_facts(facts, ("column", "values", "outputs", "missing", "unknown"))
        values, outputs = checked_values(facts["values"]), facts["outputs"]
        if not isinstance(outputs, list) or len(outputs) != len(values):
            raise ValueError("outputs must be a list, as many as values")
        found = [_read(output) for output in outputs]
        if None in found:
            raise ValueError("outputs must be numbers")
        return cls(
            name,
            _text(facts["column"]),
            values,
            tuple(output for output in found if output is not None),
            _read(facts["missing"]),
            _read(facts["unknown"]),
        )

    @cached_property
    def _value_set(self) -> Any:
        return value_set(self.values)


@dataclass(frozen=True)
class ScaledColumn(Column):
    """Numbers with something in place of missing ones, and scaled.

    Parameters
    ----------
    name : str
        Of the feature.
    column : str
    fill : float
        In place of missing cells; NaN leaves them missing.
    operations : tuple of pairs of str and float
        What is done to all numbers, in this order.
    """

    column: str
    fill: float = math.nan
    operations: tuple[tuple[Operation, float], ...] = ()
    kind = "scaled"

    @property
    def source(self) -> str:
        """See `Column`."""
        return self.column

    @property
    def holds_numbers(self) -> bool:
        """See `Column`."""
        return True

    def codes(self, array: Any) -> Codes:
        """See `Column`."""
        cells = numbers_of(array)
        require_float32(np.where(np.isinf(cells), cells, 0), cells)
        missing = np.isnan(cells)
        values: NDArray[np.float64] = np.where(missing, self.fill, cells)
        with np.errstate(over="ignore"):
            for operation, number in self.operations:
                values = _OPERATIONS[operation](values, number)
        largest = require_float32(values, cells)
        rounded = not self.operations and largest > MAX_EXACT and are_rounded(values)
        return Codes(values, rounded=rounded, missing=missing)

    def cells(self, values: Sequence[float]) -> list[float]:
        """See `Column`."""
        cells = np.array(values)
        with np.errstate(all="ignore"):
            for operation, number in reversed(self.operations):
                cells = _OPERATIONS[_INVERSE[operation]](cells, number)
        return [float(cell) for cell in cells]

    def facts(self) -> Facts:
        """See `Column`."""
        return {
            "column": self.column,
            "fill": _written(self.fill),
            "operations": [list(each) for each in self.operations],
        }

    @classmethod
    def from_facts(cls, name: str, facts: Facts) -> Self:
        """See `Column`."""
        require_facts(facts, ("column", "fill", "operations"))
        fill, operations = _read(facts["fill"]), facts["operations"]
        if fill is None:
            raise ValueError("fill must be a number")
        if not isinstance(operations, list) or not all(map(_is_operation, operations)):
            raise ValueError(f"operations must be pairs of one of {list(_OPERATIONS)} and a number")
        pairs = tuple((operation, number) for operation, number in operations)
        return cls(name, _text(facts["column"]), fill, pairs)


def _is_operation(pair: Any) -> bool:
    return (
        isinstance(pair, list)
        and len(pair) == 2
        and isinstance(pair[0], str)
        and pair[0] in _OPERATIONS
        and isinstance(pair[1], float)
        and math.isfinite(pair[1])
    )


def _written(number: float | None) -> float | str | None:
    """Return a number as JSON has it, which has no NaN."""
    return "nan" if number is not None and math.isnan(number) else number


def _read(number: Any) -> float | None:
    if number == "nan":
        return math.nan
    if number is not None and not (isinstance(number, float) and math.isfinite(number)):
        raise ValueError("numbers must be finite, or the text nan")
    return number


def _text(name: Any) -> str:
    if not isinstance(name, str):
        raise ValueError("column must be a text")
    return name
