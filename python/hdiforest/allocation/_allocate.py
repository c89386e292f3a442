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
    """Find intervals of least total width that hold a mean share of the distributions.

    Parameters
    ----------
    model : fitted estimator
        An `HDIForestRegressor`, a `LeafModel` or a `ForestSearchOOB`, also as the last step of a
        Pipeline or the best of a search.
    X, coverage : rows as in `predict`, and float, default=0.9
        All rows that share the width, and the share, above 0 and below 1, of the forest's
        distributions that the intervals hold on average. They are not calibrated.
    min_coverage : float, default=0.5
        The share in [0, 1) that each of them holds at least. Without it hard rows may get a single
        point. If it holds `coverage` already there is a warning, and these intervals.
    output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
        In place of the array of intervals a table of that library, with the columns ``lower``,
        ``upper`` and ``mass``.

    Returns
    -------
    hdicore.batch.BatchIntervals
        Intervals, their masses, the price, and the total width with a lower bound of it, which is
        less than one row's interval away.

    Raises
    ------
    ValueError
        If an argument is out of range, or the model has several targets.

    Notes
    -----
    The problem of eq. (16) of the paper for n rows together, which it names as future work: least
    sum of u_i - l_i such that the mean of P(l_i <= Y <= u_i | x_i) is at least `coverage`. All rows
    have one price, width for mass: an interval is extended as long as that is cheap, so that the
    density at its ends is about the same in all rows (:doc:`/batch_setting`). The bound is
    certified: no intervals of that mean mass have a total width below it. O(entries of the leaves +
    atoms) for each row and pass over the rows.
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
