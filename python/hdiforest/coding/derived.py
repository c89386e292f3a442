"""Features that encoders, imputers and scalers make of one column of a table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from hdiforest.coding.arrow_types import is_number, is_text
from hdiforest.coding.categories import dictionary_of
from hdiforest.coding.columns import (
    Codes,
    Column,
    ColumnError,
    Facts,
    NumberColumn,
    as_float64,
    require_facts,
    shown,
)

Operation = Literal["add", "subtract", "multiply", "divide"]
_OPERATIONS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
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
    values: tuple[str, ...] | tuple[float, ...]
    outputs: tuple[float, ...]
    missing: float | None
    unknown: float | None
    kind = "mapped"

    @property
    def source(self) -> str:
        """See `Column`."""
        return self.column

    @property
    def holds_numbers(self) -> bool:
        """See `Column`."""
        return bool(self.values) and not isinstance(self.values[0], str)

    def codes(self, array: Any) -> Codes:
        """See `Column`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        encoded = dictionary_of(array)
        cells = encoded.dictionary
        texts = bool(self.values) and isinstance(self.values[0], str)
        if pa.types.is_null(cells.type):
            cells = cells.cast(pa.large_string())
        elif not (is_text(cells.type) if texts else is_number(cells.type)):
            raise ColumnError(f"must hold {'text' if texts else 'numbers'}, but is {cells.type}")
        kind = pa.large_string() if texts else pa.float64()
        if not texts:
            cells = pa.array(as_float64(cells), from_pandas=True)
        cells = cells.cast(kind)
        places = as_float64(pc.index_in(cells.drop_null(), value_set=pa.array(self.values, kind)))
        where = np.full(len(cells) + 1, len(self.values) + 1)  # missing
        present = np.flatnonzero(cells.is_valid().to_numpy(zero_copy_only=False))
        where[present] = np.where(np.isnan(places), len(self.values), places)
        at = where[encoded.indices.cast(pa.int64()).fill_null(len(cells)).to_numpy()]
        for place, output, what in (
            (len(self.values), self.unknown, "no cell of an unknown category"),
            (len(self.values) + 1, self.missing, "no missing cell"),
        ):
            if output is None and (at == place).any():
                row = int(np.argmax(at == place))
                raise ColumnError(f"must hold {what}, but holds {shown(str(array[row]))}", row)
        ends = [math.nan if end is None else end for end in (self.unknown, self.missing)]
        return Codes(np.array([*self.outputs, *ends])[at], int((at == len(self.values)).sum()))

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
        values, outputs = facts["values"], facts["outputs"]
        if not isinstance(values, list) or not isinstance(outputs, list):
            raise ValueError("values and outputs must be lists")
        if len({type(value) for value in values} | {str}) > 2 or not all(
            isinstance(value, str) or (isinstance(value, float) and math.isfinite(value))
            for value in values
        ):
            raise ValueError("values must be texts, or finite numbers")
        if len(set(values)) != len(values) or len(values) != len(outputs):
            raise ValueError("values must be distinct, and as many as outputs")
        found = [_read(output) for output in outputs]
        if None in found:
            raise ValueError("outputs must be numbers")
        return cls(
            name,
            _text(facts["column"]),
            tuple(values),
            tuple(output for output in found if output is not None),
            _read(facts["missing"]),
            _read(facts["unknown"]),
        )


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
        codes = NumberColumn(self.column).codes(array)
        values: NDArray[np.float64] = np.where(np.isnan(codes.values), self.fill, codes.values)
        for operation, number in self.operations:
            values = _OPERATIONS[operation](values, number)
        return Codes(values, rounded=codes.rounded and not self.operations)

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
