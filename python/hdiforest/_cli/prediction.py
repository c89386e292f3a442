"""What a model predicts for the rows of a table: which columns it takes, which kind and levels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hdiforest._cli.arguments import UsageError
from hdiforest._cli.report import CALIBRATED_LEVELS
from hdiforest._model.fitted import FittedForest
from hdiforest._model.predict import AnyKind, UnknownCoverageError, chosen_kind_and_levels
from hdiforest._tables.columns import CodingError, NumberColumn
from hdiforest._tables.encoder import TableCoding
from hdiforest._tables.formats import checked_features, numbers, open_table
from hdiforest._tables.read import TableError, TableReader, TextForm
from hdiforest._tables.row_counts import RowCounts, count_rows
from hdiforest._tables.training_table import require_finite, with_names
from hdiforest._utils.optional import need
from hdiforest._utils.typing import Array
from hdiforest.calibration._result import CalibrationResult

if TYPE_CHECKING:
    from hdiforest._estimators.hdi_forest import HDIForestRegressor

Rows = NDArray[np.float32] | NDArray[np.float64]


def calibration_of(model: HDIForestRegressor) -> CalibrationResult | None:
    """Return the calibration of a model, None without one."""
    calibration: CalibrationResult | None = getattr(model, "calibration_", None)
    return calibration


def levels_to_show(model: HDIForestRegressor) -> list[float]:
    """Return `CALIBRATED_LEVELS` and those that the model was calibrated at, ascending."""
    calibration = calibration_of(model)
    return sorted({*CALIBRATED_LEVELS, *([] if calibration is None else calibration.coverages)})


def kind_and_levels(
    fitted: FittedForest,
    kind: AnyKind | None,
    levels: Sequence[float] | None,
    n_threads: Callable[[], int],
) -> tuple[AnyKind, list[float]]:
    """Return what `chosen_kind_and_levels` does; what it refuses is a UsageError."""
    try:
        return chosen_kind_and_levels(fitted, kind, levels, n_threads)
    except UnknownCoverageError as error:
        ways = f"{_calls(error)}, or --kind hdi"
        raise UsageError(f"--{error.fact}; the ways out are {ways}") from None
    except ValueError as error:
        is_option = str(error).startswith(("kind", "coverage"))
        raise UsageError(f"--{error}" if is_option else str(error)) from None


def _calls(error: UnknownCoverageError) -> str:
    """Say how to calibrate all coverages in the same way."""
    if error.method == "jackknife+":
        return f"{error.calls()} in Python"
    options = error.options
    call = "'hdiforest fit' with "
    if "confidence" in options:
        call = f"'hdiforest calibrate' with --confidence {options['confidence']} "
    elif error.method != "oob":
        call += f"--calibrate {error.method} "
    call += "--boost " * ("mean" in options) + "--groups COL " * ("groups" in options)
    rows = "" if options else " or --training-rows"
    return f"{call}--coverage {' '.join(f'{each:g}' for each in error.coverages)}{rows}"


def has_names(model: HDIForestRegressor) -> bool:
    """Whether the model was fitted to a table with column names."""
    return hasattr(model, "feature_names_in_")


def feature_columns(fitted: FittedForest, table: TableReader, others: Sequence[str]) -> list[str]:
    """Return the columns that the model takes, in its order.

    A model without names takes all but the `others`, or raises TableError if their number is wrong.
    """
    if fitted.coding is not None:
        return list(fitted.coding.columns)
    if fitted.feature_names is not None:
        return [str(name) for name in fitted.feature_names]
    columns = [name for name in table.names if name not in others]
    if len(columns) != fitted.n_features:
        raise TableError(
            f"the model was fitted without column names and takes {fitted.n_features} columns "
            f"in their order; {table.path} has {len(columns)} that neither --keep nor --target "
            f"names{table.separator_hint()}"
        )
    return columns


class Features:
    """The columns of a table that a model takes, and others to read with them.

    Parameters
    ----------
    fitted : FittedForest
    table : TableReader
    more : sequence of str, default=()
        Further columns of numbers.
    kept : sequence of str, default=()
        Columns to pass on as they are.
    not_features : sequence of str, optional
        Columns that a model without names does not take: by default those above.

    Attributes
    ----------
    names : list of str
        Columns that the model takes, in its order.
    coding : TableCoding or None
    counts : RowCounts
        Of the rows that `matrix` returned so far.
    """

    def __init__(
        self,
        fitted: FittedForest,
        table: TableReader,
        *,
        more: Sequence[str] = (),
        kept: Sequence[str] = (),
        not_features: Sequence[str] | None = None,
    ) -> None:
        self.coding, self._fitted = fitted.coding, fitted
        others = kept if not_features is None else not_features
        self.names = feature_columns(fitted, table, [*more, *others])
        self._own = fitted.coding or TableCoding(tuple(map(NumberColumn, self.names)))
        self.counts = RowCounts()
        self._table = table
        self._more, self._kept = list(more), list(kept)
        self._numbers = self.names
        if self.coding is not None:
            # The columns of a file with types are as they are, and the coding checks them.
            entries = self.coding.entries if table.is_text else ()
            numeric_sources = {e.source for e in entries if e.holds_numbers}
            self._numbers = [name for name in self.names if name in numeric_sources]
        numeric = set(self._numbers)
        self._coded = [name for name in self.names if name not in numeric]

    def batches(self, batch_rows: int | None = None) -> Iterator[Any]:
        """Yield Tables as `TableReader.batches`, for the methods below."""
        wanted = [*self._more, *self._numbers]
        return self._table.batches(wanted, [*self._coded, *self._kept], batch_rows)

    @property
    def kept_names(self) -> list[str]:
        """Names of the columns to pass on."""
        return list(self._kept)

    def require(self) -> None:
        """Raise TableError if columns are missing, or known to be of other types."""
        self._table.require([*self._more, *self._numbers], [*self._coded, *self._kept])
        if self.coding is not None and not self._table.is_text:
            self._code(need("pyarrow").schema(self._table.fields(self._coded)).empty_table(), 0)

    def more(self, batch: Any) -> NDArray[np.float64]:
        """Return the further numbers of a batch, (n, n_more)."""
        return numbers(batch, len(self._more))

    def kept(self, batch: Any) -> list[Any]:
        """Return the columns of a batch to pass on."""
        columns: list[Any] = batch.columns
        return columns[len(columns) - len(self._kept) :]

    def raw(self, batch: Any) -> Any:
        """Return the columns of the features as a pyarrow Table that `coding` takes."""
        begin = len(self._more)
        end = begin + len(self.names)
        table = batch.select(range(begin, end))
        for j, name in enumerate(self._coded, len(self._numbers)):
            table = table.set_column(j, name, self._table.without_missing(table.column(j)))
        return table

    def matrix(self, batch: Any, first_row: int = 0) -> Rows:
        """Return the features of a batch, (n, n_features).

        Parameters
        ----------
        batch : pyarrow.Table
        first_row : int, default=0
            Number of rows before it, for messages.

        Raises
        ------
        TableError
            If a cell is none that its column may hold.
        """
        if self.coding is None:
            columns = batch.select(range(len(self._more), batch.num_columns))
            given = numbers(columns, len(self.names))
            X: Rows = checked_features(given, self.names, self._table.path, first_row)
            counts = count_rows(X, self._own.ordered, self._fitted.feature_range)
        else:
            X, counts = self._code(self.raw(batch), first_row)
        if not self._fitted.allow_nan:
            with self._naming_the_file():
                self._own.require_present(X, first_row=first_row)
        self.counts.add(counts)
        return X

    def _code(self, table: Any, first_row: int) -> tuple[Rows, RowCounts]:
        feature_range = self._fitted.feature_range
        with self._naming_the_file():
            return self._own.encode(table, first_row=first_row, feature_range=feature_range)

    @contextmanager
    def _naming_the_file(self) -> Iterator[None]:
        try:
            yield
        except CodingError as error:
            raise TableError(f"{self._table.path}: {error}", error.columns) from None


def read_labelled_table(
    model: HDIForestRegressor, path: Path, target: str, form: TextForm | None = None
) -> tuple[Any, Array, RowCounts]:
    """Read the features of a fitted model and the target, both for all rows.

    Returns
    -------
    X : pyarrow.Table or (n, n_features) float64
        What the methods of the model take: raw columns if it has a coding, without names if it was
        fitted without.
    y : (n,) float64
    counts : RowCounts

    Raises
    ------
    TableError
        If a column is missing, a feature cannot be read, the target is not finite, or there are no
        rows.
    """
    with open_table(path, form=form) as table:
        features = Features(model._require_fitted(), table, more=[target])
        batches = list(features.batches())
    if not batches:
        raise TableError(f"{path} has no rows")
    y = np.concatenate([features.more(batch)[:, 0] for batch in batches])
    whole = need("pyarrow").concat_tables(batches)
    X = features.matrix(whole)
    require_finite(y, f"{path}: target '{target}'")
    if features.coding is not None:
        return features.raw(whole), y, features.counts
    return (with_names(X, features.names) if has_names(model) else X), y, features.counts
