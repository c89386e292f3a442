"""Ours for Dask: prediction intervals of DataFrames and Arrays, partition by partition."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from hdiforest._tables.columns import require_columns
from hdiforest._tables.names import require_distinct
from hdiforest._utils.optional import need
from hdiforest.calibration._predict import AnyKind
from hdiforest.metrics._intervals import ends_of
from hdiforest.serving._batch_scorer import BatchScorer

__all__ = ["predict_interval"]


def predict_interval(
    model: Any,
    X: Any,
    coverage: float | Sequence[float] = 0.9,
    *,
    kind: AnyKind | None = None,
    keep: Sequence[str] = (),
    n_jobs: int | None = 1,
) -> Any:
    """Return prediction intervals as a Dask collection like X. Nothing is computed.

    Parameters
    ----------
    model : path, HDIForestRegressor or LeafModel
        A model file, or a model in memory. A file is the better choice, because the workers of a
        machine share one copy. All workers must find it under the same absolute path. A model in
        memory is scattered, once, to the workers of the current client. Without a client it is used
        where it is.
    X : dask.dataframe.DataFrame or dask.array.Array
        The rows to predict: a DataFrame with the columns of the fit and any others, or an Array of
        shape (n, n_features).
    coverage : float or list of k floats, optional
        The coverage of the intervals. See `HDIForestRegressor.predict_interval`.
    kind : str, optional
        The kind of interval. See `HDIForestRegressor.predict_interval`.
    keep : sequence of str, default=()
        Columns of a DataFrame to repeat in front of the results.
    n_jobs : int or None, default=1
        Threads for one partition, for a model file. A model in memory has its own `n_jobs`.

    Returns
    -------
    dask.dataframe.DataFrame or dask.array.Array
        The intervals. A DataFrame has the index and the divisions of X and the columns
        ``prediction, lower_0.9, upper_0.9, ...``. An Array has the chunks of X along the rows, and
        the shape (n, 2[, k]).

    Examples
    --------
    >>> import dask.array
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest import HDIForestRegressor
    >>> from hdiforest.adapters.dask import predict_interval
    >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
    >>> model = HDIForestRegressor(random_state=0).fit(X[:200], y[:200])
    >>> rows = dask.array.from_array(X[200:], chunks=(50, 4))
    >>> predict_interval(model, rows, coverage=0.9).compute().shape
    (100, 2)
    """
    is_path = isinstance(model, str | os.PathLike)
    if _is_frame(X):
        if is_path:
            scorer = BatchScorer(model, coverage, kind=kind, keep=keep, n_jobs=n_jobs)
            return X.map_partitions(scorer, meta=scorer(X._meta))
        if isinstance(keep, str):
            raise ValueError(f"keep must be a list of names of columns, got {keep!r}")
        arguments = coverage, kind, list(keep)
        meta = _frame(X._meta, model, *arguments)
        return X.map_partitions(_frame, _shared(model), *arguments, meta=meta)
    if len(keep) > 0:
        raise ValueError(f"keep must be empty if X is an Array, got {keep!r}")
    if is_path:
        model = BatchScorer(model, coverage, kind=kind, n_jobs=n_jobs)
    ask = partial(_array, coverage=coverage, kind=kind)
    X = X.rechunk({1: -1})
    none = ask(np.empty((0, X.shape[1])), model)
    chunks = (X.chunks[0], *((size,) for size in none.shape[1:]))
    options = {"chunks": chunks, "new_axis": list(range(2, none.ndim)), "meta": none}
    return X.map_blocks(ask, model if is_path else _shared(model), dtype=np.float64, **options)


def _is_frame(X: Any) -> bool:
    who = "hdiforest.adapters.dask"
    dataframe, array = need("dask.dataframe", who, "dask"), need("dask.array", who, "dask")
    is_frame = isinstance(X, dataframe.DataFrame)
    if is_frame or (isinstance(X, array.Array) and X.ndim == 2):
        return is_frame
    raise ValueError(f"X must be a Dask DataFrame, or an Array of shape (n, n_features), got {X!r}")


def _frame(rows: Any, model: Any, coverage: Any, kind: AnyKind | None, keep: list[str]) -> Any:
    """Return kept columns and results of a pandas DataFrame by a model in memory."""
    names = getattr(model, "feature_names_in_", [name for name in rows if name not in keep])
    require_columns([*names, *keep], list(rows), "X")
    features = rows[list(names)]
    if hasattr(model, "n_features_in_") and not hasattr(model, "feature_names_in_"):
        features = features.to_numpy()  # in their order, without a warning of scikit-learn
    results = model.predict_interval(features, coverage, kind=kind, output="pandas")
    require_distinct([*keep, *results.columns])
    return rows[keep].assign(**results.set_axis(rows.index))


def _array(rows: Any, model: Any, coverage: Any, kind: AnyKind | None) -> Any:
    """Return intervals as `HDIForestRegressor.predict_interval` does, by a model or a scorer."""
    pandas = import_module("pandas")
    if isinstance(model, BatchScorer):
        names: Any = model.features or [str(j) for j in range(rows.shape[1])]
        if len(names) != rows.shape[1]:
            raise ValueError(f"X must have {len(names)} columns, got {rows.shape[1]}")
        table = model(pandas.DataFrame(rows, columns=names))
        shape = (len(rows), 2, len(model.coverage))[: 2 + np.ndim(coverage)]
        return np.reshape(ends_of(table), shape)
    names = getattr(model, "feature_names_in_", None)
    if names is not None and isinstance(rows, np.ndarray):  # scikit-learn wants names
        rows = pandas.DataFrame(rows, columns=names)
    return model.predict_interval(rows, coverage, kind=kind, output="numpy")


def _shared(model: Any) -> Any:
    """Return the model as one object of the graph, scattered if there is a client."""
    client = None
    with suppress(ImportError, ValueError):  # no package, or no client
        client = import_module("distributed").default_client()
    shared = model if client is None else client.scatter(model, hash=False)
    return import_module("dask").delayed(shared, traverse=False, pure=False)
