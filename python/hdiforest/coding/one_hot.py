"""Columns of categories that become a feature for each category."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hdiforest.coding.columns import Codes, Column, Facts, require_facts
from hdiforest.coding.places import (
    Values,
    are_numbers,
    checked_values,
    placed,
    require_allowed,
    value_set,
)


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
