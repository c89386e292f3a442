"""Recalibration of a model: its conformal quantiles follow new rows, in their order."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from numpy.typing import ArrayLike

from hdiforest._utils.checks import check_no_interval_is_empty
from hdiforest._utils.meta_estimators import live_model_and_rows
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
    X : rows as in `predict`
        New rows, the latest last. Several calls do as one with all rows.
    y : (n,) array
        Their targets.
    method : {"rolling", "aci"}, default="rolling"
        Quantiles of the last `window` rows; or adaptive conformal inference (Gibbs and Candes,
        NeurIPS 2021) also moves the share of misses that they are for, by `rate`, after each
        row. ``model.calibration_`` says what each promises.
    window : int, default=500
        At first the window holds scores of the calibration, which new ones replace.
    rate : float, default=0.01
        Above 0 and at most 1, of "aci" alone.

    Returns
    -------
    fitted estimator
        The model itself, which is changed without another fit. Its intervals are no longer clipped
        to the range of the training targets, which new ones may leave; by "aci" they may be
        infinite.

    Raises
    ------
    ValueError, AttributeError, NotFittedError
        If an argument is refused; if the model is not calibrated; if it is not fitted.

    Notes
    -----
    ``calibration_.history`` tells of each call what was covered, each row before it was taken
    in. Distributions, and so one-sided bounds, stay. O(one prediction + window) for each row and
    coverage.

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
    estimator, given = live_model_and_rows(model, X, "predict_weights", "model")
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
