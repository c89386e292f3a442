"""Facts of a fitted model: what its forest was given, and whether it predicts as its forest."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline

from hdiforest._utils.meta_estimators import model_in


def predict_matches_forest(model: Any) -> bool:
    """Tell whether `predict` must give the forest's own predictions, up to rounding.

    Parameters
    ----------
    model : fitted estimator
        An `HDIForestRegressor` or a `ForestSearchOOB`, also as the last step of a Pipeline or the
        best of a search.

    Returns
    -------
    bool
        True if the leaves of the forest predict means of y, and `weights` count rows as its trees
        drew them. False for a model with pruned trees, also if a calibration pruned them.

    Raises
    ------
    ValueError
        If `model` is no such estimator.
    NotFittedError
        If the model is not fitted.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from sklearn.ensemble import ExtraTreesRegressor
    >>> from hdiforest import HDIForestRegressor
    >>> from hdiforest.inspection import predict_matches_forest
    >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
    >>> forest = ExtraTreesRegressor(20, random_state=0).fit(X, y)
    >>> predict_matches_forest(HDIForestRegressor.from_forest(forest, X, y))
    True
    """
    matches: bool = (
        model_in(model, "predict_weights", "model")._fitted_forest().facts.matches_forest
    )
    return matches


def preprocessing_steps(model: Any) -> Pipeline | None:
    """Return the fitted steps before the forest, which all methods of the model apply to X.

    Parameters
    ----------
    model : fitted estimator
        An `HDIForestRegressor` or a `ForestSearchOOB`, also as the last step of a Pipeline or the
        best of a search.

    Returns
    -------
    Pipeline or None
        The steps, or None if the forest was fitted without steps. ``get_feature_names_out`` of the
        Pipeline gives the names for ``feature_importances_``.

    Raises
    ------
    ValueError
        If `model` is no such estimator.
    NotFittedError
        If the model is not fitted.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from sklearn.ensemble import ExtraTreesRegressor
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from hdiforest import HDIForestRegressor
    >>> from hdiforest.inspection import preprocessing_steps
    >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
    >>> pipeline = make_pipeline(StandardScaler(), ExtraTreesRegressor(20)).fit(X, y)
    >>> model = HDIForestRegressor.from_forest(pipeline, X, y)
    >>> preprocessing_steps(model).transform(X).shape
    (300, 4)
    """
    steps = model_in(model, "predict_weights", "model")._fitted_forest().steps
    return None if steps is None else steps.pipeline
