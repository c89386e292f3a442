"""Unwraps meta-estimators: pipelines, searches, target transforms and frozen estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted


def is_search(estimator: Any) -> bool:
    """Whether it is a GridSearchCV or another estimator that keeps the best of its candidates."""
    return hasattr(estimator, "estimator") and hasattr(estimator, "refit")


def layers(estimator: Any, *, fitted: bool) -> list[Any]:
    """Return an estimator, the one inside it, and so on; the last holds no other, like a forest.

    If `fitted`, what a fit left is followed, or else the parameters; what is frozen is fitted.
    NotFittedError if it should be fitted and is not; ValueError if a search kept no estimator.
    """
    estimators = [estimator]
    while True:
        outer = estimators[-1]
        if isinstance(outer, FrozenEstimator):
            inner, fitted = outer.estimator, True
        elif isinstance(outer, Pipeline):
            inner = outer.steps[-1][1]
        elif isinstance(outer, TransformedTargetRegressor):
            inner = _part(outer, "regressor_") if fitted else outer.regressor
        elif is_search(outer):
            inner = _part(outer, "best_estimator_") if fitted else outer.estimator
        else:
            return estimators
        if inner is None or isinstance(inner, str):  # no estimator yet, or "passthrough"
            return estimators
        estimators.append(inner)


def pipelines(estimators: list[Any]) -> list[Pipeline]:
    """Return those of some layers that have steps before their last one."""
    return [each for each in estimators if isinstance(each, Pipeline) and len(each.steps) > 1]


def thawed(estimator: Any) -> Any:
    """Return the estimator inside FrozenEstimators."""
    while isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    return estimator


def seeded_clone(estimator: Any, seed: int | None) -> Any:
    """Return a clone that has the seed wherever it has none."""
    copied = clone(estimator)
    params = copied.get_params().items()
    seeds = [n for n, v in params if n.split("__")[-1] == "random_state" and v is None]
    return copied.set_params(**dict.fromkeys(seeds, seed))


def transformed_targets(estimators: list[Any], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return targets as the last of some fitted layers was given them."""
    for each in estimators:
        if isinstance(each, TransformedTargetRegressor):
            y = np.asarray(each.transformer_.transform(y.reshape(len(y), -1)), dtype=np.float64)
            y = y.ravel() if y.shape[1] == 1 else y
    return y


def weight_options(
    estimators: list[Any], sample_weight: NDArray[np.float64] | None
) -> dict[str, Any]:
    """Return the keywords that carry sample_weight through the fit of some layers to the last."""
    if sample_weight is None:
        return {}
    steps = [each.steps[-1][0] for each in estimators if isinstance(each, Pipeline)]
    steps = [] if get_config()["enable_metadata_routing"] else steps
    return {"__".join([*steps, "sample_weight"]): sample_weight}


def _part(outer: Any, name: str) -> Any:
    if name == "best_estimator_" and not hasattr(outer, name) and outer.refit is False:
        raise ValueError(
            f"{type(outer).__name__} has no best_estimator_, because of refit=False; use "
            "refit=True, or the forest itself, fitted with its best_params_"
        )
    check_is_fitted(outer, name)
    return getattr(outer, name)


def model_and_steps(
    estimator: Any, method: str, name: str = "estimator", *, live: bool = False
) -> tuple[Any, list[Pipeline]]:
    """Return the model that a fitted estimator ends in, and the steps before it.

    Around the model may be Pipelines, searches and FrozenEstimators. It is returned as it is now,
    so that several calls of it know one calibration, or if `live` itself, to be changed.
    ValueError if it has no such method, NotFittedError if one of them is not fitted.
    """
    outer: list[Any] = []
    for model in layers(estimator, fitted=True):
        if not (isinstance(model, FrozenEstimator | Pipeline) or is_search(model)):
            break
        outer.append(model)
    model = model._best() if hasattr(model, "_best") else model  # of a ForestSearchOOB
    if not hasattr(type(model), method):  # which an attribute of a fitted model is, too
        raise ValueError(
            f"{name} must be, or end in, a model that has {method}, such as "
            f"HDIForestRegressor, got {type(model).__name__}"
        )
    if hasattr(model, "_at_once") and not live:
        model = model._at_once()
    return model, [pipeline[:-1] for pipeline in pipelines(outer)]


def model_and_rows(
    estimator: Any, X: Any, method: str, name: str = "estimator", *, live: bool = False
) -> tuple[Any, Any]:
    """Return as `model_and_steps`, but the rows X as the steps hand them over."""
    model, steps = model_and_steps(estimator, method, name, live=live)
    for step in steps:
        X = step.transform(X)
    return model, X


def model_in(estimator: Any, method: str, name: str = "estimator") -> Any:
    """Return the model of `model_and_steps`."""
    return model_and_steps(estimator, method, name)[0]
