"""DistributionModel: what all estimators predict, as arrays or as tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from hdicore import LeafIndex, Scorer
from hdiforest._model.predict import AnyKind, distributions_of, readings_of_bounds
from hdiforest._tables.frames import Output, frame_of, require_library, table_in
from hdiforest._tables.names import (
    ENDS,
    interval_names,
    numbered_names,
    quantile_names,
    require_distinct,
)
from hdiforest._utils import Array, Interpolation
from hdiforest._utils.checks import check_flag
from hdiforest.calibration._distribution import Reading, checked_levels, checked_points

# What is read: a Scorer, whose rows are features, or a LeafIndex, whose rows are leaves.
Source = Scorer | LeafIndex

# Called as function(source, rows, *values_of_rows, **options); the first axis is the rows.
Query = Callable[..., Array]

Readings = Sequence[Reading]  # one for each output


def query_of(method: str, *arguments: Any, **options: Any) -> Query:
    """Return the query that calls a method of a source, by its name, with further arguments."""

    def query(source: Source, rows: Any, *values: Any, **more: Any) -> Array:
        answer: Array = getattr(source, method)(rows, *values, *arguments, **options, **more)
        return answer

    return query


def query_mean_and_intervals(
    source: Source, rows: Any, *, coverage: ArrayLike, kind: Any, **options: Any
) -> Array:
    """Return means and intervals as `join_columns` does, from one pass over the leaves."""
    index = source.index if isinstance(source, Scorer) else source
    mean = np.empty((len(rows),) if index.scalar_output else (len(rows), index.n_outputs))
    ends = source.intervals(rows, np.atleast_1d(coverage), kind, mean=mean, **options)
    return join_columns(mean, ends)


def join_columns(mean: Array, ends: Array) -> Array:
    """Return means (...) and intervals (..., 2, k) as one array, (..., 1 + 2 k)."""
    by_level = np.moveaxis(ends, -2, -1).reshape(*mean.shape, 2 * ends.shape[-1])
    return np.concatenate([mean[..., None], by_level], axis=-1)


def columns_of_kind(values: Array, kind: str) -> Array:
    """Return the mean and those ends of `join_columns` that a kind has columns for."""
    n_levels = values.shape[-1] // 2
    ends = [1 + 2 * j + end for j in range(n_levels) for _, end in ENDS[kind]]
    return values[..., [0, *ends]]


class DistributionModel(RegressorMixin, BaseEstimator, ABC):
    """A regressor whose predictions come from the training rows that share leaves with a row."""

    # From the last fit on tables: names of several targets, and the pandas index of the rows.
    _target_names: Sequence[str] | None = None
    _row_labels: Any = None

    @abstractmethod
    def _query(
        self, X: Any, function: Query, values: ArrayLike | None = None, *, hint: bool = False
    ) -> Array:
        """Do what `query` does."""

    @abstractmethod
    def _predict_calibrated(
        self, X: Any, coverage: ArrayLike, *, with_mean: bool, by: Any = None, joint: bool = False
    ) -> tuple[Array, Array]:
        """Return means, (n[, n_outputs]) or if they are not resolved (0,), and intervals."""

    @abstractmethod
    def _read_distributions(
        self, X: Any, readings: Readings, values: Array | None = None, *, hint: bool = False
    ) -> Array:
        """Read from the base quantiles of the rows of X; see `read_distributions`."""

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

    def query(
        self, X: ArrayLike, function: Query, values: ArrayLike | None = None, *, hint: bool = False
    ) -> Any:
        """Call a function of the conditional distributions for the rows of X, block after block.

        Parameters
        ----------
        X : (n, n_features) array or table
            As in `predict`.
        function : callable
            Takes an `hdicore.Scorer` and rows, or an `hdicore.LeafIndex` and the leaves of rows,
            which have the same methods; then the `values` of these rows, and the keyword
            ``n_threads``. Returns an array, the rows first.
        values : (n, ...) array, optional
            Values to pass with each row.
        hint : bool, default=False
            Whether to warn if X holds the rows of the fit, as `predict_interval` does.

        Returns
        -------
        (n, ...) array
            What the function returned, for all rows.
        """
        return self._query(X, function, values, hint=hint)

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
            In the unit of y.

        Notes
        -----
        Equal to the prediction of a scikit-learn forest only with ``weights="inbag"``, and not with
        ``monotonic_cst``, ``criterion="absolute_error"`` or a transformed target: see the attribute
        ``predict_matches_forest_``.

        Columns of tables are ``prediction``, ``lower_0.9``, ``upper_0.9``, ..., ``quantile_0.5``,
        ..., ``cdf`` and ``sample``, the last two numbered if there are several. Bounds of other
        kinds have the names ``equal_tailed_lower_0.9``, ``one_sided_lower_0.9``, ... Several
        targets are put in front, by the names that y had in the fit or as y0, y1, ...:
        ``height_lower_0.9``. Tables of pandas have the index of X if that is one of pandas, and
        those of out-of-bag results that of the fit, which pickles and files do not hold.
        """
        return self._format(output, "prediction", partial(self._query, X, query_of("mean")), X)

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
        X : (n, n_features) array or table
            As in `predict`.
        coverage : float or list of k floats, default=0.9
            In (0, 1]. Of "calibrated" intervals the share of targets to cover, one of those that
            were calibrated. Of the others the share of the conditional distribution to hold, and of
            one-sided bounds of a calibrated model the share of targets to cover.
        kind : {"calibrated", "hdi", "equal_tailed", "lower", "upper", "smoothed_hdi"}, optional
            By default "calibrated" if the model is, else "hdi". "hdi" is the shortest
            interval (Algorithm 1 of the paper); "equal_tailed" runs between the
            (1 - coverage) / 2 and (1 + coverage) / 2 quantiles; "lower" is the largest lower bound,
            with infinity as the upper end; "upper" the smallest upper bound. Both are calibrated as
            `predict_quantiles` is; by folds there is none, and they are a ValueError.
            "smoothed_hdi" is the mean of the shortest intervals from each atom that hold the
            coverage, weighted by exp(-5 (width - least) / least): its ends jump less, and it may
            hold less.
        by : (n,) array, optional
            The groups of the rows, of calibrated intervals, if the calibration was made by groups
            that no column of X holds. Rows of a group that it does not know take the quantile of
            all rows.
        joint : bool, default=False
            Whether calibrated intervals of several outputs are sides of boxes that hold all targets
            of a row together with the coverage. One output has the same intervals either way.
        output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
            As in `predict`; tables have the mean of each row in front.

        Returns
        -------
        (n, 2) or (n, 2, k) float64, or table
            Lower and upper ends, in the unit of y; (n, n_outputs, 2[, k]) with several outputs.
            NaN where all leaves of the row are empty, as ``weights="oob"`` and `n_leaves` of
            `from_leaves` allow. Calibrated intervals of a higher coverage contain those of a lower
            one.

        Raises
        ------
        AttributeError
            If kind is "calibrated" and the model is not.
        ValueError
            If an argument is out of range, or a coverage was not calibrated.

        Warns
        -----
        UserWarning
            If X holds the rows of the fit of an `HDIForestRegressor`, all of them in their order:
            use `oob_interval`. If the calibration had no rows of the groups of some of them.

        Notes
        -----
        O(entries of the row's leaves + distinct targets / 64) per row, and O(support) per level.
        """
        self._check_calibrated(kind, by, joint)
        ask = partial(self._query, X, hint=True)
        calibrated = partial(self._predict_calibrated, X, by=by, joint=joint)
        # Of tables the mean warns.
        read = partial(self._read_distributions, X, hint=output == "numpy")
        return self._format_intervals(X, coverage, kind, output, ask, calibrated, read)

    def _check_calibrated(self, kind: AnyKind | None, by: Any, joint: bool) -> None:
        """Raise ValueError if what only calibrated intervals take is given with another kind."""
        check_flag("joint", joint)
        if self._kind(kind) != "calibrated" and (by is not None or joint):
            what = "joint must be False" if joint else "by must be None"
            raise ValueError(f"{what} with kind={self._kind(kind)!r}")

    def _format_intervals(
        self,
        X: Any,
        coverage: ArrayLike,
        kind: AnyKind | None,
        output: Output,
        ask: Callable[[Query], Array],
        calibrated: Callable[..., tuple[Array, Array]],
        read: Callable[[Readings], Array],
    ) -> Any:
        """Return what `ask`, `calibrated` and `read` say of the rows of X; see `_format`."""
        resolved = self._kind(kind)
        calibration = getattr(self, "calibration_", None)
        bounds = readings_of_bounds(calibration, resolved, coverage)
        if output == "numpy":
            if resolved == "calibrated":
                return calibrated(coverage, with_mean=False)[1]
            if bounds is not None:
                return read(bounds)
            return ask(query_of("intervals", coverage, resolved))

        def columns() -> Array:
            if resolved == "calibrated":
                return join_columns(*calibrated(np.atleast_1d(coverage), with_mean=True))
            if bounds is not None:
                mean, ends = ask(query_of("mean")), read(bounds)
                ends = ends.reshape(*mean.shape, 2, np.size(coverage))
                return columns_of_kind(join_columns(mean, ends), resolved)
            function = partial(query_mean_and_intervals, coverage=coverage, kind=resolved)
            return columns_of_kind(ask(function), resolved)

        return self._format(output, partial(interval_names, resolved, coverage), columns, X)

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
            "split", or the forest's own.
        interpolation : str, optional
            Of kind "raw": any method of `numpy.quantile`, by default "inverted_cdf", the smallest
            target with distribution function >= level. It and "averaged_inverted_cdf" need weights
            alone; the others count observations, the weight of one being known from the leaves.
            Rows with one target that share no leaf of the query count as one.
        output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
            As in `predict`.

        Returns
        -------
        (n,) or (n, k) float64, or table
            (n, n_outputs[, k]) with several outputs.

        Raises
        ------
        AttributeError, ValueError
            If kind is "calibrated" and the model is not, or is by folds; or an argument is wrong.

        Notes
        -----
        Calibrated quantiles at 0 and 1 are the ends of the range of the training targets, or
        infinite without clipping.
        """
        ask, read = partial(self._query, X), partial(self._read_distributions, X)
        values = self._quantiles_by(quantiles, kind, interpolation, ask, read)
        return self._format(output, partial(quantile_names, quantiles), values, X)

    def _quantiles_by(
        self,
        quantiles: ArrayLike,
        kind: str | None,
        interpolation: str | None,
        ask: Callable[[Query], Array],
        read: Callable[[Readings], Array],
    ) -> Callable[[], Array]:
        """Return what gives quantiles by `ask` or `read`."""
        distributions = distributions_of(getattr(self, "calibration_", None), kind)
        if distributions is None:
            return partial(ask, query_of("quantiles", quantiles, interpolation or "inverted_cdf"))
        if interpolation is not None:
            raise ValueError(
                "interpolation must be None for calibrated quantiles, got "
                f"{interpolation!r}; use kind='raw'"
            )
        levels = checked_levels(quantiles)

        def values() -> Array:
            columns = read([each.quantiles(np.atleast_1d(levels)) for each in distributions])
            return columns.reshape(*columns.shape[:-1], *levels.shape)

        return values

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
        X, y : rows as in `predict`, and (n,) or (n, k) array
            One or several points per row; (n, n_outputs[, k]) with several outputs.
        inclusive : bool, default=True
            Whether y itself counts: False gives P(Y < y given x).
        kind : {"calibrated", "raw"}, optional
            As in `predict_quantiles`.
        output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
            As in `predict`.

        Returns
        -------
        array of the shape of y, float64, or table
            Between 0 and 1.

        Raises
        ------
        AttributeError, ValueError
            As `predict_quantiles`.
        """
        ask, read = partial(self._query, X), partial(self._read_distributions, X)
        return self._format(output, "cdf", self._cdf_by(y, inclusive, kind, ask, read), X)

    def _cdf_by(
        self,
        y: ArrayLike,
        inclusive: bool,
        kind: str | None,
        ask: Callable[..., Array],
        read: Callable[..., Array],
    ) -> Callable[[], Array]:
        """Return what gives the distribution function at y by `ask` or `read`."""
        distributions = distributions_of(getattr(self, "calibration_", None), kind)
        if distributions is None:
            return partial(ask, query_of("cdf", inclusive=inclusive), y)
        check_flag("inclusive", inclusive)
        readings = [each.cdf(inclusive=bool(inclusive)) for each in distributions]
        return partial(read, readings, checked_points(y, len(readings)))

    def _format(
        self,
        output: Output,
        names: Callable[[], list[str]] | str,
        values: Callable[[], Array],
        X: Any,
    ) -> Any:
        """Return values, (n,[ n_outputs,][ k]), as they are or as a table.

        `names` gives those of what one target has, or is one name to be numbered. `values` is not
        called if output or the names are refused. X None stands for the rows of the fit.
        """
        if output == "numpy":
            return values()
        require_library(output)
        endings = [names] if isinstance(names, str) else names()
        require_distinct(endings)
        array, prefixes = values(), self._target_prefixes()
        if isinstance(names, str):
            endings = numbered_names(names, int(np.prod(array.shape[1:])) // len(prefixes))
        columns = [f"{prefix}{ending}" for prefix in prefixes for ending in endings]
        require_distinct(columns)
        flat = array.reshape(len(array), len(columns))
        return table_in(output, columns, flat, self._index_of(X) if output == "pandas" else None)

    def _learn_labels(self, X: Any, y: Any) -> None:
        """Remember what the tables of a fit say of its rows and targets."""
        self._target_names = frame_of(y).names
        self._row_labels = frame_of(X).index

    def _target_prefixes(self) -> list[str]:
        n_outputs: int = getattr(self, "n_outputs_", 1)
        if n_outputs == 1:
            return [""]
        names = self._target_names or [f"y{i}" for i in range(n_outputs)]
        return [f"{name}_" for name in names]

    def _index_of(self, X: Any) -> Any:
        """Return the pandas index of rows, of those of the fit if X is None."""
        return self._row_labels if X is None else frame_of(X).index
