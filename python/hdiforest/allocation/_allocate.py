"""Intervals of many rows by one price for width, from models of all kinds."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from hdicore.batch import BatchIntervals, predict_batch
from hdiforest._estimators.row_source import all_rows, table_of
from hdiforest._tables.frames import Output, frame_of, require_library
from hdiforest._utils.checks import checked_floor, one_share
from hdiforest._utils.meta_estimators import model_and_rows

_COLUMNS = ("lower", "upper", "mass")


def allocate_coverage(
    model: Any,
    X: ArrayLike,
    coverage: float = 0.9,
    *,
    min_coverage: float = 0.5,
    output: Output = "numpy",
) -> BatchIntervals:
    """Find intervals of least total width that hold a given share of the distributions on average.

    Parameters
    ----------
    model : fitted estimator
        An `HDIForestRegressor`, a `LeafModel` or a `ForestSearchOOB`, also as the last step of a
        Pipeline or the best of a search.
    X : (n, n_features) array or table
        All rows that share the width.
    coverage : float, default=0.9
        The share, above 0 and below 1, of the forest's distributions that the intervals hold on
        average. They are not calibrated.
    min_coverage : float, default=0.5
        The share in [0, 1) that each interval holds at least. With 0 the interval of a hard row may
        be a single point. If intervals that hold `min_coverage` already hold `coverage` on average,
        they are returned with a warning.
    output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
        The type of the intervals: an array, or a table of the named library with the columns
        ``lower``, ``upper`` and ``mass``.

    Returns
    -------
    hdicore.batch.BatchIntervals
        Intervals, their masses, the price, and the total width with a lower bound of it. The bound
        is less than the width of one row's interval away.

    Raises
    ------
    ValueError
        If an argument is out of range, or the model has several targets.

    Notes
    -----
    The problem is eq. (16) of the paper for n rows together, which the paper names as future work:
    least sum of u_i - l_i such that the mean of P(l_i <= Y <= u_i | x_i) is at least `coverage`.

    All rows have one price, width for mass. An interval is extended as long as that is cheap, so
    that the density at the ends is about the same in all rows (:doc:`/distributions`). The bound is
    certified: no intervals with this mean mass have a total width below it. O(entries of the leaves
    + atoms) for each row and pass over the rows.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest import HDIForestRegressor
    >>> from hdiforest.allocation import allocate_coverage
    >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
    >>> model = HDIForestRegressor(calibration=False, random_state=0).fit(X[:200], y[:200])
    >>> shared = allocate_coverage(model, X[200:], coverage=0.8)
    >>> shared.interval.shape, bool(shared.bound <= shared.total_width)
    ((100, 2), True)
    """
    share, floor = one_share("coverage", coverage), checked_floor(min_coverage)
    if output != "numpy":
        require_library(output)
    estimator, rows = model_and_rows(model, X, "predict_cdf", "model")
    if (n_outputs := getattr(estimator, "n_outputs_", 1)) > 1:
        raise ValueError(f"allocate_coverage needs a model of one target, got {n_outputs}")
    source = estimator._source(rows)
    engine, block, n_threads = all_rows(source)
    batch = predict_batch(engine, block, share, floor, n_threads=n_threads)
    if output == "numpy":
        return batch
    columns, index = (*batch.interval.T.copy(), batch.mass), frame_of(X).index
    return batch._replace(interval=table_of(source.fitted, output, _COLUMNS, columns, index))
