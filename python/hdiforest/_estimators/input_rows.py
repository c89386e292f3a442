"""Rows, targets and weights from callers, checked, as the arrays that the engine reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import validate_data

from hdiforest._model.fitted import FittedForest
from hdiforest._model.table_steps import TableSteps
from hdiforest._tables.encoder import TableEncoder
from hdiforest._tables.frames import BLOCK_CELLS, Frame, frame_of, not_numbers, types_of
from hdiforest._tables.names import listed
from hdiforest._utils.checks import check_weights
from hdiforest._utils.hints import warn_caller
from hdiforest.exceptions import NewGroupsWarning

Rows = NDArray[np.floating[Any]]
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


class Block(NamedTuple):
    """Some of the rows to score."""

    rows: Rows  # checked
    given: Any  # the same rows before the steps, as these read them
    per_row: tuple[Any, ...]  # other values of the same rows


def checked_rows(model: Any, X: Any, fitted: FittedForest) -> Rows:
    """Return rows to score, (n, n_features), C-ordered float32 or float64, or raise ValueError."""
    return concatenated(block.rows for block in checked_blocks(model, X, fitted))


def checked_blocks(
    model: Any, X: Any, fitted: FittedForest, per_row: Any = None
) -> Iterator[Block]:
    """Yield the rows to score as `checked_rows` does; a table that is encoded in many blocks.

    `per_row`, values for each row to score, are checked to be as many.
    """
    encoder = fitted.encoder
    if encoder is None:
        rows = X
        if not is_plain(X, model, fitted):
            options: dict[str, Any] = {"reset": False, "ensure_min_samples": 0}
            rows = rows_for_sklearn(X, fitted.columns)
            rows = _validated(model, rows, fitted.facts.allow_nan, **options)
        yield Block(rows, X, checked_per_row(per_row, len(rows), fitted.n_outputs))
    else:
        frame = frame_of(X)
        is_steps = isinstance(encoder, TableSteps)
        if is_steps:
            frame = frame.sliceable()
        else:
            frame = frame_of(frame.without(fitted.missing_words).arrow(encoder.columns))
        yield from _encoded_blocks(frame, encoder, fitted, per_row)


def _encoded_blocks(
    frame: Frame, encoder: TableEncoder | TableSteps, fitted: FittedForest, per_row: Any
) -> Iterator[Block]:
    values = checked_per_row(per_row, frame.n_rows, fitted.n_outputs)
    for part, given in frame.blocks(max(1, BLOCK_CELLS // fitted.n_features)):
        if isinstance(encoder, TableSteps):
            rows = encoder.rows(given)
        else:
            rows, _ = fitted.encode(given.native, encoder, part.start or 0)
        yield Block(rows, given, tuple(each[part] for each in values))


def checked_per_row(
    y: ArrayLike | None, n: int | None, n_outputs: int = 1
) -> tuple[NDArray[Any], ...]:
    """Return values of each of n rows, if there are any, or raise ValueError if not as many.

    A number is that of all rows and outputs.
    """
    values = () if y is None else (np.asarray(y),)
    if values and n is not None and values[0].ndim == 0:
        return (np.full((n, n_outputs)[: 1 + (n_outputs > 1)], values[0]),)
    if values and n is not None and values[0].shape[:1] != (n,):
        raise ValueError(f"y must have {n} rows, as many as X, got shape {values[0].shape}")
    return values


def rows_for_sklearn(X: Any, names: Sequence[str] | None = None) -> Any:
    """Return tables so that scikit-learn reads their columns by name, never by position.

    Tables of polars or pyarrow, other Arrow data (which is read to its end) and mappings from names
    to columns become a pyarrow Table of float columns, or raise ValueError, or ImportError without
    pyarrow. Anything else is returned as it is. ValueError for more columns than `names`.
    """
    frame = frame_of(X)
    try:
        frame = frame.sliceable()
        given, names = frame.names or (), names or ()
        if names and {*names} < {*given}:  # what else is wrong with names says scikit-learn
            more = listed(repr(name) for name in given if name not in names)
            raise ValueError(f"X has unexpected columns: {more}; the fit had {listed(names)}")
        rows = frame.numbers()
    except ImportError as error:
        if _has_names(frame.native):
            return frame.native
        raise ImportError(f"{error}, or pass an array or a pandas DataFrame") from None
    if rows is not frame.native and rows.num_columns > 0 and not _has_names(rows):
        raise ImportError(
            "this scikit-learn does not read the column names of this pyarrow; upgrade "
            "scikit-learn, or pass a pandas DataFrame"
        )
    return rows


def _has_names(X: Any) -> bool:
    """Whether scikit-learn reads names of columns from X."""
    reader = BaseEstimator()
    validate_data(reader, X, skip_check_array=True, ensure_2d=False)
    return hasattr(reader, "feature_names_in_")


def concatenated(answers: Iterable[NDArray[Any]]) -> NDArray[Any]:
    """Return the answers to one block or more as one array."""
    parts = list(answers)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def checked_training_rows(
    model: Any, X: Any, y: ArrayLike, *, allow_nan: bool
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Return copies of rows for scikit-learn and of targets; `model` learns the columns' names."""
    rows = _validated(model, X, allow_nan, copy=True)
    return rows, checked_targets(rows, y)


