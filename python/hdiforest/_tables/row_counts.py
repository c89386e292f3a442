"""RowCounts: missing cells, unseen categories, values out of range and empty rows to predict."""

from __future__ import annotations

import copy
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdiforest._tables.columns import Column
from hdiforest._tables.names import listed
from hdiforest._utils.checks import count_text

_LOCK = threading.Lock()  # of all counts, which other threads may read while some are added
_BLOCK_CELLS = 2**14  # compared at once, so that numpy need not map memory for them


class _Beyond(NamedTuple):
    """The extreme ones of the cells of a column that are out of range."""

    column: Column
    trained: tuple[float, float]  # least and greatest value of the training rows
    least: float
    greatest: float

    def __str__(self) -> str:
        ends = {"down to": self.least} if self.least < self.trained[0] else {}
        ends |= {"up to": self.greatest} if self.greatest > self.trained[1] else {}
        low, high, *texts = self.column.texts([*self.trained, *ends.values()])
        told = " and ".join(f"{to} {text}" for to, text in zip(ends, texts, strict=True))
        return f"{told}; trained on {low} to {high}"


class RowCounts:
    """Counts of rows and cells that the training rows of a model were not like.

    As a text, a line for each kind of cells and rows that there are.

    Attributes
    ----------
    n_rows, n_rows_out_of_range, n_rows_without_values, n_rows_of_new_groups : int
        Rows that were counted; with a cell out of range; whose cells are all missing or unseen; of
        groups that the calibration had no rows of, if it was made by those of a column.
    missing, unseen, out_of_range : collections.Counter
        Cells by column: missing ones; of categories that the training rows did not have, which are
        taken as missing, or as the encoder of the model says; of numbers, dates and booleans beyond
        the least and the greatest value of the training rows.
    """

    def __init__(self) -> None:
        self.n_rows = self.n_rows_out_of_range = self.n_rows_without_values = 0
        self.n_rows_of_new_groups = 0
        self.missing: Counter[str] = Counter()
        self.unseen: Counter[str] = Counter()
        self.out_of_range: Counter[str] = Counter()
        self._beyond: dict[str, _Beyond] = {}

    def add(self, other: RowCounts) -> None:
        """Add other counts, from any thread; those of other processes come pickled.

        Parameters
        ----------
        other : RowCounts
            Of a model with the same training rows.
        """
        with _LOCK:
            for name, more in vars(other).items():
                own = getattr(self, name)
                if isinstance(own, int):
                    setattr(self, name, own + more)
                elif isinstance(own, Counter):
                    own.update(more)
            for beyond in other._beyond.values():
                self._see(beyond)

    def _see(self, new: _Beyond) -> None:
        old = self._beyond.get(new.column.name, new)
        least, greatest = min(old.least, new.least), max(old.greatest, new.greatest)
        self._beyond[new.column.name] = new._replace(least=least, greatest=greatest)

    def __getstate__(self) -> dict[str, Any]:
        with _LOCK:  # for pickles and copies, while other threads add
            return {name: copy.copy(own) for name, own in vars(self).items()}

    def __repr__(self) -> str:
        return str(self) or f"{count_text(self.n_rows)} rows, all of them like the training rows"

    def __str__(self) -> str:
        counts, lines = copy.copy(self), []  # other threads may add meanwhile
        of_all = f"of {counts.n_rows:,}"
        if empty := [repr(c) for c, n in counts.missing.items() if n == counts.n_rows > 0]:
            why = "the training rows had values there, so intervals may cover less than they say"
            lines.append(f"Columns that are missing in every row: {listed(empty)}; {why}")
        if cells := [f"{n:,} of {name!r}" for name, n in counts.unseen.items() if n > 0]:
            what = "Cells of categories that the training rows did not have, taken as missing"
            lines.append(f"{what}: {', '.join(cells)}")
        if counts.n_rows_out_of_range:
            # Of columns that have as many, always the same one, in whatever order threads count.
            name = max(sorted(counts.out_of_range), key=counts.out_of_range.__getitem__)
            n = counts.out_of_range[name]
            lines.append(
                "Rows with values beyond the range of the training rows: "
                f"{counts.n_rows_out_of_range:,} {of_all}, most in {name!r} ({n:,}: "
                f"{counts._beyond[name]}); their intervals are those of the leaves at its edge"
            )
        if counts.n_rows_without_values:
            n_empty = f"{counts.n_rows_without_values:,} {of_all}"
            why = "(all cells are missing or of unknown categories)"
            lines.append(f"Rows without a known value: {n_empty} {why}")
        if counts.n_rows_of_new_groups:
            n_new = f"{counts.n_rows_of_new_groups:,} {of_all}"
            how = "their calibrated intervals take the conformal quantile of all rows"
            lines.append(f"Rows of groups that the calibration had no rows of: {n_new}; {how}")
        return "\n".join(lines)


def count_rows(
    X: NDArray[np.floating[Any]],
    columns: Mapping[int, Column],
    feature_range: NDArray[np.float32] | None,
    empty: NDArray[np.bool_] | None = None,
) -> RowCounts:
    """Return the counts of rows (n, n_features), but for missing and unseen cells.

    O(n n_features).

    `columns` are those of `TableEncoder.ordered`; without the `feature_range` of `FittedForest`
    nothing is out of range. `empty` rows, (n,), have no known cell; by default those of NaN alone.
    """
    counts = RowCounts()
    counts.n_rows = len(X)
    is_empty = np.isnan(X[np.isnan(X[:, 0])]).all(axis=1) if empty is None else empty
    counts.n_rows_without_values = int(np.count_nonzero(is_empty))
    if feature_range is None or len(X) == 0:
        return counts
    n = min(len(X), max(1, _BLOCK_CELLS // X.shape[1]))
    # Limits are repeated for each row of a block, so that numpy compares them in one loop.
    low, high = feature_range[:, None].repeat(n, axis=1)
    for begin in range(0, len(X), n):
        block = np.asarray(X[begin : begin + n], dtype=np.float32)
        outside = (block < low[: len(block)]) | (block > high[: len(block)])
        if not outside.any():
            continue
        for j in np.flatnonzero(outside.any(axis=0)).tolist():
            if j in columns:
                cells, trained = block[outside[:, j], j], tuple(feature_range[:, j].tolist())
                counts.out_of_range[columns[j].name] += len(cells)
                counts._see(_Beyond(columns[j], trained, float(cells.min()), float(cells.max())))
        counts.n_rows_out_of_range += int(outside[:, list(columns)].any(axis=1).sum())
    return counts
