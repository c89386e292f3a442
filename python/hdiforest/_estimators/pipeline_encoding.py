"""Steps of scikit-learn as a TableCoding: data in place of code, where both give the same bits."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)

from hdiforest._estimators.pipelines import TableSteps
from hdiforest._model.fitted import FittedForest
from hdiforest._tables.categories import MappedColumn, OneHotColumn, Operation, ScaledColumn
from hdiforest._tables.columns import Column
from hdiforest._tables.encoder import TableCoding
from hdiforest._tables.frames import Frame, frame_of

_OR_ELSE = (
    "; or store the whole model by skops or joblib, fit by hdiforest.fit_table, or encode the "
    "table first and save a model of the forest alone"
)


_CELLS = 2**22  # compared at once


class NeedsCodeError(ValueError):
    """A step that no TableCoding can stand for; the message is its name."""


@dataclass(frozen=True)
class _Indicator:
    """One of the columns that OneHotEncoder makes of a column."""

    of: OneHotColumn  # the same object for all of them
    place: int

    def alone(self, name: str) -> MappedColumn:
        """Return it without the others."""
        of, place = self.of, self.place
        unknown = None if of.refuses_unknown else 0.0
        missing = unknown if of.missing is None else float(place == of.missing)
        outputs = tuple(float(other == place) for other in range(len(of.values)))
        return MappedColumn(name, of.name, of.values, outputs, missing, unknown)


@dataclass(frozen=True)
class _Cells:
    """What steps have made of a column so far."""

    column: str
    fills_text: bool = True  # SimpleImputer takes None, as polars has it, for a value
    fill: Any = math.nan  # in place of missing cells; NaN: nothing
    operations: tuple[tuple[Operation, float], ...] = ()
    encoded: MappedColumn | _Indicator | None = None

    @property
    def is_filled(self) -> bool:
        """Whether missing cells have been filled."""
        return not (isinstance(self.fill, float) and math.isnan(self.fill))

    def scaled(self, step: Any, *operations: tuple[Operation, float]) -> _Cells:
        if self.encoded is not None:
            raise _needs_code(step)
        return replace(self, operations=(*self.operations, *operations))

    def feature(self, name: str) -> Column:
        if isinstance(self.encoded, _Indicator):
            return self.encoded.alone(name)
        if self.encoded is not None:
            return replace(self.encoded, name=name)
        if isinstance(self.fill, str):
            raise NeedsCodeError("SimpleImputer")
        return ScaledColumn(name, self.column, float(self.fill), self.operations)


def with_coding(fitted: FittedForest, steps: TableSteps, table: Any) -> FittedForest:
    """Return a forest with the steps before it as a coding.

    Parameters
    ----------
    fitted : FittedForest
    steps : TableSteps
    table : table or None
        That of the fit, of which steps and coding must make the same; None: it is not there.

    Raises
    ------
    ValueError
        If the steps need code.
    """
    if table is None:
        raise ValueError(
            "steps before the forest become data if this gives the same for the table of the fit, "
            f"which pickles do not hold; save before pickling{_OR_ELSE}"
        )
    if steps.library is None:
        raise ValueError(
            "a model file finds columns by their names, and the steps before the forest were "
            f"fitted on rows without names; fit on a table{_OR_ELSE}"
        )
    frame = frame_of(table)
    try:
        names = frame.names or []
        coding, *of_folds = (
            coding_of(each.pipeline, names, steps.library) for each in (steps, *steps.folds)
        )
    except NeedsCodeError as error:
        raise ValueError(
            f"a model file holds no code, and {error}, a step before the forest, needs its own"
            f"{_OR_ELSE}"
        ) from None
    if any(each.facts() != coding.facts() for each in of_folds):
        raise ValueError(
            "a model file holds one coding of tables, and the folds of CV+ fitted steps of their "
            f"own; calibrate by another method{_OR_ELSE}"
        )
    for _, block in frame.blocks(max(1, _CELLS // fitted.n_features)):
        if not _same(steps, coding, block):
            raise ValueError(
                "a model file holds no code, and the steps before the forest "
                f"({', '.join(steps.names)}) do not make the same as data would{_OR_ELSE}"
            )
    return replace(fitted, coding=coding, feature_names=np.array(coding.features, dtype=object))


def _same(steps: TableSteps, coding: TableCoding, block: Frame) -> bool:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "whole numbers beyond")
        try:
            features, _ = coding.encode(block.arrow(coding.columns))
        except ValueError:  # columns that the coding does not read
            return False
    return np.array_equal(features, steps.encode(block), equal_nan=True)


def coding_of(pipeline: Pipeline, columns: list[str], library: str = "pandas") -> TableCoding:
    """Return fitted steps as a coding.

    Parameters
    ----------
    pipeline : Pipeline
    columns : list of str
        Of the table.
    library : {"pandas", "polars"}, default="pandas"
        Of the table that the steps read.

    Raises
    ------
    NeedsCodeError
        If a step is none of those that are known, or has options that are not.
    """
    cells = _made(pipeline, [_Cells(name, library != "polars") for name in columns])
    counts: dict[str, int] = {}
    names = []
    for each in cells:
        n = counts[each.column] = counts.get(each.column, 0) + 1
        names.append(each.column if n == 1 else f"{each.column} ({n})")
    if not cells or len(set(names)) < len(names):
        raise _needs_code(pipeline)
    return TableCoding(tuple(_entries(cells, names)))


def _entries(cells: list[_Cells], names: list[str]) -> Iterator[Column]:
    """Yield the entries of a coding: one for all columns of a OneHotEncoder, if they are there."""
    begin = 0
    while begin < len(cells):
        first, end = cells[begin].encoded, begin + 1
        if isinstance(first, _Indicator):
            end = begin + len(first.of.names)
            found = [each.encoded for each in cells[begin:end]]
            if found == [_Indicator(first.of, place) for place in range(end - begin)]:
                yield replace(first.of, names=tuple(names[begin:end]))
                begin = end
                continue
            end = begin + 1
        yield cells[begin].feature(names[begin])
        begin = end


def _made(step: Any, cells: list[_Cells]) -> list[_Cells]:
    """Return what a fitted step makes of cells."""
    if step is None or step == "passthrough":
        return cells
    if step == "drop":
        return []
    if isinstance(step, Pipeline):
        for _, part in step.steps:
            cells = _made(part, cells)
        return cells
    if isinstance(step, ColumnTransformer):
        return _columns_made(step, cells)
    if type(step) not in _STEPS:
        raise _needs_code(step)
    return _STEPS[type(step)](step, cells)


def _columns_made(step: ColumnTransformer, cells: list[_Cells]) -> list[_Cells]:
    if step.transformer_weights:
        raise _needs_code(step)
    found: list[_Cells] = []
    for _, part, chosen in step.transformers_:
        found += _made(part, _chosen(step, cells, chosen))
    return found


def _chosen(step: ColumnTransformer, cells: list[_Cells], chosen: Any) -> list[_Cells]:
    """Return the cells of columns that are given by names, positions or a mask."""
    wanted = [chosen] if isinstance(chosen, str | int) else chosen
    if isinstance(wanted, slice):
        if isinstance(wanted.start, str) or isinstance(wanted.stop, str):
            raise _needs_code(step)
        return cells[wanted]
    by_name = {each.column: each for each in cells}
    if any(isinstance(each, str) and each not in by_name for each in wanted):
        raise _needs_code(step)
    if len(wanted) and all(isinstance(each, bool | np.bool_) for each in wanted):
        return [each for each, is_wanted in zip(cells, wanted, strict=True) if is_wanted]
    return [by_name[each] if isinstance(each, str) else cells[each] for each in wanted]


def _imputed(step: SimpleImputer, cells: list[_Cells]) -> list[_Cells]:
    missing = step.missing_values
    is_nan = isinstance(missing, float) and math.isnan(missing)
    if step.add_indicator or not is_nan:
        raise _needs_code(step)
    found = []
    for each, fill in zip(cells, step.statistics_, strict=True):
        text = isinstance(fill, str)
        empty = not text and (fill is None or math.isnan(fill))
        if (text or fill is None) and not each.fills_text:
            raise NeedsCodeError("SimpleImputer of text fitted on polars (fit it on pandas)")
        if each.operations or each.encoded is not None or empty:
            raise _needs_code(step)
        found.append(each if each.is_filled else replace(each, fill=fill))
    return found


def _standardised(step: StandardScaler, cells: list[_Cells]) -> list[_Cells]:
    return _shifted(step, cells, step.mean_ if step.with_mean else None, step.scale_)


def _robust(step: RobustScaler, cells: list[_Cells]) -> list[_Cells]:
    return _shifted(step, cells, step.center_, step.scale_)


def _by_maximum(step: MaxAbsScaler, cells: list[_Cells]) -> list[_Cells]:
    return _shifted(step, cells, None, step.scale_)


def _shifted(step: Any, cells: list[_Cells], centre: Any, scale: Any) -> list[_Cells]:
    """Return cells less a centre, divided by a scale."""
    found = []
    for j, each in enumerate(cells):
        cell = each if centre is None else each.scaled(step, ("subtract", float(centre[j])))
        found.append(cell if scale is None else cell.scaled(step, ("divide", float(scale[j]))))
    return found


def _in_range(step: MinMaxScaler, cells: list[_Cells]) -> list[_Cells]:
    if step.clip:
        raise _needs_code(step)
    return [
        each.scaled(step, ("multiply", float(scale)), ("add", float(least)))
        for each, scale, least in zip(cells, step.scale_, step.min_, strict=True)
    ]


def _unchanged(step: FunctionTransformer, cells: list[_Cells]) -> list[_Cells]:
    if step.func is not None:
        raise _needs_code(step)
    return cells


def _ordinal(step: OrdinalEncoder, cells: list[_Cells]) -> list[_Cells]:
    unknown = None if step.handle_unknown == "error" else float(step.unknown_value)
    found = []
    for each, categories in zip(cells, step.categories_, strict=True):
        values, has_missing = _split(step, each, categories)
        missing = unknown
        if has_missing:  # None is encoded by its place, and NaN by a number of its own
            is_none = categories[-1] is None
            missing = float(len(values) if is_none else step.encoded_missing_value)
        outputs = tuple(float(place) for place in range(len(values)))
        found.append(_mapped(each, values, outputs, missing, unknown))
    return found


def _one_hot(step: OneHotEncoder, cells: list[_Cells]) -> list[_Cells]:
    if step.drop is not None or step.handle_unknown == "warn":
        raise _needs_code(step)
    found = []
    for each, categories in zip(cells, step.categories_, strict=True):
        values, has_missing = _split(step, each, categories)
        missing = len(values) if has_missing else None
        if each.is_filled:
            missing = values.index(each.fill) if each.fill in values else None
        names = ("",) * len(categories)
        of = OneHotColumn(each.column, values, names, missing, step.handle_unknown == "error")
        found += [replace(each, encoded=_Indicator(of, j)) for j in range(len(categories))]
    return found


def _by_target(step: TargetEncoder, cells: list[_Cells]) -> list[_Cells]:
    if step.target_type_ != "continuous":
        raise _needs_code(step)
    found = []
    mean = float(step.target_mean_)
    for each, categories, encodings in zip(cells, step.categories_, step.encodings_, strict=True):
        values, has_missing = _split(step, each, categories)
        outputs = tuple(float(encoding) for encoding in encodings)
        missing = outputs[-1] if has_missing else mean
        found.append(_mapped(each, values, outputs[: len(values)], missing, mean))
    return found


def _split(step: Any, cells: _Cells, categories: Any) -> tuple[Any, bool]:
    """Return the categories of an encoder that are not missing, and whether one is."""
    infrequent = getattr(step, "max_categories", None) or getattr(step, "min_frequency", None)
    values = [value for value in categories.tolist() if value is not None and value == value]
    texts = all(isinstance(value, str) for value in values)
    numbers = all(isinstance(value, int | float) for value in values)
    n_missing = len(categories) - len(values)
    unusual = cells.operations or cells.encoded is not None or not (texts or numbers)
    if infrequent or unusual or n_missing > 1:
        raise _needs_code(step)
    return tuple(values if texts else map(float, values)), n_missing == 1


def _mapped(
    cells: _Cells,
    values: Any,
    outputs: tuple[float, ...],
    missing: float | None,
    unknown: float | None,
) -> _Cells:
    if cells.is_filled:
        missing = dict(zip(values, outputs, strict=True)).get(cells.fill, unknown)
    column = MappedColumn("", cells.column, values, outputs, missing, unknown)
    return replace(cells, encoded=column)


def _needs_code(step: Any) -> NeedsCodeError:
    return NeedsCodeError(type(step).__name__)


_STEPS: dict[type, Callable[[Any, list[_Cells]], list[_Cells]]] = {
    SimpleImputer: _imputed,
    StandardScaler: _standardised,
    RobustScaler: _robust,
    MaxAbsScaler: _by_maximum,
    MinMaxScaler: _in_range,
    FunctionTransformer: _unchanged,
    OrdinalEncoder: _ordinal,
    OneHotEncoder: _one_hot,
    TargetEncoder: _by_target,
}
