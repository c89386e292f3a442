"""MAPIE with LightGBM: CV+, jackknife+ after bootstrap, and conformalised quantile regression.

Barber, Candes, Ramdas, Tibshirani, "Predictive inference with the jackknife+", Annals of Statistics
49 (2021); Kim, Xu, Barber, "Predictive inference is free with the jackknife+-after-bootstrap",
NeurIPS 2020; Romano, Patterson, Candes, "Conformalized quantile regression", NeurIPS 2019.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from mapie.regression import (
    ConformalizedQuantileRegressor,
    CrossConformalRegressor,
    JackknifeAfterBootstrapRegressor,
)
from sklearn.base import clone

from .boosting import best_mean, best_quantile
from .interface import Intervals, System, Training, stacked

_FOLDS = 10
_TUNED_FOR = 0.9  # by CQR
_RESAMPLINGS = 30  # MAPIE's default


def plus(kind: Any, training: Training, **options: Any) -> Intervals:
    """Conformalise the tuned mean by a class of MAPIE's with the method "plus"."""
    model = kind(
        best_mean(training),
        confidence_level=list(training.coverages),
        method="plus",
        random_state=training.seed,
        **options,
    )
    model.fit_conformalize(training.X, training.y)
    return lambda X: model.predict_interval(X)[1]


def cv_plus(training: Training) -> Intervals:
    return plus(CrossConformalRegressor, training, cv=_FOLDS)


def jackknife_plus(training: Training) -> Intervals:
    return plus(JackknifeAfterBootstrapRegressor, training, resampling=_RESAMPLINGS)


def cqr(training: Training) -> Intervals:
    """Fit on three quarters and calibrate on the rest; settings are tuned at one coverage."""
    proper, held_out = training.split()
    tuned = [best_quantile(proper, end) for end in _ends(_TUNED_FOR)]
    median = best_quantile(proper, 0.5, tuned=False)  # MAPIE needs it for its point predictions
    median.fit(proper.X, proper.y)
    models = []
    for coverage in training.coverages:
        ends = [
            clone(regressor).set_params(alpha=end).fit(proper.X, proper.y)
            for regressor, end in zip(tuned, _ends(coverage), strict=True)
        ]
        model = ConformalizedQuantileRegressor([*ends, median], coverage, prefit=True)
        models.append(model.conformalize(held_out.X, held_out.y))

    def intervals(X: np.ndarray) -> np.ndarray:
        # One pad for both ends, as in the paper.
        found = [model.predict_interval(X, symmetric_correction=True)[1] for model in models]
        return stacked([each[..., 0] for each in found])

    return intervals


def _ends(coverage: float) -> tuple[float, float]:
    return (1 - coverage) / 2, (1 + coverage) / 2


SYSTEMS = (
    System("MAPIE CV+", 1, cv_plus),
    System("MAPIE jackknife+-ab", 1, jackknife_plus),
    System("MAPIE CQR", 1, cqr),
)
