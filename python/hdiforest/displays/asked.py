"""What displays ask of a fitted estimator: intervals of one target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest.displays.style import plain
from hdiforest.metrics.inputs import shares
from hdiforest.wrapped import model_and_rows

Array = NDArray[np.float64]


def intervals_of(
    estimator: Any,
    X: Any,
    coverages: Sequence[float] | Array,
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
    levels = shares("coverage", coverages, one=True).tolist()
    found: Array = model.predict_interval(rows, levels, output="numpy", **options)
    return found if found.ndim == 3 else found[:, position]


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
