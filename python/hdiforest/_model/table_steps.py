"""TableSteps: the preprocessing steps of a Pipeline, from a table to the rows of a forest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hdiforest._tables.columns import Column, EncodingError, NumberColumn, require_columns
from hdiforest._tables.frames import Library, frame_of
from hdiforest._tables.row_counts import RowCounts, count_rows
from hdiforest._utils.optional import pc

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline  # which scoring without steps does not load

# Sparse training rows become dense arrays of this size at most.
MAX_DENSE_BYTES = 2**33


class TableFacts(NamedTuple):
    """What is kept of the table that steps were fitted on."""

    library: Library | None  # None: it was no table
    columns: tuple[str, ...] | None  # None: it had no names
    numbers: tuple[str, ...]  # columns that held numbers
    texts: dict[str, str]  # how columns of text hold missing cells; see `texts_of`

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Self:
        """Return them of JSON's types, or raise ValueError if they are none."""
        if set(facts) != set(cls._fields):
            raise ValueError(f"steps must have the entries {', '.join(cls._fields)}")
        library = facts["library"]
        if library not in (None, "pandas", "polars"):
            raise ValueError(f"library must be null, 'pandas' or 'polars', got {library!r}")
        columns, texts = facts["columns"], dict(facts["texts"])
        names = None if columns is None else tuple(map(str, columns))
        return cls(library, names, tuple(map(str, facts["numbers"])), texts)


@dataclass(frozen=True)
class TableSteps:
    """The fitted steps before a forest, which encode by code what `TableEncoder` does by data."""

    pipeline: Pipeline
    table: TableFacts
    n_features: int  # of the forest
    allow_nan: bool  # whether the forest takes missing values

    def __post_init__(self) -> None:
        if not hasattr(self.pipeline, "steps"):
            raise ValueError("the steps before the forest must be a Pipeline")

    def __str__(self) -> str:
        names = self.table.columns
        columns = "no names" if names is None else ", ".join(names)
        return f"{columns} (through {', '.join(self.pipeline.named_steps)})"

    @property
    def columns(self) -> tuple[str, ...]:
        """Names that a table must have, or EncodingError if the steps know none."""
        if self.table.columns is None:
            raise EncodingError(
                "the steps before the forest were fitted on rows without names, and a batch or a "
                "file of a table has its columns by name; fit them on a table"
            )
        return self.table.columns

    @property
    def number_columns(self) -> tuple[str, ...]:
        """Names of the columns that held numbers."""
        return self.table.numbers

    @cached_property
    def ordered(self) -> dict[int, Column]:
        """What is counted out of range, as `TableEncoder.ordered`: all that the steps make."""
        try:
            names = list(self.pipeline.get_feature_names_out())
        except (AttributeError, TypeError, ValueError):  # some steps have no names
            names = [f"feature {j}" for j in range(self.n_features)]
        return {j: NumberColumn(str(name)) for j, name in enumerate(names)}

    def rows(self, X: Any) -> NDArray[np.float32]:
        """Return the forest's rows, (n, n_features), for a frame or what `frame_of` takes."""
        frame = frame_of(X)
        if frame.n_rows == 0:  # which few transformers accept
            return np.empty((0, self.n_features), dtype=np.float32)
        table = _with_texts(frame.in_library(self.table.library), self.table.texts)
        rows = dense_rows(transformed(self.pipeline, table), allow_nan=self.allow_nan)
        if rows.shape[1] != self.n_features:
            columns = f"{rows.shape[1]} columns of X"
            fitted_on = f"the forest was fitted on {self.n_features}"
            raise ValueError(f"the steps before the forest made {columns}, but {fitted_on}")
        return rows

    def encode(
        self, table: Any, *, first_row: int = 0, feature_range: NDArray[np.float32] | None = None
    ) -> tuple[NDArray[np.float32], RowCounts]:
        """Return the forest's rows for those of a pyarrow Table; see `TableEncoder.encode`.

        Categories that the training rows did not have are not counted, as only the steps know them.
        """
        require_columns(self.columns, table.schema.names)
        table = table.select(list(self.columns))
        try:
            X = self.rows(table)
        except (TypeError, ValueError) as error:
            rows = f"rows {first_row + 1} to {first_row + table.num_rows}"
            refused = f"refuse one of the {rows}: {' '.join(str(error).split())}"
            raise EncodingError(f"the steps before the forest {refused}") from None
        missing = [pc.is_null(c, nan_is_null=True).to_numpy() for c in table.columns]
        counts = count_rows(X, self.ordered, feature_range)
        counts.n_rows_without_values = int(np.logical_and.reduce(missing).sum())
        n_missing = (int(cells.sum()) for cells in missing)
        counts.missing = Counter(dict(zip(self.columns, n_missing, strict=True)))
        return X, counts

    def row(self, record: Mapping[str, Any]) -> None:
        """Return None: steps read tables; see `TableEncoder.row`."""

    def require_present(self, X: NDArray[np.floating[Any]], *, first_row: int = 0) -> None:
        """Do nothing: `rows` has refused missing values if the forest takes none."""

    def facts(self) -> dict[str, Any]:
        """Return what is kept of the table, as `TableEncoder.facts`."""
        return self.table._asdict()


