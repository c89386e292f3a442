"""Stacks another mean on the forest's: fitted without each row, weighted by its error."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter

from hdicore import Forest, OutOfBagScorer
from hdicore.means import BoostedMean
from hdiforest._model import residuals
from hdiforest._model.fitted import FittedForest
from hdiforest._model.residuals import RegressorMean, Stacking
from hdiforest._model.training_rows import TrainingRows
from hdiforest._utils import Array
from hdiforest._utils.hints import warn_caller
from hdiforest._utils.meta_estimators import seeded_clone, thawed
from hdiforest.exceptions import FrozenMeanWarning

_N_FOLDS = 5
_PENALTIES = np.logspace(-4, 6, 21)

# What tells that a frozen model has been fitted on the rows. Of 357 models that were, on 31 data
# sets, 0.78 are found; of 419 that were not 6 seem so, on data without noise.
_MIN_ROWS, _MAX_SLOPE, _MIN_SHARE_OF_ERROR = 30, 1.1, 0.25


class RidgeAndBoosting(RegressorMixin, BaseEstimator):
    """A ridge of standardised features, and boosted trees of what it leaves of the targets.

    Missing features are medians to the ridge. Predictions stay within the range of the targets, so
    that those of rows far away do.
    """

    def __init__(self, random_state: int | None = None) -> None:
        self.random_state = random_state

    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> RidgeAndBoosting:
        """Fit the ridge, whose penalty has the least leave-one-out error, and then the trees."""
        if sample_weight is not None:
            kept = sample_weight > 0
            X, y, sample_weight = X[kept], y[kept], sample_weight[kept]
            sample_weight = sample_weight / sample_weight.mean()
        X = np.where(np.isnan(X).all(axis=0), 0, X)  # of columns that are missing everywhere
        low, high = y.min(), y.max()
        unit = high - low or 1.0  # trees have gradients of single precision
        imputer = SimpleImputer(strategy="median").fit(X)
        scaler, ridge = StandardScaler(), RidgeCV(_PENALTIES)
        Z = scaler.fit_transform(imputer.transform(X), sample_weight=sample_weight)
        with np.errstate(invalid="ignore"):  # of a single row
            ridge.fit(Z, (y - low) / unit, sample_weight)
        line = np.array([imputer.statistics_, ridge.coef_ / scaler.scale_])
        left = (y - low) / unit - ridge.predict(Z)
        trees = HistGradientBoostingRegressor(random_state=self.random_state)
        of_trees = boosted_mean(trees.fit(X, left, sample_weight), X.shape[1])
        at_medians = ridge.intercept_ + (line[0] - scaler.mean_) @ line[1]
        self.mean_ = BoostedMean(
            of_trees.forest,
            unit * of_trees.leaf_values,
            line * [[1], [unit]],
            float(low + unit * (at_medians + of_trees.baseline)),
            float(low),
            float(high),
        )
        return self

    def predict(self, X: Array) -> Array:
        """Predictions for the rows of X, (n,)."""
        return self.mean_.predict(X, 1)


def stacked(
    regressor: Any, rows: TrainingRows, means: OutOfBagScorer, random_state: int | None
) -> Stacking:
    """Fit a regressor on all rows, and in five folds without each of them; not a frozen one.

    "boosting" is `RidgeAndBoosting`. `random_state` is the seed of the folds, and of a regressor
    without one.
    """
    if isinstance(regressor, FrozenEstimator):
        frozen = RegressorMean(regressor)
        predicted = frozen.predict(rows.X, 1)
        _warn_if_seen(type(thawed(regressor)).__name__, predicted, rows, means)
        return Stacking(frozen, best_share(predicted, rows, means), predicted)
    if isinstance(regressor, str):
        regressor = RidgeAndBoosting()
    options = {} if rows.sample_weight is None else {"sample_weight": rows.sample_weight}
    folds = KFold(min(_N_FOLDS, len(rows.y)), shuffle=True, random_state=random_state)
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


def best_share(out_of_fold: Array, rows: TrainingRows, means: OutOfBagScorer) -> float:
    """Return the share of another mean g in c + share (g - c) with the least squared error."""
    return float(np.clip(_slope(out_of_fold, rows, means)[0], 0, 1))


def _slope(
    predicted: Array, rows: TrainingRows, means: OutOfBagScorer
) -> tuple[float, float, float]:
    """Return the slope of y - c by g - c, its standard error, and the share of |y - g| in |y - c|.

    All are of the rows with an out-of-bag mean c; g are the `predicted` ones.
    """
    has_centre = means.n_oob > 0
    step, error = ((each - means.centres)[has_centre] for each in (predicted, rows.y))
    weights = rows.weights_of(has_centre)
    row_weights = np.ones(len(step)) if weights is None else weights
    row_weights = row_weights / row_weights.max(initial=0)
    unit = max(np.abs(step).max(initial=0), np.abs(error).max(initial=0)) or 1.0
    step, error = step / unit, error / unit  # so that no square is beyond all numbers
    length = row_weights @ step**2
    if not length > 0:
        return 0.0, 0.0, 1.0
    slope = row_weights @ (step * error) / length
    spread = np.linalg.norm(row_weights * step * (error - slope * step)) / length
    of_mean, of_centre = row_weights @ np.abs(error - step), row_weights @ np.abs(error)
    return float(slope), float(spread), float(of_mean / of_centre) if of_centre > 0 else 1.0


def _warn_if_seen(kind: str, predicted: Array, rows: TrainingRows, means: OutOfBagScorer) -> None:
    """Warn if a frozen model has been fitted on the rows, as far as its errors on them tell.

    Its predictions have then gone a part of the way to each row's own target, so that targets are
    beyond them as seen from out-of-bag means: the slope is above 1. Or its errors are near 0.
    """
    slope, spread, share_of_error = _slope(predicted, rows, means)
    if np.count_nonzero(means.n_oob) >= _MIN_ROWS and (
        slope - 2 * spread > _MAX_SLOPE or share_of_error < _MIN_SHARE_OF_ERROR
    ):
        warn_caller(
            f"the {kind} in the FrozenEstimator seems to have been fitted on the rows of the "
            "forest's fit, because its predictions are too close to their targets; intervals of "
            "new rows will cover too little. Fit the forest on rows that are new to it, or give "
            "mean without FrozenEstimator, so that clones are fitted in folds",
            FrozenMeanWarning,
        )


def check_mean(mean: Any, fitted: FittedForest) -> None:
    """Raise ValueError unless `mean` is None, "boosting", a regressor for the rows, or frozen."""
    if mean is None or (isinstance(mean, str) and mean == "boosting"):
        return
    model, is_frozen = thawed(mean), isinstance(mean, FrozenEstimator)
    weights = getattr(fitted.training_rows, "sample_weight", None)
    needed = ("predict",) if is_frozen else ("fit", "predict", "get_params")
    if isinstance(model, type) or not all(hasattr(model, name) for name in needed):
        raise ValueError(
            f"mean must be None, 'boosting' or a regressor, got {mean!r:.60}; clones of it are "
            "fitted, so give LGBMRegressor(), not a Booster; FrozenEstimator(model) of "
            "sklearn.frozen takes a fitted model as it is"
        )
    for name, given in getattr(model, "get_params", dict)().items():
        parameter = name.rpartition("__")[2]
        if parameter in ("loss", "loss_function", "objective") and "quantile" in str(given).lower():
            raise ValueError(
                f"mean must be a regressor of the mean, got {type(model).__name__} with "
                f"{name}={given!r}; the model has all quantiles without it (predict_quantiles)"
            )
    if is_frozen:
        _check_frozen(mean, type(model).__name__, fitted)
    elif weights is not None and not has_fit_parameter(mean, "sample_weight"):
        raise ValueError(
            "mean must be a regressor whose fit takes sample_weight, because the forest was "
            f"fitted with weights, got {mean!r}"
        )


def _check_frozen(frozen: FrozenEstimator, kind: str, fitted: FittedForest) -> None:
    """Raise ValueError unless a fitted model predicts a number for rows of these features."""
    if fitted.n_outputs > 1:
        raise ValueError(
            "mean must not be a FrozenEstimator for a model of several targets, this has "
            f"{fitted.n_outputs}; fit one forest for each target"
        )
    names = getattr(frozen, "feature_names_in_", getattr(frozen, "feature_names_", None))
    n_features = getattr(frozen, "n_features_in_", None) or fitted.n_features
    if n_features != fitted.n_features:
        raise ValueError(
            f"mean must be a model of the {fitted.n_features} features of the forest, and the "
            f"{kind} in the FrozenEstimator has {n_features}"
        )
    if names is not None and fitted.facts.feature_names is not None:
        # CatBoost numbers features of arrays, and LightGBM has no blanks in names.
        expected, of_mean = (
            [str(name).replace(" ", "_") for name in each]
            for each in (fitted.facts.feature_names, names)
        )
        if of_mean not in (expected, [str(j) for j in range(n_features)]):
            j = next(j for j, name in enumerate(of_mean) if name != expected[j])
            raise ValueError(
                "mean must be a model of the features of the forest in their order, and feature "
                f"{j} of the {kind} in the FrozenEstimator is {of_mean[j]!r}, not {expected[j]!r}"
            )
    if fitted.training_rows is None:
        return
    try:
        RegressorMean(frozen).predict(fitted.training_rows.X[:1], 1)
    except Exception as failure:  # other libraries have exceptions of their own
        raise ValueError(
            "mean must be a fitted model that predicts one number for a row of numbers, and the "
            f"{kind} in the FrozenEstimator does not: {' '.join(str(failure).split()):.200}"
        ) from failure


def _as_arrays(fitted: Any, X: Array) -> residuals.Mean:
    """Return the mean as plain arrays if these predict the same, else as it is."""
    if isinstance(fitted, RidgeAndBoosting):
        return fitted.mean_
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
    line, baseline = np.zeros((2, n_features)), float(regressor._baseline_prediction.item())
    return BoostedMean(forest, values, line, baseline)
