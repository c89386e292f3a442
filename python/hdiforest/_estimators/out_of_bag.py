"""OutOfBagPredictions: what a model predicts for its training rows, by trees that drew others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from hdicore import LeafIndex
from hdiforest._estimators import row_source
from hdiforest._estimators.row_source import Query, Readings, RowSource, join_columns, query_of
from hdiforest._model.fitted import FittedForest
from hdiforest._model.out_of_bag import OutOfBagIntervals
from hdiforest._tables.frames import Output
from hdiforest._utils import Array, Interpolation
from hdiforest._utils.checks import known_arguments
from hdiforest._utils.hints import warn_caller
from hdiforest.calibration import Base, Calibration
from hdiforest.calibration import _predict as predict
from hdiforest.calibration._widened import WidenedIntervals
from hdiforest.exceptions import OutOfBagWarning


class OutOfBagRows(RowSource):
    """The training rows of a model, each answered by trees that did not draw it.

    `result` is what is asked for, in warnings and errors.
    """

    def __init__(self, model: Any, result: str) -> None:
        super().__init__(model)
        self.n_threads, self.result = model._n_threads(), result
        self.positions = np.arange(self.fitted.n_training_rows)
        if self.fitted.require_training_rows().bags is None:
            raise ValueError(
                f"oob_.{result} needs a forest whose trees leave rows out; every tree of this one "
                "was fitted on all rows"
            )

    @property
    def index(self) -> Any:
        """Index of pandas of the rows of the fit."""
        return self.model._row_labels

    def ask(self, query: Callable[..., Any], *values: Any, targets: Array | None = None) -> Any:
        """Call a query of leaves and of an index of the targets, or of others, with values."""
        index = self.fitted.scorer.index
        if targets is None:
            # A query for no rows refuses wrong arguments before the training rows are indexed.
            no_leaves = np.empty((0, index.n_trees), dtype=np.int32)
            query(index, no_leaves, *(each[:0] for each in values))
        source = OutOfBagIntervals(self.fitted, self.n_threads)
        return source.query_raw(query, self.positions, *values, targets=targets)

    def query(self, query: Query, values: ArrayLike | None = None) -> Array:
        """Ask the index for the leaves of all rows in trees that did not draw them."""
        per_row = () if values is None else (np.asarray(values),)
        return self._warned_of_nan(self.ask(query, *per_row))

    def calibrated_interval(
        self,
        coverage: Any,
        by: Any,
        joint: bool,
        with_mean: bool,
        kind: str,  # noqa: ARG002
    ) -> Array:
        """Widen the base intervals of each output."""
        calibrated = predict.require_calibrated(self.fitted)
        positions = calibrated.result.positions(coverage)
        fitted = (
            self.fitted.with_calibration(predict.boxes_of(calibrated)) if joint else self.fitted
        )

        def answer(part: FittedForest, _: int) -> Array:
            calibrated, ends = self._base_intervals(part, lambda result: result.bases)
            labels = by
            if by is None and calibrated.by is not None and calibrated.result.method == "oob":
                labels = calibrated.by.array
            codes = calibrated.group_codes(part.require_training_rows().X, labels)
            return calibrated.result.intervals(ends, codes)[..., positions]

        ends = self._warned_of_nan(predict.of_outputs(fitted, answer))
        # Rows without a mean are those without an interval, of which a warning was given.
        return join_columns(self.ask(query_of("mean")), ends) if with_mean else ends

    def read_bases(self, readings: Readings, values: Array | None = None) -> Array:
        """Read the base quantiles of each output."""
        per_row = () if values is None else (values,)

        def answer(part: FittedForest, output: int, *values: Array) -> Array:
            levels, read = readings[output]
            _, ends = self._base_intervals(part, lambda result: result.bases[0].quantiles(levels))
            return read(ends[:, 1], *values)

        return self._warned_of_nan(predict.of_outputs(self.fitted, answer, *per_row))

    def _base_intervals(
        self, part: FittedForest, bases: Callable[[Calibration], Sequence[Base]]
    ) -> tuple[WidenedIntervals, Array]:
        """Return the calibration of an output, and bases of it; ValueError if there are none."""
        calibrated, reason = part.calibrated, part.why_not_out_of_bag()
        if reason is not None:
            raise ValueError(
                f"kind must not be 'calibrated' out of bag, because {reason}; use kind='hdi', or "
                "'raw' of quantiles, which are not calibrated, or calibrate by method='oob' or "
                "'split' without a regressor as mean"
            )
        assert isinstance(calibrated, WidenedIntervals)
        source = OutOfBagIntervals(part, self.n_threads)
        return calibrated, source.intervals(self.positions, bases(calibrated.result))

    def _warned_of_nan(self, numbers: Array) -> Array:
        self.warn_of_empty(np.isnan(numbers))
        return numbers

    def warn_of_empty(self, empty: NDArray[np.bool_]) -> None:
        """Warn if rows have no result; `empty` (n, ...) says which."""
        if n_empty := np.count_nonzero(empty.reshape(len(empty), -1).any(axis=1)):
            warn_caller(
                f"{n_empty} of {len(empty)} training rows have no out-of-bag {self.result}, "
                "because no tree that did not see them has another row to show; use more trees",
                OutOfBagWarning,
            )


class OutOfBagPredictions:
    """Predictions for the training rows of a model, each from the trees that did not draw the row.

    Parameters
    ----------
    model : HDIForestRegressor
        A fitted model. The object is the attribute ``oob_`` of the model, and keeps the state of
        the model at the time it was asked for.

    Notes
    -----
    All methods give NaN, with a warning, for rows that every tree has drawn. They raise ValueError
    if every tree was fitted on all rows, or if the model has no training rows.

    A row never takes part in its own distribution. With ``weights`` "all" and "oob" it is left out
    of its leaves, and the other rows of the leaf share its weight.

    Tables of pandas have the index of the fit. Pickles and files do not keep the index.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest import HDIForestRegressor
    >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
    >>> model = HDIForestRegressor(random_state=0).fit(X, y)
    >>> lower, upper = model.oob_.interval(0.9).T
    >>> bool(((lower <= y) & (y <= upper)).mean() >= 0.9)
    True
    >>> model.oob_.quantiles([0.1, 0.5, 0.9]).shape
    (300, 3)
    """

    def __init__(self, model: Any) -> None:
        self._model = model

    def __repr__(self) -> str:
        return f"OutOfBagPredictions of {self._model.n_training_rows_:,} training rows"

    @known_arguments
    def prediction(self, *, output: Output = "numpy") -> Any:
        """Return the out-of-bag mean of each training row.

        Parameters
        ----------
        output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
            The type of the result: an array, or a table of the named library.

        Returns
        -------
        (n_training_rows,) or (n_training_rows, n_outputs) float64, or table
            Means, in the unit of y. With ``weights="inbag"`` they equal the forest's own
            ``oob_prediction_``.
        """
        return row_source.mean(OutOfBagRows(self._model, "prediction"), output)

    @known_arguments
    def interval(
        self,
        coverage: float | ArrayLike = 0.9,
        *,
        kind: predict.AnyKind | None = None,
        by: ArrayLike | None = None,
        joint: bool = False,
        output: Output = "numpy",
    ) -> Any:
        """Return the out-of-bag interval of each training row.

        Parameters
        ----------
        coverage : float or list of k floats, default=0.9
            The coverage of the intervals, in (0, 1]. See `HDIForestRegressor.predict_interval`.
        kind : str, optional
            The kind of interval. The default is "calibrated" if the model is calibrated, and "hdi"
            otherwise. "calibrated", and calibrated "lower" and "upper", need a calibration by "oob"
            or "split" without a regressor as `mean`. See `HDIForestRegressor.predict_interval`.
        by : (n_training_rows,) array, optional
            Groups of the training rows. Only a loaded model needs them.
        joint : bool, default=False
            Whether calibrated intervals of several outputs are sides of boxes, each of which holds
            all targets of a row with the given coverage.
        output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
            The type of the result: an array, or a table of the named library.

        Returns
        -------
        (n_training_rows, 2) or (n_training_rows, 2, k) float64, or table
            Lower and upper ends, in the unit of y. Several outputs give (n_training_rows,
            n_outputs, 2[, k]). The conformal quantile of a calibrated interval depends on the row
            by one part in the number of calibration rows. `calibration_` has a cross-check.
        """
        rows = OutOfBagRows(self._model, "interval")
        return row_source.interval(rows, coverage, kind, by, joint, output)

    @known_arguments
    def quantiles(
        self,
        quantiles: float | ArrayLike,
        *,
        kind: Literal["calibrated", "raw"] | None = None,
        interpolation: Interpolation | None = None,
        output: Output = "numpy",
    ) -> Any:
        """Return out-of-bag quantiles of each training row.

        Parameters
        ----------
        quantiles : float or list of k floats
            Levels, in [0, 1].
        kind : {"calibrated", "raw"}, optional
            The distribution: the calibrated one, or the forest's own. "calibrated" needs a
            calibration by "oob" or "split" without a regressor as `mean`, and is then the default.
            Otherwise the default is "raw".
        interpolation : str, optional
            How quantiles of kind "raw" are read: any method of `numpy.quantile`. See
            `HDIForestRegressor.predict_quantiles`.
        output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
            The type of the result: an array, or a table of the named library.

        Returns
        -------
        (n_training_rows,) or (n_training_rows, k) float64, or table
            Quantiles, in the unit of y. Several outputs give (n_training_rows, n_outputs[, k]).
        """
        rows = OutOfBagRows(self._model, "quantiles")
        kind = _kind_of_distribution(rows, kind)
        return row_source.quantiles(rows, quantiles, kind, interpolation, output)

    @known_arguments
    def cdf(
        self,
        y: ArrayLike | None = None,
        *,
        inclusive: bool = True,
        kind: Literal["calibrated", "raw"] | None = None,
        output: Output = "numpy",
    ) -> Any:
        """Return P(Y <= y), or P(Y < y), of the out-of-bag distribution of each training row.

        Parameters
        ----------
        y : float, (n_training_rows,) or (n_training_rows, k) array, optional
            Points. See `HDIForestRegressor.predict_cdf`. The default is the target of each row. The
            result is then the probability integral transform, which is uniform if the distributions
            are right.
        inclusive : bool, default=True
            Whether y itself counts. False gives P(Y < y).
        kind : {"calibrated", "raw"}, optional
            The distribution: the calibrated one, or the forest's own. See `quantiles`.
        output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
            The type of the result: an array, or a table of the named library.

        Returns
        -------
        array of the shape of y, float64, or table
            Probabilities between 0 and 1.
        """
        rows = OutOfBagRows(self._model, "cdf")
        targets = rows.fitted.require_training_rows().y
        points = targets if y is None else np.asarray(y, dtype=np.float64)
        points = np.full(targets.shape, points) if points.ndim == 0 else points
        if points.shape[: targets.ndim] != targets.shape:
            must = f"y must begin with the shape {targets.shape} of the training targets"
            raise ValueError(f"{must}, got {points.shape}")
        return row_source.cdf(rows, points, inclusive, _kind_of_distribution(rows, kind), output)

    @known_arguments
    def weights(self) -> csr_array:
        """Return the weight of every training row for every other training row.

        Returns
        -------
        scipy.sparse.csr_array of shape (n_training_rows, n_training_rows), float64
            Row i holds the weights for training row i. They sum to 1, and the weight of row i
            itself is 0. A row that every tree has drawn is empty, with a warning.
        """
        rows = OutOfBagRows(self._model, "weights")
        n, targets = len(rows.positions), rows.positions.astype(np.float64)
        indptr, indices, data = rows.ask(LeafIndex.weights, targets=targets)
        rows.warn_of_empty(np.diff(indptr) == 0)
        return csr_array((data, indices, indptr), shape=(n, n))


def _kind_of_distribution(rows: OutOfBagRows, kind: Any) -> Any:
    """Return the kind of distributions that is meant: not all are calibrated out of bag."""
    return "raw" if kind is None and rows.fitted.why_not_out_of_bag() is not None else kind
