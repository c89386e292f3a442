"""DistributionModel: what all estimators predict, as arrays or as tables."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial, wraps
from html import escape
from inspect import signature
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from hdicore import LeafIndex, Scorer
from hdiforest._model.predict import AnyKind, distributions_of, readings_of_bounds
from hdiforest._tables import names as table_names
from hdiforest._tables.frames import Output, frame_of, require_library, table_in
from hdiforest._utils import Array, Interpolation
from hdiforest._utils.checks import (
    as_written,
    check_choice,
    check_flag,
)
from hdiforest._utils.kinds import ONE_SIDED
from hdiforest.calibration import _distribution as distributions

# What is read: a Scorer, whose rows are features, or a LeafIndex, whose rows are leaves.
Source = Scorer | LeafIndex

# Called as function(source, rows, *values_of_rows, **options); the first axis is the rows.
Query = Callable[..., Array]

Readings = Sequence[distributions.Reading]  # one for each output


_Called = ParamSpec("_Called")
_Model = TypeVar("_Model", bound="DistributionModel")
_Result = TypeVar("_Result")

# What stands for an argument of other libraries, or for one of the forest.
_INSTEAD = {
    "alpha": "; alpha=0.1 is coverage=0.9 here",
    "confidence_level": "; confidence_level=0.9 is coverage=0.9 here",
    "__init__": "; arguments of a forest are given to it: estimator=ExtraTreesRegressor(100, "
    "bootstrap=True)",
}


def known_arguments(
    method: Callable[Concatenate[_Model, _Called], _Result], *, once: bool = False
) -> Callable[Concatenate[_Model, _Called], _Result]:
    """Let a method refuse unknown arguments by the name of the model's class; see `reads_once`."""
    names = frozenset(signature(method).parameters)

    @wraps(method)
    def call(model: _Model, /, *args: _Called.args, **options: _Called.kwargs) -> _Result:
        if not names.issuperset(options):
            name = next(name for name in options if name not in names)
            called = f"{type(model).__name__}.{method.__name__}()".replace(".__init__", "")
            instead = _INSTEAD.get(name, _INSTEAD.get(method.__name__, ""))
            raise TypeError(f"{called} got an unexpected keyword argument {name!r}{instead}")
        return method(model._at_once() if once else model, *args, **options)

    return call


def reads_once(
    method: Callable[Concatenate[_Model, _Called], _Result],
) -> Callable[Concatenate[_Model, _Called], _Result]:
    """Let a method see the model as it is when called, though other threads calibrate it."""
    return known_arguments(method, once=True)


def query_of(method: str, *arguments: Any, **options: Any) -> Query:
    """Return the query that calls a method of a source, by its name, with further arguments."""
    return lambda source, rows, *values, **more: getattr(source, method)(
        rows, *values, *arguments, **options, **more
    )


def query_mean_and_intervals(
    source: Source, rows: Any, *, coverage: Sequence[float] | Array, kind: Any, **options: Any
) -> Array:
    """Return means and intervals as `join_columns` does, from one pass over the leaves."""
    index = source.index if isinstance(source, Scorer) else source
    mean = np.empty((len(rows),) if index.scalar_output else (len(rows), index.n_outputs))
    return join_columns(mean, source.intervals(rows, coverage, kind, mean=mean, **options))


def join_columns(mean: Array, ends: Array) -> Array:
    """Return means (...) and intervals (..., 2, k) as one array, (..., 1 + 2 k)."""
    by_level = np.moveaxis(ends, -2, -1).reshape(*mean.shape, 2 * ends.shape[-1])
    return np.concatenate([mean[..., None], by_level], axis=-1)


