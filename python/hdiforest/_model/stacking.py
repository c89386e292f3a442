"""Stacks another mean on the forest's: fitted without each row, weighted by its error."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.utils.validation import has_fit_parameter

from hdicore import Forest, Scorer
from hdicore._clipped import Counts
from hdicore._means import BoostedMean, LocalColumns, LocalLinearMean
from hdiforest._model import residuals
from hdiforest._model.residuals import OutOfBagMeans, RegressorMean, Stacking
from hdiforest._model.training_rows import TrainingRows
from hdiforest._utils import Array
from hdiforest._utils.meta_estimators import seeded_clone

MEANS = ("boosting", "local_linear")
_N_FOLDS = 5
_N_LOCAL = 5  # features of a local regression
_PENALTIES = (1.0, 0.1, 0.01)


def stacked(
    regressor: Any, rows: TrainingRows, means: OutOfBagMeans, random_state: int | None
) -> Stacking:
    """Fit a regressor on all rows, and in five folds without each of them.

    "boosting" is scikit-learn's HistGradientBoostingRegressor. `random_state` is the seed of the
    folds, and of a regressor without one.
    """
    if isinstance(regressor, str):
        regressor = HistGradientBoostingRegressor()
    regressor = seeded_clone(regressor, random_state)
    options = {} if rows.sample_weight is None else {"sample_weight": rows.sample_weight}
    folds = KFold(_N_FOLDS, shuffle=True, random_state=random_state)
    X = rows.X.astype(np.float64)  # linear models would reduce y to the type of X
    try:
        predicted = cross_val_predict(regressor, X, rows.y, cv=folds, params=options)
        fitted = regressor.fit(X, rows.y, **options)
    except (TypeError, ValueError) as failure:
        raise ValueError(f"the regressor given as mean cannot be fitted: {failure}") from failure
    out_of_fold = residuals.checked_means(predicted, len(rows.y))
    return Stacking(_as_arrays(fitted, X), best_share(out_of_fold, rows, means), out_of_fold)


def best_share(out_of_fold: Array, rows: TrainingRows, means: OutOfBagMeans) -> float:
    """Return the share of another mean g in c + share (g - c) with the least squared error."""
    step, error = ((each - means.centres)[means.has_centre] for each in (out_of_fold, rows.y))
    weights = rows.weights_of(means.has_centre)
    row_weights = np.ones(len(step)) if weights is None else weights
    length = float(row_weights @ step**2)
    return float(np.clip(row_weights @ (step * error) / length, 0, 1)) if length > 0 else 0.0


def local_linear(
    forest: Forest,
    rows: TrainingRows,
    leaves: NDArray[np.int32],
    counts: Counts,
    means: OutOfBagMeans,
    n_threads: int,
) -> Stacking:
    """Regress around each training row, in the trees that did not draw it.

    The features are those whose splits gain most, the penalty is that of the least squared error.
    Leaves hold the rows that their tree drew, so that none takes part in its own regression.
    """
    gains = forest.split_gains(means.leaf_weight, means.leaf_means)
    top = np.argsort(-gains, kind="stable")[:_N_LOCAL]
    top = top[: max(1, np.count_nonzero(gains[top] > 0))]  # 0 if no tree has a split
    columns = LocalColumns.of_rows(rows.X[rows.has_weight], top)
    features, n, q = columns.read(rows.X), len(rows.y), len(columns.columns)
    y = rows.y.clip(rows.weighted_targets.min(), rows.weighted_targets.max())
    index = rows.index(forest, leaves, "inbag", targets=np.arange(n, dtype=np.float64))
    fits = np.empty((n, len(_PENALTIES), 2 + 2 * q + q * q))
    unseen = np.where(counts > 0, np.int32(-1), leaves)
    own = features, features, y, _PENALTIES
    predicted = index.local_linear(unseen, *own, fits=fits, n_threads=n_threads)
    predicted = predicted.clip(y.min(), y.max())
    squares = (predicted - y[:, np.newaxis])[means.has_centre] ** 2
    errors = np.average(squares, axis=0, weights=rows.weights_of(means.has_centre))
    best = int(np.argmin(errors))
    scorer, penalty = Scorer(forest, index), _PENALTIES[best]
    mean = LocalLinearMean(scorer, columns, features, y, penalty)
    out_of_bag = np.where(means.has_centre, predicted[:, best], means.centres)
    return Stacking(mean, best_share(out_of_bag, rows, means), out_of_bag, fits[:, best])


def check_mean(mean: Any, rows: TrainingRows | None) -> None:
    """Raise ValueError unless `mean` is None, one of `MEANS` or a regressor for the rows."""
    if mean is None or (isinstance(mean, str) and mean in MEANS):
        return
    needed = ("fit", "predict", "get_params")
    if isinstance(mean, type) or not all(hasattr(mean, name) for name in needed):
        names = ", ".join(map(repr, MEANS))
        raise ValueError(f"mean must be None, {names} or a regressor, got {mean!r}")
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
        and regressor.loss in ("squared_error", "absolute_error", "quantile")  # not of logs
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
