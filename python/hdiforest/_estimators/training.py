"""Training: a fitted estimator that holds a forest, and the rows of its fit, checked together."""

from __future__ import annotations

import copy
from itertools import takewhile
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from hdicore import Forest, LeafIndex
from hdiforest._estimators import input_rows
from hdiforest._model import table_steps
from hdiforest._model.sklearn_forest import OtherRowsError, check_kind, import_forest, why_no_means
from hdiforest._model.table_steps import TableFacts, TableSteps
from hdiforest._model.training_rows import TrainingRows, TreeBlock, Weighting
from hdiforest._tables.frames import frame_of
from hdiforest._utils import meta_estimators as meta
from hdiforest._utils.hints import steps

_NAME = "hdiforest_rows"
_GROWING = "growing the forest"
# Modules of boosted trees.
_BOOSTERS = ("catboost", "lightgbm", "xgboost", "sklearn.ensemble._gb", "sklearn.ensemble._hist_g")


class RowRecorder(BaseEstimator):
    """A step that keeps the rows of its fit, as steps such as TargetEncoder make others later."""

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Keep the rows."""
        self.rows_ = X
        return self

    def transform(self, X: Any) -> Any:
        """Return the rows as they are."""
        check_is_fitted(self)
        return X

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names as they are."""
        return input_features


def fit_recorded(estimator: Any, X: Any, y: Any, options: dict[str, Any]) -> Any:
    """Fit an estimator with steps, and return the rows that the last of them made of X."""
    parts = meta.layers(estimator, fitted=False)
    to_fit = meta.pipelines([*takewhile(lambda part: not isinstance(part, FrozenEstimator), parts)])
    if to_fit:
        to_fit[-1].steps.insert(-1, (_NAME, RowRecorder()))
    estimator.fit(X, y, **options)
    rows, unrecorded = X, meta.pipelines(meta.layers(estimator, fitted=True))
    for position, pipeline in enumerate(unrecorded):
        name, step = pipeline.steps[-2]
        if name == _NAME:
            rows, unrecorded = step.rows_, unrecorded[position + 1 :]
            break
    for pipeline in unrecorded:  # inside a frozen estimator
        rows = table_steps.transformed(pipeline[:-1], rows)
    _remove_recorders(estimator)
    return rows


def _remove_recorders(estimator: Any) -> None:
    """Remove the recorder from the fitted and the unfitted parts of an estimator."""
    if isinstance(estimator, Pipeline):
        estimator.steps[:] = [step for step in estimator.steps if step[0] != _NAME]
        _remove_recorders(estimator.steps[-1][1])
    for name in ("estimator", "best_estimator_", "regressor", "regressor_"):
        if hasattr(estimator, name):
            _remove_recorders(getattr(estimator, name))


class Training(NamedTuple):
    """A fitted estimator, and the rows of its fit."""

    estimator: Any  # not frozen
    was_fitted: bool  # by the caller
    forest: Any  # its innermost
    X: NDArray[np.float32]  # (n, n_features) as the forest was given them
    y: NDArray[np.float64]  # (n,) or (n, n_outputs)
    sample_weight: NDArray[np.float64] | None  # (n,)
    allow_nan: bool  # whether the forest takes missing values
    steps: TableSteps | None = None  # before the forest
    table: Any = None  # what the steps were given, if there are some


def check_estimator(estimator: Any) -> None:
    """Raise ValueError unless it has what scikit-learn needs to clone and fit it."""
    inner, last = meta.thawed(estimator), type(meta.layers(estimator, fitted=False)[-1])
    if any(base.__module__.startswith(_BOOSTERS) for base in last.__mro__):
        raise ValueError(
            f"estimator must be a forest, got the booster {last.__name__}; call "
            "HDIForestRegressor().fit(X, y).calibrate(mean=booster), or for a random forest of "
            "its library hdiforest.from_lightgbm or from_xgboost"
        )
    if isinstance(inner, type) or not (hasattr(inner, "fit") and hasattr(inner, "get_params")):
        forest = "a forest such as RandomForestRegressor(), not a part of one like tree_"
        raise ValueError(f"estimator must be {forest} or estimators_, got {inner!r:.60}")


def fit_estimator(
    model: Any, estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None
) -> Training:
    """Fit an estimator itself, unless it is frozen; `model` learns the names of the columns."""
    was_fitted = isinstance(estimator, FrozenEstimator)
    estimator = meta.thawed(estimator)
    parts = meta.layers(estimator, fitted=was_fitted)
    if was_fitted:
        check_is_fitted(estimator)
    if was_fitted or not any(meta.is_search(part) for part in parts):
        check_kind(parts[-1])
    if meta.pipelines(parts):
        return _fit_on_table(model, estimator, was_fitted, X, y, sample_weight)
    X = input_rows.rows_for_sklearn(X)
    if was_fitted:
        validate_data(parts[-1], X, reset=False, skip_check_array=True)
    allow_nan = get_tags(parts[-1]).input_tags.allow_nan
    rows, targets = input_rows.checked_training_rows(model, X, y, allow_nan=allow_nan)
    weights = input_rows.checked_sample_weight(sample_weight, len(rows))
    if not was_fitted:
        for each in steps(_GROWING, [estimator]):
            each.fit(X, targets, **meta.weight_options(parts, weights))
    forest = meta.layers(estimator, fitted=True)[-1]
    return Training(estimator, was_fitted, forest, rows, targets, weights, allow_nan)


