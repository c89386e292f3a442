"""Stacks another mean on the forest's: fitted without each row, weighted by its error."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.utils.validation import has_fit_parameter

from hdicore import Forest
from hdicore._means import BoostedMean
from hdiforest._model import residuals
from hdiforest._model.residuals import OutOfBagMeans, RegressorMean, Stacking
from hdiforest._model.training_rows import TrainingRows
from hdiforest._utils import Array
from hdiforest._utils.meta_estimators import seeded_clone

_N_FOLDS = 5


def stacked(
    regressor: Any, rows: TrainingRows, means: OutOfBagMeans, random_state: int | None
) -> Stacking:
    """Fit a regressor on all rows, and in five folds without each of them.

    "boosting" is scikit-learn's HistGradientBoostingRegressor. `random_state` is the seed of the
    folds, and of a regressor without one.
    """
    if isinstance(regressor, str):
        regressor = HistGradientBoostingRegressor()
    options = {} if rows.sample_weight is None else {"sample_weight": rows.sample_weight}
    folds = KFold(_N_FOLDS, shuffle=True, random_state=random_state)
    X = rows.X.astype(np.float64)  # linear models would reduce y to the type of X
    try:
        regressor = seeded_clone(regressor, random_state)
        predicted = cross_val_predict(regressor, X, rows.y, cv=folds, params=options)
        fitted = regressor.fit(X, rows.y, **options)
    except Exception as failure:  # other libraries have exceptions of their own
        raise ValueError(
            "the regressor given as mean cannot be fitted, give one that clone(mean).fit(X, y) "
            f"fits on arrays of numbers: {failure}"
        ) from failure
    out_of_fold = residuals.checked_means(predicted, len(rows.y))
    return Stacking(_as_arrays(fitted, X), best_share(out_of_fold, rows, means), out_of_fold)


def best_share(out_of_fold: Array, rows: TrainingRows, means: OutOfBagMeans) -> float:
    """Return the share of another mean g in c + share (g - c) with the least squared error."""
    step, error = ((each - means.centres)[means.has_centre] for each in (out_of_fold, rows.y))
    weights = rows.weights_of(means.has_centre)
    row_weights = np.ones(len(step)) if weights is None else weights
    length = float(row_weights @ step**2)
    return float(np.clip(row_weights @ (step * error) / length, 0, 1)) if length > 0 else 0.0


def check_mean(mean: Any, rows: TrainingRows | None) -> None:
    """Raise ValueError unless `mean` is None, "boosting" or a regressor for the rows."""
    if mean is None or (isinstance(mean, str) and mean == "boosting"):
        return
    needed = ("fit", "predict", "get_params")
    if isinstance(mean, type) or not all(hasattr(mean, name) for name in needed):
        raise ValueError(
            f"mean must be None, 'boosting' or a regressor, got {mean!r:.60}; clones of it are "
            "fitted, so give LGBMRegressor(), not a Booster"
        )
    for name in ("loss", "loss_function", "objective"):
        if "quantile" in str(given := mean.get_params().get(name)).lower():
            raise ValueError(
                f"mean must be a regressor of the mean, got {type(mean).__name__} with "
                f"{name}={given!r}; the model has all quantiles without it (predict_quantiles)"
            )
    weighted = rows is not None and rows.sample_weight is not None
    if weighted and not has_fit_parameter(mean, "sample_weight"):
        raise ValueError(
            "mean must be a regressor whose fit takes sample_weight, because the forest was "
            f"fitted with weights, got {mean!r}"
        )


def _as_arrays(fitted: Any, X: Array) -> residuals.Mean:
    """Return the mean as plain arrays if these predict the same, else as it is."""
    if not is_plain_boosting(fitted):
        return RegressorMean(fitted)
    arrays = boosted_mean(fitted, X.shape[1])
    expected = fitted.predict(X)
    same = np.allclose(arrays.predict(X, 1), expected, rtol=1e-9, atol=1e-9 * np.ptp(expected))
    return arrays if same else RegressorMean(fitted)


def is_plain_boosting(regressor: Any) -> bool:
    """Whether `boosted_mean` can read the trees of a fitted regressor."""
    return (
        type(regressor) is HistGradientBoostingRegressor
        and regressor.loss in ("squared_error", "absolute_error")  # not of logs
        and regressor.is_categorical_ is None
    )


def boosted_mean(regressor: Any, n_features: int) -> BoostedMean:
    """Read the trees of a fitted regressor that `is_plain_boosting` accepts."""
    nodes = [tree.nodes for iteration in regressor._predictors for tree in iteration]
    joined = np.concatenate(nodes)
    offsets = np.cumsum([0, *map(len, nodes)])
    left, right = (
        np.where(joined["is_leaf"], -1, joined[side].astype(np.int64)) for side in ("left", "right")
    )
    forest = Forest(
        children_left=left,
        children_right=right,
        feature=joined["feature_idx"],
        threshold=joined["num_threshold"],
        missing_go_to_left=joined["missing_go_to_left"],
        tree_offsets=offsets,
        n_features=n_features,
    )
    values = joined["value"][np.repeat(offsets[:-1], forest.n_leaves) + forest.leaf_nodes]
    return BoostedMean(forest, values, float(regressor._baseline_prediction.item()))