def dense_rows(features: Any, *, allow_nan: bool, copy: bool = False) -> NDArray[np.float32]:
    """Return what steps made of a table as C-ordered float32, or ValueError if that cannot be."""
    from scipy.sparse import issparse
    from sklearn.utils import check_array

    if issparse(features):
        n_rows, n_columns = features.shape
        n_bytes = 4 * n_rows * n_columns
        if n_bytes > MAX_DENSE_BYTES:
            raise ValueError(
                f"the steps before the forest made {n_rows} sparse rows of {n_columns} columns, "
                f"which take {n_bytes / 2**30:.0f} GB as the dense rows that the model keeps; make "
                "fewer columns, by OrdinalEncoder, TargetEncoder or max_categories of OneHotEncoder"
            )
        features = features.astype(np.float32).toarray()
    finite = "allow-nan" if allow_nan else True
    options = {"order": "C", "copy": copy, "ensure_all_finite": finite}
    name = "what the steps before the forest made of X"
    return np.asarray(check_array(features, dtype=np.float32, input_name=name, **options))


def transformed(pipeline: Pipeline, X: Any) -> Any:
    """Return what fitted steps make of X."""
    # Pipeline.transform refuses a last step that looks unfitted because it keeps nothing.
    for _, step in pipeline.steps:
        if step is not None and step != "passthrough":
            X = step.transform(X)
    return X


def number_columns_of(table: Any) -> tuple[str, ...]:
    """Return the names of the columns of a DataFrame of pandas or polars that hold numbers."""
    if hasattr(table, "schema"):
        return tuple(name for name, kind in table.schema.items() if kind.is_numeric())
    types = table.dtypes.items() if hasattr(table, "columns") else ()
    return tuple(str(name) for name, kind in types if getattr(kind, "kind", None) in {*"iuf"})


def texts_of(table: Any) -> dict[str, str]:
    """Return how columns of text or booleans of a pandas DataFrame hold missing cells.

    "None" or "NaN" for columns of objects, and otherwise the name of the type: steps take None for
    another value than NaN. Columns with both are left out.
    """
    texts = {}
    for name, column in _distinct_columns(table).items():
        if column.dtype == object:
            are_none = {cell is None for cell in column[column.isna()]}
            if len(are_none) < 2:
                texts[name] = "None" if True in are_none else "NaN"
        elif str(column.dtype) in ("str", "string", "category", "boolean"):
            texts[name] = str(column.dtype)
    return texts


def _with_texts(table: Any, texts: Mapping[str, str]) -> Any:
    """Return a table with missing cells of text as `texts_of` found them at the fit."""
    columns = _distinct_columns(table) if texts else {}
    changed = {}
    for name, kind in texts.items():
        column = columns.get(name)
        if column is None or str(column.dtype) == kind:
            continue
        if kind in ("str", "string", "boolean"):
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
