"""Distributions of residuals around a mean: the forest's, another regressor's, or both blended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hdicore import Scorer
from hdiforest._utils import Array, BaseKind
from hdiforest._utils.optional import need

_ROWS_AT_ONCE = 1 << 15  # of the other regressor, so that memory stays flat


class Mean(Protocol):
    """Another regressor's mean of new rows."""

    def predict(self, X: NDArray[Any], n_threads: int) -> Array:
        """Predictions for the rows of X, (n,)."""


@dataclass(frozen=True, eq=False)
class CentredForest:
    """The residuals of the training rows by leaf, and the mean of each leaf.

    A row x has the atoms c(x) + (y_j - c_j), with the weights that the training rows j have in its
    leaves: c(x) is the mean of the rows that the trees drew into its leaves, and c_j that of
    training row j, from the trees that did not draw it (as residuals of Lu and Hardin 2021).

    With another regressor's mean g the centres are stacked: c + share (g - c), and for training
    rows g comes from a fit without the row.
    """

    scorer: Scorer  # of the residuals: its targets are y_j minus the centre of row j
    leaf_means: Array  # (n_leaves.sum(),) of the rows drawn, tree after tree
    mean: Mean | None = None
    share: float = 0.0  # of the mean in the centres
    source: str | None = None  # what errors of leaf_means begin with
    lazy: bool = False  # whether leaf_means are checked as rows need them

    def __post_init__(self) -> None:
        n_leaves = int(self.scorer.forest.n_leaves.sum())
        if self.leaf_means.dtype != np.float64 or self.leaf_means.shape != (n_leaves,):
            raise ValueError(f"leaf_means must be {n_leaves} finite numbers")
        if not self.lazy:
            self._require_finite()
        if not 0 <= self.share <= 1 or (self.mean is None and self.share != 0):
            raise ValueError(f"share must be in [0, 1], and 0 without a mean, got {self.share}")

    @property
    def family(self) -> str:
        """Which of `FAMILIES` its intervals are."""
        return "centred" if self.mean is None else "stacked"

    @cached_property
    def centres(self) -> Array:
        """What the mean of a row's leaves is taken of, (n_leaves.sum(),)."""
        return self.leaf_means if self.mean is None else (1 - self.share) * self.leaf_means

    def shifts(self, X: NDArray[Any], n_threads: int) -> Array | None:
        """Return what the other mean adds to the centres of the rows of X, (n,); None: nothing."""
        if self.mean is None or self.share == 0:
            return None
        parts = range(0, max(1, len(X)), _ROWS_AT_ONCE)
        means = [self.mean.predict(X[begin : begin + _ROWS_AT_ONCE], n_threads) for begin in parts]
        return np.asarray(self.share * np.concatenate(means))

    def check_leaf_means(self) -> None:
        """Raise ValueError that names those of a file, if a query has refused these."""
        if self.lazy:
            self._require_finite(f"{self.source}: ")

    def intervals(
        self,
        X: NDArray[np.float32] | Array,
        coverage: Sequence[float],
        kinds: Sequence[BaseKind],
        n_threads: int,
        leaves: NDArray[np.int32] | None = None,
    ) -> Array:
        """Intervals of the rows of X, (n, 2, k), each coverage of its own kind.

        One merge of a row's leaves serves all, and its centre: O(depth + entries) for each tree.
        The forest routes the rows unless their `leaves` (n, n_trees) are given.
        """
        source, rows = (self.scorer, X) if leaves is None else (self.scorer.index, leaves)
        options: dict[str, Any] = {"centres": self.centres, "n_threads": n_threads}
        try:
            ends = source.intervals(rows, coverage, kinds, **options)
        except ValueError:
            self.check_leaf_means()
            raise
        if (shifts := self.shifts(X, n_threads)) is not None:
            ends += shifts[:, np.newaxis, np.newaxis]
        return ends

    def _require_finite(self, source: str = "") -> None:
        bad = np.flatnonzero(~np.isfinite(self.leaf_means))
        if len(bad) > 0:
            n_leaves = self.scorer.forest.n_leaves
            tree = int(np.searchsorted(np.cumsum(n_leaves), bad[0], side="right"))
            leaf = bad[0] - n_leaves[:tree].sum()
            first = f"that of leaf {leaf} of tree {tree} is {self.leaf_means[bad[0]]}"
            raise ValueError(f"{source}leaf_means must be finite numbers, but {first}") from None


@dataclass(frozen=True, eq=False)
class RegressorMean:
    """The predictions of a fitted scikit-learn regressor."""

    regressor: Any

    def predict(self, X: NDArray[Any], n_threads: int) -> Array:  # noqa: ARG002 (it has its own)
        """Predictions for the rows of X, (n,). Raises ValueError if some are no numbers."""
        rows: Any = X.astype(np.float32, copy=False).astype(np.float64)  # as the rows of its fit
        if (names := getattr(self.regressor, "feature_names_in_", None)) is not None:
            rows = need("pandas", "a mean that was fitted on a table", None).DataFrame(
                rows, columns=names
            )
        return checked_means(self.regressor.predict(rows), len(X))


def checked_means(predictions: Any, n: int) -> Array:
    """Return predictions as float64, or raise ValueError if they are not n finite numbers."""
    values = np.asarray(predictions, dtype=np.float64)
    if values.shape == (n, 1):
        values = values[:, 0]
    if values.shape != (n,) or not np.isfinite(values).all():
        raise ValueError("the regressor given as mean must predict one finite number for each row")
    return values


class Stacking(NamedTuple):
    """A mean g of new rows, and for the training rows g from fits without them."""

    mean: Mean
    share: float  # in [0, 1], of g in the centres c + share (g - c)
    out_of_fold: Array  # (n,)
