"""LightGBM as the regressor inside other systems, its settings chosen by cross-validation."""

from __future__ import annotations

from typing import Any

from lightgbm import LGBMRegressor
from sklearn.metrics import make_scorer, mean_pinball_loss
from sklearn.model_selection import GridSearchCV, KFold

from .interface import Training

_GRID = {"num_leaves": [7, 31], "learning_rate": [0.03, 0.1]}
_ROUNDS = 200
_FOLDS = 3


def best_mean(training: Training) -> LGBMRegressor:
    """Return an unfitted regressor with the settings of the least squared error."""
    return _best(_regressor(training), training, "neg_mean_squared_error")


def best_quantile(training: Training, quantile: float, *, tuned: bool = True) -> LGBMRegressor:
    """Return an unfitted regressor of a quantile with the settings of the least pinball loss."""
    regressor = _regressor(training, objective="quantile", alpha=quantile)
    if not tuned:
        return regressor
    loss = make_scorer(mean_pinball_loss, alpha=quantile, greater_is_better=False)
    return _best(regressor, training, loss)


def _regressor(training: Training, **options: Any) -> LGBMRegressor:
    seed = training.seed
    return LGBMRegressor(n_estimators=_ROUNDS, random_state=seed, n_jobs=1, verbose=-1, **options)


def _best(regressor: LGBMRegressor, training: Training, scoring: Any) -> LGBMRegressor:
    folds = KFold(_FOLDS, shuffle=True, random_state=training.seed)
    search = GridSearchCV(regressor, _GRID, scoring=scoring, cv=folds, refit=False)
    search.fit(training.X, training.y)
    return regressor.set_params(**search.best_params_)
