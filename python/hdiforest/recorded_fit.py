"""Fits a pipeline, and keeps the rows that its steps gave to the forest."""

from __future__ import annotations

from itertools import takewhile
from typing import Any, Self

from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from hdiforest._utils.meta_estimators import layers, pipelines
from hdiforest.table_steps import transformed

_NAME = "hdiforest_rows"


class RowRecorder(BaseEstimator):
    """A step that keeps the rows of its fit and changes nothing.

    What the steps make of training rows at their fit may differ from what they make of the same
    rows later, as for TargetEncoder, and may be drawn at random.
    """

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
    """Fit an estimator with steps, and return the rows that the last of them made of X.

    Parameters
    ----------
    estimator : unfitted estimator
    X, y
        What its `fit` is given.
    options : dict
        Further arguments of its `fit`.
    """
    to_fit = pipelines(_not_frozen(estimator))
    if to_fit:
        to_fit[-1].steps.insert(-1, (_NAME, RowRecorder()))
    estimator.fit(X, y, **options)
    rows, unrecorded = X, pipelines(layers(estimator, fitted=True))
    for at, pipeline in enumerate(unrecorded):
        name, step = pipeline.steps[-2]
        if name == _NAME:
            rows, unrecorded = step.rows_, unrecorded[at + 1 :]
            break
    for pipeline in unrecorded:  # inside a frozen estimator
        rows = transformed(pipeline[:-1], rows)
    _remove_recorders(estimator)
    return rows


def _not_frozen(estimator: Any) -> list[Any]:
    """Return the layers outside the first frozen one."""
    found = layers(estimator, fitted=False)
    return list(takewhile(lambda each: not isinstance(each, FrozenEstimator), found))


def _remove_recorders(estimator: Any) -> None:
    """Remove the recorder from the fitted and the unfitted parts of an estimator."""
    if isinstance(estimator, Pipeline):
        estimator.steps[:] = [step for step in estimator.steps if step[0] != _NAME]
        _remove_recorders(estimator.steps[-1][1])
    for name in ("estimator", "best_estimator_", "regressor", "regressor_"):
        if hasattr(estimator, name):
            _remove_recorders(getattr(estimator, name))
