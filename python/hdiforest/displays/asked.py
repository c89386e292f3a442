"""What displays ask of a fitted estimator: intervals of one target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._utils.checks import shares
from hdiforest._utils.meta_estimators import model_and_rows, model_in
from hdiforest._utils.typing import Array
from hdiforest.displays.style import plain


def intervals_of(
    estimator: Any,
    X: Any,
    coverages: float | Sequence[float] | Array,
    kind: str | None,
    output: int | None,
) -> Array:
    """Return intervals (n, 2, k) of one target, of k coverages.

    Raises
    ------
    ValueError
        If the estimator has no intervals, or an argument is wrong.
    """
    model, rows = model_and_rows(estimator, X, "predict_interval")
    position = checked_output(model, output)
    options: dict[str, Any] = {} if kind is None else {"kind": kind}
    levels = np.atleast_1d(shares("coverage", coverages, one=True)).tolist()
    found: Array = model.predict_interval(rows, levels, output="numpy", **options)
    return found if found.ndim == 3 else found[:, position]


class OutOfBag(NamedTuple):
    """Training rows of one target, each predicted by the trees that did not draw it."""

    rows: NDArray[np.intp]  # (n,) their positions: those that have intervals
    y: Array  # (n,)
    prediction: Array  # (n,)
    intervals: Array  # (n, 2, k)
    n_training_rows: int

    def of_rows(self, name: str, values: Any) -> Any:
        """Return values of all training rows for those here; None and numbers stay."""
        if np.ndim(values) == 0:
            return values
        if len(values) != self.n_training_rows:
            raise ValueError(
                f"{name} must have shape ({self.n_training_rows},), got {np.shape(values)}"
            )
        own = np.asarray(values) if isinstance(values, list | tuple) else values
        return getattr(own, "iloc", own)[self.rows]


def out_of_bag_of(
    estimator: Any,
    coverages: float | Sequence[float] | Array,
    kind: str | None,
    output: int | None,
) -> OutOfBag:
    """Return what `oob_interval` and `oob_prediction` say of one target.

    Raises
    ------
    ValueError
        If the estimator has no such intervals, or an argument is wrong.
    """
    model = model_in(estimator, "oob_interval")
    position = checked_output(model, output)
    fitted = model._require_fitted()
    levels = np.atleast_1d(shares("coverage", coverages, one=True))
    found = model._oob_mean_and_intervals(levels, fitted.usual_kind if kind is None else kind)
    y = fitted.require_training_rows().y
    if found.ndim > 2:
        found = found[:, position]
    if y.ndim > 1:
        y = y[:, position]
    rows = np.flatnonzero(~np.isnan(found).any(axis=1))
    if len(rows) == 0:
        raise ValueError("no training row has an interval out of bag; use more trees")
    ends = found[rows, 1:].reshape(len(rows), -1, 2).transpose(0, 2, 1)
    return OutOfBag(rows, y[rows], found[rows, 0], ends, len(y))


def predictions_of(estimator: Any, X: Any, output: int | None) -> Array:
    """Return means (n,) of one target."""
    model, rows = model_and_rows(estimator, X, "predict_interval")
    position = checked_output(model, output)
    found: Array = model.predict(rows, output="numpy")
    return found if found.ndim == 1 else found[:, position]


def checked_output(model: Any, output: int | None) -> int:
    """Return which target of a model is meant; a model of several needs a choice."""
    n = getattr(model, "n_outputs_", 1)
    if output is None and n > 1:
        raise ValueError(f"the model has {n} targets: choose one by output=, from 0 to {n - 1}")
    if output is None:
        return 0
    if isinstance(output, bool) or not isinstance(output, int | np.integer) or not 0 <= output < n:
        raise ValueError(f"output must be a whole number from 0 to {n - 1}, got {output!r}")
    return int(output)


def target_of(y: ArrayLike, output: int | None) -> Any:
    """Return the target that `output` chooses, (n,)."""
    values = np.asarray(y)
    if values.ndim == 1:
        return values
    column = 0 if output is None else output
    n = values.shape[1] if values.ndim == 2 else 0
    if column >= n or (output is None and n > 1):
        raise ValueError(f"y must have one column per target of the model, got {values.shape}")
    return values[:, column]


def target_label(y: Any, given: str | None) -> str:
    """Return the label of targets: the given one, the name of a series, or "target"."""
    if given is not None:
        return given
    name = getattr(y, "name", None)
    return plain(name) if isinstance(name, str) and name else "target"
