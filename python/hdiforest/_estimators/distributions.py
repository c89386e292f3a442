"""Predictions from conditional distributions, as arrays or as tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdicore import LeafIndex, Scorer
from hdiforest._tables.frames import (
    Labels,
    Output,
    frame_of,
    index_of,
    labels_of,
    require_library,
    table_in,
)
from hdiforest._tables.names import ENDS, numbered_names, quantile_names, require_distinct
from hdiforest._utils.typing import Array, Interpolation


class TablesOut:
    """Gives the results of a model as arrays or tables, and knows what their rows are called."""

    _output: Output = "numpy"
    # From the last fit on tables: names of several targets, and the index of pandas rows.
    _target_names: list[str] | None = None
    _row_labels: Labels | None = None

    def set_output(
        self,
        output: Output | None = None,
        *,
        transform: Literal["default", "pandas", "polars"] | None = None,
    ) -> Self:
        """Set what predictions and out-of-bag results are, where a call does not say.

        Parameters
        ----------
        output : {"numpy", "pandas", "polars", "pyarrow"}, optional
            Arrays, or tables of that library. `predict` gives arrays all the same, because
            scikit-learn calls it; ``predict(X, output="pandas")`` gives a table.
        transform : {"default", "pandas", "polars"}, optional
            The same in scikit-learn's words; "default" means arrays. Without either nothing
            changes.

        Returns
        -------
        estimator
            The model itself.

        Raises
        ------
        ImportError
            If the library is not installed.
        ValueError
            If output or transform is none of these, or both are given.

        Notes
        -----
        Pickles and clones keep the setting; files of `save` do not. ``set_output`` of a Pipeline
        and ``sklearn.set_config(transform_output=...)`` are about its transformers, and change no
        predictions.

        Columns are ``prediction, lower_0.9, upper_0.9, ...``, ``quantile_0.5, ...``, ``cdf`` and
        ``sample``, the last two numbered if there are several. Bounds of other kinds have the names
        ``equal_tailed_lower_0.9``, ``one_sided_lower_0.9``, ... Several targets are put in front,
        by the names that y had in the fit or as y0, y1, ...: ``height_lower_0.9``. Tables of pandas
        have the index of X if that is one of pandas, and those of out-of-bag results the index of
        the rows of the fit, which files of `save` do not hold.
        """
        if output is not None and transform is not None:
            raise ValueError("output and transform mean the same; only one of them must be given")
        if transform is not None:
            if transform not in ("default", "pandas", "polars"):
                raise ValueError(
                    f"transform must be 'default', 'pandas', 'polars' or None, got {transform!r}"
                )
            output = "numpy" if transform == "default" else transform
        if output is not None:
            require_library(output)
            self._output = output
        return self

    def _wanted(self, output: Output | None) -> Output:
        """Return the kind of result that a call asks for, once its library is there."""
        wanted = self._output if output is None else output
        if wanted != "numpy":
            require_library(wanted)
        return wanted

    def _as_output(
        self,
        output: Output | None,
        names: Callable[[], list[str]] | str,
        answers: Callable[[], Array],
        X: Any,
    ) -> Any:
        """Return answers as they are, or as a table if that is asked for.

        Parameters
        ----------
        output : str or None
            What the call asks for.
        names : callable or str
            Gives the names of what one target has; or one name, to be numbered.
        answers : callable
            Gives (n,), (n, k), (n, n_outputs) or (n, n_outputs, k) numbers. Not called if the names
            are refused.
        X : table or None
            The rows; None for those of the fit.
        """
        wanted = self._wanted(output)
        if wanted == "numpy":
            return answers()
        return self._table(wanted, names if isinstance(names, str) else names(), answers, X)

    def _table(
        self, wanted: Output, names: list[str] | str, answers: Callable[[], Array], X: Any
    ) -> Any:
        """Return answers as a table; see `_as_output`."""
        if not isinstance(names, str):
            require_distinct(names)
        values = answers()
        prefixes = self._target_prefixes()
        if isinstance(names, str):
            names = numbered_names(names, int(np.prod(values.shape[1:])) // len(prefixes))
        columns = [f"{prefix}{name}" for prefix in prefixes for name in names]
        require_distinct(columns)
        flat = values.reshape(len(values), len(columns))
        return table_in(wanted, columns, flat, self._index_of(X) if wanted == "pandas" else None)

    def _learn_labels(self, X: Any, y: Any) -> None:
        """Remember what the tables of a fit say of its rows and targets."""
        self._target_names = frame_of(y).names
        self._row_labels = labels_of(frame_of(X).index)

    def _target_prefixes(self) -> list[str]:
        n_outputs: int = getattr(self, "n_outputs_", 1)
        if n_outputs == 1:
            return [""]
        names = self._target_names or [f"y{i}" for i in range(n_outputs)]
        return [f"{name}_" for name in names]

    def _index_of(self, X: Any) -> Any:
        """Return the pandas index of rows, of those of the fit if X is None."""
        return index_of(self._row_labels) if X is None else frame_of(X).index


def mean_and_intervals(
    source: Scorer | LeafIndex, rows: Any, coverage: ArrayLike, kind: Any, **options: Any
) -> Array:
    """Return the mean of each row and its interval at each of k coverages in one pass.

    Returns
    -------
    (n, 1 + 2 k) or (n, n_outputs, 1 + 2 k)
        The mean, and the lower and the upper end at each level.
    """
    index = source.index if isinstance(source, Scorer) else source
    mean = np.empty((len(rows),) if index.scalar_output else (len(rows), index.n_outputs))
    out: Array | None = options.pop("out", None)
    ends = source.intervals(rows, np.atleast_1d(coverage), kind, mean=mean, **options)
    return joined(mean, ends, out)


def bound(method: str | Callable[..., Array], source: Scorer | LeafIndex) -> Callable[..., Array]:
    """Return the method of that name, or the function with the source as its first argument."""
    call: Callable[..., Array]
    call = getattr(source, method) if isinstance(method, str) else partial(method, source)
    return call


def joined(mean: Array, ends: Array, out: Array | None = None) -> Array:
    """Return means (...) and intervals (..., 2, k) as one array, (..., 1 + 2 k)."""
    by_level = np.moveaxis(ends, -2, -1).reshape(*mean.shape, 2 * ends.shape[-1])
    return np.concatenate([mean[..., None], by_level], axis=-1, out=out)


def ends_of_kind(values: Array, kind: str) -> Array:
    """Keep the mean and those ends of `mean_and_intervals` that a kind has columns for."""
    n_levels = values.shape[-1] // 2
    kept = [1 + 2 * j + end for j in range(n_levels) for _, end in ENDS[kind]]
    return values[..., [0, *kept]]


class ConditionalDistributions(TablesOut, ABC):
    """Predictions from the training rows that share leaves with a row.

    All raise NotFittedError if the model is not fitted, and ValueError if an argument is refused.
    """

    @abstractmethod
    def _query(
        self,
        X: ArrayLike,
        method: str | Callable[..., NDArray[np.float64]],
        *arguments: Any,
        per_row: ArrayLike | None = None,
        **options: Any,
    ) -> NDArray[np.float64]:
        """Call a method that `hdicore.LeafIndex` and `Scorer` have for the rows of X.

        Or a function whose first argument is one of these.

        `per_row` is its first argument, with one row for each row of X, if it has such an argument.
        """

    def predict(self, X: ArrayLike, *, output: Output | None = None) -> Any:
        """Mean of the conditional distribution.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
            An array, or a table of that library with the column ``prediction``.

        Returns
        -------
        (n,) or (n, n_outputs) float64, or table
            In the unit of y.

        Notes
        -----
        Equal to the prediction of a scikit-learn forest only with ``weights="inbag"``, and not with
        ``monotonic_cst``, ``criterion="absolute_error"`` or a transformed target: see the attribute
        ``predict_matches_forest_``.
        """
        return self._as_output(output or "numpy", "prediction", lambda: self._query(X, "mean"), X)

    def predict_quantiles(
        self,
        X: ArrayLike,
        quantiles: float | ArrayLike,
        *,
        interpolation: Interpolation = "inverted_cdf",
        output: Output | None = None,
    ) -> Any:
        """Return quantiles of the conditional distribution.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        quantiles : float or list of k floats
            Levels in [0, 1].
        interpolation : str, default="inverted_cdf"
            The name of any method of `numpy.quantile`. "inverted_cdf" is the smallest target with
            distribution function >= level; it and "averaged_inverted_cdf" need weights alone. The
            others count observations, the weight of one being known from the leaves: where all
            rows weigh alike these are numpy's quantiles, ties included. Rows with one target that
            share no leaf of the query count as one observation.
        output : {"numpy", "pandas", "polars", "pyarrow"}, optional
            An array, or a table of that library; by default what `set_output` says, an array if
            nothing. See `set_output` for the names of the columns.

        Returns
        -------
        (n,) or (n, k) float64, or table
            (n, n_outputs[, k]) with several outputs.
        """
        return self._as_output(
            output,
            lambda: quantile_names(quantiles),
            lambda: self._query(X, "quantiles", quantiles, interpolation),
            X,
        )

    def predict_cdf(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        inclusive: bool = True,
        output: Output | None = None,
    ) -> Any:
        """P(Y <= y given x), eq. (14) of the paper, or P(Y < y given x).

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        y : (n,) or (n, k) array
            One or several points per row; (n, n_outputs[, k]) with several outputs.
        inclusive : bool, default=True
            Whether y itself counts: False gives P(Y < y given x).
        output : {"numpy", "pandas", "polars", "pyarrow"}, optional
            An array, or a table of that library; by default what `set_output` says, an array if
            nothing. See `set_output` for the names of the columns.

        Returns
        -------
        array of the shape of y, float64, or table
            Between 0 and 1.
        """
        return self._as_output(
            output, "cdf", lambda: self._query(X, "cdf", per_row=y, inclusive=inclusive), X
        )