class DistributionModel(RegressorMixin, BaseEstimator, ABC):
    """A regressor whose predictions come from the training rows that share leaves with a row."""

    # From the last fit on tables: names of several targets, and the pandas index of the rows.
    _target_names: Sequence[str] | None = None
    _row_labels: Any = None

    def _at_once(self) -> Self:
        """Return the model as it is now, which another calibration of it does not change."""
        now = object.__new__(type(self))
        now.__dict__ = self.__dict__.copy()
        return now

    def _said(self) -> str:
        """Say in numbers what a fitted model holds; empty if it is not fitted."""
        model: Any = getattr(self, "best_estimator_", self)
        source = getattr(model, "scorer_", None) or getattr(model, "index_", None)
        if source is None:
            return ""
        index = source.index if isinstance(source, Scorer) else source
        counts = {"tree": index.n_trees, "training row": model.n_training_rows_}
        counts["output"] = index.n_outputs
        said = [f"{n:,} {noun}{'s' * (n != 1)}" for noun, n in counts.items() if n is not None]
        if (known := getattr(self, "calibration_", None)) is not None:
            said.append(f"calibrated at {', '.join(f'{each:g}' for each in known.coverages)}")
        return ", ".join(said)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return ": ".join(filter(None, [super().__repr__(N_CHAR_MAX), self._said()]))

    def _repr_html_inner(self) -> str:
        """Return the diagram of scikit-learn, and what the model holds, with its calibration."""
        known = getattr(self, "calibration_", None)
        table = "" if known is None else known._repr_html_()
        said = f"<details><summary>{escape(self._said())}</summary>{table}</details>"
        return f"{super()._repr_html_inner()}{said if self._said() else ''}"

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle = super()._repr_mimebundle_(**options)
        return bundle | {"text/html": self._repr_html_inner()} if "text/html" in bundle else bundle

    @abstractmethod
    def _query(self, X: Any, /, function: Query, values: ArrayLike | None = None) -> Array: ...

    @abstractmethod
    def _predict_calibrated(
        self, X: Any, /, coverage: ArrayLike, *, with_mean: bool, by: Any, joint: bool
    ) -> Array:
        """Return calibrated intervals; with the means in front as `join_columns` does."""

    @abstractmethod
    def _read_distributions(
        self, X: Any, /, readings: Readings, values: Array | None = None
    ) -> Array:
        """Read from the base quantiles of the rows of X; see `read_distributions`."""

    def _warn_of_training_rows(self, X: Any, of: str = "") -> None:
        """Warn, once a model, if X holds the rows of its fit and the model has their digest."""

    def _kind(self, kind: AnyKind | None) -> AnyKind:
        """Return the kind of intervals that is meant, or raise AttributeError if it is missing."""
        if not (kind is None or isinstance(kind, str)):
            raise ValueError(f"kind must be one word, for all coverages the same, got {kind!r}")
        if kind is not None and kind != "calibrated":
            return kind
        if hasattr(self, "calibration_"):
            return "calibrated"
        if kind is None:
            return "hdi"
        check_is_fitted(self)
        raise AttributeError("this model has no calibration_; call calibrate first")

    @reads_once
    def query(self, X: ArrayLike, function: Query, values: ArrayLike | None = None) -> Any:
        """Call a function of the conditional distributions for the rows of X, block after block.

        Parameters
        ----------
        X, function : rows as in `predict`, and callable
            Takes an `hdicore.Scorer` and rows, or an `hdicore.LeafIndex`, which has the same
            methods, and leaves; then `values` of the rows, and the keyword ``n_threads``.
        values : (n, ...) array, optional
            Values to pass with each row.

        Returns
        -------
        (n, ...) array
            What the function returned, the rows first.
        """
        return self._query(X, function, values)

    @reads_once
    def predict(self, X: ArrayLike, *, output: Output = "numpy") -> Any:
        """Mean of the conditional distribution.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
            An array, or a table of that library.

        Returns
        -------
        (n,) or (n, n_outputs) float64, or table
            In the unit of y. The scikit-learn forest's own if `predict_matches_forest_`.

        Notes
        -----
        Tables of pandas have the index of X if that is of pandas, and out of bag that of the fit,
        which pickles and files do not hold. Names of columns: :doc:`/tables`.
        """
        return self._format(output, "prediction", partial(self._query, X, query_of("mean")), X)

    @reads_once
    def predict_interval(
        self,
        X: ArrayLike,
        coverage: float | ArrayLike = 0.9,
        *,
        kind: AnyKind | None = None,
        by: ArrayLike | None = None,
        joint: bool = False,
        output: Output = "numpy",
    ) -> Any:
        """Prediction intervals.

        Parameters
        ----------
        X, coverage : rows as in `predict`, and float or list of k floats, default=0.9
            In (0, 1]. Of "calibrated" intervals, and of one-sided bounds of a calibrated model, the
            share of targets to cover; of the others that of the conditional distribution to hold.
        kind : str, optional
            By default "calibrated" if the model is, else "hdi", the shortest interval (Algorithm 1
            of the paper). "equal_tailed" runs between the (1 - coverage) / 2 and
            (1 + coverage) / 2 quantiles; "lower" and "upper" are bounds, with infinity as the other
            end, which are calibrated as `predict_quantiles` is. All kinds: :doc:`/intervals`.
        by : (n,) array, optional
            The groups of the rows, if the calibration was made by groups that no column of X holds.
            Rows of groups that it had no rows of get a warning.
        joint : bool, default=False
            Whether calibrated intervals of several outputs are sides of boxes that hold all targets
            of a row together with the coverage. One output has the same intervals either way.
        output : str, default="numpy"
            As in `predict`; tables have the mean of each row in front.

        Returns
        -------
        (n, 2) or (n, 2, k) float64, or table
            Lower and upper ends, in the unit of y; (n, n_outputs, 2[, k]) with several outputs. NaN
            if all leaves of the row are empty (``weights="oob"``, `n_leaves` of `from_leaves`).

        Notes
        -----
        All rows of the fit of an `HDIForestRegressor`, in their order, get a `TrainingRowsWarning`,
        one for each model: use `oob_interval`. Without a calibration the kind "calibrated" is an
        AttributeError; a coverage that was not calibrated, and one-sided bounds of one by folds,
        are a ValueError. O(entries of the row's leaves + distinct targets / 64) per row, and
        O(support) per level.
        """
        resolved, coverage = self._kind(kind), as_written(coverage)
        check_choice("kind", resolved, table_names.ENDS)
        check_flag("joint", joint)
        if resolved != "calibrated" and (by is not None or joint):
            what = "joint must be False" if joint else "by must be None"
            needs = "only calibrated intervals have groups and boxes; call calibrate first"
            raise ValueError(f"{what} with kind={resolved!r}: {needs}")
        if output == "numpy":
            return self._intervals(X, coverage, resolved, by, joint, with_mean=False)

        def columns() -> Array:
            levels, ends = np.atleast_1d(coverage), table_names.ENDS[resolved]
            values = self._intervals(X, levels, resolved, by, joint, with_mean=True)
            own = [1 + 2 * j + end for j in range(len(levels)) for _, end in ends]
            return values[..., [0, *own]]  # one-sided intervals have one column each

        names = partial(table_names.interval_names, resolved, coverage)
        return self._format(output, names, columns, X)

    def _intervals(
        self, X: Any, coverage: Any, kind: AnyKind, by: Any, joint: bool, *, with_mean: bool
    ) -> Array:
        """Return intervals; with the means in front as `join_columns` does."""
        ends = self._read_intervals(X, coverage, kind, by, joint, with_mean=with_mean)
        self._warn_of_training_rows(X)
        return ends

    def _read_intervals(
        self, X: Any, coverage: Any, kind: AnyKind, by: Any, joint: bool, *, with_mean: bool
    ) -> Array:
        if kind == "calibrated":
            return self._predict_calibrated(X, coverage, with_mean=with_mean, by=by, joint=joint)
        bounds = None  # one row would wait for the error that a missing calibration_ is
        if kind in ONE_SIDED:
            bounds = readings_of_bounds(getattr(self, "calibration_", None), kind, coverage)
        if bounds is None:
            function = query_of("intervals", coverage, kind)
            if with_mean:
                function = partial(query_mean_and_intervals, coverage=coverage, kind=kind)
            return self._query(X, function)
        ends = self._read_distributions(X, bounds)
        return join_columns(self._query(X, query_of("mean")), ends) if with_mean else ends

    def _all_rows(self, X: Any) -> tuple[Source, Any, int]:
        """Return what is read, its rows for all of X, and the number of threads."""
        blocks: list[tuple[Source, Any, int]] = []

        def keep(source: Source, rows: Any, *, n_threads: int) -> Array:
            blocks.append((source, rows, n_threads))
            return np.empty(len(rows))

        self._query(X, keep)
        self._warn_of_training_rows(X)
        sources, rows, n_threads = zip(*blocks, strict=True)
        return sources[0], np.concatenate(rows), max(n_threads)

    @reads_once
    def predict_quantiles(
        self,
        X: ArrayLike,
        quantiles: float | ArrayLike,
        *,
        kind: Literal["calibrated", "raw"] | None = None,
        interpolation: Interpolation | None = None,
        output: Output = "numpy",
    ) -> Any:
        """Return quantiles of the conditional distribution.

        Parameters
        ----------
        X, quantiles : rows as in `predict`, and float or list of k floats
            Levels in [0, 1].
        kind : {"calibrated", "raw"}, optional
            The calibrated distribution, which is the default if the model is calibrated by "oob" or
            "split", and an error if it is not; or the forest's own.
        interpolation : str, optional
            Of kind "raw": any method of `numpy.quantile`, by default "inverted_cdf", the smallest
            target with distribution function >= level. All but it and "averaged_inverted_cdf" count
            observations; rows with one target that share no leaf of the query count as one.
        output : str, default="numpy"
            As in `predict`.

        Returns
        -------
        (n,) or (n, k) float64, or table
            (n, n_outputs[, k]) with several outputs. Calibrated ones at 0 and 1 are the ends of the
            range of the training targets, or infinite without clipping.
        """
        quantiles = as_written(quantiles)
        calibrated = distributions_of(getattr(self, "calibration_", None), kind)
        if calibrated is None:
            function = query_of("quantiles", quantiles, interpolation or "inverted_cdf")
            values = partial(self._query, X, function)
        elif interpolation is None:
            values = partial(self._calibrated_quantiles, X, calibrated, quantiles)
        else:
            must = "interpolation must be None for calibrated quantiles"
            raise ValueError(f"{must}, got {interpolation!r}; use kind='raw'")
        return self._format(output, partial(table_names.quantile_names, quantiles), values, X)

    def _calibrated_quantiles(self, X: Any, calibrated: Sequence[Any], quantiles: Any) -> Array:
        levels = distributions.checked_levels(quantiles)
        readings = [each.quantiles(np.atleast_1d(levels)) for each in calibrated]
        columns = self._read_distributions(X, readings)
        return columns.reshape(*columns.shape[:-1], *levels.shape)

    @reads_once
    def predict_cdf(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        inclusive: bool = True,
        kind: Literal["calibrated", "raw"] | None = None,
        output: Output = "numpy",
    ) -> Any:
        """P(Y <= y given x), eq. (14) of the paper, or P(Y < y given x).

        Parameters
        ----------
        X, y : rows as in `predict`, and float, (n,) or (n, k) array
            One or several points per row; (n, n_outputs[, k]) with several outputs; or one point
            for all.
        inclusive : bool, default=True
            Whether y itself counts: False gives P(Y < y given x).
        kind, output : {"calibrated", "raw"}, optional, and str, default="numpy"
            As in `predict_quantiles`.

        Returns
        -------
        array of the shape of y, float64, or table
            Between 0 and 1; (n,) or (n, n_outputs) if y is a number.
        """
        calibrated = distributions_of(getattr(self, "calibration_", None), kind)
        if calibrated is None:
            values = partial(self._query, X, query_of("cdf", inclusive=inclusive), y)
        else:
            check_flag("inclusive", inclusive)
            readings = [each.cdf(inclusive=bool(inclusive)) for each in calibrated]
            points = distributions.checked_points(y, len(readings))
            values = partial(self._read_distributions, X, readings, points)
        return self._format(output, "cdf", values, X)

    def _format(
        self,
        output: Output,
        names: Callable[[], list[str]] | str,
        values: Callable[[], Array],
        X: Any,
    ) -> Any:
        """Return values, (n,[ n_outputs,][ k]), as they are or as a table.

        `names` gives those of what one target has, or is one name to be numbered. `values` is not
        called if output or the names are refused.
        """
        if output == "numpy":
            return values()
        require_library(output)
        endings = [names] if isinstance(names, str) else names()
        table_names.require_distinct(endings)
        array = values()
        columns = np.ascontiguousarray(array.reshape(len(array), math.prod(array.shape[1:])).T)
        return self._table(output, names if isinstance(names, str) else endings, list(columns), X)

    def _table(
        self, output: Output, names: Sequence[str] | str, columns: Sequence[Any], X: Any
    ) -> Any:
        """Return columns as a table; those of one target have the names, or one that is numbered.

        X None stands for the rows of the fit.
        """
        prefixes, n_outputs = [""], getattr(self, "n_outputs_", 1)
        if n_outputs > 1:
            names_of_targets = self._target_names or [f"y{i}" for i in range(n_outputs)]
            prefixes = [f"{name}_" for name in names_of_targets]
        if isinstance(names, str):
            names = table_names.numbered_names(names, len(columns) // len(prefixes))
        names = [f"{prefix}{name}" for prefix in prefixes for name in names]
        table_names.require_distinct(names)
        index = None
        if output == "pandas":
            index = self._row_labels if X is None else frame_of(X).index
        return table_in(output, dict(zip(names, columns, strict=True)), index)

    def _learn_labels(self, X: Any, y: Any) -> None:
        """Remember what the tables of a fit say of its rows and targets."""
        self._target_names = frame_of(y, "y").names
        self._row_labels = frame_of(X).index