def _fit_on_table(
    model: Any, estimator: Any, was_fitted: bool, X: Any, y: Any, sample_weight: Any
) -> Training:
    frame = frame_of(X)
    table = frame.in_library(frame.library)
    validate_data(model, table, skip_check_array=True)
    targets = input_rows.checked_targets(table, y)
    weights = input_rows.checked_sample_weight(sample_weight, len(targets))
    if not was_fitted:
        options = meta.weight_options(meta.layers(estimator, fitted=False), weights)
        for each in steps(_GROWING, [estimator]):
            encoded = fit_recorded(each, table, targets, options)
    parts = meta.layers(estimator, fitted=True)
    check_kind(parts[-1])
    pipelines = [each[:-1] for each in meta.pipelines(parts)]
    parts_of = [(f"pipeline{i}_{name}", s) for i, p in enumerate(pipelines) for name, s in p.steps]
    pipeline = pipelines[0] if len(pipelines) == 1 else Pipeline(parts_of)
    allow_nan = get_tags(parts[-1]).input_tags.allow_nan
    if was_fitted:
        encoded = table_steps.transformed(pipeline, table)
    rows = table_steps.dense_rows(encoded, allow_nan=allow_nan, copy=True)
    if len(rows) != len(targets):
        raise ValueError(
            f"the steps before the forest made {len(rows)} rows of {len(targets)}; steps that add "
            "rows or leave some out are not understood"
        )
    names = getattr(model, "feature_names_in_", None)
    names = None if names is None else tuple(map(str, names))
    of_table = names, table_steps.number_columns_of(table), table_steps.texts_of(table)
    facts = TableFacts(frame.library, *of_table)
    table_reader = TableSteps(pipeline, facts, rows.shape[1], allow_nan)
    # Rows that do not change if the caller changes the given ones.
    copied = table.copy() if hasattr(table, "copy") else copy.copy(table)
    fitted_on = rows, targets, weights
    return Training(estimator, was_fitted, parts[-1], *fitted_on, allow_nan, table_reader, copied)


def import_training_forest(
    training: Training, weights: Weighting, n_threads: int, blocks: list[TreeBlock] | None = None
) -> tuple[Forest, TrainingRows, LeafIndex]:
    """Import the forest as `import_forest` does; fitted steps may have to be fitted again."""
    parts = meta.layers(training.estimator, fitted=True)
    leaf_targets = meta.transformed_targets(parts, training.y)

    def checked(X: NDArray[np.float32]) -> tuple[Forest, TrainingRows, LeafIndex]:
        rows = X, training.y, training.sample_weight
        return import_forest(
            training.forest, *rows, weights, n_threads, fitted_on=leaf_targets, blocks=blocks
        )

    try:
        return checked(training.X)
    except OtherRowsError as refusal:
        if training.steps is None or not training.was_fitted:
            raise
        try:
            encoded = _fitted_again(parts, training.table, training.y)
            rows = table_steps.dense_rows(encoded, allow_nan=training.allow_nan, copy=True)
        except (TypeError, ValueError):
            raise refusal from None
        if np.array_equal(rows, training.X, equal_nan=True):
            raise
        try:
            return checked(rows)
        except OtherRowsError:
            raise ValueError(
                f"{refusal}; or the steps before the forest drew at random what they made of "
                "training rows, as TargetEncoder does: give them a random_state, or fit the whole "
                "by HDIForestRegressor(estimator=...)"
            ) from None


def matches_forest(training: Training, weights: Weighting, rows: TrainingRows) -> bool:
    """Whether means of leaves that weigh rows so are the predictions of the scikit-learn forest."""
    counts_draws = weights == "inbag" or (weights == "all" and rows.bags is None)
    parts = meta.layers(training.estimator, fitted=True)
    return (
        counts_draws
        and why_no_means(training.forest) is None
        and np.array_equal(meta.transformed_targets(parts, training.y), training.y)
        and type(training.forest).__module__.startswith("sklearn.")  # others may predict otherwise
    )


def _fitted_again(estimators: list[Any], X: Any, y: NDArray[np.float64]) -> Any:
    """Return what clones of the steps of fitted layers make of rows at their fit."""
    for each in estimators:
        if isinstance(each, TransformedTargetRegressor):
            y = meta.transformed_targets([each], y)
        elif isinstance(each, Pipeline) and len(each.steps) > 1:
            X = clone(each[:-1]).fit_transform(X, y)
    return X
