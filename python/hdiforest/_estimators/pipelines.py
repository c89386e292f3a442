"""TableSteps: the fitted steps that make a table to the rows of a forest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array

from hdiforest._tables.frames import Library, frame_of
from hdiforest._utils.meta_estimators import pipelines

# Sparse training rows become dense arrays of this size at most.
MAX_DENSE_BYTES = 2**33


@dataclass(frozen=True)
class TableSteps:
    """The fitted steps before a forest, and what tables they read."""

    pipeline: Pipeline
    library: Library | None  # of the table of the fit; None: no table
    n_features: int  # of the forest
    allow_nan: bool  # whether the forest takes missing values
    folds: tuple[TableSteps, ...] = ()  # of CV+, each fitted without its rows
    texts: Mapping[str, str] = field(default_factory=dict)  # see `texts_of`

    @property
    def names(self) -> list[str]:
        """Names of the classes of the steps, of all that they are made of."""
        return list(dict.fromkeys(_names_of(self.pipeline)))

    def encode(self, X: Any) -> NDArray[np.float32]:
        """Return the forest's rows, (n, n_features), for a frame or what `frame_of` takes."""
        frame = frame_of(X)
        if frame.n_rows == 0:  # which few transformers accept
            return np.empty((0, self.n_features), dtype=np.float32)
        table = _with_texts(frame.in_library(self.library), self.texts)
        made = transformed(self.pipeline, table)
        rows = dense_rows(made, allow_nan=self.allow_nan)
        if rows.shape[1] != self.n_features:
            raise ValueError(
                f"the steps before the forest made {rows.shape[1]} columns of X, but the forest "
                f"was fitted on {self.n_features}"
            )
        return rows


def dense_rows(made: Any, *, allow_nan: bool, copy: bool = False) -> NDArray[np.float32]:
    """Return what steps made of a table as the forest reads it, C-ordered float32.

    Raises
    ------
    ValueError
        If it does not hold numbers, or is sparse and too large to be dense.
    """
    if issparse(made):
        n_bytes = 4 * made.shape[0] * made.shape[1]
        if n_bytes > MAX_DENSE_BYTES:
            raise ValueError(
                f"the steps before the forest made {made.shape[0]} sparse rows of "
                f"{made.shape[1]} columns, which take {n_bytes / 2**30:.0f} GB as the dense rows "
                "that the model keeps; make fewer columns, by OrdinalEncoder, TargetEncoder or "
                "max_categories of OneHotEncoder"
            )
        made = made.astype(np.float32).toarray()
    finite: bool | str = "allow-nan" if allow_nan else True
    rows: NDArray[np.float32] = check_array(
        made,
        dtype=np.float32,
        order="C",
        copy=copy,
        ensure_all_finite=finite,
        input_name="what the steps before the forest made of X",
    )
    return rows


def steps_before(estimators: list[Any]) -> Pipeline:
    """Return the fitted steps before the last of some layers, of which there are some, as one."""
    parts = [pipeline[:-1] for pipeline in pipelines(estimators)]
    if len(parts) == 1:
        return parts[0]
    steps = [(f"pipeline{i}_{name}", step) for i, p in enumerate(parts) for name, step in p.steps]
    return Pipeline(steps)


def transformed(pipeline: Pipeline, X: Any) -> Any:
    """Return what fitted steps make of X.

    Pipeline.transform refuses a last step that looks unfitted because it keeps nothing.
    """
    for _, step in pipeline.steps:
        if step is not None and step != "passthrough":
            X = step.transform(X)
    return X


def fitted_again(estimators: list[Any], X: Any, y: NDArray[np.float64]) -> Any:
    """Return what the steps of some fitted layers make of training rows when they are fitted.

    It may differ from what they make of the same rows later; see
    `hdiforest._estimators.fit.RowRecorder`. Clones are fitted.
    """
    for each in estimators:
        if isinstance(each, TransformedTargetRegressor):
            y = each.transformer_.transform(y.reshape(len(y), -1))
            y = y.ravel() if y.shape[1] == 1 else y
        elif isinstance(each, Pipeline) and len(each.steps) > 1:
            X = clone(each[:-1]).fit_transform(X, y)
    return X


def _names_of(step: Any) -> Iterator[str]:
    """Yield the names of the classes that transform rows in a step."""
    parts = getattr(step, "transformers_", getattr(step, "steps", None))
    if parts is None:
        parts = getattr(step, "transformer_list", None)
    if parts is not None:
        for part in parts:
            yield from _names_of(part[1])
    elif step is not None and not isinstance(step, str):
        yield type(step).__name__


def texts_of(table: Any) -> dict[str, str]:
    """Return how columns of text of a pandas DataFrame hold missing cells.

    "None" or "NaN" for columns of objects, and otherwise the name of the type: steps take None for
    another value than NaN. Columns with both are left out.
    """
    texts = {}
    for name, column in _distinct_columns(table).items():
        if column.dtype == object:
            are_none = {cell is None for cell in column[column.isna()]}
            if len(are_none) < 2:
                texts[name] = "None" if True in are_none else "NaN"
        elif str(column.dtype) in ("str", "string", "category"):
            texts[name] = str(column.dtype)
    return texts


def _with_texts(table: Any, texts: Mapping[str, str]) -> Any:
    """Return a table with missing cells of text as `texts_of` found them at the fit.

    Without these the model in memory would answer otherwise than its file, which knows one kind.
    """
    columns = _distinct_columns(table) if texts else {}
    changed = {}
    for name, kind in texts.items():
        column = columns.get(name)
        if column is None or str(column.dtype) == kind:
            continue
        if kind in ("str", "string"):
            changed[name] = column.astype(kind)
        elif column.dtype != object or column.hasnans:
            missing = None if kind == "None" else np.nan
            changed[name] = column.astype(object).where(column.notna(), missing)
    return table.assign(**changed) if changed else table


def _distinct_columns(table: Any) -> dict[Any, Any]:
    """Return the columns of a pandas DataFrame; none if two have one name, or it is no such."""
    columns = list(frame_of(table).columns())
    by_name = dict(columns)
    return by_name if len(by_name) == len(columns) else {}
