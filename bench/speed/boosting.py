"""Means of LightGBM and XGBoost as they come, which many use where no interval is asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from lightgbm import LGBMRegressor
from xgboost import XGBRegressor

Mean = Callable[[np.ndarray], np.ndarray]
N_TREES = 100


def boosted_means(
    X: np.ndarray, y: np.ndarray, threads: tuple[int, ...]
) -> tuple[dict[tuple[str, int], Mean], dict[str, str]]:
    """Functions from float32 rows to means, by name and number of threads; or why there is none."""
    if y.ndim > 1:
        return {}, dict.fromkeys(("lightgbm", "xgboost"), "is fitted to one target at a time")
    most = max(threads)
    lightgbm = LGBMRegressor(n_estimators=N_TREES, n_jobs=most, random_state=0, verbose=-1)
    lightgbm.fit(X, y)
    xgboost = XGBRegressor(n_estimators=N_TREES, n_jobs=most, random_state=0).fit(X, y)
    found: dict[tuple[str, int], Mean] = {}
    for n in threads:
        found["lightgbm", n] = partial(lightgbm.booster_.predict, num_threads=n)
        found["xgboost", n] = partial(_predict, xgboost, n)
    return found, {}


def _predict(model: XGBRegressor, n_threads: int, rows: np.ndarray) -> np.ndarray:
    model.get_booster().set_param("nthread", n_threads)
    return model.predict(rows)
