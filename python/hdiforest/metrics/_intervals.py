"""How good intervals are: coverage, width and the interval score."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._utils import Array, Weights, checks

Score = float | Array

# Columns of tables of intervals: what is in front, the end, and the level.
_END = re.compile(r"(.*?)(lower|upper)((_[\d.e+-]+)?)")


class WidthStrata(NamedTuple):
    """Coverage of rows grouped by the width of their interval, as `coverage_by_width` returns it.

    Parameters
    ----------
    counts : (n_strata + 1,) or (n_strata + 1, k) int64
        Number of rows of each stratum. The first stratum has the intervals of width zero. The
        widths of the others ascend.
    coverage : (n_strata + 1,) or (n_strata + 1, k) float64
        Share of the targets inside their interval. NaN without rows.
    mean_width : (n_strata + 1,) or (n_strata + 1, k) float64
        Mean width of the intervals, in the unit of y_true. NaN without rows.

    Examples
    --------
    >>> from hdiforest.metrics import coverage_by_width
    >>> strata = coverage_by_width([1, 2, 3, 4], [[0, 1], [0, 3], [2, 6], [3, 9]], n_strata=2)
    >>> strata.counts.tolist()
    [0, 2, 2]
    """

    counts: NDArray[np.int64]
    coverage: Array
    mean_width: Array


class GroupCoverage(NamedTuple):
    """Coverage of intervals by group of rows, as `coverage_by_group` returns it.

    Parameters
    ----------
    groups : (g,) array
        The groups, ascending, or in the order of the categories of pandas.
    counts : (g,) int64
        Number of rows of each group.
    coverage : (g,) or (g, k) float64
        Share of the targets inside their interval.
    mean_width : (g,) or (g, k) float64
        Mean width of the intervals, in the unit of y_true.
    chance : (2, g) or (2, g, k) float64
        Lower and upper end of the range in which 95 % of the coverages of exact intervals lie.

    Examples
    --------
    >>> from hdiforest.metrics import coverage_by_group
    >>> coverage_by_group([1, 2, 3], [[0, 1], [0, 1], [2, 5]], ["b", "a", "b"]).mean_width.tolist()
    [1.0, 2.0]
    """

    groups: NDArray[Any]
    counts: NDArray[np.int64]
    coverage: Array
    mean_width: Array
    chance: Array


def coverage_score(
    y_true: ArrayLike, interval: ArrayLike, *, sample_weight: Weights = None
) -> Score:
    """Return the share of targets inside their interval, ends included (PICP).

    Parameters
    ----------
    y_true : (n,) array
        Observed targets.
    interval : (n, 2) or (n, 2, k) array, or table
        Lower and upper ends, in the unit of y_true. Ends may be infinite. In a table the columns
        with the names of `predict_interval` are read, such as lower_0.9 and upper_0.9.
    sample_weight : (n,) array, optional
        Weights of the rows. The default is equal weights.

    Returns
    -------
    float, or (k,) array for k levels
        The share, between 0 and 1.

    Raises
    ------
    ValueError
        If shapes differ, there are no rows, a value is NaN, or a lower end is above its upper end.

    Notes
    -----
    The mean of 1{l <= y <= u} (Khosravi et al., IEEE Trans. Neural Networks 22, 2011).
    Highest-density intervals end at training targets. With ties, open intervals can hold much less.

    Examples
    --------
    >>> from hdiforest.metrics import coverage_score
    >>> coverage_score([1, 2, 3, 4], [[0, 1], [0, 1], [2, 5], [3, 9]])
    0.75
    """
    y, lower, upper = check_intervals(y_true, interval)
    share = weighted_mean((lower <= y) & (y <= upper), sample_weight)
    return _unwrapped(np.minimum(share, 1.0))  # which rounding may exceed where rows have weights


def mean_width_score(interval: ArrayLike, *, sample_weight: Weights = None) -> Score:
    """Return the mean width of the intervals (MPIW).

    Parameters
    ----------
    interval : (n, 2) or (n, 2, k) array, or table
        Lower and upper ends. See `coverage_score`.
    sample_weight : (n,) array, optional
        Weights of the rows. The default is equal weights.

    Returns
    -------
    float, or (k,) array for k levels
        The mean width, in the unit of the ends. It is infinite if an end is.

    Examples
    --------
    >>> from hdiforest.metrics import mean_width_score
    >>> mean_width_score([[0, 1], [2, 5]])
    2.0
    """
    lower, upper = check_ends(interval)
    return _unwrapped(weighted_mean(upper - lower, sample_weight))


def interval_score(
    y_true: ArrayLike, interval: ArrayLike, coverage: ArrayLike, *, sample_weight: Weights = None
) -> Score:
    """Return the mean interval score (Winkler score). Lower is better.

    Parameters
    ----------
    y_true : (n,) array
        Observed targets.
    interval : (n, 2) or (n, 2, k) array, or table
        Lower and upper ends, in the unit of y_true. See `coverage_score`.
    coverage : float, or list of k floats for k levels
        The nominal coverage of the intervals, above 0 and below 1.
    sample_weight : (n,) array, optional
        Weights of the rows. The default is equal weights.

    Returns
    -------
    float, or (k,) array for k levels
        The score, in the unit of y_true.

    Raises
    ------
    ValueError
        If `coverage_score` refuses the arguments, or a coverage is out of range.

    Notes
    -----
    The score is the mean of (u - l) + (2 / a) max(l - y, 0) + (2 / a) max(y - u, 0) with a = 1 -
    coverage (Gneiting and Raftery, J. Am. Stat. Assoc. 102, 2007, eq. 43). It is least for
    equal-tailed intervals, not for the shortest intervals of a skewed distribution. Coverage and
    width should be read beside it.

    Examples
    --------
    >>> from hdiforest.metrics import interval_score
    >>> interval_score([1, 5], [[0, 2], [0, 4]], coverage=0.5)
    5.0
    """
    y, lower, upper = check_intervals(y_true, interval)
    levels = _levels_of(lower, coverage)
    return _unwrapped(weighted_mean(interval_scores(y, lower, upper, 1 - levels), sample_weight))


def interval_scores(y: Array, lower: Array, upper: Array, alpha: ArrayLike) -> Array:
    """Return the score of each interval. See `interval_score`."""
    missed = np.maximum(lower - y, 0) + np.maximum(y - upper, 0)
    return np.asarray(upper - lower + 2 / np.asarray(alpha) * missed)


def coverage_by_width(
    y_true: ArrayLike, interval: ArrayLike, n_strata: int = 3, *, sample_weight: Weights = None
) -> WidthStrata:
    """Return the coverage of intervals by their width, which shows where it differs from the mean.

    Parameters
    ----------
    y_true : (n,) array
        Observed targets.
    interval : (n, 2) or (n, 2, k) array, or table
        Lower and upper ends, in the unit of y_true. See `coverage_score`.
    n_strata : int, default=3
        Number of groups of the intervals wider than zero. The groups have equal numbers of rows, up
        to equal widths.
    sample_weight : (n,) array, optional
        Weights of the rows in the means. The default is equal weights.

    Returns
    -------
    WidthStrata
        The strata: width zero first, then from narrow to wide.

    Raises
    ------
    ValueError
        If `coverage_score` refuses the arguments, or n_strata is below 1.

    Notes
    -----
    Size-stratified coverage (Angelopoulos and Bates, "A gentle introduction to conformal
    prediction", 2021, section 3.1).

    Examples
    --------
    >>> from hdiforest.metrics import coverage_by_width
    >>> strata = coverage_by_width([1, 2, 3, 4], [[0, 1], [0, 3], [2, 6], [5, 9]], n_strata=2)
    >>> strata.coverage.tolist()
    [nan, 1.0, 0.5]
    """
    y, lower, upper = check_intervals(y_true, interval)
    inside, width = (lower <= y) & (y <= upper), upper - lower
    given = np.ones(len(y)) if sample_weight is None else sample_weight
    weights = checks.check_weights("sample_weight", given, len(y))
    if width.ndim == 1:
        return _strata(width, inside, weights, n_strata)
    levels = [_strata(w, c, weights, n_strata) for w, c in zip(width.T, inside.T, strict=True)]
    return WidthStrata(*(np.stack(field, axis=-1) for field in zip(*levels, strict=True)))


def coverage_by_group(
    y_true: ArrayLike, interval: ArrayLike, groups: ArrayLike, coverage: ArrayLike = 0.9
) -> GroupCoverage:
    """Return the coverage of intervals by group of rows, with its range by chance.

    Parameters
    ----------
    y_true : (n,) array
        Observed targets.
    interval : (n, 2) or (n, 2, k) array, or table
        Lower and upper ends, in the unit of y_true. See `coverage_score`.
    groups : (n,) array
        The group of each row.
    coverage : float, or list of k floats for k levels, default=0.9
        The nominal coverage of the intervals, above 0 and below 1.

    Returns
    -------
    GroupCoverage
        The coverage, with an entry for each group.

    Raises
    ------
    ValueError
        If `interval_score` refuses the arguments, or there is not one group for each row.

    Examples
    --------
    >>> from hdiforest.metrics import coverage_by_group
    >>> found = coverage_by_group([1, 2, 3], [[0, 1], [0, 1], [2, 5]], ["b", "a", "b"])
    >>> found.groups.tolist(), found.counts.tolist(), found.coverage.tolist()
    (['a', 'b'], [1, 2], [0.0, 1.0])
    """
    y, lower, upper = check_intervals(y_true, interval)
    levels = _levels_of(lower, coverage)
    labels, of_row = group_rows(groups, len(y))
    counts, weights = np.bincount(of_row), np.ones(len(y))
    share = _group_means((lower <= y) & (y <= upper), of_row, len(counts), weights)
    width = _group_means(upper - lower, of_row, len(counts), weights)
    n_rows = counts if levels.ndim == 0 else counts[:, np.newaxis]
    return GroupCoverage(labels, counts, share, width, chance_range(levels, n_rows, 0.95))


def _group_means(values: NDArray[Any], of_row: NDArray[np.intp], n: int, weights: Array) -> Array:
    """Return means of values (rows, ...) over the rows of each of n groups; NaN without any."""
    columns = values.reshape(len(values), -1).T
    sums = np.stack([np.bincount(of_row, weights * each, n) for each in columns], axis=1)
    with np.errstate(invalid="ignore"):
        means = sums / np.bincount(of_row, weights, n)[:, np.newaxis]
    return np.asarray(means.reshape(n, *values.shape[1:]))


def group_rows(groups: Any, n: int) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the distinct groups in their order, and the group of each of n rows."""
    cells = np.asarray(groups)
    checks.check_one_for_each("groups", cells.shape, n)
    cells = cells.astype(str) if cells.dtype == object else cells
    labels, of_row = np.unique(cells, return_inverse=True)
    categories = getattr(getattr(groups, "cat", groups), "categories", None)
    if categories is not None:
        ranks = {str(category): rank for rank, category in enumerate(categories)}
        order = sorted(range(len(labels)), key=lambda i: ranks.get(str(labels[i]), len(ranks)))
        labels, of_row = labels[order], np.argsort(order)[of_row]
    return labels, of_row


def chance_range(coverage: ArrayLike, n_rows: ArrayLike, confidence: float) -> Array:
    """Return ends of the central range, of some confidence, of binomial shares of n_rows rows."""
    from scipy.stats import binom

    return np.asarray(np.divide(binom.interval(confidence, n_rows, coverage), n_rows))


def strata_by_width(width: Array, n_strata: int, name: str = "n_strata") -> NDArray[np.intp]:
    """Return the stratum of each width, (n,). Errors call `n_strata` by `name`."""
    checks.check_whole_number(name, n_strata)
    stratum = np.zeros(len(width), dtype=np.intp)
    wide = width > 0
    if wide.any():
        shares = np.arange(1, n_strata) / n_strata
        edges = np.quantile(width[wide], shares, method="inverted_cdf")
        stratum[wide] = 1 + np.searchsorted(edges, width[wide])
    return stratum


def _strata(width: Array, inside: NDArray[np.bool_], weights: Array, n_strata: int) -> WidthStrata:
    stratum, n = strata_by_width(width, n_strata), n_strata + 1
    means = (_group_means(values, stratum, n, weights) for values in (inside, width))
    return WidthStrata(np.bincount(stratum, minlength=n), *means)


def _unwrapped(score: Any) -> Score:
    return float(score) if np.ndim(score) == 0 else np.asarray(score)


def check_intervals(y_true: ArrayLike, interval: ArrayLike) -> tuple[Array, Array, Array]:
    """Return targets, (n,) or (n, 1), and lower and upper ends of as many rows."""
    y = checks.check_targets("y_true", y_true)
    lower, upper = check_ends(interval)
    if len(lower) != len(y):
        raise ValueError(f"interval must have as many rows as y_true, {len(y)}, got {len(lower)}")
    return (y if lower.ndim == 1 else y[:, None]), lower, upper


def _levels_of(lower: Array, coverage: ArrayLike) -> Array:
    """Return the coverages that intervals were meant to hold, one of each level."""
    levels, shape = checks.shares("coverage", coverage), lower.shape[1:]
    if levels.shape != shape:
        wanted = f"{shape[0]} values, one per level," if shape else "one number"
        raise ValueError(f"coverage must be {wanted} for this interval, got {coverage!r}")
    return levels


def ends_of(interval: Any) -> Any:
    """Return the ends in a table of intervals, (n, 2) or (n, 2, k); anything else as it is."""
    names = map(str, getattr(interval, "column_names", getattr(interval, "columns", ())))
    matches = list(filter(None, map(_END.fullmatch, names)))
    if not matches:
        return interval
    kinds, levels = (list(dict.fromkeys(end[part] for end in matches)) for part in (1, 3))
    if len(kinds) > 1:
        examples = ", ".join(next(end[0] for end in matches if end[1] == kind) for kind in kinds)
        raise ValueError(f"interval must be of one target and kind, got a table of {examples}")
    ends = np.full((len(interval), 2, len(levels)), [[-np.inf], [np.inf]])
    for end in matches:  # one-sided intervals have one
        ends[:, int(end[2] == "upper"), levels.index(end[3])] = interval[end[0]]
    return ends[..., 0] if len(levels) == 1 else ends


def check_ends(interval: ArrayLike) -> tuple[Array, Array]:
    """Return lower and upper ends, (n,) or (n, k), in order and without NaN."""
    ends = checks.reals("interval", ends_of(interval))
    if ends.ndim not in (2, 3) or ends.shape[1] != 2 or ends.size == 0:
        raise ValueError(f"interval must have shape (n, 2) or (n, 2, k), got {ends.shape}")
    if (with_nan := np.isnan(ends).reshape(len(ends), -1).any(axis=1)).any():
        rows = checks.count_rows(with_nan)
        raise ValueError(f"interval must not hold NaN, got {rows} with it; leave them out")
    lower, upper = ends[:, 0], ends[:, 1]
    if (crossed := (lower > upper).reshape(len(ends), -1).any(axis=1)).any():
        raise ValueError(
            f"interval must have lower <= upper, got {checks.count_rows(crossed)} that cross"
        )
    return lower, upper


def weighted_mean(values: NDArray[Any], sample_weight: Weights) -> Any:
    """Return the mean over the rows, the first axis. Rows of weight 0 never count."""
    if sample_weight is None:
        return values.mean(axis=0)
    weights = checks.check_weights("sample_weight", sample_weight, len(values))
    counts = weights > 0
    return np.average(values[counts], axis=0, weights=weights[counts])
