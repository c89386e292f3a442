"""Checks rows from callers and converts them to the arrays that the engine reads."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from hdiforest.arrow import as_table
from hdiforest.coding import TableCoding
from hdiforest.coding.raw_table import raw_table
from hdiforest.fitted import FittedForest

Rows = NDArray[np.floating[Any]]


def checked_rows(model: Any, X: Any, fitted: FittedForest) -> Rows:
    """Return rows to score, (n, n_features), C-ordered float32 or float64.

    Parameters
    ----------
    model : estimator
        Named in errors.
    X : array or table
    fitted : FittedForest
        What `model` holds.

    Raises
    ------
    ValueError
        If the rows are not numbers, or other columns than those of the fit. A model with a coding
        takes tables only.
    """
    if fitted.coding is not None:
        return coded_rows(X, fitted.coding, allow_nan=fitted.allow_nan)
    if _is_plain(model, X, fitted):
        plain: Rows = X
        return plain
    rows: Rows = _validated(
        model, as_table(X), allow_nan=fitted.allow_nan, reset=False, ensure_min_samples=0
    )
    return rows


def coded_rows(X: Any, coding: TableCoding, *, allow_nan: bool) -> NDArray[np.float32]:
    """Return the features that a coding makes of a table of any library.

    Raises
    ------
    ImportError
        If pyarrow is not installed.
    ValueError
        If X is no table or cannot be coded, or has missing cells that are not allowed.
    """
    features, _ = coding.encode(raw_table(X, coding.columns))
    if not allow_nan and np.isnan(features).any():
        column = coding.features[int(np.isnan(features).any(axis=0).argmax())]
        raise ValueError(
            f"the forest takes no missing values, but column {column!r} has a missing cell or an "
            "unknown category"
        )
    return features


def checked_training_rows(
    model: Any, X: Any, y: ArrayLike, *, allow_nan: bool
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Return copies of training rows and targets; `model` learns the names of the columns.

    Parameters
    ----------
    model : HDIForestRegressor
    X : array or table
        What `as_table` returned.
    y : (n,) or (n, n_outputs) array
    allow_nan : bool
        Whether X may hold missing values.

    Returns
    -------
    X : (n, n_features) float32
    y : (n,) or (n, n_outputs) float64
    """
    rows, targets = _validated(
        model, X, y, allow_nan=allow_nan, multi_output=True, y_numeric=True, copy=True
    )
    return rows, np.array(targets, dtype=np.float64)


def checked_sample_weight(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64] | None:
    """Return a copy of the weights of n training rows."""
    if sample_weight is None:
        return None
    weights = np.array(sample_weight, dtype=np.float64)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got {weights.shape}")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and (weights > 0).any()):
        raise ValueError("sample_weight must be finite, not negative, and not all zero")
    return weights


def _is_plain(model: Any, X: object, fitted: FittedForest) -> TypeGuard[Rows]:
    """Whether validation would return X itself, up to casts and checks that the engine makes.

    Validation takes several times as long as the intervals of a single row, and copies float64.
    """
    return (
        type(X) is np.ndarray
        and X.dtype in (np.float32, np.float64)
        and X.flags.c_contiguous
        and fitted.feature_names is None
        and X.ndim == 2
        and X.shape[1] == model.n_features_in_
        and (fitted.allow_nan or bool(np.isfinite(X).all()))
    )


def _validated(model: Any, X: Any, *y: Any, allow_nan: bool, **options: Any) -> Any:
    finite: bool | str = "allow-nan" if allow_nan else True
    options |= {"dtype": np.float32, "order": "C", "ensure_all_finite": finite}
    try:
        return validate_data(model, X, *y, **options)
    except (TypeError, ValueError) as error:
        column = _column_without_numbers(X)
        if column is None:
            raise
        raise ValueError(
            f"X must hold numbers, but does not in the column {column!r}: {error}"
        ) from None


def _column_without_numbers(X: Any) -> Any:
    """Name of the first column of a pandas DataFrame that cannot be read as numbers, or None."""
    if not (hasattr(X, "iloc") and hasattr(X, "columns")):
        return None
    for j, name in enumerate(X.columns):
        try:
            check_array(
                X.iloc[:, [j]], dtype=np.float32, ensure_all_finite=False, ensure_min_samples=0
            )
        except (TypeError, ValueError):
            return name
    return None
