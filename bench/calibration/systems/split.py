"""Split conformal: a random forest's mean, plus and minus a quantile of held-out residuals.

Papadopoulos and others (2002); Lei and others, "Distribution-free predictive inference for
regression", JASA 113 (2018). The share of features at a split is chosen by the out-of-bag error.
"""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from .interface import Intervals, System, Training, split_quantile, stacked

_SHARES = (1 / 3, 1.0)


def best_forest(training: Training) -> RandomForestRegressor:
    """Fit forests, and return that of the smallest out-of-bag error."""
    options = training.forest_options()
    forests = [
        RandomForestRegressor(**options, max_features=share, oob_score=True) for share in _SHARES
    ]
    return max((forest.fit(training.X, training.y) for forest in forests), key=_out_of_bag)


def _out_of_bag(forest: RandomForestRegressor) -> float:
    return float(forest.oob_score_)


def split_conformal(training: Training) -> Intervals:
    proper, held_out = training.split()
    forest = best_forest(proper)
    residuals = np.abs(held_out.y - forest.predict(held_out.X))
    pads = [split_quantile(residuals, coverage) for coverage in training.coverages]

    def intervals(X: np.ndarray) -> np.ndarray:
        mean = forest.predict(X)
        return stacked([np.stack([mean - pad, mean + pad], axis=1) for pad in pads])

    return intervals


SYSTEMS = (System("split conformal", 1, split_conformal),)
