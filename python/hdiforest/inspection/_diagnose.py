"""Diagnosis: which rows are unlike the training rows, and how far trees agree on them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hdiforest._model.diagnose import columns_of_diagnosis
from hdiforest._tables.frames import Output, frame_of, require_library, table_in
from hdiforest._utils.checks import shares
from hdiforest._utils.meta_estimators import model_and_rows


def diagnose(
    model: Any,
    X: ArrayLike,
    coverage: float = 0.9,
    *,
    by: ArrayLike | None = None,
    output: Output | None = None,
) -> Any:
    """Tell which rows are unlike the training rows, and how far their trees agree.

    Parameters
    ----------
    model : fitted estimator
        An `HDIForestRegressor` or a `ForestSearchOOB`, also as the last step of a Pipeline or the
        best of a search. It must have its training rows, or come from a file that was saved with
        ``diagnostics=True``.
    X : (n, n_features) array or table
        New rows. Their targets need not be known.
    coverage : float, default=0.9
        The coverage of intervals of the model's default kind. A calibrated model must be calibrated
        for it.
    by : (n,) array, optional
        Groups of the rows. See `HDIForestRegressor.predict_interval`. If the groups are in no
        column of X and the labels are missing, the conformal quantile of all rows is used.
    output : {"pandas", "polars", "pyarrow"}, optional
        The type of the result: a table of the named library. The default is a dict of arrays.

    Returns
    -------
    dict of (n,) arrays, or table
        The measures of each row, for each output.

        ``dissimilarity`` is the distance to the nearest of at most 10,000 training rows, divided by
        the mean distance between training rows. Features count in standard deviations, by their
        importance. ``flag`` tells whether the dissimilarity exceeds the value of 95 % of the
        training rows, each compared with the nearest other training row.

        ``out_of_range`` is the number of features beyond the training range. ``worst_feature`` is
        the feature farthest beyond it, in standard deviations times importance. ``n_missing`` is
        the number of missing features.

        ``tree_spread`` is the standard deviation of the means of the trees. ``mass_outside`` is the
        share of the forest's distribution outside the interval. ``interval_se`` is the standard
        error of an end for the draw of trees, from two halves of the trees. It is rough for a
        single row.

    Raises
    ------
    ValueError
        If an argument is refused, or the model has no training rows.
    NotFittedError
        If the model is not fitted.
    ImportError
        If the library of `output` is missing.

    Notes
    -----
    Only ``dissimilarity`` and ``out_of_range`` recognise rows that the forest does not know
    (:doc:`/guarantees`). Nothing is promised for flagged rows. Features are counted behind the
    steps before the forest.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest import HDIForestRegressor
    >>> from hdiforest.inspection import diagnose
    >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
    >>> model = HDIForestRegressor(random_state=0).fit(X, y)
    >>> diagnose(model, [[0, 0, 0, 0], [0, 9, 0, 0]])["out_of_range"].tolist()
    [0, 1]
    """
    library = None if output == "numpy" else output
    if library is not None:
        require_library(library)
    level = float(shares("coverage", coverage, one=True).reshape(()))
    estimator, rows = model_and_rows(model, X, "predict_weights", "model")
    fitted = estimator._fitted_forest()
    if fitted.calibration is not None:
        fitted.calibration.positions(level)
    parts = []
    for block in estimator._blocks(rows, by):
        of_folds = [steps.rows(block.given) for steps in fitted.steps_of_folds]
        args = level, estimator._n_threads(len(block.rows)), of_folds, *block.per_row
        parts.append(columns_of_diagnosis(fitted, block.rows, *args))
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return columns if library is None else table_in(library, columns, frame_of(X).index)
