"""RowSource: where rows come from whose distributions are read, and what models read of them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hdicore import LeafIndex, Scorer
from hdiforest._tables import names as table_names
from hdiforest._tables.frames import Output, frame_of, require_library, table_in
from hdiforest._utils import Array, Kind
from hdiforest._utils.checks import as_written, check_choice, check_flag
from hdiforest.calibration import _distribution as distributions
from hdiforest.calibration._predict import (
    AnyKind,
    KindRead,
    distributions_of,
    is_calibrated_bound,
    readings_of_bounds,
)

# What answers: a Scorer, whose rows are features, or a LeafIndex, whose rows are leaves.
Engine = Scorer | LeafIndex

# Called as query(engine, rows, *values_of_rows, **options); the first axis is the rows.
Query = Callable[..., Array]

Readings = Sequence[distributions.Reading]  # one for each output


class RowSource(ABC):
    """Rows of a model as it is now, whose distributions are read.

    They are new rows X, leaves of these, or training rows out of bag.
    """

    def __init__(self, model: Any, X: Any = None) -> None:
        self.model, self.fitted, self.X = model, model._fitted_forest(), X

    @property
    def index(self) -> Any:
        """Index of pandas of the rows, if they have one."""
        return frame_of(self.X).index

    @abstractmethod
    def query(self, query: Query, values: ArrayLike | None = None) -> Array:
        """Call a query of the forest's own distributions, with values of the rows."""

    @abstractmethod
    def calibrated_interval(
        self, coverage: Any, by: Any, joint: bool, with_mean: bool, kind: str
    ) -> Array:
        """Return calibrated intervals; with the means in front as `join_columns` does."""

    @abstractmethod
    def read_bases(self, readings: Readings, values: Array | None = None) -> Array:
        """Read calibrated distributions from base quantiles of the rows, and from their values."""

    def warn_of_training_rows(self) -> None:  # noqa: B027
        """Warn, once a model, if new rows are those of its fit."""


def query_of(method: str, *arguments: Any, **options: Any) -> Query:
    """Return the query that calls a method of an engine, by its name, with further arguments."""
    return lambda engine, rows, *values, **more: getattr(engine, method)(
        rows, *values, *arguments, **options, **more
    )


def query_mean_and_intervals(
    engine: Engine, rows: Any, *, coverage: Sequence[float] | Array, kind: Any, **options: Any
) -> Array:
    """Return means and intervals as `join_columns` does, from one pass over the leaves."""
    index = engine.index if isinstance(engine, Scorer) else engine
    if index.censored:
        median = engine.quantiles(rows, 0.5, **options)
        return join_columns(median, engine.intervals(rows, coverage, kind, **options))
    mean = np.empty((len(rows),) if index.scalar_output else (len(rows), index.n_outputs))
    return join_columns(mean, engine.intervals(rows, coverage, kind, mean=mean, **options))


def join_columns(mean: Array, ends: Array) -> Array:
    """Return means (...) and intervals (..., 2, k) as one array, (..., 1 + 2 k)."""
    by_level = np.moveaxis(ends, -2, -1).reshape(*mean.shape, 2 * ends.shape[-1])
    return np.concatenate([mean[..., None], by_level], axis=-1)


def mean(source: RowSource, output: Output) -> Any:
    """Return the means of rows; see `DistributionModel.predict`."""
    return formatted(source, output, "prediction", partial(source.query, query_of("mean")))


def interval(
    source: RowSource, coverage: Any, kind: AnyKind | None, by: Any, joint: bool, output: Output
) -> Any:
    """Return intervals of rows; see `DistributionModel.predict_interval`."""
    meant = _resolved_kind(source.fitted.calibration, kind)
    check_flag("joint", joint)
    if meant == "calibrated" or is_calibrated_bound(source.fitted.calibration, meant):
        read = partial(source.calibrated_interval, by=by, joint=joint, kind=meant)
    elif by is not None or joint:
        what = "joint must be False" if joint else "by must be None"
        needs = "only calibrated intervals have groups and boxes; call calibrate first"
        raise ValueError(f"{what} with kind={meant!r}: {needs}")
    else:
        read = partial(_read_interval, source, meant)

    def columns() -> Array:
        levels = np.atleast_1d(coverage)
        values = read(levels, with_mean=True)
        ends = [end for _, end in table_names.ENDS[meant]]
        positions = [1 + 2 * j + end for j in range(len(levels)) for end in ends]
        return values[..., [0, *positions]]  # one-sided intervals have one column each

    if output == "numpy":
        intervals = read(coverage, with_mean=False)
    else:
        coverage = as_written(coverage)
        names = partial(table_names.interval_names, meant, coverage)
        intervals = formatted(source, output, names, columns)
    source.warn_of_training_rows()
    return intervals


