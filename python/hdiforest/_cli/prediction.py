"""The columns of a table that a model takes, and the intervals that it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hdiforest._cli.arguments import UsageError
from hdiforest._cli.console import CALIBRATED_LEVELS
from hdiforest._model.fitted import FittedForest
from hdiforest._model.predict import AnyKind, resolve_kind_and_levels
from hdiforest._tables.columns import EncodingError, as_float64
from hdiforest._tables.formats import open_table
from hdiforest._tables.read import TableError, TableReader, TextForm
from hdiforest._tables.row_counts import RowCounts
from hdiforest._tables.training_table import require_finite, with_names
from hdiforest._utils.optional import need
from hdiforest._utils.typing import Array
from hdiforest.calibration._result import CalibrationResult

if TYPE_CHECKING:
    from hdiforest._estimators.hdi_forest import HDIForestRegressor


def calibration_of(model: HDIForestRegressor) -> CalibrationResult | None:
    """Return the calibration of a model, None without one."""
    calibration: CalibrationResult | None = getattr(model, "calibration_", None)
    return calibration


def levels_to_show(model: HDIForestRegressor) -> list[float]:
    """Return `CALIBRATED_LEVELS` and those that the model was calibrated at, ascending."""
    calibration = calibration_of(model)
    return sorted({*CALIBRATED_LEVELS, *([] if calibration is None else calibration.coverages)})


def kind_and_levels(
    fitted: FittedForest, kind: AnyKind | None, levels: Sequence[float] | None
) -> tuple[AnyKind, list[float]]:
    """Return what `resolve_kind_and_levels` does; what it refuses is a UsageError."""
    known = fitted.calibration if kind in (None, "calibrated") else None
    unknown = [] if known is None else [c for c in levels or () if not known.has(c)]
    if known is not None and unknown:
        both = sorted({*known.coverages, *unknown})
        raise UsageError(
            f"--coverage must be one that was calibrated: {_listed(known.coverages, ', ')}; got "
            f"{unknown[0]:g}; give 'hdiforest fit' or 'hdiforest calibrate' --coverage "
            f"{_listed(both, ' ')}, or use --kind hdi"
        )
    try:
        return resolve_kind_and_levels(fitted, kind, levels)
    except ValueError as error:
        is_option = str(error).startswith("kind")
        raise UsageError(f"--{error}" if is_option else str(error)) from None


def _listed(coverages: Sequence[float], separator: str) -> str:
    return separator.join(f"{each:g}" for each in coverages)


class Features:
    """The columns of a table on disk that a model takes, and others to read with them.

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
    encoder : TableEncoder or TableSteps

    Raises
    ------
    TableError
        If a model without names takes another number of columns.
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
        others = [*more, *(kept if not_features is None else not_features)]
        try:
            self.encoder = fitted.encoder_for([name for name in table.names if name not in others])
        except ValueError as error:
            raise TableError(
                f"{table.path}: {error} that neither --keep nor --target names"
                f"{table.separator_hint()}"
            ) from None
        self._table = table
        self._more, self.kept_names = list(more), list(kept)
        # The columns of a file with types are as they are, and the encoder checks them.
        self._numbers = list(self.encoder.number_columns) if table.is_text else []
        numeric = set(self._numbers)
        self._others = [name for name in self.encoder.columns if name not in numeric]

    def batches(self, batch_rows: int | None = None) -> Iterator[Any]:
        """Yield Tables as `TableReader.batches`, for the methods below."""
        numbers = [*self._more, *self._numbers]
        return self._table.batches(numbers, [*self._others, *self.kept_names], batch_rows)

    def require(self) -> None:
        """Raise TableError if columns are missing, or known to be of other types."""
        numbers = [*self._more, *self._numbers]
        self._table.require(numbers, [*self._others, *self.kept_names])
        if not self._table.is_text:
            with self.naming_the_file():
                schema = need("pyarrow").schema(self._table.fields(self._others))
                self.encoder.encode(schema.empty_table())

    def more(self, batch: Any) -> list[Any]:
        """Return the further columns of a batch."""
        columns: list[Any] = batch.columns
        return columns[: len(self._more)]

    def kept(self, batch: Any) -> list[Any]:
        """Return the columns of a batch to pass on."""
        columns: list[Any] = batch.columns
        return columns[len(columns) - len(self.kept_names) :]

    def raw(self, batch: Any) -> Any:
        """Return the columns of the features as a pyarrow Table that `encoder` takes."""
        begin = len(self._more)
        table = batch.select(range(begin, begin + len(self.encoder.columns)))
        for j, name in enumerate(self._others, len(self._numbers)):
            table = table.set_column(j, name, self._table.without_missing(table.column(j)))
        return table

    @contextmanager
    def naming_the_file(self) -> Iterator[None]:
        """Make a TableError of what encoding raises."""
        try:
            yield
        except EncodingError as error:
            raise TableError(f"{self._table.path}: {error}", error.columns) from None


def read_labelled_table(
    model: HDIForestRegressor, path: Path, target: str, form: TextForm | None = None
) -> tuple[Any, Array, RowCounts]:
    """Read the features of a fitted model and the target, both for all rows.

    Returns
    -------
    X : pyarrow.Table or (n, n_features) float64
        What the methods of the model take: raw columns if it has an encoder, without names if it
        was fitted without.
    y : (n,) float64
    counts : RowCounts

    Raises
    ------
    UsageError
        If the target is a feature.
    TableError
        If a column is missing, a feature cannot be read, the target is not finite, or there are no
        rows.
    """
    fitted = model.fitted_forest()
    if target in (fitted.columns or ()):
        raise UsageError(f"--target must not be a feature of the model, and '{target}' is one")
    with open_table(path, form=form) as table:
        features = Features(fitted, table, more=[target])
        features.require()
        batches = list(features.batches())
    if not batches:
        raise TableError(f"{path} has no rows")
    whole = need("pyarrow").concat_tables(batches)
    y = as_float64(features.more(whole)[0].combine_chunks())
    with features.naming_the_file():
        X, counts = fitted.encode(features.raw(whole), features.encoder)
    require_finite(y, f"{path}: target '{target}'")
    if fitted.encoder is not None:
        return features.raw(whole), y, counts
    names = fitted.columns
    return (X if names is None else with_names(X, list(names))), y, counts
