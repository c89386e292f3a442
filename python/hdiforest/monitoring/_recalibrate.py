"""Recalibration of a model: its conformal quantiles follow new rows, in their order."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from numpy.typing import ArrayLike

from hdiforest._utils.checks import check_no_interval_is_empty
from hdiforest._utils.meta_estimators import model_and_rows
from hdiforest.calibration._recalibrate import check_recalibration, recalibrated
from hdiforest.calibration._result import Recalibrating
from hdiforest.calibration._widened import WidenedIntervals

_Model = TypeVar("_Model")


def recalibrate(
    model: _Model,
    X: ArrayLike,
    y: ArrayLike,
    *,
    method: Recalibrating = "rolling",
    window: int = 500,
    rate: float = 0.01,
) -> _Model:
    """Move the conformal quantiles of all calibrated coverages by new rows, in their order.

    Parameters
    ----------
    model : fitted estimator
        An `HDIForestRegressor` or a `ForestSearchOOB`, also as the last step of a Pipeline or the
        best of a search. It must have one target, and be calibrated by "oob" or "split", without
        `by`.
    X : (n, n_features) array or table
        New rows, the latest last. Several calls give the same result as one call with all rows.
    y : (n,) array
        Targets of the rows.
    method : {"rolling", "aci"}, default="rolling"
        How the quantiles move. "rolling" takes conformal quantiles of the last `window` rows. "aci"
        is adaptive conformal inference (Gibbs and Candes, NeurIPS 2021). It also moves the share of
        misses of the quantiles, by `rate`, after each row. ``model.calibration_`` states the
        promise of each.
    window : int, default=500
        Number of scores in the window. At first they are scores of the calibration, which scores of
        new rows replace.
    rate : float, default=0.01
        The step of "aci", above 0 and at most 1.

    Returns
    -------
    fitted estimator
        The model itself, which is changed without another fit. Its intervals are no longer clipped
        to the range of the training targets, because new targets may leave it. By "aci" they may be
        infinite.

    Raises
    ------
    ValueError
        If an argument is refused.
    AttributeError
        If the model is not calibrated.
    NotFittedError
        If the model is not fitted.

    Notes
    -----
    ``calibration_.history`` has the coverage of the rows of each call, each row before it was taken
    in. Distributions, and therefore one-sided bounds, stay as they are. O(one prediction + window)
    for each row and coverage.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest import HDIForestRegressor
    >>> from hdiforest.monitoring import recalibrate
    >>> X, y = make_regression(n_samples=600, n_features=4, noise=10, random_state=0)
    >>> model = HDIForestRegressor(random_state=0).fit(X[:400], y[:400])
    >>> recalibrate(model, X[400:], y[400:] + 5, window=200).calibration_.history[-1].n
    200
    """
    estimator, given = model_and_rows(model, X, "predict_weights", "model", live=True)
    now = estimator._at_once()
    fitted, calibration = now._fitted_forest(), now.calibration_
    calibrated = fitted.calibrated
    if not isinstance(calibrated, WidenedIntervals):
        raise ValueError(
            "recalibrate needs a model of one target that was calibrated by method 'oob' or "
            f"'split', and this one has {fitted.n_outputs} and was by {calibration.method!r}"
        )
    check_recalibration(calibration, method, window, rate)
    rows, targets = now._checked_calibration_rows(given, y, fitted)
    ends = fitted.base_intervals(rows, calibration.bases, now._n_threads(len(rows)))
    check_no_interval_is_empty(ends)
    moved = recalibrated(calibration, ends, targets, method, window, rate)
    estimator._attach(replace(calibrated, result=moved))
    return model
