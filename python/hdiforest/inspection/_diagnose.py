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
    X : rows as in `predict`
        New rows, whose targets need not be known.
    coverage : float, default=0.9
        Of intervals of the model's default kind; of a calibrated model one that was calibrated.
    by : (n,) array, optional
        As in `predict_interval`. Without the labels of groups that no column of X holds the
        conformal quantile is that of all rows.
    output : {"pandas", "polars", "pyarrow"}, optional
        A table of that library; by default a dict of arrays.

    Returns
    -------
    dict of (n,) arrays, or table
        ``dissimilarity``: distance to the nearest of at most 10,000 training rows over the mean
        distance between them; features count in standard deviations, by their importance.
        ``flag``: whether it exceeds that of 95 % of the training rows (to the nearest other).
        ``out_of_range``, ``worst_feature``: number of features beyond the training range, and
        the farthest in standard deviations times importance. ``n_missing``: missing features.
        ``tree_spread``: standard deviation of the trees' means. ``mass_outside``: share of the
        forest's distribution outside the interval. ``interval_se``: standard error of an end
        for the draw of trees, from two halves of them; rough for one row. These of each output.

    Raises
    ------
    ValueError, NotFittedError, ImportError
        If an argument is refused, or the model has no training rows; if it is not fitted; if the
        library of `output` is missing.

    Notes
    -----
    Only ``dissimilarity`` and ``out_of_range`` see rows that the forest does not know
    (:doc:`/honest`). Nothing is promised for flagged rows. Steps before the forest come first, so
    features are theirs.

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
