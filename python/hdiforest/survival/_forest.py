"""HDISurvivalForest: distributions of the time to an event, by scikit-survival's conventions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from hdiforest._estimators import row_source
from hdiforest._estimators.fitted_model import FittedModel
from hdiforest._estimators.input_rows import checked_rows, rows_for_sklearn
from hdiforest._estimators.new_rows import NewRows
from hdiforest._estimators.out_of_bag import OutOfBagPredictions
from hdiforest._model.censoring import (
    censoring_target,
    default_survival_forest,
    deviance_residuals,
    index_survival,
    split_target,
)
from hdiforest._model.fitted import FittedForest
from hdiforest._tables.encoder import TableEncoder
from hdiforest._tables.frames import Output, frame_of
from hdiforest._utils import Array, Events, checks
from hdiforest._utils.checks import known_arguments, thread_count
from hdiforest._utils.hints import warn_caller
from hdiforest._utils.meta_estimators import thawed
from hdiforest.calibration._candidates import DEFAULT_COVERAGES
from hdiforest.calibration._result import USUAL_COVERAGE
from hdiforest.calibration._split import refuse_training_rows
from hdiforest.calibration._tails import FEW_EVENTS, calibrate_tails
from hdiforest.exceptions import InfiniteIntervalsWarning
from hdiforest.serving import _model_file as model_file

SurvivalKind = Literal["calibrated", "hdi", "equal_tailed", "lower", "upper"]


class HDISurvivalForest(FittedModel[FittedForest]):
    """Distributions and shortest intervals of the time to an event, from a random forest.

    A training row weighs as much for a new row as the two share leaves. The distribution is the
    estimator of Kaplan and Meier (1958) with these weights. Mass that no event takes lies beyond
    the follow-up: an end there is infinite.

    Parameters
    ----------
    estimator : estimator, default=None
        The forest of scikit-learn to grow, on deviance residuals. A fitted forest in a
        ``FrozenEstimator`` is kept as it is. None means ``RandomForestRegressor(300,
        min_samples_leaf=10, max_features=1/3)``.
    n_jobs : int, default=None
        Threads. None means 1. -1 means all processors.
    random_state : int, RandomState or None, default=None
        Seed of the forests of the fit. An `estimator` has its own seed.

    Attributes
    ----------
    estimator_ : estimator
        The fitted forest. A model that was loaded from a file has none.
    unique_times_ : (n_event_times,) ndarray of float64
        Distinct times of events in the fit, ascending.
    calibration_ : hdiforest.survival.TailCalibration
        The result of `calibrate`. A model without a calibration has none.
    oob_ : hdiforest.OutOfBagPredictions
        Predictions for the training rows, each by the trees that did not draw the row.
    n_features_in_ : int
        Number of columns of X in `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns of X. A model that was fitted without names has none.

    Notes
    -----
    Methods raise NotFittedError if the model is not fitted, and ValueError if an argument is
    refused. X may be an array, or a table of numbers of pandas, polars or pyarrow.

    Examples
    --------
    >>> import numpy as np
    >>> from hdiforest import HDISurvivalForest
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(300, 2))
    >>> time, until = np.exp(X[:, 0]), random.exponential(3, 300)
    >>> pairs = list(zip(time <= until, np.minimum(time, until)))
    >>> y = np.array(pairs, dtype=[("event", bool), ("time", float)])
    >>> model = HDISurvivalForest(random_state=0).fit(X, y)
    >>> lower, upper = model.predict_interval(X[:3], coverage=0.8).T
    >>> bool((lower <= upper).all())
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_jobs: int | None = None,
        random_state: int | RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs
        self.random_state = random_state

    @classmethod
    def from_forest(cls, forest: Any, X: ArrayLike, y: Any, *, n_jobs: int | None = None) -> Self:
        """Use a forest that is already fitted, without fitting anything.

        Parameters
        ----------
        forest : fitted estimator
            RandomSurvivalForest, ExtraSurvivalTrees or SurvivalTree of scikit-survival, also with
            ``low_memory=True``, or any forest of scikit-learn's trees.
        X : (n, n_features) array or table
            Rows of the forest's own fit, in the same order. The numbers of rows in every leaf are
            compared with the record of the forest.
        y : (n,) structured array
            Events and times of the rows, which cannot be compared with a record.
        n_jobs : int, default=None
            Threads. See the class.

        Returns
        -------
        HDISurvivalForest
            A fitted model.
        """
        return cls(FrozenEstimator(forest), n_jobs=n_jobs).fit(X, y)

    def fit(self, X: ArrayLike, y: Any) -> Self:
        """Grow the forest (unless it is frozen) and index its training rows by leaf.

        Parameters
        ----------
        X : (n, n_features) array or table
            Training rows.
        y : (n,) structured array
            A boolean event, and the time of the event or of the censoring. See
            ``sksurv.util.Surv.from_arrays``.

        Returns
        -------
        HDISurvivalForest
            The model itself. A refused argument leaves the model as it was.
        """
        before = self.__dict__.copy()
        try:
            self._fit(X, *split_target(y))
        except BaseException:
            self.__dict__ = before
            raise
        return self

    def _fit(self, X: Any, event: Events, time: Array) -> None:
        is_frozen = isinstance(self.estimator, FrozenEstimator)
        if is_frozen:
            forest = thawed(self.estimator)
            check_is_fitted(forest)
        elif self.estimator is None:
            forest = default_survival_forest(self.n_jobs, self.random_state)
        else:
            forest = self.estimator
        allow_nan = get_tags(forest).input_tags.allow_nan
        finite: Any = "allow-nan" if allow_nan else True
        options: Any = {"dtype": np.float32, "order": "C", "copy": True}
        rows = validate_data(self, rows_for_sklearn(X), ensure_all_finite=finite, **options)
        checks.check_as_many("y", time, len(rows))
        if not is_frozen:
            forest = clone(forest).fit(rows, deviance_residuals(event, time))
        names = getattr(self, "feature_names_in_", None)
        about = names, allow_nan, thread_count(self.n_jobs)
        self._keep(index_survival(forest, rows, event, time, *about))
        self.estimator_, self._row_labels = forest, frame_of(X).index

    def _read_by(self, encoder: TableEncoder | None) -> Self:
        """Take the encoder that made the features of a table."""
        self._fitted = replace(self._fitted_forest(), encoder=encoder)
        return self

    def _keep(self, fitted: FittedForest) -> None:
        super()._keep(fitted)
        self.n_features_in_ = fitted.n_features

    def _n_threads(self, n_rows: int | None = None) -> int:  # noqa: ARG002
        return thread_count(self.n_jobs)

    @property
    def unique_times_(self) -> Array:
        """Distinct times of events in the fit, ascending."""
        index = self._fitted_forest().scorer.index
        times: Array = index.atoms()[index.arrays()["events"] != 0]
        return times

    @property
    def oob_(self) -> OutOfBagPredictions:
        """Predictions for the training rows, each by the trees that did not draw the row."""
        check_is_fitted(self)
        return OutOfBagPredictions(self._at_once())

    def calibrate(
        self,
        X: ArrayLike | None = None,
        y: Any = None,
        *,
        coverage: float | Sequence[float] = DEFAULT_COVERAGES,
    ) -> Self:
        """Choose the levels of quantiles so that each tail misses no more events than its part.

        A missed event counts by the inverse of the chance that it is seen. A second forest, of the
        time of censoring, gives this chance. An upper end is claimed only where the chance to be
        followed so long is 0.05 at least.

        Parameters
        ----------
        X : (n, n_features) array or table, optional
            Rows that took no part in the fit, which is checked. None means the training rows, each
            by the trees that did not draw it.
        y : (n,) structured array, optional
            Events and times of the rows X.
        coverage : float or sequence of floats, default=(0.5, 0.8, 0.9, 0.95, 0.99)
            Shares of event times to cover, above 0 and below 1.

        Returns
        -------
        HDISurvivalForest
            The model itself. A warning is given if there are fewer than 20 events, or if all upper
            ends of a coverage that is asked for, or of 0.9, are infinite.
        """
        coverages, forest = checks.checked_coverages(coverage), self._fitted_forest().uncalibrated()
        if (X is None) != (y is None):
            raise ValueError("X and y must be given together, or neither")
        rows = None
        if X is not None:
            event, time = split_target(y)
            new = checked_rows(self, X, forest)
            checks.check_as_many("y", time, len(new))
            training = forest.require_training_rows()
            refuse_training_rows(new, time, training.X, training.y)
            rows = new, event, time
        calibrated = calibrate_tails(
            forest, lambda: self._censoring_forest(forest), coverages, rows, self._n_threads()
        )
        self._fitted = forest.with_calibration(calibrated)
        result = calibrated.result
        if result.n_events < FEW_EVENTS:
            warn_caller(f"{result.n_events} events are few to calibrate by: levels are coarse")
        # The follow-up seldom reaches the highest coverages, which nobody has asked for.
        most = USUAL_COVERAGE if coverage is DEFAULT_COVERAGES else 1
        if few := [
            f"{e.coverage:g}" for e in result.levels if e.infinite == 1 and e.coverage <= most
        ]:
            warn_caller(
                f"all upper ends at coverage {', '.join(few)} are infinite: the follow-up does "
                "not reach so far",
                InfiniteIntervalsWarning,
            )
        return self

    def _censoring_forest(self, forest: FittedForest) -> list[FittedForest]:
        """Return the forest of the time of censoring, grown on the rows of the fit."""
        training = forest.require_training_rows()
        if training.event is None or training.event.all():
            return []
        is_censored, until = censoring_target(training.event, training.y)
        seed = checks.checked_seed(self.random_state)
        # Few features may say when rows are censored, so that trees must find them.
        grown = default_survival_forest(self.n_jobs, seed).set_params(max_features=0.5)
        grown.fit(training.X, deviance_residuals(is_censored, until))
        about = forest.facts.feature_names, forest.facts.allow_nan, self._n_threads()
        return [index_survival(grown, training.X, is_censored, until, *about)]

    @known_arguments
    def predict(self, X: ArrayLike) -> Array:
        """Return a risk: minus the restricted mean up to the last time of an event.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.

        Returns
        -------
        (n,) float64
            Risks. A row with a higher risk has its event earlier.
        """
        return -self.restricted_mean(X)

    def restricted_mean(self, X: ArrayLike, tau: float | None = None) -> Array:
        """Return the mean of the time to the event, cut at a horizon.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        tau : float, optional
            The horizon. None means the last time of an event in the fit.

        Returns
        -------
        (n,) float64
            Areas below the survival functions up to `tau`. O(n * n_event_times).
        """
        times = self.unique_times_
        tau = float(times[-1]) if tau is None else tau
        if not 0 < tau <= times[-1]:
            raise ValueError(f"tau must lie in (0, {times[-1]:g}], the last event, got {tau!r}")
        steps = np.append(times[times < tau], tau)
        area: Array = steps[0] + self._survival(X, steps[:-1]) @ np.diff(steps)
        return area

    def predict_survival_function(
        self, X: ArrayLike, times: ArrayLike | None = None, *, return_array: bool = False
    ) -> Any:
        """Return P(T > t) of each row.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        times : (k,) array, optional
            Times t. None means `unique_times_`.
        return_array : bool, default=False
            Whether to return an array. If not, the result is of ``sksurv.functions.StepFunction``,
            which the metrics of scikit-survival take.

        Returns
        -------
        (n, k) float64, or (n,) array of StepFunction
            Survival functions, constant behind the last event.
        """
        points = self.unique_times_ if times is None else checks.reals("times", times)
        survival = self._survival(X, points)
        if return_array:
            return survival
        try:
            from sksurv import functions
        except ImportError:
            raise ImportError(
                "predict_survival_function needs scikit-survival, unless return_array=True: pip "
                "install scikit-survival"
            ) from None
        end = float(self._fitted_forest().scorer.index.atoms()[-1])  # of the follow-up
        functions_of_rows = np.empty(len(survival), dtype=object)
        for i, row in enumerate(survival):
            functions_of_rows[i] = functions.StepFunction(points, row, domain=(0, end))
        return functions_of_rows

    def _survival(self, X: Any, times: Array) -> Array:
        """Return P(T > t) of rows at ascending times, (n, k)."""
        fitted = self._fitted_forest()
        rows = checked_rows(self, X, fitted)
        points = np.broadcast_to(times, (len(rows), len(times)))
        cdf = fitted.scorer.cdf(rows, points, n_threads=self._n_threads())
        return np.subtract(1, cdf, out=cdf)

    @known_arguments
    def predict_interval(
        self,
        X: ArrayLike,
        coverage: float | ArrayLike = 0.9,
        *,
        kind: SurvivalKind | None = None,
        output: Output = "numpy",
    ) -> Any:
        """Return intervals for the time of the event.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        coverage : float or list of k floats, default=0.9
            The coverage of the intervals, in (0, 1].
        kind : str, optional
            The kind of interval. The default is "calibrated" if the model is calibrated, and "hdi"
            otherwise. "lower" and "upper" have one end, and are calibrated if the model is. "hdi"
            is the shortest interval, and "equal_tailed" runs between two quantiles.
        output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
            The type of the result: an array, or a table, which begins with the median.

        Returns
        -------
        (n, 2) or (n, 2, k) float64, or table
            Lower and upper ends, in the unit of time. An upper end is infinite if the level is not
            reached. A lower end is finite.
        """
        rows = NewRows(self, X)
        return row_source.interval(rows, coverage, kind, by=None, joint=False, output=output)

    @known_arguments
    def predict_quantiles(
        self, X: ArrayLike, quantiles: float | ArrayLike, *, output: Output = "numpy"
    ) -> Any:
        """Return quantiles of the time of the event, such as its median.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        quantiles : float or list of k floats
            Levels, in [0, 1].
        output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
            The type of the result: an array, or a table.

        Returns
        -------
        (n,) or (n, k) float64, or table
            The first time at which the level is reached, infinite if it is not.
        """
        return row_source.quantiles(NewRows(self, X), quantiles, "raw", None, output)

    @known_arguments
    def predict_cdf(
        self, X: ArrayLike, t: ArrayLike, *, inclusive: bool = True, output: Output = "numpy"
    ) -> Any:
        """Return the chance that the event has come by a time, P(T <= t given x).

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        t : float, (n,) or (n, k) array
            One or several times for each row, or one time for all rows.
        inclusive : bool, default=True
            Whether t itself counts. False gives P(T < t given x).
        output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
            The type of the result: an array, or a table.

        Returns
        -------
        array of the shape of t, float64, or table
            Probabilities between 0 and 1.
        """
        return row_source.cdf(NewRows(self, X), t, inclusive, "raw", output)

    def score(self, X: ArrayLike, y: Any) -> float:
        """Return the concordance index: how often the row with the higher risk fails first.

        Parameters
        ----------
        X : (n, n_features) array or table
            Rows that took no part in the fit.
        y : (n,) structured array
            Events and times of the rows.

        Returns
        -------
        float
            Share of comparable pairs in the right order, ties of risks count one half (Harrell et
            al. 1996). O(n ** 2).
        """
        event, time = split_target(y)
        risk = self.predict(X)
        checks.check_as_many("y", time, len(risk))
        right = n_pairs = 0.0
        for i in np.flatnonzero(event):
            later = (time > time[i]) | ((time == time[i]) & ~event)
            n_pairs += np.count_nonzero(later)
            right += np.count_nonzero(risk[later] < risk[i])
            right += np.count_nonzero(risk[later] == risk[i]) / 2
        return float(right / n_pairs) if n_pairs else float("nan")

    def save(self, path: str | os.PathLike[str], *, training_rows: bool = True) -> None:
        """Write the model to a file in safetensors format, whole or not at all.

        Parameters
        ----------
        path : path
            The file to write. An existing file is replaced.
        training_rows : bool, default=True
            Whether to include the training rows, which `calibrate` and ``oob_`` need.
        """
        model_file.save(self._fitted_forest(), Path(path), training_rows=training_rows)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, n_jobs: int | None = None) -> Self:
        """Open a model that `save` wrote. It scores without the forest it was made from.

        Parameters
        ----------
        path : path
            The file that `save` wrote.
        n_jobs : int, default=None
            Threads. See the class.

        Returns
        -------
        HDISurvivalForest
            A fitted model, which cannot be fitted again. A file that is damaged or holds another
            kind of model raises ValueError.
        """
        fitted = model_file.load(Path(path)).content
        if not fitted.is_censored:
            raise ValueError(f"{path} holds no survival model; use HDIForestRegressor.load")
        model = cls(n_jobs=n_jobs)
        model._keep(fitted)
        if fitted.facts.feature_names is not None:
            model.feature_names_in_ = np.array(fitted.facts.feature_names, dtype=object)
        return model
