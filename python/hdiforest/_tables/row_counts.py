"""RowCounts: missing cells, unseen categories, values out of range and empty rows to predict."""

from __future__ import annotations

import copy
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdiforest._tables.columns import FLOAT32_MAX, UNSEEN, Column
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
        seen = " and ".join(f"{to} {text}" for to, text in zip(ends, texts, strict=True))
        return f"{seen}; trained on {low} to {high}"


class RowCounts:
    """Counts of rows and cells that differ from the training rows of a model.

    As a text it has a line for each kind of cells and rows that occurred.

    Attributes
    ----------
    n_rows : int
        Number of rows that were counted.
    n_rows_out_of_range : int
        Number of rows with a cell out of range.
    n_rows_without_values : int
        Number of rows with cells that are all missing or unseen.
    n_rows_of_new_groups : int
        Number of rows of groups without calibration rows, if the calibration was made by the groups
        of a column.
    missing : collections.Counter
        Missing cells, by column.
    unseen : collections.Counter
        Cells of categories that the training rows did not have, by column. They are taken as
        missing, or in the way that the encoder of the model states.
    out_of_range : collections.Counter
        Cells of numbers, dates and booleans beyond the least and the greatest value of the training
        rows, by column.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_diabetes
    >>> from hdiforest import HDIForestRegressor
    >>> from hdiforest.serving import BatchScorer
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> path = tempfile.mkdtemp() + "/model.hdi"
    >>> HDIForestRegressor(random_state=0).fit(X, y).save(path)
    >>> scorer = BatchScorer(path)
    >>> results = scorer(X.head() * 9)
    >>> scorer.counts.n_rows
    5
    """

    def __init__(self) -> None:
        self.n_rows = self.n_rows_out_of_range = self.n_rows_without_values = 0
        self.n_rows_of_new_groups = 0
        self.missing: Counter[str] = Counter()
        self.unseen: Counter[str] = Counter()
        self.out_of_range: Counter[str] = Counter()
        self._beyond: dict[str, _Beyond] = {}

    def add(self, other: RowCounts) -> None:
        """Add other counts, from any thread. Counts of other processes come pickled.

        Parameters
        ----------
        other : RowCounts
            Counts of a model with the same training rows.
        """
        with _LOCK:
            for name, more in vars(other).items():
                count = getattr(self, name)
                if isinstance(count, int):
                    setattr(self, name, count + more)
                elif isinstance(count, Counter):
                    count.update(more)
            for beyond in other._beyond.values():
                self._see(beyond)

    def _see(self, new: _Beyond) -> None:
        old = self._beyond.get(new.column.name, new)
        least, greatest = min(old.least, new.least), max(old.greatest, new.greatest)
        self._beyond[new.column.name] = new._replace(least=least, greatest=greatest)

    def __getstate__(self) -> dict[str, Any]:
        with _LOCK:  # for pickles and copies, while other threads add
            return {name: copy.copy(count) for name, count in vars(self).items()}

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
) -> RowCounts:
    """Return the counts of rows (n, n_features), in which NaN is missing and `UNSEEN` is unseen.

    O(n n_features).

    Without the `feature_range` of `FittedForest` nothing is out of range; of columns with
    categories nothing ever is.
    """
    counts = RowCounts()
    counts.n_rows = len(X)
    for column in columns.values():
        counts.missing[column.name] = 0
        if column.has_categories:
            counts.unseen[column.name] = 0
    ends = feature_range
    if ends is None:
        ends = np.array([[-FLOAT32_MAX], [FLOAT32_MAX]], np.float32).repeat(X.shape[1], axis=1)
    n = max(1, min(len(X), _BLOCK_CELLS // X.shape[1]))
    # Limits are repeated for each row of a block, so that numpy compares them in one loop.
    low, high = ends[:, None].repeat(n, axis=1)
    for begin in range(0, len(X), n):
        block = np.asarray(X[begin : begin + n], dtype=np.float32)
        odd = (block < low[: len(block)]) | ~(block <= high[: len(block)])  # NaN is, too
        if not odd.any():
            continue
        is_outside = np.zeros(len(block), dtype=bool)
        with_odd = [j for j in np.flatnonzero(odd.any(axis=0)).tolist() if j in columns]
        for j in with_odd:
            column, cells, trained = columns[j], block[:, j], tuple(ends[:, j].tolist())
            counts.missing[column.name] += int(np.isnan(cells).sum())
            if column.has_categories:
                counts.unseen[column.name] += int((cells == UNSEEN).sum())
                continue
            outside = (cells < trained[0]) | (cells > trained[1])
            if outside.any():
                is_outside |= outside
                beyond = cells[outside]
                counts.out_of_range[column.name] += len(beyond)
                counts._see(_Beyond(column, trained, float(beyond.min()), float(beyond.max())))
        counts.n_rows_out_of_range += int(is_outside.sum())
        if len(with_odd) == X.shape[1]:
            counts.n_rows_without_values += int((~np.isfinite(block)).all(axis=1).sum())
    return counts
