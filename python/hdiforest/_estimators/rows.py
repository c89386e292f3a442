"""Checks rows from callers and converts them to the arrays that the engine reads."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeGuard, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import validate_data

from hdiforest._estimators.pipelines import readable
from hdiforest._model.fitted import FittedForest
from hdiforest._model.training_hint import TrainingRowsHint
from hdiforest._tables.encoder import TableCoding
from hdiforest._tables.frames import as_table, raw_table, require_distinct, two_kinds
from hdiforest._utils.blocks import BLOCK_CELLS, n_rows_of, row_blocks
from hdiforest._utils.warnings import callers_level

Rows = NDArray[np.floating[Any]]


_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def checked_rows(model: Any, X: Any, fitted: FittedForest, *, first_row: int = 0) -> Rows:
    """Return rows to score, (n, n_features), C-ordered float32 or float64.

    Parameters
    ----------
    model : estimator
        Named in errors.
    X : array or table
    fitted : FittedForest
        What `model` holds.
    first_row : int, default=0
        Number of the rows before them, for messages.

    Raises
    ------
    ValueError
        If the rows are not numbers, or other columns than those of the fit. A model with a coding
        takes tables only.
    """
    if model._steps is not None:
        encoded: Rows = model._steps.encode(readable(X))
        return encoded
    if fitted.coding is not None:
        return coded_rows(X, fitted.coding, allow_nan=fitted.allow_nan, first_row=first_row)
    if is_plain(X, model, fitted):
        plain: Rows = X
        return plain
    rows: Rows = _validated(
        model, as_table(X), allow_nan=fitted.allow_nan, reset=False, ensure_min_samples=0
    )
    return rows


class Block(NamedTuple):
    """Some of the rows to score."""

    rows: Rows  # checked
    given: Any  # the rows as the caller gave them
    per_row: tuple[Any, ...]  # other values of the same rows


def checked_blocks(
    model: Any,
    X: Any,
    fitted: FittedForest,
    per_row: ArrayLike | None = None,
    *,
    hint: bool = False,
) -> Iterator[Block]:
    """Yield the rows to score as `checked_rows` does; a table that is encoded in many blocks.

    `per_row`, values for each row to score, are checked to be as many. With `hint` the last block
    is followed by a warning if the rows are those of the fit.
    """
    if model._steps is None and fitted.coding is None:
        rows = checked_rows(model, X, fitted)
        seen = TrainingRowsHint(fitted, len(rows) if hint else None)
        seen.see(rows)
        yield Block(rows, X, () if per_row is None else (per_row,))
        seen.give()
        return
    if model._steps is None:
        X = raw_table(X, cast("TableCoding", fitted.coding).columns)
    else:
        X = readable(X)
    values = () if per_row is None else (np.asarray(per_row),)
    if values and n_rows_of(X) not in (None, len(values[0])):
        raise ValueError(
            f"y must have {n_rows_of(X)} rows, as many as X, got shape {values[0].shape}"
        )
    seen = TrainingRowsHint(fitted, n_rows_of(X) if hint else None)
    for part, given in row_blocks(X, max(1, BLOCK_CELLS // fitted.n_features)):
        rows = checked_rows(model, given, fitted, first_row=part.start or 0)
        seen.see(rows)
        yield Block(rows, given, tuple(each[part] for each in values))
    seen.give()


def concatenated(answers: Iterable[NDArray[Any]]) -> NDArray[Any]:
    """Return the answers to one block or more as one array."""
    found = list(answers)
    return found[0] if len(found) == 1 else np.concatenate(found)


def coded_rows(
    X: Any, coding: TableCoding, *, allow_nan: bool, first_row: int = 0
) -> NDArray[np.float32]:
    """Return the features that a coding makes of a table of any library.

    Raises
    ------
    ImportError
        If pyarrow is not installed.
    ValueError
        If X is no table or cannot be coded, or has missing cells that are not allowed.
    """
    features, _ = coding.encode(raw_table(X, coding.columns), first_row=first_row)
    if not allow_nan:
        coding.require_present(features, first_row=first_row)
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
    return rows, one_column_as_1d(np.array(targets, dtype=np.float64))


def checked_table_targets(X: Any, y: ArrayLike) -> NDArray[np.float64]:
    """Return a copy of the targets of a table that steps read, (n,) or (n, n_outputs)."""
    if y is None:
        raise ValueError("y must be the targets of the rows of X, got None")
    targets = check_array(y, dtype=np.float64, ensure_2d=False, copy=True, input_name="y")
    check_consistent_length(X, targets)
    return one_column_as_1d(targets)


def one_column_as_1d(targets: NDArray[Any]) -> NDArray[Any]:
    """Return targets (n, 1) as (n,), with the warning of scikit-learn; others as they are."""
    if targets.ndim != 2 or targets.shape[1] != 1:
        return targets
    warnings.warn(
        "A column-vector y was passed when a 1d array was expected. Please change the shape of y "
        "to (n_samples,), for example using ravel().",
        DataConversionWarning,
        stacklevel=callers_level(),
    )
    return targets.ravel()


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


def is_plain(X: object, model: Any, fitted: FittedForest) -> TypeGuard[Rows]:
    """Whether the rows are X itself, up to casts and checks that the engine makes.

    Validation takes several times as long as the intervals of a single row, and copies float64.
    """
    return (
        type(X) is np.ndarray
        and X.dtype in _FLOATS
        and X.flags.c_contiguous
        and model._steps is None
        and fitted.coding is None
        and fitted.feature_names is None
        and X.ndim == 2
        and X.shape[1] == model.n_features_in_
        and (fitted.allow_nan or bool(np.isfinite(X).all()))
    )


def _validated(model: Any, X: Any, *y: Any, allow_nan: bool, **options: Any) -> Any:
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        require_distinct(X.columns)
    finite: bool | str = "allow-nan" if allow_nan else True
    options |= {"dtype": np.float32, "order": "C", "ensure_all_finite": finite}
    try:
        return validate_data(model, X, *y, **options)
    except (TypeError, ValueError) as error:
        column = _column_without_numbers(X)
        if column is None:
            raise
        what = two_kinds(X[column]) or error
        raise ValueError(
            f"X must hold numbers, but does not in the column {column!r}: {what}"
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
