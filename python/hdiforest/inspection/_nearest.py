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
    """Training rows that weigh most; what `nearest_rows` returns.

    Parameters
    ----------
    rows, weights, targets : (n, k) intp and float64, and (n, k[, n_outputs]) float64
        Positions in the fit, falling weights, targets; -1, 0, NaN if fewer than k rows have weight.
    """

    rows: NDArray[np.intp]
    weights: Array
    targets: Array


def nearest_rows(model: Any, X: ArrayLike, k: int = 5) -> NearestRows:
    """Name the training rows that weigh most for each row of X.

    Parameters
    ----------
    model : fitted estimator
        An `HDIForestRegressor` or a `ForestSearchOOB`, also as the last step of a Pipeline or the
        best of a search. It must have its training rows.
    X : rows as in `predict`
        New rows.
    k : int, default=5
        How many training rows to name for each.

    Returns
    -------
    NearestRows
        The heaviest first, and of equal ones the lower position.

    Raises
    ------
    ValueError, NotFittedError
        If an argument is refused, or the model has no training rows; if it is not fitted.

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