def checked_targets(X: Any, y: ArrayLike) -> NDArray[np.float64]:
    """Return a copy of the targets of rows, (n,) or (n, n_outputs)."""
    if y is None:
        raise ValueError("a fit requires y to be passed, but the target y is None")
    require_uncensored(y)
    for name, n in Counter(frame_of(y, "y").names or ()).items():
        if n > 1:
            raise ValueError(f"y must have columns of distinct names, got {n} columns {name!r}")
    targets = check_array(y, dtype=np.float64, ensure_2d=False, copy=True, input_name="y")
    check_consistent_length(X, targets)
    return one_column_as_1d(targets)


def require_uncensored(y: ArrayLike) -> None:
    """Raise ValueError if y holds events and times."""
    if getattr(getattr(y, "dtype", None), "names", None) is not None:
        raise ValueError(
            "y must be numbers, got a structured array; HDISurvivalForest takes it, and "
            "from_leaves takes its time as y and its event as event"
        )


def one_column_as_1d(targets: NDArray[Any]) -> NDArray[Any]:
    """Return targets (n, 1) as (n,), with the warning of scikit-learn; others as they are."""
    if targets.ndim != 2 or targets.shape[1] != 1:
        return targets
    warn_caller(
        "A column-vector y was passed when a 1d array was expected. Please change the shape of y "
        "to (n_samples,), for example using ravel().",
        DataConversionWarning,
    )
    return targets.ravel()


def checked_sample_weight(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64] | None:
    """Return a copy of the weights of n training rows."""
    if sample_weight is None:
        return None
    return check_weights("sample_weight", np.array(sample_weight), n)


def is_plain(X: object, model: Any, fitted: FittedForest) -> TypeGuard[Rows]:
    """Whether the rows are X itself, up to casts and checks that the engine makes.

    Validation takes several times as long as the intervals of a single row, and copies float64.
    """
    return (
        type(X) is np.ndarray
        and X.dtype in _FLOATS
        and X.flags.c_contiguous
        and fitted.encoder is None
        and fitted.facts.feature_names is None
        and X.ndim == 2
        and X.shape[1] == model.n_features_in_
        and (fitted.facts.allow_nan or bool(np.isfinite(X).all()))
    )


def _validated(model: Any, X: Any, allow_nan: bool, **options: Any) -> Any:
    finite: bool | str = "allow-nan" if allow_nan else True
    options |= {"dtype": np.float32, "order": "C", "ensure_all_finite": finite}
    try:
        return validate_data(model, X, **options)
    except (TypeError, ValueError) as error:
        columns = frame_of(X).columns()
        bad = next(((name, cells) for name, cells in columns if not _are_numbers(cells)), None)
        if bad is None or "feature names" in str(error):
            raise
        which = f"the column {bad[0]!r}, which {types_of(bad[1])}"
        raise ValueError(not_numbers("X", which)) from None


def _are_numbers(cells: Any) -> bool:
    """Whether scikit-learn reads a column of pandas as numbers."""
    options: dict[str, Any] = {"ensure_all_finite": False, "ensure_min_samples": 0}
    try:
        check_array(cells.to_frame(), dtype=np.float32, **options)
    except (TypeError, ValueError):
        return False
    return True


def check_labels(by: ArrayLike | None, X: Any) -> NDArray[Any] | None:
    """Return labels of the groups of the rows of X, or raise ValueError if they are not as many."""
    if by is None:
        return None
    labels, n = np.asarray(by), frame_of(X).n_rows
    if labels.ndim == 0:
        raise ValueError(
            f"by must give the group of each row, got {by!r}; groups that are a column of X are "
            f"named by calibrate(by=...), and by=None then finds them in X"
        )
    if n is not None and labels.shape != (n,):
        raise ValueError(f"by must give one group for each of {n} rows, got shape {labels.shape}")
    return labels


def warn_of_new_groups(is_new: Sequence[NDArray[np.bool_]]) -> None:
    """Warn if rows, in blocks, are of groups that the calibration had no rows of."""
    n_new, n = sum(int(block.sum()) for block in is_new), sum(map(len, is_new))
    if n_new:
        warn_caller(
            f"{n_new:,} of {n:,} rows are of groups that the calibration had no rows of: they take "
            "the conformal quantile of all rows, so nothing is promised of these groups",
            NewGroupsWarning,
        )
