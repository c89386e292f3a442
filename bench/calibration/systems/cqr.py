"""Conformalised quantile regression: with a tuned quantile forest, and with CatBoost.

Romano, Patterson, Candes, "Conformalized quantile regression", NeurIPS 2019. The forests are those
of the library quantile-forest. Rows to a leaf, share
of features and nominal quantiles are chosen for each coverage on the part that is fitted: those
whose out-of-bag intervals, padded to the coverage, are narrowest. The other part gives the pad.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from catboost import CatBoostRegressor
from quantile_forest import RandomForestQuantileRegressor

from .interface import Intervals, System, Training, imputed, split_quantile, stacked

_FORESTS = tuple(product((1, 5), (1 / 3, 1.0)))
_ROUNDS = 500
_LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9)  # and the coverage itself


def _ends(level: float) -> list[float]:
    return [(1 - level) / 2, (1 + level) / 2]


def _missed_by(y: np.ndarray, ends: np.ndarray) -> np.ndarray:
    return np.maximum(ends[:, 0] - y, y - ends[:, 1])


def _padded_width(y: np.ndarray, ends: np.ndarray, coverage: float) -> float:
    pad = split_quantile(_missed_by(y, ends), coverage)
    return float(np.maximum(ends[:, 1] - ends[:, 0] + 2 * pad, 0).mean())


def cqr(training: Training) -> Intervals:
    # The library knows no missing features.
    training, impute = imputed(training)
    proper, held_out = training.split()
    levels = sorted({*_LEVELS, *training.coverages})
    quantiles = [end for level in levels for end in _ends(level)]
    best = [(np.inf, None, 0.0)] * len(training.coverages)
    for leaf, share in _FORESTS:
        forest = RandomForestQuantileRegressor(
            **training.forest_options(),
            min_samples_leaf=leaf,
            max_features=share,
            max_samples_leaf=None,  # Meinshausen's: all rows of a leaf, not one at random
        ).fit(proper.X, proper.y)
        out_of_bag = forest.predict(proper.X, quantiles, oob_score=True)
        for (i, level), (j, coverage) in product(enumerate(levels), enumerate(training.coverages)):
            width = _padded_width(proper.y, out_of_bag[:, 2 * i : 2 * i + 2], coverage)
            if width < best[j][0]:
                best[j] = (width, forest, level)
    pads = [
        split_quantile(_missed_by(held_out.y, forest.predict(held_out.X, _ends(level))), coverage)
        for (_, forest, level), coverage in zip(best, training.coverages, strict=True)
    ]

    def intervals(X: np.ndarray) -> np.ndarray:
        X = impute(X)
        return stacked(
            [
                forest.predict(X, _ends(level)) + np.array([-pad, pad])
                for (_, forest, level), pad in zip(best, pads, strict=True)
            ]
        )

    return intervals


def catboost_cqr(training: Training) -> Intervals:
    """Fit all quantiles at once on three quarters, by CatBoost's own settings."""
    proper, held_out = training.split()
    quantiles = [end for coverage in training.coverages for end in _ends(coverage)]
    shares = ",".join(f"{quantile:g}" for quantile in quantiles)
    model = CatBoostRegressor(
        loss_function=f"MultiQuantile:alpha={shares}",
        iterations=_ROUNDS,
        random_seed=training.seed,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
    ).fit(proper.X, proper.y)

    def ends_of(X: np.ndarray) -> np.ndarray:
        ends = model.predict(X).reshape(len(X), -1, 2).transpose(0, 2, 1)
        return np.sort(ends, axis=1)  # quantiles may cross

    missed_by = _missed_by(held_out.y[:, None], ends_of(held_out.X))
    pads = np.array([split_quantile(missed_by[:, j], c) for j, c in enumerate(training.coverages)])

    def intervals(X: np.ndarray) -> np.ndarray:
        padded = ends_of(X) + np.array([[-1.0], [1.0]]) * pads
        return stacked(list(np.moveaxis(padded, -1, 0)))

    return intervals


SYSTEMS = (
    System("CQR, quantile forest", 1, cqr),
    System("CQR, CatBoost", 1, catboost_cqr),
)
