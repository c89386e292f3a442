"""Reference: a sample of the training rows, to measure how far from them a row to predict is."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hdiforest._model.training_rows import draw_rows
from hdiforest._utils import Array

MAX_ROWS = 10_000
_MAX_PAIRED = 1_000  # rows whose distances to each other are averaged
_MAX_CATEGORIES = 30  # the most frequent ones of a feature; all others count as one
_SHARE_NOT_FLAGGED = 0.95  # of the training rows
_ROWS_AT_ONCE = 1 << 14  # so that memory stays flat


@dataclass(frozen=True, eq=False)
class Reference:
    """A sample of m training rows, and how distances to them are measured.

    A squared distance is a sum over features, weighted by importance: of numbers the squared
    difference in standard deviations, of categories 1 if they differ and 0.5 if one is missing.
    1 is added if one of both rows misses the feature. A missing number is taken as the mean.

    The dissimilarity of a row is the distance to the nearest row, divided by the mean distance
    between rows (Meyer and Pebesma, "Predicting into unknown space? Estimating the area of
    applicability of spatial prediction models", Methods in Ecology and Evolution 12, 2021).
    """

    rows: NDArray[np.float32]  # (m, n_features), NaN where missing
    importance: NDArray[np.float64]  # (n_features,), sums to 1
    mean: NDArray[np.float64]  # (n_features,)
    sd: NDArray[np.float64]  # (n_features,)
    categorical: tuple[int, ...]  # features whose numbers are codes of categories
    scale: float  # mean distance between rows
    threshold: float  # 0.95 quantile of the dissimilarity of a row to the others

    def __post_init__(self) -> None:
        n = self.rows.shape[-1]
        if self.rows.ndim != 2 or np.isinf(self.rows).any():
            raise ValueError("the rows of a reference must be (m, n_features), without infinity")
        for name in ("importance", "mean", "sd"):
            values = getattr(self, name)
            if values.shape != (n,) or not np.isfinite(values).all():
                raise ValueError(f"{name} of a reference must be {n} finite numbers")
        if min(self.importance.min(), self.sd.min()) < 0 or max(self.categorical, default=0) >= n:
            raise ValueError("a reference must have no negative importance, and features it has")
        if not (0 < self.scale < np.inf and 0 <= self.threshold < np.inf):
            raise ValueError("scale and threshold of a reference must be finite and not negative")

    @classmethod
    def of(cls, X: NDArray[np.float32], importance: Array, categorical: Collection[int]) -> Self:
        """Return a sample of training rows (n, n_features). O(m log m) distances."""
        rows = X[draw_rows(np.arange(len(X)), MAX_ROWS, 0)]
        finite = np.ma.masked_invalid(rows)
        mean = finite.mean(axis=0, dtype=np.float64).filled(0)
        sd = finite.std(axis=0, dtype=np.float64).filled(0)
        parts = rows, importance, mean, sd, tuple(sorted(categorical))
        return cls(*parts, *cls(*parts, 1.0, 0.0)._scale_and_threshold())

    def _scale_and_threshold(self) -> tuple[float, float]:
        from scipy.spatial.distance import pdist

        points = self._tree.data
        few = np.random.default_rng(0).permutation(len(points))[:_MAX_PAIRED]
        scale = float(pdist(points[few]).mean()) if len(points) > 1 else 0.0
        if scale == 0:  # all rows are alike
            return 1.0, 0.0
        nearest = self._tree.query(points, k=2)[0][:, 1] / scale
        return scale, float(np.quantile(nearest, _SHARE_NOT_FLAGGED))

    def dissimilarity(self, X: NDArray[Any], n_threads: int) -> Array:
        """Return the dissimilarity of rows (n, n_features), (n,)."""
        distance = np.empty(len(X))
        for begin in range(0, len(X), _ROWS_AT_ONCE):
            part = slice(begin, begin + _ROWS_AT_ONCE)
            points, more = self._embedded(X[part])
            nearest, _ = self._tree.query(points, workers=n_threads)
            distance[part] = np.hypot(nearest, more)
        return distance / self.scale

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import KDTree

        return KDTree(self._embedded(self.rows)[0], leafsize=20)  # half the time that 10 takes

    @cached_property
    def _share_missing(self) -> Array:
        """How many rows of the sample miss each feature."""
        return np.asarray(np.isnan(self.rows).mean(axis=0))

    @cached_property
    def _categories(self) -> dict[int, NDArray[np.float32]]:
        """Most frequent codes of each feature of categories."""
        counted = {j: np.unique(self.rows[:, j], return_counts=True) for j in self.categorical}
        return {
            j: np.sort(codes[np.argsort(-counts, kind="stable")[:_MAX_CATEGORIES]])
            for j, (codes, counts) in counted.items()
        }

    def _embedded(self, X: NDArray[Any]) -> tuple[Array, Array]:
        """Return points (n, q) whose distances are those of rows, but for further ones (n,).

        Those are of features that no row of the sample misses, or all: they add the same to the
        distance to each.
        """
        weight = np.sqrt(self.importance)
        numbers = np.setdiff1d(np.arange(X.shape[1]), self.categorical)
        missing, share = np.isnan(X), self._share_missing
        some = (share > 0) & (share < 1)
        # Constant features add nothing.
        factor = np.divide(weight, self.sd, out=np.zeros(len(weight)), where=self.sd > 0)
        scaled = (X[:, numbers] - self.mean[numbers]) * factor[numbers]
        parts = [np.nan_to_num(scaled, nan=0.0), missing[:, some] * weight[some]]
        for j, codes in self._categories.items():
            code = np.searchsorted(codes, X[:, j])
            code[~np.isin(X[:, j], codes)] = len(codes)
            # Two that differ do so in two columns.
            parts.append(np.eye(len(codes) + 1)[code] * (weight[j] / np.sqrt(2)))
            parts[-1][missing[:, j]] = 0
        further = (missing[:, ~some] != (share[~some] == 1)) @ self.importance[~some]
        return np.concatenate(parts, axis=1), np.sqrt(further)
