"""Finds the model inside pipelines, searches and frozen estimators, and the rows that it gets."""

from __future__ import annotations

from typing import Any

from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from hdiforest.nesting import is_search, layers


def model_and_rows(estimator: Any, X: Any, method: str) -> tuple[Any, Any]:
    """Return the model that a fitted estimator ends in, and X as the steps before hand it over.

    Parameters
    ----------
    estimator : fitted estimator
        See `model_in`.
    X : rows of `estimator`
    method : str
        What the model must have.

    Raises
    ------
    NotFittedError
        If a step or a search is not fitted.
    ValueError
        If the model has no such method.
    """
    model, steps = _model_and_steps(estimator, method)
    for step in steps:
        X = step.transform(X)
    return model, X


def model_in(estimator: Any, method: str) -> Any:
    """Return the model that a fitted estimator ends in.

    It may be the model itself, or a Pipeline, a search, a `ForestSearchOOB` or a FrozenEstimator
    of it. Raises as `model_and_rows`.
    """
    return _model_and_steps(estimator, method)[0]


def _model_and_steps(estimator: Any, method: str) -> tuple[Any, list[Pipeline]]:
    model, steps = estimator, []
    while True:
        if isinstance(model, FrozenEstimator):
            model = model.estimator
        elif isinstance(model, Pipeline):
            if len(model.steps) > 1:
                steps.append(model[:-1])
            model = model.steps[-1][1]
        elif is_search(model):
            model = layers(model, fitted=True)[1]
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        else:
            break
    if not hasattr(model, method):
        raise ValueError(
            f"estimator must be, or end in, a model that has {method}, such as "
            f"HDIForestRegressor, got {type(model).__name__}"
        )
    return model, steps
