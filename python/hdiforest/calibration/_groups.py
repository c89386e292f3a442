"""Groups of rows, each widened by conformal quantiles of its own (Mondrian prediction)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import hdicore
from hdiforest._model.fitted import FittedForest
from hdiforest._utils import Array

_N_DRAWS = 1000  # of what chance alone gives

Label = float | str | None  # None: the group of rows whose group is missing


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of the calibration rows, and the conformal quantiles of each group.

    A group with too few rows for a coverage takes the quantile of all rows. Rows of a group without
    calibration rows take it, too.
    """

    labels: tuple[Label, ...]  # g of them
    counts: NDArray[np.int64]  # (g,) calibration rows
    q_hat: Array  # (g, k) conformal quantiles for k coverages; NaN: too few rows
    coverage: Array  # (g, k) share of the calibration rows that the common quantile covers
    feature: int | None = None  # that holds the labels; None: they are given with the rows

    def __post_init__(self) -> None:
        g = len(self.labels)
        if len(set(self.labels)) < g or not all(
            label is None or isinstance(label, str | float) for label in self.labels
        ):
            raise ValueError("the labels of groups must be distinct numbers, texts or null")
        if self.counts.shape != (g,) or (self.counts < 1).any():
            raise ValueError(f"the counts of groups must be {g} positive numbers")
        if self.q_hat.ndim != 2 or len(self.q_hat) != g or np.isinf(self.q_hat).any():
            raise ValueError(f"the quantiles of groups must be finite or NaN, for {g} groups")
        shares = self.coverage
        if shares.shape != self.q_hat.shape or not ((shares >= 0) & (shares <= 1)).all():
            raise ValueError("the coverage of groups must be shares, as many as their quantiles")

    def codes(self, labels: ArrayLike) -> NDArray[np.int64]:
        """Return the positions (n,) of the groups of n rows. -1 for an unknown group."""
        values = np.asarray(labels)
        if values.dtype in (np.float32, np.float64):
            return self.engine.codes(values)
        distinct, group = divide(values)
        code_of = {label: code for code, label in enumerate(self.labels)}
        return np.array([code_of.get(label, -1) for label in distinct], np.int64)[group]

    def quantiles(self, codes: NDArray[np.int64], common: Array) -> Array:
        """Return the quantiles (n, k) of rows with given codes, some of them the common ones."""
        return self.engine.quantiles(codes, common)

    @cached_property
    def engine(self) -> hdicore.CalibrationGroups:
        """The compiled object that looks up groups and their quantiles."""
        return hdicore.CalibrationGroups(self.labels, self.q_hat)

    def spread(self, j: int, coverage: float) -> str:
        """Say how much the j-th coverage varies over groups without quantiles of their own."""
        drawn = np.random.default_rng(0).binomial(
            self.counts, coverage, (_N_DRAWS, len(self.counts))
        )
        shares = drawn / self.counts
        least, most = (np.median(end) for end in (shares.min(axis=1), shares.max(axis=1)))
        low, high = np.quantile(self.coverage[:, j], [0, 1])
        return (
            f"At {coverage:g} one quantile for all rows covers {low:.2f} to {high:.2f} "
            f"of the groups' rows; chance alone gives {least:.2f} to {most:.2f}."
        )

    def __str__(self) -> str:
        n_small = np.isnan(self.q_hat).any(axis=1).sum()
        small = f", of which {n_small} have too few rows for some coverages" if n_small else ""
        return f"{len(self.labels)} groups with quantiles of their own{small}"


@dataclass(frozen=True, eq=False)
class GroupSource:
    """The source of the groups of rows: a column, labels, or a function."""

    feature: int | None = None
    function: Callable[[NDArray[Any]], ArrayLike] | None = None  # of rows (n, n_features)
    array: NDArray[Any] | None = None  # (n,), of the calibration rows, or of all training rows

    @classmethod
    def of(cls, by: Any, forest: FittedForest) -> GroupSource:
        """Return where `calibrate` is told to find groups, or raise ValueError."""
        if isinstance(by, str | int):
            return cls(feature=column_number(forest, "by", by))
        return cls(function=by) if callable(by) else cls(array=np.asarray(by))

    def labels(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the labels (n,) of rows X, or raise ValueError if there are not as many."""
        if self.feature is not None:
            return X[:, self.feature]
        labels = self.array if self.function is None else np.asarray(self.function(X))
        shape = None if labels is None else labels.shape
        if labels is None or shape != (len(X),):
            raise ValueError(f"by must give one group for each of {len(X)} rows, got shape {shape}")
        return labels


def column_number(forest: FittedForest, name: str, column: str | int) -> int:
    """Return the number of a feature, by its name or number, or raise ValueError."""
    names = forest.columns or ()
    if isinstance(column, str):
        if column not in names or len(names) != forest.n_features:
            feature = "a column that is a feature of the forest"
            raise ValueError(f"{name} must be the name of {feature}, got {column!r}")
        return names.index(column)
    if not 0 <= column < forest.n_features:
        raise ValueError(f"{name} must be a column from 0 to {forest.n_features - 1}, got {column}")
    return int(column)


def divide(labels: ArrayLike) -> tuple[list[Label], NDArray[np.intp]]:
    """Return the distinct labels of n rows, and the position of the label of each row, (n,)."""
    values = np.asarray(labels)
    if values.dtype.kind in "mM":  # lists of times are numbers or objects by their unit
        texts = values.astype(str).astype(object)
        texts[np.isnat(values)] = None
        values = texts
    if values.dtype.kind in "fiub":
        numbers, group = np.unique(values, return_inverse=True)
        return [_label(number) for number in numbers.tolist()], group.reshape(-1)
    numbers_of: dict[Label, int] = {}
    of_rows = [numbers_of.setdefault(_label(each), len(numbers_of)) for each in values.tolist()]
    return list(numbers_of), np.array(of_rows, dtype=np.intp)


def _label(value: Any) -> Label:
    try:
        is_missing = value is None or bool(value != value)  # NaN, NaT
    except TypeError:  # pandas.NA
        is_missing = True
    if is_missing:
        return None
    is_number = isinstance(value, int | float) and float(value) == value  # large ids may not be
    return float(value) if is_number else str(value)


def missing_rows(values: NDArray[Any]) -> list[int]:
    """Return the rows (n,) with a missing value."""
    labels, group = divide(values)
    return [row for row, label in enumerate(group.tolist()) if labels[label] is None]