def _resolved_kind(calibration: Any, kind: AnyKind | None) -> KindRead:
    """Return the kind of intervals that is meant, or raise AttributeError if it is missing."""
    if kind is None:
        return "hdi" if calibration is None else "calibrated"
    if not isinstance(kind, str):
        raise ValueError(f"kind must be one word, for all coverages the same, got {kind!r}")
    if kind == "calibrated" and calibration is None:
        raise AttributeError("this model has no calibration_; call calibrate first")
    kind = "hdi" if kind == "raw" else kind
    if kind != "calibrated":
        check_choice("kind", kind, table_names.ENDS)
    return kind


def _read_interval(source: RowSource, kind: Kind, coverage: Any, *, with_mean: bool) -> Array:
    """Return intervals that are not calibrated; with the means in front as `join_columns` does."""
    bounds = readings_of_bounds(source.fitted.calibration, kind, coverage)
    if bounds is not None:
        ends = source.read_bases(bounds)
        return join_columns(source.query(query_of("mean")), ends) if with_mean else ends
    if with_mean:
        return source.query(partial(query_mean_and_intervals, coverage=coverage, kind=kind))
    return source.query(query_of("intervals", as_written(coverage), kind))


def quantiles(source: RowSource, levels: Any, kind: Any, interpolation: Any, output: Output) -> Any:
    """Return quantiles of rows; see `DistributionModel.predict_quantiles`."""
    levels = as_written(levels)
    calibrated = distributions_of(source.fitted.calibration, kind)
    if calibrated is None:
        query = query_of("quantiles", levels, interpolation or "inverted_cdf")
        values = partial(source.query, query)
    elif interpolation is None:
        values = partial(_calibrated_quantiles, source, calibrated, levels)
    else:
        must = "interpolation must be None for calibrated quantiles"
        raise ValueError(f"{must}, got {interpolation!r}; use kind='raw'")
    return formatted(source, output, partial(table_names.quantile_names, levels), values)


def _calibrated_quantiles(source: RowSource, calibrated: Sequence[Any], quantiles: Any) -> Array:
    levels = distributions.checked_levels(quantiles)
    readings = [each.quantiles(np.atleast_1d(levels)) for each in calibrated]
    columns = source.read_bases(readings)
    return columns.reshape(*columns.shape[:-1], *levels.shape)


def cdf(source: RowSource, y: ArrayLike, inclusive: bool, kind: Any, output: Output) -> Any:
    """Return distribution functions of rows at points; see `DistributionModel.predict_cdf`."""
    calibrated = distributions_of(source.fitted.calibration, kind)
    if calibrated is None:
        values = partial(source.query, query_of("cdf", inclusive=inclusive), y)
    else:
        check_flag("inclusive", inclusive)
        readings = [each.cdf(inclusive=bool(inclusive)) for each in calibrated]
        points = distributions.checked_points(y, len(readings))
        values = partial(source.read_bases, readings, points)
    return formatted(source, output, "cdf", values)


def formatted(
    source: RowSource,
    output: Output,
    names: Callable[[], list[str]] | str,
    values: Callable[[], Array],
) -> Any:
    """Return values of rows, (n,[ n_outputs,][ k]), as they are or as a table.

    `names` gives those of what one target has, or is one name to be numbered. `values` is not
    called if output or the names are refused.
    """
    if output == "numpy":
        return values()
    require_library(output)
    endings = names if isinstance(names, str) else names()
    if not isinstance(endings, str):
        table_names.require_distinct(endings)
    array = values()
    columns = np.ascontiguousarray(array.reshape(len(array), math.prod(array.shape[1:])).T)
    return table_of(source.fitted, output, endings, list(columns), source.index)


def table_of(
    fitted: Any, output: Output, names: Sequence[str] | str, columns: Sequence[Any], index: Any
) -> Any:
    """Return columns as a table; those of one target have the names, or one that is numbered.

    `fitted` is what the model holds, and `index` that of pandas of the rows.
    """
    prefixes, n_outputs = [""], fitted.n_outputs
    if n_outputs > 1:
        targets = table_names.names_of_targets(fitted.target_names, n_outputs)
        prefixes = [f"{name}_" for name in targets]
    if isinstance(names, str):
        names = table_names.numbered_names(names, len(columns) // n_outputs)
    names = [f"{prefix}{name}" for prefix in prefixes for name in names]
    table_names.require_distinct(names)
    return table_in(output, dict(zip(names, columns, strict=True)), index)


def all_rows(source: RowSource) -> tuple[Any, Any, int]:
    """Return what answers, its rows for all of the source's, and the number of threads."""
    blocks: list[tuple[Engine, Any, int]] = []

    def keep(engine: Engine, rows: Any, *, n_threads: int) -> Array:
        blocks.append((engine, rows, n_threads))
        return np.empty(len(rows))

    source.query(keep)
    source.warn_of_training_rows()
    engines, rows, n_threads = zip(*blocks, strict=True)
    return engines[0], np.concatenate(rows), max(n_threads)
