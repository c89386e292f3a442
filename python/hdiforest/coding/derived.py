"""Features that encoders, imputers and scalers make of one column of a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from hdiforest.coding.columns import (
    MAX_EXACT,
    Codes,
    Column,
    Facts,
    are_rounded,
    numbers_of,
    require_facts,
    require_float32,
)
from hdiforest.coding.places import (
    Values,
    are_numbers,
    checked_values,
    placed,
    require_allowed,
    value_set,
)

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
