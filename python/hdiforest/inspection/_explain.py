"""Explanation: which training rows and which features make the intervals of a few rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray

from hdicore.explain import heaviest_atoms, intervals_without_each
from hdiforest._model.bases import Base
from hdiforest._model.fitted import FittedForest, IntervalQuery, Rows
from hdiforest._model.out_of_bag import OutOfBagIntervals
from hdiforest._tables.frames import BLOCK_CELLS
from hdiforest._utils import Array, BaseKind
from hdiforest._utils.checks import check_whole_number, checked_random_state, one_share
from hdiforest._utils.hints import warn_caller
from hdiforest._utils.meta_estimators import model_and_rows
from hdiforest.displays._distribution import ExplanationDisplay

MAX_ROWS = 1000


def explain(
    model: Any,
    X: ArrayLike,
    coverage: float = 0.9,
    *,
    by: ArrayLike | None = None,
    background: int = 20,
    random_state: int | RandomState | None = None,
) -> Explanation:
    """Say which training rows and which features make the intervals of a few rows.

    Parameters
    ----------
    model : fitted estimator
        An `HDIForestRegressor` or a `ForestSearchOOB` of one target, also as the last step of a
        Pipeline or the best of a search.
    X : (n, n_features) array or table
        The rows to explain, at most 1,000.
    coverage : float, default=0.9
        The coverage of the intervals. They are calibrated if the model is, and HDIs otherwise.
    by : (n,) array, optional
        Groups of the rows. See `HDIForestRegressor.predict_interval`. If the groups are in no
        column of X and the labels are missing, the conformal quantile of all rows is used, with a
        warning.
    background : int, default=20
        Number of training rows to take other values of features from. A model without training rows
        takes evenly spaced values in the range of each feature.
    random_state : int, RandomState or None, default=None
        Seed of the choice of the background rows.

    Returns
    -------
    Explanation
        The tables ``rows`` and ``features``, which are made when asked for. The features are
        counted behind all steps.

    Raises
    ------
    ValueError
        If an argument is refused, or the model has several targets.
    NotFittedError
        If the model is not fitted.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest import HDIForestRegressor
    >>> from hdiforest.inspection import explain
    >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
    >>> model = HDIForestRegressor(random_state=0).fit(X, y)
    >>> why = explain(model, [[0, 0, 0, 0]], random_state=0)
    >>> why
    Explanation of 1 intervals of coverage 0.9
    >>> sorted(why.features["feature"].tolist())
    ['x0', 'x1', 'x2', 'x3']
    """
    level = one_share("coverage", coverage)
    check_whole_number("background", background)
    random = checked_random_state(random_state)
    estimator, given = model_and_rows(model, X, "predict_weights", "model")
    fitted = estimator._fitted_forest()
    if fitted.n_outputs > 1:
        raise ValueError(f"explain needs a model of one target, got {fitted.n_outputs}")
    if fitted.steps_of_folds:
        raise ValueError("explain needs features that all forests of a calibration share")
    rows = np.concatenate([block.rows for block in estimator._blocks(given, by)])
    labels = None if by is None else np.asarray(by)
    if not 1 <= len(rows) <= MAX_ROWS:
        raise ValueError(f"X must have 1 to {MAX_ROWS:,} rows, got {len(rows):,}")
    calibrated = fitted.calibrated
    if labels is None and calibrated is not None and calibrated.needs_labels:
        warn_caller(
            "intervals take the conformal quantile of all rows: the groups of the calibration "
            "are no column of X, and by= does not give them"
        )
    if fitted.training_rows is None:
        low, high = fitted.facts.feature_range.astype(np.float64)
        values = np.linspace(low, high, background)
    else:
        training = fitted.require_training_rows()
        usable = np.flatnonzero(training.has_weight)
        values = training.X[random.permutation(usable)[:background]]
    return Explanation(fitted, rows, level, values, estimator._n_threads(), labels)


class Explanation:
    """The training rows and features behind the intervals of n rows, as `explain` returns them.

    Parameters
    ----------
    fitted : FittedForest
        The fitted model.
    X : (n, n_features) array
        The rows to explain, in the form that the forest reads.
    coverage : float
        The coverage of the intervals.
    background : (b, n_features) array
        Other values of the features.
    n_threads : int
        Number of threads.
    labels : (n,) array, optional
        The groups of the rows, if no feature holds them.

    Attributes
    ----------
    interval : (n, 2) float64
        The explained intervals, equal to the ones of `predict_interval`.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest import HDIForestRegressor
    >>> from hdiforest.inspection import explain
    >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
    >>> model = HDIForestRegressor(random_state=0).fit(X, y)
    >>> explain(model, [[0, 0, 0, 0]], random_state=0).interval.shape
    (1, 2)
    """

    def __init__(
        self,
        fitted: FittedForest,
        X: Rows,
        coverage: float,
        background: Rows,
        n_threads: int,
        labels: NDArray[Any] | None = None,
    ) -> None:
        self._fitted, self._X, self._background = fitted, X, background
        self._coverage, self._n_threads, self._labels = coverage, n_threads, labels
        self.interval = self._intervals(X, slice(None))

    def __repr__(self) -> str:
        return f"Explanation of {len(self._X):,} intervals of coverage {self._coverage:g}"

    @cached_property
    def rows(self) -> dict[str, NDArray[Any]]:
        """A dict of columns: for each row the training rows that have weight, the heaviest first.

        ``row`` is the position in X. ``training_row`` is the position in the fit. ``target`` and
        ``weight`` are the target and the weight of the training row. ``value`` is its place in the
        distribution: its target, or with residuals the sum of residual and centre.

        ``pins`` is "lower", "upper" or "both" if the row is an end of the interval before it is
        widened, and "" otherwise. ``lower_without`` and ``upper_without`` are the ends without the
        training row in the leaves. Trees, centres and conformal quantiles stay as they are. NaN
        means that no other row has weight.

        ValueError is raised without training rows, with ``weights="monotonic"``, or if the
        calibration does not keep what its intervals are made of. O(support * leaf sizes summed over
        trees) a row.
        """
        fitted, training = self._fitted, self._fitted.require_training_rows()
        reason = fitted.why_not_out_of_bag()
        if fitted.facts.weights == "monotonic":
            reason = "with weights='monotonic' they have another target in each leaf"
        if reason is not None:
            raise ValueError(f"the training rows cannot be told apart, because {reason}")
        # Of each family, where the training rows stand around the centre, and what they weigh.
        atoms = {"raw": (training.y, training.sample_weight_in(fitted.facts.weights))}
        if fitted.calibrated is not None and fitted.calibrated.centred is not None:
            family = fitted.calibrated.centred.family
            source = OutOfBagIntervals(fitted, self._n_threads)
            atoms[family] = source.residuals(family), source.row_weights
        drawn = training.counted_in(fitted.facts.weights)
        return _joined([self._without_each(i, atoms, drawn) for i in range(len(self._X))])

    def _without_each(self, i: int, atoms: Any, drawn: Any) -> dict[str, NDArray[Any]]:
        fitted, n_threads, row = self._fitted, self._n_threads, slice(i, i + 1)
        x = self._X[row]
        forest, training = fitted.scorer.forest, fitted.require_training_rows()
        row_scorer = fitted.row_scorer(lambda: n_threads)
        rows, weights = heaviest_atoms(row_scorer, x, fitted.n_training_rows, n_threads)
        support, weights = rows[rows >= 0], weights[rows >= 0]
        counts = (forest.leaves(training.X[support]) == forest.leaves(x)).astype(np.uint8)
        if drawn is not None:
            counts = counts * drawn[support]
        widened = () if fitted.calibrated is None else fitted.calibrated.bases(self._coverage)
        bases = widened or (Base("raw", "hdi", self._coverage),)
        last = bases[-1]
        # An end that is the middle of two is pinned by either.
        either: tuple[BaseKind, ...] = ("hdi", "equal_tailed")
        kinds = either if last.kind == "averaged" else (last.kind,)
        parts = [last._replace(kind=kind) for kind in kinds]
        values, row_weights = atoms[last.family]
        support_weights = None if row_weights is None else row_weights[support]
        ends = intervals_without_each(
            counts,
            values[support],
            support_weights,
            [base.level for base in (*bases, *parts)],
            [base.kind for base in (*bases, *parts)],
            n_threads,
        )
        values = values[support]
        lower, upper = (np.isin(values, each) for each in ends[0, :, len(bases) :])
        pins = np.select([lower & upper, lower, upper], ["both", "lower", "upper"], "")
        # Ends move around their centre, which stays.
        whole = fitted.base_intervals(x, [*bases, *parts], n_threads)
        centre = whole - ends[:1]
        ends = np.where(ends == ends[:1], whole, ends + centre)[1:, :, : len(bases)]
        if widened:
            codes = self._codes(x.repeat(len(support), axis=0), row)
            ends = fitted.calibration.intervals(ends, codes)
        return {
            "training_row": support,
            "target": training.y[support],
            "value": values + centre[0, 0, -1],
            "weight": weights,
            "pins": pins,
            "lower_without": ends[:, 0, -1],
            "upper_without": ends[:, 1, -1],
        }

    @cached_property
    def features(self) -> dict[str, NDArray[Any]]:
        """A dict of columns: for each row its features, the largest changes of width first.

        ``row`` is the position in X. ``feature`` is the name. ``change_of_width`` is the width
        minus the mean width with the feature's background values. It is positive if the row's value
        widens the interval.

        ``narrowest_value`` is the background value with the least width, and ``narrowest_width`` is
        that width. ``unlike`` is the share of the rows with other values that `diagnose` flags,
        because values may not occur together. It is NaN if `diagnose` is not possible. O(background
        * n_features) intervals a row.
        """
        names, tables = np.array(self._fitted.names_of_features), []
        for i, (lower, upper) in enumerate(self.interval):
            widths, unlike = self._with_others(i)
            with np.errstate(invalid="ignore"):  # of infinite intervals
                change = (upper - lower) - widths.mean(axis=1)
            best = np.nan_to_num(widths, nan=np.inf).argmin(axis=1)
            columns = {
                "feature": names,
                "change_of_width": change,
                "narrowest_value": self._background[best, np.arange(len(names))],
                "narrowest_width": widths[np.arange(len(names)), best],
                "unlike": unlike,
            }
            order = np.argsort(-np.abs(change), kind="stable")
            tables.append({name: each[order] for name, each in columns.items()})
        return _joined(tables)

    def _with_others(self, i: int) -> tuple[Array, Array]:
        """Return widths with each feature taken from the background, (p, b), and shares flagged."""
        n_others, n_features = self._background.shape
        widths, unlike = np.empty((n_features, n_others)), np.full(n_features, np.nan)
        reference = self._fitted.require_reference() if self._fitted.has_reference else None
        at_once = max(1, BLOCK_CELLS // self._background.size)
        for first in range(0, n_features, at_once):
            part = range(first, min(first + at_once, n_features))
            rows = np.tile(self._X[i], (len(part), n_others, 1))
            rows[np.arange(len(part)), :, part] = self._background[:, part].T
            rows = rows.reshape(-1, n_features)
            lower, upper = self._intervals(rows, slice(i, i + 1)).T
            widths[part] = (upper - lower).reshape(-1, n_others)
            if reference is not None:
                far = reference.dissimilarity(rows, self._n_threads) > reference.threshold
                unlike[part] = far.reshape(-1, n_others).mean(axis=1)
        return widths, unlike

    def plot(self, row: int = 0, axes: Any = None) -> ExplanationDisplay:
        """Draw the training rows behind one interval, and the effect of each feature on its width.

        Parameters
        ----------
        row : int, default=0
            Position of the row in X.
        axes : two matplotlib Axes, optional
            The axes to draw on. The default is axes of a new figure.

        Returns
        -------
        ExplanationDisplay
            The picture.
        """
        if not 0 <= check_whole_number("row", row, 0) < len(self._X):
            raise ValueError(f"row must be below {len(self._X)}, got {row}")
        rows, features = (
            {name: cells[table["row"] == row] for name, cells in table.items()}
            for table in (self.rows, self.features)
        )
        display = ExplanationDisplay(rows=rows, features=features, interval=self.interval[row])
        return display.plot(axes)

    def _codes(self, X: Rows, of: slice) -> NDArray[np.intp] | None:
        """Return the groups of rows, as many times as need be those of some that are explained."""
        labels = None if self._labels is None else np.resize(self._labels[of], len(X))
        calibrated = self._fitted.calibrated
        return None if calibrated is None else calibrated.codes_if_given(X, labels)

    def _intervals(self, X: Rows, of: slice) -> Array:
        calibrated, n_threads = self._fitted.calibrated, self._n_threads
        if calibrated is None:
            return self._fitted.scorer.intervals(X, self._coverage, n_threads=n_threads)
        positions = calibrated.result.positions(self._coverage)
        query = IntervalQuery(X, positions, n_threads, codes=self._codes(X, of))
        return calibrated.intervals(query)


def _joined(tables: Sequence[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Return the columns of one table, behind a column of the positions of each."""
    sizes = [len(next(iter(table.values()))) for table in tables]
    columns = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    return {"row": np.repeat(np.arange(len(tables)), sizes), **columns}
