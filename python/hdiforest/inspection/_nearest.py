"""Nearest rows: the training rows that weigh most for new ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdicore.explain import heaviest_atoms
from hdiforest._utils import Array
from hdiforest._utils.checks import check_whole_number
from hdiforest._utils.meta_estimators import model_and_rows


class NearestRows(NamedTuple):
    """The training rows with the most weight for each of n rows, as `nearest_rows` returns them.

    Parameters
    ----------
    rows : (n, k) intp
        Positions of the training rows in the fit, the heaviest first. -1 if fewer than k rows have
        weight.
    weights : (n, k) float64
        Weights of the training rows, falling. 0 if fewer than k rows have weight.
    targets : (n, k) or (n, k, n_outputs) float64
        Targets of the training rows. NaN if fewer than k rows have weight.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest import HDIForestRegressor
    >>> from hdiforest.inspection import nearest_rows
    >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
    >>> model = HDIForestRegressor(calibration=False, random_state=0).fit(X, y)
    >>> nearest = nearest_rows(model, X[:2], k=3)
    >>> nearest.weights.shape, nearest.targets.shape
    ((2, 3), (2, 3))
    """

    rows: NDArray[np.intp]
    weights: Array
    targets: Array


def nearest_rows(model: Any, X: ArrayLike, k: int = 5) -> NearestRows:
    """Name the training rows with the most weight for each row of X.

    Parameters
    ----------
    model : fitted estimator
        An `HDIForestRegressor` or a `ForestSearchOOB`, also as the last step of a Pipeline or the
        best of a search. It must have its training rows.
    X : (n, n_features) array or table
        New rows.
    k : int, default=5
        Number of training rows to name for each row.

    Returns
    -------
    NearestRows
        The training rows, the heaviest first. Of rows with equal weight the lower position comes
        first.

    Raises
    ------
    ValueError
        If an argument is refused, or the model has no training rows.
    NotFittedError
        If the model is not fitted.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest import HDIForestRegressor
    >>> from hdiforest.inspection import nearest_rows
    >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
    >>> model = HDIForestRegressor(calibration=False, random_state=0).fit(X, y)
    >>> nearest_rows(model, X[:2], k=3).rows.shape
    (2, 3)
    """
    size = check_whole_number("k", k)
    estimator, given = model_and_rows(model, X, "predict_weights", "model")
    X = np.concatenate([block.rows for block in estimator._blocks(given)])
    fitted, n_threads = estimator._fitted_forest(), estimator._n_threads()
    rows, weights = heaviest_atoms(fitted.row_scorer(lambda: n_threads), X, size, n_threads)
    targets = fitted.require_training_rows().y[rows]
    targets[rows < 0] = np.nan
    return NearestRows(rows, weights, targets)
