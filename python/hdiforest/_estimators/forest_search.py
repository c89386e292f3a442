"""ForestSearchOOB: keeps the forest of several whose calibrated intervals are the narrowest."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.ensemble import BaggingRegressor, ExtraTreesRegressor, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, column_or_1d, get_tags
from sklearn.utils.validation import check_is_fitted

from hdiforest._estimators.distribution_model import DistributionModel
from hdiforest._estimators.hdi_forest import HDIForestRegressor
from hdiforest._estimators.input_rows import one_column_as_1d
from hdiforest._estimators.new_rows import NewRows
from hdiforest._model.fitted import FittedForest
from hdiforest._tables.frames import Output, frame_of
from hdiforest._utils import checks
from hdiforest._utils.checks import known_arguments
from hdiforest._utils.hints import printing
from hdiforest._utils.meta_estimators import layers
from hdiforest.calibration import OutOfBag
from hdiforest.calibration._calibrate import CrossFit, best_by_half
from hdiforest.calibration._method import Request
from hdiforest.calibration._predict import AnyKind
from hdiforest.calibration._selection import Objective, loss

_FORESTS = (RandomForestRegressor, ExtraTreesRegressor, BaggingRegressor)

_N_TREES = 300


class ForestSearchOOB(DistributionModel[FittedForest]):
    """Fit several forests and keep the one with the narrowest calibrated intervals out of bag.

    Each forest is fitted as an `HDIForestRegressor` and calibrated with ``method="oob"``. All rows
    serve the fit, the calibration and the choice. No rows are held out.

    Parameters
    ----------
    forests : list of estimators, default=None
        The forests to choose from: RandomForestRegressor, ExtraTreesRegressor or BaggingRegressor
        with trees that draw their rows. A forest may be in a Pipeline. A fitted forest may be in a
        ``FrozenEstimator``. None means three forests of 300 trees: RandomForestRegressor with a
        third of the features, RandomForestRegressor with all features, and
        ``ExtraTreesRegressor(bootstrap=True)``.
    coverage : float, default=0.9
        The coverage of the intervals that are compared, above 0 and below 1.
    objective : {"balanced", "width", "interval_score"}, default="balanced"
        The measure that chooses the forest and the level that is widened. See
        `hdiforest.calibration.OutOfBag`.
    n_jobs : int, default=None
        Threads for scoring, and for forests without a number of their own. Forests are fitted one
        after the other. See `HDIForestRegressor`.
    verbose : int, default=0
        Lines to print: 0 for none, 1 for each calibrated forest, 2 also for its stages.
    random_state : int, RandomState or None, default=None
        Seed of all forests without a seed, so that they draw the same rows as far as their kinds
        do. It is also the seed of the choice of calibration rows if there are more than 20,000.

    Attributes
    ----------
    best_estimator_ : HDIForestRegressor
        The calibrated model that was kept, with all methods, such as ``save`` and ``calibrate``.
    best_index_ : int
        Position of the chosen forest in the list. The first one wins a tie.
    coverage_ : float
        The coverage of the fit. It is the default coverage of `predict_interval`.
    results_ : dict of lists
        The results of each forest. "forest" is a clone of the given forest, with the seed of its
        fit. "width", "coverage" and "interval_score" are measures of its calibrated intervals out
        of bag. "cross_check" is the coverage of rows that neither selected nor widened, and NaN if
        there are too few rows. "seconds" is the time.
    calibration_ : hdiforest.calibration.Calibration
        The calibration of `best_estimator_`.
    n_features_in_ : int
        Number of columns of X in `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns of X in `fit`, if it had names.
    n_outputs_ : int
        Number of targets, always 1.
    n_training_rows_ : int
        Number of rows of the fit.

    Notes
    -----
    The least of several widths is a little optimistic, and more so below 500 rows. The cross-check
    of `calibration_` includes the choice and is not optimistic. At most two fitted models are in
    memory at once.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
    >>> from hdiforest import ForestSearchOOB
    >>> X, y = make_regression(n_samples=600, n_features=4, noise=10, random_state=0)
    >>> forests = [RandomForestRegressor(), ExtraTreesRegressor(bootstrap=True)]
    >>> search = ForestSearchOOB(forests, random_state=0).fit(X, y)
    >>> search.best_index_
    1
    >>> search.predict_interval(X[:3]).shape
    (3, 2)
    """

    best_estimator_: HDIForestRegressor
    best_index_: int
    coverage_: float
    results_: dict[str, list[Any]]

    def __init__(
        self,
        forests: Sequence[Any] | None = None,
        coverage: float = 0.9,
        *,
        objective: Objective = "balanced",
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.forests = forests
        self.coverage = coverage
        self.objective = objective
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit and calibrate every forest, and keep the best.

        Parameters
        ----------
        X : (n, n_features) array or table
            Training rows.
        y : (n,) array
            Targets of the rows, finite numbers.
        sample_weight : (n,) array, optional
            Weights of the rows. See `HDIForestRegressor.fit`.

        Returns
        -------
        ForestSearchOOB
            The search itself.
        """
        forests = self._candidates()
        _check_forests(forests)
        coverage = checks.one_share("coverage", self.coverage)
        method = OutOfBag(objective=self.objective)
        X = frame_of(X).sliceable().native  # streams can be read once
        if y is not None:
            y = column_or_1d(one_column_as_1d(np.asarray(y)))
        seed = int(checks.checked_random_state(self.random_state).randint(2**31 - 1))

        of_rows = 0 if self.random_state is None else seed
        best_index, least = 0, np.inf
        table: list[dict[str, Any]] = []
        fits: list[tuple[NDArray[np.intp], CrossFit]] = []
        for index, candidate in enumerate(forests):
            start, forest = time.perf_counter(), self._prepare(candidate, seed)
            model = HDIForestRegressor(forest, calibration=False, n_jobs=self.n_jobs)
            with printing(type(self).__name__, self.verbose, 1):
                model.fit(X, y, sample_weight)
                try:
                    request = Request((coverage,), model._n_threads(), random_state=of_rows)
                    calibrated, rows, fit = method.cross_fit(model._fitted_forest(), request)
                except ValueError as error:
                    message = f"cannot be calibrated on {model.n_training_rows_} sample(s): {error}"
                    raise ValueError(f"forests[{index}], {candidate!r}, {message}") from error
            fits.append((rows, fit))
            level = calibrated.result.levels[0]
            entry = {
                "forest": forest,
                "width": level.mean_width,
                "interval_score": level.interval_score,
                "coverage": level.realised,
                "cross_check": np.nan if level.cross_check is None else level.cross_check.coverage,
                "seconds": time.perf_counter() - start,
            }
            table.append(entry)
            if self.verbose:
                name, of_all = type(self).__name__, f"forest {index + 1} of {len(forests)}"
                width, took = checks.significant(level.mean_width), entry["seconds"]
                print(f"[{name}] {of_all}: width {width}, {checks.time_text(took)}", flush=True)
            of_model = float(loss(level.mean_width, level.interval_score, self.objective))
            if index == 0 or of_model < least:
                best, chosen, best_index, least = model, calibrated, index, of_model
            del model, calibrated  # before the next is fitted
        rows = reduce(np.intersect1d, [rows_of_fit for rows_of_fit, _ in fits], fits[0][0])
        same_rows = [each.of_rows(np.searchsorted(rows_of_fit, rows)) for rows_of_fit, each in fits]
        if len(rows) > 0:
            checked = best_by_half(same_rows, self.objective).checks()
            chosen = replace(chosen, result=chosen.result.with_checks("cross_check", checked))
        best._attach(chosen)
        self.best_estimator_, self.best_index_, self.coverage_ = best, best_index, coverage
        self.results_ = {name: [entry[name] for entry in table] for name in table[0]}
        return self

    @known_arguments
    def predict_interval(
        self,
        X: ArrayLike,
        coverage: float | ArrayLike | None = None,
        *,
        kind: AnyKind | None = None,
        by: ArrayLike | None = None,
        joint: bool = False,
        output: Output = "numpy",
    ) -> Any:
        """Return calibrated prediction intervals.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        coverage : float or list of k floats, optional
            The coverage of the intervals, in (0, 1]. The default is the coverage of the search.
        kind : str, optional
            The kind of interval, by default "calibrated". See
            `HDIForestRegressor.predict_interval`.
        by : (n,) array, optional
            Groups of the rows, if the calibration was made by groups that no column of X holds.
        joint : bool, default=False
            Boxes in place of intervals. With one output it changes nothing.
        output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
            The type of the result: an array, or a table of the named library.

        Returns
        -------
        (n, 2) or (n, 2, k) float64, or table
            Lower and upper ends, in the unit of y.
        """
        given: Any = getattr(self, "coverage_", None) if coverage is None else coverage
        options: Any = {"kind": kind, "by": by, "joint": joint}
        return super().predict_interval(X, given, **options, output=output)

    def _source(self, X: Any) -> NewRows:
        return NewRows(self._best(), X)

    def _best(self) -> HDIForestRegressor:
        """Return the model that was kept, or raise NotFittedError."""
        check_is_fitted(self)
        return self.best_estimator_

    @property
    def _fitted(self) -> FittedForest:  # type: ignore[override]
        return self.best_estimator_._fitted

    @property
    def n_features_in_(self) -> Any:
        """Number of columns of X in `fit`."""
        return self.best_estimator_.n_features_in_

    @property
    def feature_names_in_(self) -> Any:
        """Names of the columns of X in `fit`, if it had names."""
        return self.best_estimator_.feature_names_in_

    def _candidates(self) -> Sequence[Any]:
        if self.forests is not None:
            return self.forests
        forests = [RandomForestRegressor(_N_TREES, max_features=f) for f in (1 / 3, 1.0)]
        return [*forests, ExtraTreesRegressor(_N_TREES, bootstrap=True)]

    def _prepare(self, candidate: Any, seed: int) -> Any:
        """Return a clone with the seed and n_jobs of the search where it has none."""
        forest = clone(candidate)
        parts = layers(forest, fitted=False)
        if any(isinstance(part, FrozenEstimator) for part in parts):
            return forest
        params = parts[-1].get_params(deep=False)
        for name, value in {"random_state": seed, "n_jobs": self.n_jobs}.items():
            if name in params and params[name] is None:
                parts[-1].set_params(**{name: value})
        return forest

    def __sklearn_tags__(self) -> Tags:
        tags, forests = super().__sklearn_tags__(), map(get_tags, self._candidates())
        tags.input_tags.allow_nan = all(forest.input_tags.allow_nan for forest in forests)
        return tags


def _check_forests(forests: Any) -> None:
    """Raise ValueError unless it is a list of forests whose trees draw their rows."""
    if not isinstance(forests, Sequence) or len(forests) == 0:
        raise ValueError(f"forests must be a list of one forest or more, got {forests!r}")
    for index, candidate in enumerate(forests):
        forest = layers(candidate, fitted=False)[-1]
        if not isinstance(forest, _FORESTS):
            classes = checks.alternatives(kind.__name__ for kind in _FORESTS)
            raise ValueError(f"forests[{index}] must be a {classes}, got {forest!r}")
        if not (forest.bootstrap or isinstance(forest, BaggingRegressor)):
            raise ValueError(
                f"forests[{index}] must have bootstrap=True, because rows are predicted by trees "
                f"that did not draw them, got {forest!r}"
            )
